//! The contract of a backend on one page: every call that [`Store`](crate::Store) makes on one, Redis or embedded. A
//! call fails with any `StoreError`. The documentation of a call is at the method of the store that makes it. Compiled
//! with the tests, which check that both backends have all calls and that the list is complete.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::destination::DestinationPause;
use ringback_core::flow::Limits;
use ringback_core::job::{ImportJob, Job, JobKey, NewJob, OrderKey, Tenant, TenantScope, Topic};
use ringback_core::outcome::Outcome;
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::*;
use ringback_core::topic_policy::OrderOnDead;

use super::Backend;

/// Makes a function of each line, so that the compiler checks that both backends have it, and a list of the names.
macro_rules! contract {
    (
        calls { $(fn $call:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* }
        facts { $(fn $fact:ident() -> $known:ty;)* }
    ) => {
        const NAMES: &[&str] = &[$(stringify!($call),)* $(stringify!($fact),)*];

        #[expect(dead_code, reason = "never called: they are compiled")]
        impl Backend {
            $(async fn $call(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                match self {
                    Self::Redis(store) => store.$call($($arg),*).await,
                    Self::Embedded(store) => store.$call($($arg),*).await,
                }
            })*
            $(fn $fact(&self) -> $known {
                match self {
                    Self::Redis(store) => store.$fact(),
                    Self::Embedded(store) => store.$fact(),
                }
            })*
        }
    };
}

type Schedules = (Vec<ScheduleRow>, Option<(ScheduleKey, Topic)>);

contract! {
    calls {
        // The store as a whole.
        fn prepare() -> ();
        fn ping() -> ();
        fn memory_share() -> f64;
        fn agrees_on_time(shard: Shard) -> bool;
        fn accept_clock() -> AcceptClock;
        fn accept_loss(run_id: &str) -> AcceptLoss;
        fn check(repair: Repair) -> Check;

        // Jobs of a shard from state to state.
        fn submit(shard: Shard, jobs: &[NewJob]) -> Vec<Submitted>;
        fn import(shard: Shard, jobs: &[ImportJob]) -> Vec<Submitted>;
        fn promote(shard: Shard, epoch: &Epoch, limits: PassLimits) -> Pass;
        fn recover(shard: Shard, epoch: &Epoch, limits: PassLimits) -> Recovered;
        fn evict(shard: Shard, epoch: &Epoch, limits: PassLimits) -> Pass;
        fn reserve(shard: Shard, ask: &Reserve<'_>) -> Reserved;
        fn may_give(shard: Shard) -> bool;
        fn pull(shard: Shard, ask: &Pull<'_>) -> Pulled;
        fn renew(receipt: &Receipt, by: Duration, within: Option<Duration>) -> Option<Timestamp>;
        fn settle(shard: Shard, items: &[(Lease, Outcome)]) -> Vec<SettleResult>;
        fn exchange(shard: Shard, items: &[(Lease, Outcome)], ask: &Reserve<'_>) -> (Vec<SettleResult>, Reserved);
        fn settle_receipts(shard: Shard, outcomes: &[(Receipt, Outcome)], check: LeaseCheck) -> Vec<SettleResult>;
        fn cancel(shard: Shard, key: &JobKey) -> Cancelled;
        fn move_job(shard: Shard, key: &JobKey, what: Move) -> MoveResult;
        fn purge_many(shard: Shard, cursors: &[DeadCursor]) -> u64;
        fn revive_many(shard: Shard, id: BulkId, cursors: &[DeadCursor]) -> BulkStep;
        fn change_many(shard: Shard, id: BulkId, filter: &Filter, action: BulkAction, keys: &[JobKey]) -> BulkStep;

        // Jobs, read.
        fn get(shard: Shard, key: &JobKey) -> Option<Job>;
        fn get_stored(shard: Shard, key: &JobKey) -> Option<FoundJob>;
        fn waits(shard: Shard, key: &JobKey) -> JobWait;
        fn lease_info(receipt: &Receipt) -> Option<RetryContext>;
        fn page_listed(filter: &Filter, from: Option<Cursor>, look: usize) -> Page<ListedJob>;
        fn page_stored(filter: &Filter, from: Option<Cursor>, look: usize) -> Page<StoredJob>;
        fn indexed_jobs(filter: &Filter) -> Option<u64>;
        fn dead(filter: &DeadFilter, from: Option<DeadCursor>, limit: usize) -> Vec<DeadShardPage<Job>>;
        fn dead_cursors(shard: Shard, filter: &DeadFilter, from: Option<DeadCursor>, limit: usize)
            -> DeadPage<DeadCursor>;
        fn forecast(shard: Shard, spans: &[LaneSpan], slots: &ForecastSlots) -> Forecast;
        fn stats(shard: Shard) -> Stats;
        fn add_lateness(shard: Shard, lateness: &Lateness) -> ();
        fn gauges(held: &[(Shard, Epoch)], topics: &[Topic]) -> GaugesByShard;
        fn watch(shard: Shard, lasts: Duration) -> Timestamp;

        // Attempts, notices, and ended jobs for an archive.
        fn log_attempts(shard: Shard, entries: &[AttemptLogEntry]) -> LogResult;
        fn attempts(shard: Shard, key: &JobKey) -> Option<Vec<Attempt>>;
        fn outbox(shard: Shard, limit: usize) -> Outbox;
        fn acknowledge(shard: Shard, epoch: &Epoch, ack: &OutboxAck) -> AckResult;
        fn attach_archive(shard: Shard, settings: Option<ArchiveSettings>) -> ();
        fn archive_status(shard: Shard) -> ArchiveStatus;
        fn take_ended(shard: Shard, archiver: &str, lasts: Duration, limit: usize) -> TakeEntries;
        fn remove_ended(shard: Shard, archiver: &str, part: &OutboxPart) -> u64;
        fn drop_ended(shard: Shard, n: u64) -> u64;

        // Topics and destinations.
        fn topics(span: &TopicSpan) -> Vec<TopicShardPage>;
        fn totals(scope: &TenantScope) -> TopicTotals;
        fn presence(shard: Shard, topic: &Topic) -> Option<TopicPresence>;
        fn pull_topics(shard: Shard, from: usize, limit: usize) -> (Vec<Topic>, usize);
        fn pause(shard: Shard, topic: &Topic, capacity: TopicCapacity) -> Option<Limit>;
        fn resume(shard: Shard, topic: &Topic) -> bool;
        fn destinations(shard: Shard, span: &LaneSpan, after: Option<&[u8]>) -> DestinationPart;
        fn pause_destination(shard: Shard, pause: &DestinationPause) -> Option<PauseLimit>;
        fn resume_destination(shard: Shard, pause: &DestinationPause) -> bool;
        fn paused_destinations(shard: Shard) -> Vec<DestinationPause>;
        fn mark_limit(shard: Shard, of: &LimitTarget, is_limited: bool) -> ();
        fn order_topic(shard: Shard, topic: &Topic, order: Option<OrderOnDead>) -> ();
        fn topic_order(shard: Shard, topic: &Topic) -> Option<TopicOrder>;
        fn unblock(shard: Shard, topic: &Topic, key: &OrderKey) -> bool;
        fn failing() -> SharedFailing;
        fn change_failing(changes: &[FailingChange]) -> bool;

        // Carriers.
        fn heartbeat(carrier: &str, ttl: Duration) -> LiveCarriers;
        fn take_shard(shard: Shard, carrier: &str) -> Epoch;
        fn release_shard(shard: Shard, epoch: &Epoch) -> ();

        // What is kept once for all shards.
        fn entry(name: &str) -> Option<String>;
        fn put_entry(entry: ConfigEntry<'_>, replaced: Option<&str>) -> PolicyPut;
        fn delete_entry(name: &str) -> Option<PolicyVersion>;
        fn policies(known: Option<PolicyVersion>) -> Option<(PolicyVersion, PolicyRows)>;
        fn put_limit(of: &LimitTarget, limits: &Limits) -> Option<PauseLimit>;
        fn limit_names() -> Vec<LimitTarget>;
        fn limits(of: &[LimitTarget]) -> Vec<LimitState>;
        fn admit(admission: &Admission) -> Vec<Admitted>;
        fn grant_quota(tenant: &Tenant, request: QuotaRequest, now: Timestamp) -> QuotaGrant;
        fn start_bulk(id: BulkId, target: &BulkTarget, rate: u32) -> Option<Bulk>;
        fn bulks(id: Option<BulkId>) -> Vec<Bulk>;
        fn take_bulk(worker: WorkerId, ttl: Duration) -> TakenBulk;
        fn keep_bulk(id: BulkId, worker: WorkerId, ttl: Duration) -> bool;
        fn end_bulk(id: BulkId, worker: Option<WorkerId>, state: BulkState) -> Option<Bulk>;
        fn schedule(key: &ScheduleKey) -> Option<ScheduleRow>;
        fn schedules(scope: &TenantScope, after: Option<(ScheduleKey, Topic)>, limit: usize) -> Schedules;
        fn add_schedule(shard: Shard, row: &ScheduleRow, most: Option<u64>) -> ScheduleAdded;
        fn remove_schedule(shard: Shard, row: &ScheduleRow) -> bool;
        fn forget_schedule(key: &ScheduleKey) -> bool;
        fn change_schedules(shard: Shard, changes: &[ScheduleChange]) -> Vec<ScheduleChanged>;
        fn due_schedules(shard: Shard, limit: usize) -> DueSchedules;
        fn fire(shard: Shard, changes: &[ScheduleChange]) -> Vec<ScheduleChanged>;
        fn hold_feed(name: &FeedName, hold: FeedHold) -> FeedLease;
        fn change_feed(name: &FeedName, position: Option<FeedPosition>, is_disturbed: bool) -> StoredFeed;
        fn append_audit_log(rows: &[AuditLogRow]) -> ();
        fn audit_log(owner: Option<&AuditLogOwner>, before: Option<&AuditLogId>, limit: usize) -> Vec<AuditLogRow>;
    }
    facts {
        fn kind() -> &'static str;
        fn layout() -> u64;
        fn profile() -> Profile;
        fn addresses() -> Vec<(String, u16)>;
        fn moving() -> Vec<Shard>;
        fn evicts() -> bool;
        fn losses_noticed() -> u64;
        fn shortest_keep_done() -> Duration;
        fn clock_gap() -> Option<ClockGap>;
        fn clock_ahead() -> ClockGap;
    }
}

#[test]
fn the_contract_has_the_calls_that_the_store_makes() {
    let mut called = BTreeSet::new();
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        for call in text.split("backend!(self.").skip(1) {
            called.insert(call.split('(').next().unwrap().to_owned());
        }
    }
    assert_eq!(called, NAMES.iter().map(|&name| name.to_owned()).collect());
}
