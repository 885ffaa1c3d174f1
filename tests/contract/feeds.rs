//! Cases of feeds: one process at a time holds a feed, and its position changes only by what the process knows.

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{
    FeedHold, FeedLease, FeedName, FeedPosition, MAX_FEED_LEASE, StoredFeed, WorkerId,
};

use super::job_builders::BRIEF;
use super::workbench::{SOON, Workbench};
use crate::prelude::*;

const ONE: WorkerId = WorkerId([1; 8]);
const OTHER: WorkerId = WorkerId([2; 8]);

fn name(name: &str) -> FeedName {
    name.parse().expect("a name")
}

fn at(ms: u64) -> FeedPosition {
    FeedPosition { at: Timestamp::from_millis(ms), passed: None }
}

async fn hold(bench: &Workbench, hold: FeedHold) -> FeedLease {
    bench.store().hold_feed(&name("orders"), hold).await.expect("hold")
}

async fn take(bench: &Workbench, worker: WorkerId, lasts: Duration) -> FeedLease {
    hold(bench, FeedHold { worker, lasts, step: None }).await
}

async fn step(
    bench: &Workbench,
    worker: WorkerId,
    known: Option<FeedPosition>,
    next: FeedPosition,
) -> FeedLease {
    hold(bench, FeedHold { worker, lasts: MAX_FEED_LEASE, step: Some((known, next)) }).await
}

async fn stored(bench: &Workbench) -> StoredFeed {
    bench.store().feed(&name("orders")).await.expect("feed")
}

fn held(position: Option<FeedPosition>, disturbances: u64) -> FeedLease {
    FeedLease::Held(StoredFeed { position, disturbances })
}

pub(crate) async fn a_feed_has_one_process_at_a_time(bench: &Workbench) {
    assert_eq!(take(bench, ONE, MAX_FEED_LEASE).await, held(None, 0));
    assert_eq!(take(bench, ONE, MAX_FEED_LEASE).await, held(None, 0), "it keeps it");
    let FeedLease::Free(left) = take(bench, OTHER, MAX_FEED_LEASE).await else { panic!("it is worked on") };
    assert!(left <= MAX_FEED_LEASE && left > MAX_FEED_LEASE / 2, "{left:?}");
    // A worker cannot give back the lease of another.
    assert!(matches!(take(bench, OTHER, Duration::ZERO).await, FeedLease::Free(_)));
    assert!(matches!(take(bench, OTHER, MAX_FEED_LEASE).await, FeedLease::Free(left) if !left.is_zero()));
    let other = FeedHold { worker: OTHER, lasts: MAX_FEED_LEASE, step: None };
    let of_other = bench.store().hold_feed(&name("refunds"), other).await.expect("hold");
    assert_eq!(of_other, held(None, 0), "another feed is free");
    assert_eq!(take(bench, ONE, Duration::ZERO).await, FeedLease::Free(Duration::ZERO));
    assert_eq!(take(bench, OTHER, MAX_FEED_LEASE).await, held(None, 0));
}

pub(crate) async fn a_feed_is_free_when_its_lease_has_run_out(bench: &Workbench) {
    assert_eq!(take(bench, ONE, BRIEF).await, held(None, 0));
    eventually(SOON, "another process has it", async || match take(bench, OTHER, MAX_FEED_LEASE).await {
        FeedLease::Held(_) => Ok(()),
        FeedLease::Free(left) => Err(format!("{left:?} left")),
    })
    .await;
    assert!(matches!(step(bench, ONE, None, at(7)).await, FeedLease::Free(_)), "it has lost it");
    assert_eq!(stored(bench).await, StoredFeed::default(), "and moves nothing");
}

pub(crate) async fn a_feed_goes_on_where_the_last_pass_has_ended(bench: &Workbench) {
    assert_eq!(stored(bench).await, StoredFeed::default());
    assert_eq!(step(bench, ONE, None, at(5)).await, held(Some(at(5)), 0));
    assert_eq!(step(bench, ONE, Some(at(5)), at(9)).await, held(Some(at(9)), 0));
    assert_eq!(step(bench, ONE, Some(at(5)), at(9)).await, held(Some(at(9)), 0), "a repetition");
    assert_eq!(take(bench, ONE, Duration::ZERO).await, FeedLease::Free(Duration::ZERO));
    assert_eq!(take(bench, OTHER, MAX_FEED_LEASE).await, held(Some(at(9)), 0));
    assert_eq!(stored(bench).await, StoredFeed { position: Some(at(9)), disturbances: 0 });
}

pub(crate) async fn a_position_that_is_set_stays_until_the_process_knows_it(bench: &Workbench) {
    assert_eq!(step(bench, ONE, None, at(5)).await, held(Some(at(5)), 0));
    let set = FeedPosition { at: Timestamp::from_millis(1), passed: Some(Timestamp::from_millis(5)) };
    bench.store().set_feed(&name("orders"), set).await.expect("set");
    assert_eq!(step(bench, ONE, Some(at(5)), at(9)).await, held(Some(set), 0));
    assert_eq!(step(bench, ONE, Some(set), at(9)).await, held(Some(at(9)), 0));
}

pub(crate) async fn a_disturbance_is_seen_by_the_process_that_has_the_feed(bench: &Workbench) {
    assert_eq!(take(bench, OTHER, MAX_FEED_LEASE).await, held(None, 0));
    for n in 1..3 {
        bench.store().disturb_feed(&name("orders")).await.expect("disturb");
        assert_eq!(take(bench, OTHER, MAX_FEED_LEASE).await, held(None, n));
    }
    assert_eq!(step(bench, OTHER, None, at(5)).await, held(Some(at(5)), 2));
}
