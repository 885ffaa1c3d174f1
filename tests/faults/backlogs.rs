//! Notifiers and Redis under load and at rest: backlogs, hanging receivers, narrow limits, and the calls to Redis of
//! idle and of many processes.

use ringback_testkit::Role;
use tokio::time::{Instant, sleep};

use crate::prelude::*;
use crate::sample_jobs::{between, time};

#[tokio::test]
async fn a_receiver_that_hangs_does_not_delay_another() {
    let options = Stack::options().role_env(Role::Notifier, "RINGBACK_LANE_CONCURRENCY", "4").role_env(
        Role::Notifier,
        "RINGBACK_CONCURRENCY",
        "16",
    );
    let (stack, hanging, healthy) = (options.start().await, Sink::start().await, Sink::start().await);
    hanging.answer(Answer::status(200).held());
    let jobs: Vec<Value> =
        (0..100).map(|n| with(job(&hanging, &format!("hangs-{n}")), "timeout", "60s")).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 100);
    hanging.wait_for(4, SOON).await;

    for n in 0..40 {
        let id = format!("job-{n}");
        let accepted = stack.accept(&job(&healthy, &id)).await;
        let arrival = healthy.wait_for_job(&id, 1, SOON).await.remove(0);
        let late = between(time(&accepted["due_at"]), arrival.at);
        assert!(late < Duration::from_secs(2), "{id} is {late:?} late");
    }
    assert_eq!((hanging.seen(), hanging.hung_up()), (4, 0), "no more than its lane may have");
}

/// A notifier that lost track of a full lane would continue only at its floor timer, every five seconds.
#[tokio::test]
async fn a_narrow_notifier_goes_on_as_soon_as_it_can() {
    for (concurrency, lane) in [("1", "1"), ("2", "1"), ("5", "3")] {
        let options = Stack::options()
            .count(Role::Notifier, 0)
            .role_env(Role::Notifier, "RINGBACK_CONCURRENCY", concurrency)
            .role_env(Role::Notifier, "RINGBACK_LANE_CONCURRENCY", lane);
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        let jobs: Vec<Value> = (0..60).map(|n| job(&sink, &format!("job-{n}"))).collect();
        assert_eq!(stack.batch(&jobs).await.1["accepted"], 60);
        stack.add(Role::Notifier).await;
        sink.wait_for(60, Duration::from_secs(15)).await;
    }
}

/// A lane is refilled in batches; a lane whose other calls hang would never have room for one.
#[tokio::test]
async fn the_last_free_call_of_a_lane_is_used_though_its_others_hang() {
    let options = Stack::options().role_env(Role::Notifier, "RINGBACK_LANE_CONCURRENCY", "8");
    let (stack, sink) = (options.start().await, Sink::start().await);
    for n in 0..7 {
        let id = format!("hangs-{n}");
        sink.answer_job(&id, Answer::status(200).held());
        stack.accept(&with(job(&sink, &id), "timeout", "60s")).await;
        sink.wait_for_job(&id, 1, SOON).await;
    }
    for n in 0..5 {
        let id = format!("job-{n}");
        let accepted = stack.accept(&job(&sink, &id)).await;
        let arrival = sink.wait_for_job(&id, 1, SOON).await.remove(0);
        let late = between(time(&accepted["due_at"]), arrival.at);
        assert!(late < Duration::from_secs(2), "{id} is {late:?} late");
    }
    assert_eq!(sink.hung_up(), 0);
}

#[tokio::test]
async fn a_backlog_is_delivered_by_three_notifiers_each_job_once() {
    const JOBS: usize = 3_000;
    let options = Stack::options().count(Role::Carrier, 2).count(Role::Notifier, 0).lease_margin("30s");
    let (mut stack, sink) = (options.start().await, Sink::counting().await);
    let jobs: Vec<Value> = (0..JOBS)
        .map(|n| with(job(&sink, &format!("job-{n}")), "topic", format!("topic-{}", n % 50)))
        .collect();
    for chunk in jobs.chunks(1_000) {
        assert_eq!(stack.batch(chunk).await.1["accepted"], 1_000);
    }
    assert_eq!(stack.count_in("ready").await, JOBS as u64);

    stack.notifiers = (0..3).map(|_| stack.spec(Role::Notifier).start()).collect();
    stack.ready(SOON).await;
    stack.wait_count("done", JOBS as u64, Duration::from_secs(60)).await;
    let counts = sink.counts();
    let twice = counts.iter().filter(|(_, count)| **count != 1).count();
    assert_eq!((counts.len(), sink.seen(), twice), (JOBS, JOBS, 0));
}

#[tokio::test]
async fn while_nothing_is_due_redis_is_left_alone() {
    // All roles together without jobs: each of the five processes makes some periodic calls.
    const CALLS_PER_SECOND: f64 = 45.0;
    let options = Stack::options().count(Role::Carrier, 2).count(Role::Notifier, 2).lock_ttl("5s");
    let (stack, sink) = (options.start().await, Sink::start().await);
    let jobs: Vec<Value> = (0..1_000)
        .map(|n| {
            let far = with(job(&sink, &format!("job-{n}")), "delay", 3_600 + n);
            with(far, "topic", format!("topic-{}", n % 20))
        })
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 1_000);

    let watch = stack.redis().watch_calls().await;
    let begin = Instant::now();
    // This sleep waits for nothing: it is the window of the measurement, as long as the slowest timer.
    sleep(Duration::from_secs(5)).await;
    let rate = watch.total() as f64 / begin.elapsed().as_secs_f64();
    assert!(rate < CALLS_PER_SECOND, "{rate:.1} calls a second: {:?}", watch.by_command());
    let states = &stack.stats().await["states"];
    assert_eq!(states["delayed"], json!(1_000), "{states}");
}

/// A job that becomes ready wakes every notifier, and only one gets it. If each of the others asked in vain every
/// time, eight notifiers would cost the store several times as much as one.
#[tokio::test]
async fn many_notifiers_cost_the_store_little_more_than_one() {
    let (one, eight) = (calls_of_a_trickle(1).await, calls_of_a_trickle(8).await);
    assert!(eight < one * 2, "{one} calls with one notifier, {eight} with eight");
}

/// The number of script calls while 1,000 jobs become due one after the other, 200 a second.
async fn calls_of_a_trickle(notifiers: usize) -> u64 {
    const JOBS: u64 = 1_000;
    let options = Stack::options().count(Role::Notifier, notifiers);
    let (stack, sink) = (options.start().await, Sink::counting().await);
    let jobs: Vec<Value> = (0..JOBS)
        .map(|n| with(job(&sink, &format!("job-{n}")), "delay", format!("{}ms", 500 + n * 5)))
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], JOBS);
    let scripts = async || stack.redis().command_calls().await["fcall"];
    let before = scripts().await;
    eventually(Duration::from_secs(60), "every job is done", async || match sink.seen() as u64 {
        JOBS => Ok(()),
        seen => Err(format!("{seen} have arrived")),
    })
    .await;
    scripts().await - before
}
