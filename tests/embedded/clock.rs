//! The embedded store after its clock was far ahead and is right again, or after a restart: due times, leases, waits.

use ringback_core::clock::{ManualClock, Timestamp};
use ringback_core::job::{JobKey, NewJob};
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{AcceptClock, ClockGap, Epoch, SettleResult, Shard};
use ringback_store::{Memory, Store};

use super::{in_memory, promoted, reserve, settle, submit};
use crate::contract::audit;
use crate::contract::job_builders::{LONG, With, ms, retry};
use crate::contract::workbench::at_most;
use crate::prelude::*;

const DAY: Duration = Duration::from_secs(86_400);
/// How far the clock was ahead.
const STEP: Duration = DAY.saturating_mul(30);

/// A job whose id puts it into the same shard as all others.
fn job(name: &str) -> NewJob {
    super::job(&format!("one~{name}"))
}

/// A store whose clock is set.
struct Stepped {
    clock: ManualClock,
    begin: Timestamp,
    memory: Memory,
    store: Store,
    shard: Shard,
    epoch: Epoch,
}

impl Stepped {
    async fn new() -> Self {
        let begin: Timestamp = Timestamp::from_millis(1_800_000_000_000);
        let clock = ManualClock::at(begin);
        let memory = Memory::new(clock.clone());
        let store = in_memory(&memory).await;
        let shard = store.shard_of(&job("a").key);
        let epoch = store.take_shard(shard, "carrier").await.expect("claim");
        Self { clock, begin, memory, store, shard, epoch }
    }

    /// Sets the clock right, opens the store again and promotes once.
    async fn back(self) -> Self {
        let Self { clock, begin, memory, store, shard, epoch } = self;
        clock.set(begin);
        drop(store);
        let store = in_memory(&memory).await;
        store.promote(shard, &epoch, at_most(10)).await.expect("promote");
        Self { clock, begin, memory, store, shard, epoch }
    }

    async fn state(&self, name: &str) -> State {
        self.store.get(&job(name).key).await.expect("get").expect("it is known").state
    }

    async fn due(&self, name: &str) -> Timestamp {
        self.store.get(&job(name).key).await.expect("get").expect("it is known").due
    }

    /// Reserves and completes the jobs that are ready, and returns their keys. Asserts that each settle is applied.
    async fn delivered(&self, sequence: u64) -> Vec<JobKey> {
        let mut keys = Vec::new();
        for lease in reserve(&self.store, self.shard, sequence).await {
            keys.push(lease.key.clone());
            assert_eq!(settle(&self.store, lease, Outcome::Complete).await, SettleResult::Applied);
        }
        keys
    }
}

#[tokio::test]
async fn a_job_that_became_due_by_a_wrong_clock_waits_again_until_its_time() {
    let stepped = Stepped::new().await;
    let tomorrow = stepped.begin.plus(DAY);
    submit(&stepped.store, job("a").at(tomorrow)).await.expect("submit");
    stepped.clock.advance(STEP);
    assert_eq!(promoted(&stepped.store, stepped.shard, &stepped.epoch).await, 1);

    let stepped = stepped.back().await;
    for sequence in 1..3 {
        assert!(reserve(&stepped.store, stepped.shard, sequence).await.is_empty());
        assert_eq!((stepped.state("a").await, stepped.due("a").await), (State::Delayed, tomorrow));
    }
    let gap = stepped.store.clock_gap().expect("somebody has to say which time is right");
    assert_eq!(gap, ClockGap::ahead(STEP, 1));
    audit::tables(&stepped.store).await;
    let stepped = stepped.back().await;
    assert_eq!(stepped.store.clock_gap(), Some(gap), "over restarts");

    assert_eq!(stepped.store.accept_clock().await.expect("accept"), AcceptClock::Accepted(gap));
    assert_eq!(stepped.store.clock_gap(), None);
    assert_eq!(stepped.store.accept_clock().await.expect("accept"), AcceptClock::Right);
    let stepped = stepped.back().await;
    assert_eq!((stepped.store.clock_gap(), stepped.state("a").await), (None, State::Delayed));
    stepped.clock.advance(DAY);
    assert_eq!(promoted(&stepped.store, stepped.shard, &stepped.epoch).await, 1);
    assert_eq!(stepped.delivered(3).await, [job("a").key]);
    audit::tables(&stepped.store).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_while_the_store_is_open_counts_from_its_next_call() {
    let stepped = Stepped::new().await;
    submit(&stepped.store, job("a").at(stepped.begin.plus(DAY))).await.expect("submit");
    stepped.clock.advance(STEP);
    assert_eq!(promoted(&stepped.store, stepped.shard, &stepped.epoch).await, 1);
    stepped.clock.set(stepped.begin);
    assert!(reserve(&stepped.store, stepped.shard, 1).await.is_empty());
    assert_eq!(stepped.state("a").await, State::Delayed);
    assert!(stepped.store.clock_gap().is_some());
}

#[tokio::test]
async fn a_store_takes_the_clock_by_itself_where_no_job_was_touched_by_the_wrong_one() {
    let stepped = Stepped::new().await;
    submit(&stepped.store, job("waits").at(stepped.begin.plus(DAY))).await.expect("submit");
    stepped.clock.advance(STEP);
    submit(&stepped.store, job("a")).await.expect("submit");
    assert_eq!(stepped.delivered(1).await, [job("a").key]);
    let stepped = stepped.back().await;
    assert_eq!(stepped.store.clock_gap(), None);
    submit(&stepped.store, job("later").at(stepped.begin.plus(DAY))).await.expect("submit");
    for name in ["waits", "later"] {
        assert_eq!(stepped.state(name).await, State::Delayed, "{name}");
    }
    submit(&stepped.store, job("now")).await.expect("submit");
    let created = stepped.store.get(&job("now").key).await.expect("get").expect("it is known").created;
    assert_eq!(created, stepped.begin);
    audit::tables(&stepped.store).await;
}

#[tokio::test]
async fn a_clock_that_was_ahead_by_less_than_a_minute_is_waited_for_in_silence() {
    for (ahead, goes_back) in [(10, false), (60, false), (90, true)] {
        let stepped = Stepped::new().await;
        stepped.clock.advance(Duration::from_secs(ahead));
        submit(&stepped.store, job("a").after(LONG)).await.expect("submit");
        let stepped = stepped.back().await;
        assert_eq!(stepped.store.clock_gap().is_some(), goes_back, "{ahead} s");
        submit(&stepped.store, job("b").after(ms(1))).await.expect("submit");
        let due = stepped.due("b").await;
        assert_eq!(due < stepped.begin.plus(ms(1000)), goes_back, "{ahead} s: {due}");
    }
}

#[tokio::test]
async fn what_was_accepted_tried_or_reserved_by_a_wrong_clock_is_late_only_where_that_is_not_known() {
    let stepped = Stepped::new().await;
    stepped.clock.advance(STEP);
    let wrong = stepped.begin.plus(STEP);
    for name in ["fails", "held"] {
        submit(&stepped.store, job(name)).await.expect("submit");
    }
    for lease in reserve(&stepped.store, stepped.shard, 1).await {
        if lease.key == job("fails").key {
            let Outcome::Retry { last, .. } = retry(LONG) else { panic!("a retry") };
            let failed = Outcome::Retry { after: LONG, last: LastAttempt { at: wrong, ..last } };
            assert_eq!(settle(&stepped.store, lease, failed).await, SettleResult::Applied);
        }
    }
    submit(&stepped.store, job("ready")).await.expect("submit");
    submit(&stepped.store, job("delayed").after(LONG)).await.expect("submit");

    let stepped = stepped.back().await;
    assert_eq!(stepped.store.clock_gap(), Some(ClockGap::ahead(STEP, 4)));
    assert_eq!(stepped.delivered(2).await, [job("ready").key], "it came without a delay");
    assert_eq!(stepped.due("fails").await, wrong.plus(LONG), "never early, as long as nobody says");
    // The lease lasts for as long as it was granted for, which is the margin and the time of an attempt.
    stepped.clock.advance(LONG * 2);
    stepped.store.recover(stepped.shard, &stepped.epoch, at_most(10)).await.expect("recover");
    assert_eq!(stepped.delivered(3).await, [job("held").key]);

    let now = stepped.begin.plus(LONG * 2);
    stepped.store.accept_clock().await.expect("accept");
    let due = stepped.due("fails").await;
    assert!(due >= now && due <= now.plus(LONG), "{due}");
    assert_eq!(stepped.due("delayed").await, wrong.plus(LONG), "it may have asked for this time");
    audit::tables(&stepped.store).await;
}
