//! What the store knows of topics: how many jobs are in which state, which are known, and how late they are.

use std::time::Duration;

use ringback_core::job::{NewJob, Topic};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use ringback_core::store::TopicCounts;

use super::bench::{Bench, now, until};
use super::jobs::{BRIEF, LONG, STATES, TOPIC, With, bury, ms, retry};

pub(super) fn topic(name: &str) -> Topic {
    name.parse().expect("a topic")
}

pub(super) async fn counts(bench: &Bench, name: &str) -> Option<TopicCounts> {
    bench.store().topic(&topic(name)).await.expect("topic")
}

/// Delayed, ready, reserved and dead.
async fn states(bench: &Bench, name: &str) -> [u64; 4] {
    let counts = counts(bench, name).await.expect("it is known");
    [counts.delayed, counts.ready, counts.reserved, counts.dead]
}

pub(super) async fn each_job_counts_in_the_state_that_it_is_in(bench: &Bench) {
    let mut expected = [0; 4];
    for state in STATES {
        bench.job_in(state, bench.job(state.name())).await;
        match state {
            State::Delayed => expected[0] += 1,
            State::Ready => expected[1] += 1,
            State::Reserved => expected[2] += 1,
            State::Dead => expected[3] += 1,
            State::Done | State::Cancelled => {}
        }
        assert_eq!(states(bench, TOPIC).await, expected, "{state}");
    }
    assert_eq!(expected, [1; 4]);
}

pub(super) async fn every_edge_moves_its_job_in_the_counts(bench: &Bench) {
    let job = bench.accept(bench.job("a").after(LONG).timeout(BRIEF)).await;
    assert_eq!(states(bench, TOPIC).await, [1, 0, 0, 0], "submit");
    bench.store().run(&job.key, bench.token()).await.expect("run");
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "run");
    bench.take_one(&job.key).await;
    assert_eq!(states(bench, TOPIC).await, [0, 0, 1, 0], "reserve");
    bench.recover_until(&job.key, State::Ready).await;
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "recover");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, retry(ms(1))).await;
    assert_eq!(states(bench, TOPIC).await, [1, 0, 0, 0], "retry");
    bench.promote_until(1).await;
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "promote");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, bury()).await;
    assert_eq!(states(bench, TOPIC).await, [0, 0, 0, 1], "bury");
    bench.store().revive(&job.key, bench.token()).await.expect("revive");
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "revive");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, Outcome::Complete).await;
    assert_eq!(states(bench, TOPIC).await, [0; 4], "complete");
}

pub(super) async fn a_topic_is_known_from_its_first_job_on(bench: &Bench) {
    assert_eq!(counts(bench, TOPIC).await, None);
    bench.accept(bench.job("a")).await;
    bench.cancel(&bench.job("a").key).await;
    assert_eq!(counts(bench, TOPIC).await, Some(TopicCounts::default()));
    assert_eq!(counts(bench, "stor").await, None);
    assert_eq!(counts(bench, "store-").await, None);
}

pub(super) async fn topics_come_page_by_page_in_the_order_of_their_names(bench: &Bench) {
    let names = ["a", "a-b", "a.b", "aa", "B", "store", "Store"];
    // Over all shards, and of one topic in several.
    for (n, name) in (0..21).zip(names.into_iter().cycle()) {
        let mut job = bench.job_of(name, "any").after(LONG);
        job.key.id = format!("job-{n}").parse().expect("an id");
        let shard = bench.store().shard_of(&job.key);
        bench.store().submit(shard, &[job]).await.expect("submit");
    }
    let mut sorted = names;
    sorted.sort_unstable();
    for limit in [1, 2, 3, 100] {
        let (mut met, mut behind) = (Vec::new(), None);
        loop {
            let page = bench.store().topics(behind.as_ref(), limit).await.expect("topics");
            assert!(page.items.len() <= limit && (!page.items.is_empty() || page.next.is_none()));
            met.extend(page.items);
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        let told: Vec<_> = met.iter().map(|(topic, counts)| (topic.as_str(), counts.delayed)).collect();
        assert_eq!(told, sorted.map(|name| (name, 3)), "{limit} at a time");
    }
}

pub(super) async fn the_lanes_of_a_topic_add_up(bench: &Bench) {
    let jobs: Vec<NewJob> = (0..300)
        .map(|n| bench.job(&format!("job-{n}")).to(&format!("http://origin-{n}.example")).after(LONG))
        .collect();
    bench.submit(&jobs).await;
    bench.accept(bench.job_of("stor", "a").after(LONG)).await;
    bench.accept(bench.job_of("store.", "a").after(LONG)).await;
    assert_eq!(states(bench, TOPIC).await, [300, 0, 0, 0]);
    let page = bench.store().topics(None, 2).await.expect("topics");
    let told: Vec<_> = page.items.iter().map(|(topic, counts)| (topic.as_str(), counts.delayed)).collect();
    assert_eq!(told, [("stor", 1), (TOPIC, 300)]);
    assert_eq!(page.next, Some(topic(TOPIC)));
    for job in &jobs {
        bench.cancel(&job.key).await;
    }
    assert_eq!(states(bench, TOPIC).await, [0; 4]);
}

pub(super) async fn the_first_due_time_is_that_of_what_is_near_or_ready(bench: &Bench) {
    bench.accept(bench.job("far").after(12 * LONG)).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (None, ms(0)));
    let near = bench.accept(bench.job("near").after(LONG / 2)).await;
    let nearer = bench.accept(bench.job("nearer").to("http://other.example").after(LONG / 3)).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (Some(nearer.due), ms(0)));
    bench.cancel(&nearer.key).await;
    assert_eq!(counts(bench, TOPIC).await.expect("known").oldest_due, Some(near.due));

    let ready = bench.accept(bench.job("ready")).await;
    let gone = bench.job("gone");
    bench.accept(gone.clone()).await;
    until(now().plus(ms(30))).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!(known.oldest_due, Some(ready.due));
    assert!(known.late >= ms(25) && known.late < Duration::from_secs(60), "{:?}", known.late);
    bench.take_one(&ready.key).await;
    bench.cancel(&gone.key).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (Some(near.due), ms(0)));
}
