//! Jobs that a notifier leases ahead of those in flight, because their receiver was quick: what becomes of them if it
//! hangs, if they are cancelled, and if the notifier ends.

use ringback_testkit::{Role, Script};

use crate::prelude::*;

const PLACES: &str = "8";
const JOBS: usize = 400;
/// So many callbacks are answered at once.
const QUICK: usize = 200;

fn ids() -> Vec<String> {
    (0..JOBS).map(|n| format!("job-{n:03}")).collect()
}

/// A stack without notifiers, and a backlog of jobs for one lane.
async fn backlog(sink: &Sink) -> Stack {
    let options = Stack::options()
        .count(Role::Notifier, 0)
        .env("RINGBACK_LOG", "debug")
        .env("RINGBACK_SHARDS", "1")
        .role_env(Role::Notifier, "RINGBACK_LANE_CONCURRENCY", PLACES);
    let stack = options.start().await;
    let jobs: Vec<Value> = ids().iter().map(|id| with(job(sink, id), "timeout", "60s")).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], JOBS);
    stack.wait_count("ready", JOBS as u64, SOON).await;
    stack
}

/// A notifier whose receiver answers some callbacks at once, and then hangs.
async fn begins_to_hang() -> (Stack, Sink) {
    let sink = Sink::start().await;
    sink.answer(Script::first(QUICK, Answer::status(200)).finally(Answer::status(200).held()));
    let mut stack = backlog(&sink).await;
    stack.add(Role::Notifier).await;
    (stack, sink)
}

#[tokio::test]
async fn what_was_leased_ahead_of_a_receiver_that_hangs_is_given_back_and_counts_for_nothing() {
    let (stack, sink) = begins_to_hang().await;
    stack.notifiers[0].wait_log("given back, because their receivers have become slow", SOON).await;
    stack.wait_count("reserved", 8, SOON).await;
    for job in stack.pages("/v1/jobs?state=ready").await.concat() {
        assert_eq!((&job["attempts"], &job["failures"]), (&json!(0), &json!(0)), "{job}");
    }
    sink.release();
    sink.answer(Answer::status(200));
    stack.wait_count("done", JOBS as u64, SOON).await;
    assert!(sink.arrivals().iter().all(|arrival| arrival.attempt() == Some(1)));
    assert_eq!(sink.seen(), JOBS, "each job has arrived once");
}

#[tokio::test]
async fn a_cancelled_job_that_was_leased_ahead_does_not_arrive() {
    let (stack, sink) = begins_to_hang().await;
    let arrived = sink.wait_for(QUICK + 8, SOON).await;
    let has_arrived = |id: &String| arrived.iter().any(|arrival| arrival.job_id() == id);
    let waiting: Vec<String> = ids().into_iter().filter(|id| !has_arrived(id)).collect();
    // Some of them are leased, others are ready.
    for id in &waiting {
        let (status, answer) = stack.cancel(TOPIC, id).await;
        assert!([200, 202].contains(&status), "{id}: {status} {answer}");
    }
    // The notifier has heard of them all.
    stack.wait_count("reserved", 8, SOON).await;
    sink.release();
    stack.wait_count("cancelled", waiting.len() as u64, SOON).await;
    stack.wait_count("done", (QUICK + 8) as u64, SOON).await;
    assert_eq!(sink.seen(), QUICK + 8);
}

#[tokio::test]
async fn a_notifier_that_ends_gives_back_what_it_has_leased_ahead() {
    let sink = Sink::start().await;
    sink.answer(Answer::status(200).after(Duration::from_millis(20)));
    let mut stack = backlog(&sink).await;
    stack.add(Role::Notifier).await;
    sink.wait_for(QUICK, SOON).await;
    stack.notifiers[0].term();
    assert_eq!(stack.notifiers[0].wait_exit(SOON).await.code(), Some(0));
    assert_eq!(stack.count_in("reserved").await, 0);
    stack.notifiers.clear();
    stack.add(Role::Notifier).await;
    stack.wait_count("done", JOBS as u64, SOON).await;
    assert!(sink.arrivals().iter().all(|arrival| arrival.attempt() == Some(1)));
    assert_eq!(sink.seen(), JOBS, "each job has arrived once");
}
