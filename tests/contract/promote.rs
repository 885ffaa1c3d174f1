//! Cases of `promote`, which makes due jobs ready: never early, in order, fair, within limits, not with an old epoch.

use ringback_core::job::NewJob;
use ringback_core::store_types::{Cancelled, Pass};

use super::job_builders::{LONG, With, ms};
use super::workbench::{SOON, Workbench, at_most, now, until};
use crate::prelude::*;

pub(crate) async fn nothing_is_promoted_before_it_is_due(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(LONG)).await;
    let pass = bench.promote(100).await;
    assert_eq!((pass.moved, pass.other), (0, 0));
    assert_eq!(bench.get(&job.key).await, job);
    assert!(bench.take(1).await.is_empty());
}

pub(crate) async fn what_is_due_is_promoted_and_nothing_of_it_early(bench: &Workbench) {
    let mut jobs = Vec::new();
    for n in 0..8_u64 {
        jobs.push(bench.accept(bench.job(&format!("job-{n}")).after(ms(10 * n + 5))).await);
    }
    eventually(SOON, "all are promoted", async || {
        assert_eq!(bench.promote(100).await.other, 0, "what is not due yet is not stale");
        let mut waiting = 0;
        for job in &jobs {
            match bench.state(&job.key).await {
                Some(State::Ready) => assert!(now() >= job.due, "{} is early", job.key),
                _ => waiting += 1,
            }
        }
        if waiting == 0 { Ok(()) } else { Err(waiting) }
    })
    .await;
    let pass = bench.promote(100).await;
    assert_eq!((pass.moved, pass.next_due), (0, None));
    assert_eq!(bench.take(100).await.len(), 8);
}

pub(crate) async fn a_pass_takes_no_more_than_its_limit(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..10).map(|n| bench.job(&format!("job-{n}")).after(ms(1))).collect();
    let last = bench.submit(&jobs).await.remove(9).job.due;
    until(last).await;
    let mut moved = Vec::new();
    for _ in 0..4 {
        let pass = bench.promote(4).await;
        moved.push(pass.moved);
        let more = moved.iter().sum::<u32>() < 10;
        assert_eq!(pass.next_due, more.then_some(ms(0)), "after {moved:?}");
    }
    assert_eq!(moved, [4, 4, 2, 0]);
}

pub(crate) async fn promoted_jobs_keep_the_order_of_their_due_times(bench: &Workbench) {
    let jobs: Vec<NewJob> =
        (0..10).map(|n| bench.job(&format!("job-{n}")).after(ms(1 + n * 7 % 10))).collect();
    bench.submit(&jobs).await;
    until(now().plus(ms(15))).await;
    bench.promote_until(10).await;
    let dues: Vec<_> = bench.take(10).await.into_iter().map(|lease| lease.due).collect();
    assert_eq!(dues.len(), 10);
    assert!(dues.is_sorted(), "{dues:?}");
}

pub(crate) async fn a_herd_of_2000_in_one_topic_does_not_delay_another(bench: &Workbench) {
    let herd: Vec<NewJob> =
        (0..2000).map(|n| bench.job_of("herd", &format!("job-{n}")).after(ms(1))).collect();
    for batch in herd.chunks(500) {
        bench.submit(batch).await;
    }
    let lone = bench.accept(bench.job_of("lone", "job").after(ms(1))).await;
    until(lone.due).await;
    assert_eq!(bench.promote(100).await.moved, 51, "each of two topics takes its half at most");
    assert_eq!(bench.state(&lone.key).await, Some(State::Ready));

    let second = bench.accept(bench.job_of("lone", "second").after(ms(1))).await;
    until(second.due).await;
    bench.promote(100).await;
    assert_eq!(bench.state(&second.key).await, Some(State::Ready), "the herd went first");
    let leases = bench.take(10).await;
    assert!(leases.iter().any(|lease| lease.key == lone.key), "the herd is reserved first");
}

pub(crate) async fn topics_come_in_turn_over_many_passes(bench: &Workbench) {
    let herd: Vec<NewJob> = (0..5).map(|n| bench.job_of("herd", &format!("job-{n}")).after(ms(1))).collect();
    bench.submit(&herd).await;
    let lone = bench.accept(bench.job_of("lone", "job").after(ms(2))).await;
    until(lone.due.plus(ms(2))).await;
    assert_eq!((bench.promote(1).await.moved, bench.promote(1).await.moved), (1, 1));
    assert_eq!(bench.state(&lone.key).await, Some(State::Ready), "the herd went twice before another topic");
}

pub(crate) async fn a_cancelled_job_is_not_promoted(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(ms(10))).await;
    let kept = bench.accept(bench.job("b").after(ms(10))).await;
    assert_eq!(bench.cancel(&job.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    until(kept.due).await;
    bench.promote_until(1).await;
    assert_eq!(bench.state(&job.key).await, Some(State::Cancelled));
    bench.take_one(&kept.key).await;
    assert!(bench.take(1).await.is_empty());
}

pub(crate) async fn a_fenced_pass_promotes_nothing(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(ms(1))).await;
    until(job.due).await;
    let (store, shard) = (bench.store(), bench.shard());
    let epoch = store.take_shard(shard, "another").await.expect("claim");
    let pass = store.promote(shard, bench.epoch(), at_most(10)).await.expect("promote");
    assert_eq!(pass, Pass::Fenced);
    assert_eq!(bench.get(&job.key).await, job);
    let pass = store.promote(shard, &epoch, at_most(10)).await.expect("promote");
    assert!(matches!(pass, Pass::Held { moved: 1, .. }), "{pass:?}");
}

pub(crate) async fn the_next_due_time_is_that_of_the_earliest_job(bench: &Workbench) {
    assert_eq!(bench.promote(10).await.next_due, None);
    for (topic, name, delay) in [("a", "1", 60), ("a", "2", 30), ("b", "3", 40), ("b", "4", 3000)] {
        bench.accept(bench.job_of(topic, name).after(ms(delay * 1000))).await;
    }
    let next = bench.promote(10).await.next_due.expect("jobs wait");
    assert!(next <= ms(30_001) && next > ms(10_000), "{next:?}");
    bench.cancel(&bench.key("a", "2")).await;
    // The index may keep a hint that is too early; it goes with the pass that finds nothing there.
    let next = bench.promote(10).await.next_due.expect("jobs wait");
    assert!(next <= ms(40_001), "{next:?} is too late for the earliest job");
}
