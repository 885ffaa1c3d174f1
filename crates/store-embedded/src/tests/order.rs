//! Tests of ordered topics: restarts, repairs, limits and steps, and random calls whose deliveries must be in order.

mod random;

use ringback_core::flow::Limits;
use ringback_core::job::{OrderKey, Topic};
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::state::State;
use ringback_core::store_types::{
    DamageKind, Lease, Limit, LimitTarget, MAX_WAITING_KEYS, Move, OrderWait, Pass, PassLimits, Reserve,
    Token, Waiting,
};
use ringback_core::topic_policy::OrderOnDead;

use super::*;
use crate::tables::{OrderRow, Stage};
use crate::txn::Txn;

const SHARD: Shard = Shard(0);
const HOUR: Duration = Duration::from_secs(3600);
const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn topic() -> Topic {
    "t".parse().unwrap()
}

/// A job with this id that is due now.
fn due_now(id: &str) -> NewJob {
    let mut job = NewJob { due: Due::In(Duration::ZERO), ..job(0) };
    job.key.id = id.parse().unwrap();
    job.delivery.body.bytes = "small".into();
    job
}

fn key_of(id: &str) -> JobKey {
    due_now(id).key
}

async fn submit_all(store: &EmbeddedStore, ids: &[&str]) {
    let jobs: Vec<_> = ids.iter().map(|id| due_now(id)).collect();
    for answer in store.submit(SHARD, &jobs).await.unwrap() {
        assert_eq!(answer.answer, SubmitResult::Created);
    }
}

async fn at(clock: &ManualClock) -> EmbeddedStore {
    prepared(Medium::Memory(Arc::new(InMemoryBackend::new())), Arc::new(clock.clone())).await
}

async fn ordered(on_dead: OrderOnDead) -> EmbeddedStore {
    let store = in_memory().await;
    store.order_topic(SHARD, &topic(), Some(on_dead)).await.unwrap();
    store
}

fn ask(sequence: u64, admitted: Vec<(String, usize)>) -> Reserve<'static> {
    Reserve {
        caller: "notifier",
        sequence,
        limit: 2000,
        lane_limit: 2000,
        lane_limits: Vec::new(),
        admitted,
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: [sequence as u8; 8],
        waiting: Waiting::No,
        margin: HOUR,
    }
}

/// Reserves jobs, and returns their leases by their ids.
async fn reserve(store: &EmbeddedStore, sequence: u64) -> Vec<(String, Lease)> {
    let leases = store.reserve(SHARD, &ask(sequence, Vec::new())).await.unwrap().leases;
    leases.into_iter().map(|lease| (lease.key.id.as_str().to_owned(), lease)).collect()
}

/// Reserves what may be delivered, which must be these jobs.
async fn take(store: &EmbeddedStore, sequence: u64, expected: &[&str]) -> Vec<Lease> {
    let mut found = reserve(store, sequence).await;
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (ids, leases): (Vec<_>, _) = found.into_iter().unzip();
    assert_eq!(ids, expected);
    leases
}

async fn settle(store: &EmbeddedStore, lease: Lease, outcome: Outcome) {
    store.settle(SHARD, &[(lease, outcome)]).await.unwrap();
}

fn bury() -> Outcome {
    Outcome::Bury { reason: Reason::Exhausted, last: LastAttempt::default() }
}

async fn unblock(store: &EmbeddedStore, key: &str) -> bool {
    store.unblock(SHARD, &topic(), &key.parse::<OrderKey>().unwrap()).await.unwrap()
}

fn pass(jobs: u32) -> PassLimits {
    PassLimits { jobs, max_sleep: HOUR, may_leave: false }
}

#[tokio::test]
async fn the_order_of_a_key_goes_on_after_a_crash_and_after_a_restart() {
    let (directory, fault) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disk(directory.path(), &fault).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Hold)).await.unwrap();
    submit_all(&store, &["a~1", "a~2", "b~1", "a~3", "b~2"]).await;
    let mut leases = take(&store, 1, &["a~1", "b~1"]).await;
    settle(&store, leases.remove(0), bury()).await;
    crash(&store).await;
    drop(store);

    let store = on_disk(directory.path(), &fault).await;
    take(&store, 2, &[]).await;
    let behind =
        |before, head: &str, is_held| Some(OrderWait { before, head: head.parse().unwrap(), is_held });
    let waits = async |store: &EmbeddedStore, id| store.waits(SHARD, &key_of(id)).await.unwrap().order;
    assert_eq!(waits(&store, "a~3").await, behind(2, "a~1", true));
    assert_eq!(waits(&store, "b~2").await, behind(1, "b~1", false));
    no_findings(&store).await;
    drop(store);

    let store = on_disk(directory.path(), &fault).await;
    assert!(unblock(&store, "a").await);
    take(&store, 3, &["a~2"]).await;
    assert_eq!(waits(&store, "a~3").await, behind(1, "a~2", false));
    settle(&store, leases.remove(0), Outcome::Complete).await;
    take(&store, 4, &["b~2"]).await;
    no_findings(&store).await;
}

#[tokio::test]
async fn a_key_too_many_with_jobs_that_wait_is_refused() {
    let store = ordered(OrderOnDead::Next).await;
    submit_all(&store, &["a~1", "a~2"]).await;
    let full = |txn: &mut Txn<'_>| {
        assert_eq!(std::mem::replace(&mut txn.row.waiting_keys, MAX_WAITING_KEYS), 1);
        Ok(())
    };
    store.call(SHARD, 0, full).await.unwrap();
    let answer = async |job| store.submit(SHARD, &[job]).await.unwrap().remove(0).answer;
    submit_all(&store, &["a~3", "b~1", "~c~1", "~c~2"]).await;
    assert_eq!(answer(due_now("b~2")).await, SubmitResult::Full(Limit::Keys));
    assert_eq!(answer(NewJob { due: Due::In(HOUR), ..due_now("b~2") }).await, SubmitResult::Created);
    let replaced = IfExists::Replace { token: Token([1; 8]) };
    let by = |id| NewJob { if_exists: replaced, content: ContentHash([2; 8]), ..due_now(id) };
    assert_eq!(answer(by("b~2")).await, SubmitResult::Full(Limit::Keys));
    assert_eq!(answer(by("b~1")).await, SubmitResult::Replaced, "the head itself waits for none");
}

#[tokio::test]
async fn a_dead_job_is_kept_while_it_holds_its_key_and_no_other_longer_for_it() {
    let clock = ManualClock::at(BEGIN);
    let store = at(&clock).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Hold)).await.unwrap();
    let epoch = store.take_shard(SHARD, "carrier").await.unwrap();
    for (sequence, id) in (1..).zip(["a~1", "b~1", "~c", "d~1", "e~1"]) {
        submit_all(&store, &[id]).await;
        settle(&store, take(&store, sequence, &[id]).await.remove(0), bury()).await;
        clock.advance(HOUR);
    }
    assert!(unblock(&store, "d").await && !unblock(&store, "d").await && !unblock(&store, "f").await);
    let evict = async || match store.evict(SHARD, &epoch, pass(1)).await.unwrap() {
        Pass::Held { moved, next_dead, .. } => (moved, next_dead),
        other => panic!("{other:?}"),
    };
    // The jobs that hold their keys are looked at once.
    clock.advance(options().keep_dead);
    let evictions = [evict().await, evict().await, evict().await, evict().await, evict().await];
    assert_eq!(evictions.map(|(evicted, _)| evicted), [0, 0, 1, 1, 0]);
    assert_eq!(evict().await, (0, None), "nothing is left to look at");
    assert!(unblock(&store, "b").await);
    assert_eq!([evict().await, evict().await], [(1, Some(Duration::ZERO)), (0, None)]);
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    assert_eq!((evict().await.0, evict().await.0, evict().await), (1, 1, (0, None)));
    assert_eq!(store.stats(SHARD).await.unwrap().states.dead, 0);
    no_findings(&store).await;
}

#[tokio::test]
async fn a_head_that_was_not_attempted_lets_an_earlier_job_go_first() {
    let clock = ManualClock::at(BEGIN);
    let store = at(&clock).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    let epoch = store.take_shard(SHARD, "carrier").await.unwrap();
    let soon = NewJob { due: Due::In(Duration::from_secs(1)), ..due_now("a~1") };
    let later = NewJob { due: Due::In(HOUR), ..due_now("a~2") };
    store.submit(SHARD, &[soon, later]).await.unwrap();
    clock.advance(Duration::from_secs(2));
    store.move_job(SHARD, &key_of("a~2"), Move::Run(Token([1; 8]))).await.unwrap();
    assert_eq!(store.waits(SHARD, &key_of("a~2")).await.unwrap().order, None);
    store.promote(SHARD, &epoch, pass(10)).await.unwrap();
    assert!(store.waits(SHARD, &key_of("a~2")).await.unwrap().order.is_some());
    no_findings(&store).await;
    settle(&store, take(&store, 1, &["a~1"]).await.remove(0), Outcome::Complete).await;
    take(&store, 2, &["a~2"]).await;
}

#[tokio::test]
async fn a_job_that_is_due_goes_before_one_that_is_submitted_now() {
    let clock = ManualClock::at(BEGIN);
    let store = at(&clock).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    let soon = NewJob { due: Due::In(Duration::from_secs(1)), ..due_now("a~1") };
    store.submit(SHARD, &[soon]).await.unwrap();
    clock.advance(Duration::from_secs(1));
    submit_all(&store, &["a~2"]).await;
    settle(&store, take(&store, 1, &["a~1"]).await.remove(0), Outcome::Complete).await;
    take(&store, 2, &["a~2"]).await;
}

#[tokio::test]
async fn jobs_that_are_due_at_once_keep_their_order_when_the_clock_is_set_back() {
    let clock = ManualClock::at(BEGIN.plus(HOUR));
    let store = at(&clock).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    submit_all(&store, &["a~3", "a~1", "a~2"]).await;
    let replaced = IfExists::Replace { token: Token([1; 8]) };
    let by = NewJob { if_exists: replaced, content: ContentHash([2; 8]), ..due_now("a~1") };
    assert_eq!(store.submit(SHARD, &[by]).await.unwrap()[0].answer, SubmitResult::Replaced);
    clock.set(BEGIN);
    submit_all(&store, &["a~0"]).await;
    no_findings(&store).await;
    for (sequence, id) in (1..).zip(["a~3", "a~2", "a~1", "a~0"]) {
        settle(&store, take(&store, sequence, &[id]).await.remove(0), Outcome::Complete).await;
    }
}

#[tokio::test]
async fn a_reserve_that_meets_jobs_of_a_topic_whose_order_begins_gives_one_of_each_key() {
    let store = in_memory().await;
    submit_all(&store, &["a~1", "b~1", "a~2", "b~2"]).await;
    let begins = |txn: &mut Txn<'_>| {
        let row = OrderRow { on_dead: OrderOnDead::Next, since: None, is_ending: false };
        txn.tables.order.set_topic(SHARD.0, "t", Some(row))
    };
    store.call(SHARD, 0, begins).await.unwrap();
    let leases = take(&store, 1, &["a~1", "b~1"]).await;
    no_findings(&store).await;
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    for lease in leases {
        settle(&store, lease, Outcome::Complete).await;
    }
    take(&store, 2, &["a~2", "b~2"]).await;
    no_findings(&store).await;
}

#[tokio::test]
async fn an_order_begins_and_ends_in_steps_if_there_are_many_jobs() {
    let store = in_memory().await;
    let ids: Vec<_> = (0..2500).map(|n| format!("{}~{n:04}", n % 5)).collect();
    submit_all(&store, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for _ in 0..2 {
        store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
        assert!(store.topic_order(SHARD, &topic()).await.unwrap().is_some_and(|order| order.since.is_some()));
        no_findings(&store).await;
        let wait = store.waits(SHARD, &key_of("4~2499")).await.unwrap().order.unwrap();
        assert_eq!((wait.before, wait.head.as_str()), (499, "4~0004"));
        store.order_topic(SHARD, &topic(), None).await.unwrap();
        assert_eq!(store.waits(SHARD, &key_of("4~2499")).await.unwrap().order, None);
        no_findings(&store).await;
        let is_empty =
            store.call(SHARD, 0, |txn| Ok(txn.tables.order.is_empty() && txn.row.waiting_keys == 0));
        assert!(is_empty.await.unwrap());
    }
    store.order_topic(SHARD, &topic(), Some(OrderOnDead::Next)).await.unwrap();
    let firsts = take(&store, 1, &["0~0000", "1~0001", "2~0002", "3~0003", "4~0004"]).await;
    store.order_topic(SHARD, &topic(), None).await.unwrap();
    assert_eq!(reserve(&store, 2).await.len(), 2000);
    drop(firsts);
}

#[tokio::test]
async fn a_job_that_waits_for_none_is_found_and_goes_once_that_is_repaired() {
    let store = ordered(OrderOnDead::Next).await;
    submit_all(&store, &["a~1", "a~2", "a~3"]).await;
    let lease = take(&store, 1, &["a~1"]).await.remove(0);
    let kinds = async |repair| {
        let check = store.check(repair).await.unwrap();
        check.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    // No head.
    store.call(SHARD, 0, |txn| txn.tables.order.set_head(SHARD.0, "t a", None)).await.unwrap();
    assert_eq!(kinds(Repair::No).await, [DamageKind::Schedule]);
    assert_eq!(kinds(Repair::Yes).await, [DamageKind::Schedule]);
    let second = take(&store, 2, &["a~2"]).await.remove(0);
    no_findings(&store).await;
    settle(&store, lease, Outcome::Complete).await;
    take(&store, 3, &[]).await;
    // No row of the job.
    let forget = |txn: &mut Txn<'_>| {
        let job = txn.tables.records.find(key_of("a~3").locator().0)?.unwrap();
        let Stage::Waiting(place) = job.stage else { panic!("{job:?}") };
        txn.tables.order.remove(SHARD.0, "t a", place)
    };
    store.call(SHARD, 0, forget).await.unwrap();
    assert_eq!(kinds(Repair::No).await, [DamageKind::Unindexed, DamageKind::Ledger]);
    assert!(!kinds(Repair::Yes).await.is_empty());
    no_findings(&store).await;
    settle(&store, second, Outcome::Complete).await;
    take(&store, 4, &["a~3"]).await;
}

#[tokio::test]
async fn a_limited_lane_lists_the_jobs_that_can_go_and_not_those_that_wait() {
    let store = ordered(OrderOnDead::Next).await;
    submit_all(&store, &["a~1", "a~2", "b~1"]).await;
    let limits = Limits { in_flight: Some(9), ..Limits::default() };
    store.put_limit(&LimitTarget::Topic(topic()), &limits).await.unwrap();
    let lane = "t http://receiver.example".to_owned();
    assert_eq!(store.reserve(SHARD, &ask(1, Vec::new())).await.unwrap().limited, [(lane.clone(), 2)]);
    let found = store.reserve(SHARD, &ask(2, vec![(lane, 9)])).await.unwrap();
    assert_eq!((found.leases.len(), found.limited), (2, Vec::new()));
    assert_eq!(store.stats(SHARD).await.unwrap().states.ready, 1);
    assert_eq!(store.get(SHARD, &key_of("a~2")).await.unwrap().unwrap().state, State::Ready);
}
