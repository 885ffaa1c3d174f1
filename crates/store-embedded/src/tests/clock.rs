//! Tests of a clock that was far ahead for a while: what a store with files does once the clock is right again.

use ringback_core::state::State;
use ringback_core::store_types::{AcceptClock, ClockGap, PassLimits, Reserve, Waiting};

use super::*;

const SHARD: Shard = Shard(0);
const DAY: Duration = Duration::from_secs(86_400);
const STEP: Duration = DAY.saturating_mul(30);

async fn opened(directory: &Path, clock: &ManualClock) -> EmbeddedStore {
    let file = directory.join("ringback.redb");
    prepared(Medium::File(file, Disks::default()), Arc::new(clock.clone())).await
}

async fn reserved(store: &EmbeddedStore, sequence: u64) -> Vec<JobKey> {
    let ask = Reserve {
        caller: "notifier",
        sequence,
        limit: 10,
        lane_limit: 10,
        lane_limits: Vec::new(),
        admitted: Vec::new(),
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: [sequence as u8; 8],
        waiting: Waiting::No,
        margin: Duration::from_secs(5),
    };
    let leases = store.reserve(SHARD, &ask).await.unwrap().leases;
    leases.into_iter().map(|lease| lease.key).collect()
}

async fn promote(store: &EmbeddedStore) {
    let epoch = store.take_shard(SHARD, "carrier").await.unwrap();
    let limits = PassLimits { jobs: 10, max_sleep: Duration::from_secs(5), may_leave: false };
    store.promote(SHARD, &epoch, limits).await.unwrap();
}

async fn state(store: &EmbeddedStore, n: usize) -> State {
    store.get(SHARD, &job(n).key).await.unwrap().expect("it is known").state
}

#[tokio::test]
async fn a_job_that_became_due_by_a_wrong_clock_waits_again_over_restarts_until_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let begin = Timestamp::from_millis(1_800_000_000_000);
    let clock = ManualClock::at(begin);
    let store = opened(directory.path(), &clock).await;
    let tomorrow = NewJob { due: Due::At(begin.plus(DAY)), ..job(1) };
    store.submit(SHARD, &[tomorrow]).await.unwrap();
    clock.advance(STEP);
    promote(&store).await;
    assert_eq!(state(&store, 1).await, State::Ready);
    drop(store);

    clock.set(begin);
    let gap = ClockGap::ahead(STEP, 1);
    for sequence in 1..3 {
        let store = opened(directory.path(), &clock).await;
        assert!(reserved(&store, sequence).await.is_empty());
        promote(&store).await;
        assert_eq!(state(&store, 1).await, State::Delayed);
        assert_eq!(store.clock_gap(), Some(gap), "over restarts");
        assert!(store.check(Repair::No).await.unwrap().is_clean());
    }
    let store = opened(directory.path(), &clock).await;
    assert!(reserved(&store, 3).await.is_empty());
    assert_eq!(store.accept_clock().await.unwrap(), AcceptClock::Accepted(gap));
    assert_eq!((store.clock_gap(), state(&store, 1).await), (None, State::Delayed));
    drop(store);
    let store = opened(directory.path(), &clock).await;
    assert!(reserved(&store, 4).await.is_empty());
    assert_eq!(store.accept_clock().await.unwrap(), AcceptClock::Right);
    clock.advance(DAY);
    promote(&store).await;
    assert_eq!(reserved(&store, 5).await, [job(1).key]);
    assert!(store.check(Repair::No).await.unwrap().is_clean());
}

#[tokio::test]
async fn a_store_takes_the_clock_by_itself_where_no_job_was_touched_by_the_wrong_one() {
    let directory = tempfile::tempdir().unwrap();
    let begin = Timestamp::from_millis(1_800_000_000_000);
    let clock = ManualClock::at(begin);
    let store = opened(directory.path(), &clock).await;
    store.submit(SHARD, &[NewJob { due: Due::At(begin.plus(DAY)), ..job(1) }]).await.unwrap();
    clock.advance(STEP);
    store.take_shard(SHARD, "carrier").await.unwrap();
    store.submit(SHARD, &[job(2)]).await.unwrap();
    store.cancel(SHARD, &job(2).key).await.unwrap();
    // The clock is set right while the store is open.
    clock.set(begin);
    store.submit(SHARD, &[NewJob { due: Due::At(begin.plus(DAY)), ..job(3) }]).await.unwrap();
    store.submit(SHARD, &[NewJob { due: Due::In(Duration::ZERO), ..job(4) }]).await.unwrap();
    assert_eq!(store.clock_gap(), None);
    promote(&store).await;
    assert_eq!(reserved(&store, 1).await, [job(4).key]);
    assert_eq!((state(&store, 1).await, state(&store, 3).await), (State::Delayed, State::Delayed));
    assert!(store.check(Repair::No).await.unwrap().is_clean());
}
