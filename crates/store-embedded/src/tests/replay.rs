//! Tests of the redo log with every kind of transition: a store that crashed and replayed its log has the
//! same rows as a store in memory that did the same at the same times.

use ringback_core::clock::{ManualClock, Timestamp};
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, Epoch, Lateness, Lease, LogResult, Pass, PassLimits, Reserve, SettleResult,
    Token, Waiting,
};

use super::super::tables::dump;
use super::*;

const SHARD: Shard = Shard(0);
const MINUTE: Duration = Duration::from_secs(60);

fn start() -> ManualClock {
    ManualClock::at(Timestamp::from_millis(1_000_000_000))
}

async fn opened(medium: Medium, clock: &ManualClock) -> EmbeddedStore {
    prepared(medium, Arc::new(clock.clone())).await
}

fn file(directory: &Path) -> Medium {
    Medium::File(directory.join("ringback.redb"), Disks::default())
}

async fn reserve(store: &EmbeddedStore, sequence: u64, limit: usize) -> Vec<Lease> {
    let ask = Reserve {
        caller: "notifier",
        sequence,
        limit,
        lane_limit: 100,
        lane_limits: Vec::new(),
        admitted: Vec::new(),
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: [sequence as u8; 8],
        waiting: Waiting::No,
        margin: Duration::from_secs(5),
    };
    store.reserve(SHARD, &ask).await.unwrap().leases
}

async fn settle(store: &EmbeddedStore, lease: Lease, outcome: Outcome) {
    assert_eq!(store.settle(SHARD, &[(lease, outcome)]).await.unwrap(), [SettleResult::Applied]);
    let mut late = Lateness::default();
    late.record(Duration::from_millis(7));
    store.add_lateness(SHARD, &late).await.unwrap();
}

/// Logs an attempt that began now.
async fn note(store: &EmbeddedStore, lease: &Lease, clock: &ManualClock) {
    let attempt = Attempt { at: clock.now(), status: Some(500), answer: "no".into(), ..Attempt::default() };
    assert_eq!(
        store.log_attempts(SHARD, &[AttemptLogEntry::of(lease, attempt)]).await.unwrap(),
        LogResult::Kept
    );
}

async fn submit(store: &EmbeddedStore, numbers: std::ops::Range<usize>, delay: Duration) {
    for n in numbers {
        let submitted = store.submit(SHARD, &[NewJob { due: Due::In(delay), ..job(n) }]).await.unwrap();
        assert_eq!(submitted[0].answer, SubmitResult::Created);
    }
}

/// Submits other content for a job that is not reserved.
async fn replace(store: &EmbeddedStore, n: usize) {
    let if_exists = IfExists::Replace { token: Token([n as u8; 8]) };
    let new = NewJob { content: ContentHash([9; 8]), due: Due::In(60 * MINUTE), if_exists, ..job(n) };
    let answer = store.submit(SHARD, &[new]).await.unwrap().remove(0).answer;
    assert!(matches!(answer, SubmitResult::Created | SubmitResult::Replaced), "{n}: {answer:?}");
}

fn moved(pass: &Pass) -> u32 {
    match pass {
        Pass::Held { moved, .. } => *moved,
        Pass::Fenced | Pass::Left(_) => panic!("nobody else claims the shard, or waits"),
    }
}

/// Makes all kinds of transitions, and leaves some jobs in every state.
async fn live(store: &EmbeddedStore, clock: &ManualClock) -> Epoch {
    let epoch = store.take_shard(SHARD, "carrier").await.unwrap();
    submit(store, 0..10, Duration::from_secs(10)).await;
    submit(store, 10..14, Duration::ZERO).await;
    submit(store, 14..16, 60 * MINUTE).await;
    // A snapshot in between, with what follows it only in the log.
    no_findings(store).await;
    store.cancel(SHARD, &job(1).key).await.unwrap();
    clock.advance(Duration::from_secs(11));
    assert_eq!(
        moved(
            &store
                .promote(SHARD, &epoch, PassLimits { jobs: 100, max_sleep: MINUTE, may_leave: false })
                .await
                .unwrap()
        ),
        9
    );
    store.cancel(SHARD, &job(2).key).await.unwrap();
    let mut leases = reserve(store, 1, 8).await.into_iter();
    let last = LastAttempt { status: Some(500), ..LastAttempt::default() };
    let (gone, retry) = (Reason::Gone, Outcome::Retry { after: MINUTE, last: last.clone() });
    let outcomes = [
        Outcome::Complete,
        retry,
        Outcome::Bury { reason: gone, last },
        Outcome::Release { after: Duration::ZERO },
        Outcome::Release { after: MINUTE },
    ];
    for (outcome, lease) in outcomes.into_iter().zip(leases.by_ref()) {
        note(store, &lease, clock).await;
        settle(store, lease, outcome).await;
    }
    for n in [1, 6, 10, 11, 12, 15] {
        replace(store, n).await;
    }
    let renewed = leases.next().unwrap();
    store.renew(&renewed.grant.receipt, 10 * MINUTE, None).await.unwrap();
    clock.advance(MINUTE);
    assert!(
        moved(
            &store
                .recover(SHARD, &epoch, PassLimits { jobs: 100, max_sleep: MINUTE, may_leave: false })
                .await
                .unwrap()
                .pass
        ) > 0
    );
    for mut lease in reserve(store, 2, 2).await {
        note(store, &lease, clock).await;
        // The log moves in the order of logs.
        clock.advance(Duration::from_secs(1));
        lease.attempt += 1;
        note(store, &lease, clock).await;
    }
    epoch
}

/// Returns all rows of all tables, and the counts.
async fn contents(store: &EmbeddedStore) -> (Vec<String>, String) {
    no_findings(store).await;
    let snapshot = store.writer.get().unwrap().snapshot().await.unwrap();
    let rows = dump(&snapshot).unwrap();
    let mut attempts = 0;
    for n in 0..16 {
        let log = store.attempts(SHARD, &job(n).key).await.unwrap();
        attempts += log.iter().flatten().count();
    }
    assert!(attempts >= 6, "{attempts} attempts were noted");
    (rows, format!("{:?}", store.stats(SHARD).await.unwrap()))
}

#[tokio::test]
async fn the_log_brings_back_what_every_edge_has_done() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), start());
    let store = opened(file(directory.path()), &clock).await;
    let epoch = live(&store, &clock).await;
    crash(&store).await;
    drop(store);
    let store = opened(file(directory.path()), &clock).await;

    let other_clock = start();
    let other = opened(Medium::Memory(Arc::new(InMemoryBackend::new())), &other_clock).await;
    assert_eq!(live(&other, &other_clock).await, epoch);

    assert_eq!(contents(&store).await, contents(&other).await);
    let names = |leases: Vec<Lease>| leases.into_iter().map(|lease| lease.key).collect::<Vec<_>>();
    let again = names(reserve(&store, 2, 2).await);
    assert_eq!(again.len(), 2, "the call is repeated");
    assert_eq!(again, names(reserve(&other, 2, 2).await));
}
