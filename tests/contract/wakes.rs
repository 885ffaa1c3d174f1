//! Cases of wake-ups: which roles each call wakes, and that no call wakes a role without need.

use ringback_core::store_types::Wake;
use ringback_store::Wakes;

use super::job_builders::{BRIEF, LONG, With, ms, release, retry};
use super::workbench::{Workbench, next};
use crate::prelude::*;

/// Asserts that the next wake-up has a delay of about `wanted`.
async fn due(bench: &Workbench, wakes: &mut Wakes, wanted: Duration) {
    is_due(bench, next(wakes).await, wanted);
}

/// Asserts the same as [`due`]. A wake-up with the delay `older` may come first, because wake-ups take a while between
/// the nodes of a cluster.
async fn due_past(bench: &Workbench, wakes: &mut Wakes, older: Duration, wanted: Duration) {
    match next(wakes).await {
        Wake::Due(_, wait) if about(wait, older) => due(bench, wakes, wanted).await,
        wake => is_due(bench, wake, wanted),
    }
}

fn is_due(bench: &Workbench, wake: Wake, wanted: Duration) {
    match wake {
        Wake::Due(shard, wait) => {
            assert_eq!(shard, bench.shard());
            assert!(about(wait, wanted), "{wait:?} instead of {wanted:?}");
        }
        other => panic!("{other:?} instead of {wanted:?}"),
    }
}

fn about(wait: Duration, wanted: Duration) -> bool {
    wait <= wanted + ms(2) && wait + ms(50) >= wanted
}

async fn ready(bench: &Workbench, wakes: &mut Wakes) {
    assert_eq!(next(wakes).await, Wake::Ready(bench.shard()));
}

pub(crate) async fn an_earlier_job_wakes_the_carrier(bench: &Workbench) {
    bench.accept(bench.job("a").after(LONG)).await;
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    bench.accept(bench.job("b").after(LONG / 2)).await;
    due_past(bench, &mut wakes, LONG, LONG / 2).await;
    bench.accept(bench.job_of("other", "c").after(LONG / 4)).await;
    due(bench, &mut wakes, LONG / 4).await;
}

pub(crate) async fn a_later_job_wakes_nobody(bench: &Workbench) {
    bench.accept(bench.job("a").after(LONG / 2)).await;
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    bench.accept(bench.job("b").after(LONG)).await;
    bench.accept(bench.job_of("other", "c").after(LONG)).await;
    bench.promote(10).await;
    // The first wake-up is of the earliest due time.
    bench.accept(bench.job("d").after(LONG / 4)).await;
    due_past(bench, &mut wakes, LONG / 2, LONG / 4).await;
}

pub(crate) async fn a_retry_and_a_lease_wake_the_carrier_when_they_come_first(bench: &Workbench) {
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    let mut lease = bench.reserved(bench.job("a").timeout(LONG)).await;
    ready(bench, &mut wakes).await;
    due(bench, &mut wakes, ms(15_000)).await;
    bench.store().renew(&mut lease, LONG).await.expect("renew");
    bench.settle(lease, retry(ms(5000))).await;
    due(bench, &mut wakes, ms(5000)).await;
    let lease = bench.reserved(bench.job("b")).await;
    ready(bench, &mut wakes).await;
    bench.settle(lease, release(ms(2000))).await;
    due(bench, &mut wakes, ms(2000)).await;
}

pub(crate) async fn a_lane_that_was_empty_wakes_the_notifiers_and_a_full_one_does_not(bench: &Workbench) {
    let mut wakes = bench.wakes().await;
    bench.accept(bench.job("a")).await;
    ready(bench, &mut wakes).await;
    bench.accept(bench.job("b")).await;
    bench.accept(bench.job("mark").after(LONG)).await;
    due(bench, &mut wakes, LONG).await;
    bench.accept(bench.job("c").to("http://another.example")).await;
    ready(bench, &mut wakes).await;
}

pub(crate) async fn promoted_released_and_recovered_jobs_wake_the_notifiers(bench: &Workbench) {
    let key = bench.accept(bench.job("a").after(ms(5)).timeout(BRIEF)).await.key;
    let mut wakes = bench.wakes().await;
    bench.promote_until(1).await;
    loop_until_ready(bench, &mut wakes).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, release(ms(0))).await;
    loop_until_ready(bench, &mut wakes).await;
    let lease = bench.take_one(&key).await;
    bench.recover_until(&key, State::Ready).await;
    loop_until_ready(bench, &mut wakes).await;
    bench.settle(lease, Outcome::Complete).await;
}

/// Waits for a wake-up for notifiers, and skips those about due times. Panics for others.
async fn loop_until_ready(bench: &Workbench, wakes: &mut Wakes) {
    loop {
        match next(wakes).await {
            Wake::Ready(shard) => return assert_eq!(shard, bench.shard()),
            Wake::Due(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn members_that_come_and_go_wake_the_carriers(bench: &Workbench) {
    let mut wakes = bench.wakes().await;
    let store = bench.store();
    store.heartbeat("a", LONG).await.expect("members");
    assert_eq!(next(&mut wakes).await, Wake::Carriers);
    // A lane that stays non-empty sends no wake-up: the next one is for the job.
    store.heartbeat("a", LONG).await.expect("members");
    bench.accept(bench.job("mark").after(LONG)).await;
    due(bench, &mut wakes, LONG).await;
    store.heartbeat("a", Duration::ZERO).await.expect("members");
    assert_eq!(next(&mut wakes).await, Wake::Carriers);
}

pub(crate) async fn the_cancel_of_a_reserved_job_is_announced_once(bench: &Workbench) {
    for name in ["a", "b"] {
        bench.accept(bench.job(name)).await;
    }
    let leases = bench.take(2).await;
    let mut wakes = bench.wakes().await;
    for lease in [&leases[0], &leases[0], &leases[1]] {
        bench.cancel(&lease.key).await;
    }
    for lease in &leases {
        assert_eq!(next(&mut wakes).await, Wake::CancelRequested(lease.locator()));
    }
}
