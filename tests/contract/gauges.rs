//! Cases of gauges: a shard's jobs by state, also of chosen topics, its oldest ready job, and none without the shard.

use ringback_core::job::{NewJob, Topic};
use ringback_core::store_types::{JobGauge, MAX_LANES_SEARCHED, ShardGauges, StateCounts};
use strum::VariantArray as _;

use super::job_builders::{LONG, STATES, TOPIC, With, ms};
use super::topics::topic;
use super::workbench::{Workbench, now, until};
use crate::prelude::*;

/// The gauges of the bench's shard and of these topics in it.
async fn gauges(bench: &Workbench, topics: &[&str]) -> ShardGauges {
    let topics: Vec<Topic> = topics.iter().map(|name| topic(name)).collect();
    let held = vec![(bench.shard(), bench.epoch().clone())];
    let mut answers = bench.store().gauges(held, &topics).await;
    let (shard, answer) = answers.remove(0);
    assert_eq!((shard, answers.len()), (bench.shard(), 0));
    let gauges = answer.expect("the store answers").expect("the shard is held");
    assert_eq!(gauges.topics.len(), topics.len());
    gauges
}

async fn all(bench: &Workbench) -> JobGauge {
    gauges(bench, &[]).await.all
}

fn states(states: &StateCounts) -> [u64; 6] {
    std::array::from_fn(|n| *states.clone().of(State::VARIANTS[n]))
}

pub(crate) async fn a_shard_counts_its_jobs_by_state(bench: &Workbench) {
    assert_eq!(all(bench).await, JobGauge::empty());
    let mut expected = [0; 6];
    for state in STATES {
        bench.job_in(state, bench.job(state.into())).await;
        expected[state as usize] += 1;
        assert_eq!(states(&all(bench).await.states), expected, "{state}");
    }
    assert_eq!(expected, [1; 6]);
    let ledger = bench.stats().await.states;
    assert_eq!(states(&all(bench).await.states), states(&ledger));
}

pub(crate) async fn the_oldest_ready_job_counts_from_its_due_time(bench: &Workbench) {
    let first = bench.accept(bench.job("first")).await;
    until(now().plus(ms(40))).await;
    let second = bench.accept(bench.job("second").to("http://other.example")).await;
    let third = bench.accept(bench.pull_job("third")).await;
    let age = async || all(bench).await.oldest_ready.expect("it is known");
    assert!(age().await >= ms(40) && age().await < Duration::from_secs(60), "{:?}", age().await);
    bench.cancel(&first.key).await;
    let begun = now();
    let younger = age().await;
    assert!(younger <= now().since(second.due) && younger >= begun.since(second.due), "{younger:?}");
    bench.cancel(&second.key).await;
    assert!(age().await <= now().since(third.due), "that of a consumer counts too");
    bench.cancel(&third.key).await;
    bench.accept(bench.job("later").after(LONG)).await;
    assert_eq!(age().await, ms(0), "none is ready");
}

pub(crate) async fn a_ready_job_behind_many_cancelled_ones_is_found(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..60).map(|n| bench.job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let last = bench.accept(bench.job("last")).await;
    for job in &jobs {
        bench.cancel(&job.key).await;
    }
    until(last.due.plus(ms(20))).await;
    let gauge = all(bench).await;
    assert_eq!(gauge.states.ready, 1);
    let age = gauge.oldest_ready.expect("it is found");
    assert!(age >= ms(20) && age <= now().since(last.due), "{age:?}");
}

pub(crate) async fn ready_jobs_of_a_paused_topic_count_as_ready(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    bench.store().pause(&topic(TOPIC), None).await.expect("pause").expect("there is room");
    // The lane is set aside by the first reserve that meets it.
    assert!(bench.take(10).await.is_empty());
    until(job.due.plus(ms(20))).await;
    let gauges = gauges(bench, &[TOPIC]).await;
    for gauge in gauges.topics.iter().chain([&gauges.all]) {
        assert_eq!(gauge.states.ready, 1);
        assert!(gauge.oldest_ready >= Some(ms(20)), "{gauges:?}");
    }
}

pub(crate) async fn a_carrier_that_has_lost_the_shard_gets_no_gauges(bench: &Workbench) {
    let held = || vec![(bench.shard(), bench.epoch().clone())];
    let before = bench.store().gauges(held(), &[]).await.remove(0).1;
    assert!(before.expect("the store answers").is_some());
    let epoch = bench.store().take_shard(bench.shard(), "another").await.expect("claim");
    for topics in [&[][..], &[topic(TOPIC)]] {
        let after = bench.store().gauges(held(), topics).await.remove(0).1;
        assert_eq!(after.expect("the store answers"), None);
        let other = bench.store().gauges(vec![(bench.shard(), epoch.clone())], topics).await.remove(0).1;
        assert!(other.expect("the store answers").is_some());
    }
}

pub(crate) async fn topics_have_gauges_of_their_own_in_the_order_they_are_asked_for(bench: &Workbench) {
    for state in STATES {
        bench.job_in(state, bench.job_of("one", state.into())).await;
    }
    bench.accept(bench.job_of("one.two", "a")).await;
    bench.accept(bench.job_of("on", "a").after(LONG)).await;
    bench.accept(bench.job_of("on", "b").to("http://other.example").after(LONG)).await;
    let gauges = gauges(bench, &["on", "one", "unknown", "one.two"]).await;
    let counts: Vec<_> = gauges.topics.iter().map(|gauge| states(&gauge.states)).collect();
    assert_eq!(counts, [[2, 0, 0, 0, 0, 0], [1; 6], [0; 6], [0, 1, 0, 0, 0, 0]]);
    let ages: Vec<_> =
        gauges.topics.iter().map(|gauge| gauge.oldest_ready.map(|age| age > ms(60_000))).collect();
    assert_eq!(ages, [Some(false); 4], "{gauges:?}");
    assert_eq!(gauges.topics[0].oldest_ready, Some(ms(0)));
    let lone = self::gauges(bench, &["one"]).await;
    assert_eq!(states(&lone.topics[0].states), [1; 6]);
}

pub(crate) async fn thousands_of_lanes_are_counted_whole_and_the_oldest_waits_first(bench: &Workbench) {
    // More lanes than are searched for their oldest job.
    const LANES: usize = MAX_LANES_SEARCHED + 100;
    let oldest = bench.accept(bench.job("oldest")).await;
    until(oldest.due.plus(ms(20))).await;
    let jobs: Vec<NewJob> = (1..LANES)
        .map(|n| bench.job(&format!("job-{n}")).to(&format!("http://origin-{n}.example")))
        .collect();
    for jobs in jobs.chunks(500) {
        bench.submit(jobs).await;
    }
    let other = bench.accept(bench.job_of("stor", "a").after(LONG)).await;
    let begun = now();
    let gauges = gauges(bench, &["stor", TOPIC, "store."]).await;
    let ready = LANES as u64;
    assert_eq!(gauges.all.states.ready, ready);
    let age = gauges.all.oldest_ready.expect("the oldest is the first that is searched");
    assert!(age >= begun.since(oldest.due) && age <= now().since(oldest.due), "{age:?}");
    let counts: Vec<_> = gauges.topics.iter().map(|gauge| states(&gauge.states)).collect();
    assert_eq!(counts, [[1, 0, 0, 0, 0, 0], [0, ready, 0, 0, 0, 0], [0; 6]]);
    assert!(gauges.topics[1].oldest_ready > Some(ms(0)), "some of its lanes were searched");
    bench.cancel(&other.key).await;
}
