//! `SettleQueue`: the outcomes that wait to be settled, per shard; decides when a batch is sent, retries batches that
//! failed, and gives up late ones. `dispatcher` makes the calls.
//!
//! A settle is retried until the lease expires, and for a success some time longer. A job whose lease
//! has expired is recovered by a carrier.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use ringback_core::backoff::Backoff;
use ringback_core::crash_point;
use ringback_core::job::JobKey;
use ringback_core::limits::MAX_BATCH;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{Lease, SettleResult, Shard, Unsettled};
use ringback_service::outage::PartialOutage;
use ringback_service::random;
use ringback_service::telemetry::with_causes;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;
use crate::store_call::{SentBatch, SettleBatch, Settlement};

/// How long a batch waits while another shard is being settled. Settling is not urgent, because the
/// lanes are free by then; fewer and larger calls cost the store less. A slow shard delays the others
/// no longer than this.
const TURN: Duration = Duration::from_millis(5);
/// How long a batch waits for an expected reserve of its shard, to share the call.
pub(crate) const RESERVE_WAIT: Duration = Duration::from_millis(20);
/// How long after the end of its lease a success is still settled.
const LATE_SUCCESS: Duration = Duration::from_secs(300);

/// The outcomes of a shard.
#[derive(Default)]
struct ShardQueue {
    waiting: Vec<Settlement>,
    /// When the first waiting outcome was added.
    since: Option<Instant>,
    /// Set from a call that failed until one succeeds.
    retry: Option<Retry>,
}

/// A batch whose settle failed. It is sent again unchanged and without a reserve, so that a failing
/// reserve does not prevent the settle.
struct Retry {
    /// `None` while the batch is being sent.
    batch: Option<SettleBatch>,
    at: Instant,
    backoff: Backoff,
}

/// All outcomes that are not settled yet.
pub(crate) struct SettleQueue {
    shards: BTreeMap<Shard, ShardQueue>,
    /// Shards with a settle in flight. Outcomes added meanwhile share the next call.
    in_flight: HashSet<Shard>,
    /// The shards whose last settle failed.
    outage: PartialOutage<Shard>,
    metrics: Metrics,
    /// The most outcomes of one call.
    max_batch: usize,
}

impl SettleQueue {
    pub(crate) fn new(metrics: Metrics) -> Self {
        let (shards, in_flight, outage) = (BTreeMap::new(), HashSet::new(), PartialOutage::default());
        Self { shards, in_flight, outage, metrics, max_batch: MAX_BATCH }
    }

    /// Sets the most outcomes of one call.
    pub(crate) fn limit(&mut self, max_batch: usize) {
        self.max_batch = max_batch;
    }

    pub(crate) fn add(&mut self, settlement: Settlement, now: Instant) {
        let queue = self.shards.entry(settlement.lease.shard()).or_default();
        queue.waiting.push(settlement);
        queue.since.get_or_insert(now);
        crash_point!("notifier.in_settle_queue");
    }

    /// Returns true if no outcome waits. Those of calls in flight do not count.
    pub(crate) fn is_empty(&self) -> bool {
        let has_failed_batch =
            |queue: &ShardQueue| queue.retry.as_ref().is_some_and(|one| one.batch.is_some());
        self.shards.values().all(|queue| queue.waiting.is_empty() && !has_failed_batch(queue))
    }

    /// Returns the shard whose batch may go first, and when: a failed one at its retry; another after [`RESERVE_WAIT`]
    /// if a reserve of the shard is expected, else at once if no settle is in flight, or after [`TURN`]. `None` if no
    /// outcome waits in a shard without a settle.
    pub(crate) fn next(&self, is_reserve_expected: impl Fn(Shard) -> bool) -> Option<(Shard, Instant)> {
        let turn = if self.in_flight.is_empty() { Duration::ZERO } else { TURN };
        let idle = self.shards.iter().filter(|(shard, _)| !self.in_flight.contains(shard));
        let times = idle.filter_map(|(shard, queue)| {
            let at = match &queue.retry {
                Some(retry) => retry.at,
                None if is_reserve_expected(*shard) => queue.since? + RESERVE_WAIT,
                None => queue.since? + turn,
            };
            Some((*shard, at))
        });
        times.min_by_key(|(_, at)| *at)
    }

    /// Takes the batch that can share a call with a reserve of the shard; `None` if none waits, or a settle of the
    /// shard is in flight or has failed.
    pub(crate) fn take_with_reserve(&mut self, shard: Shard) -> Option<SettleBatch> {
        let queue = self.shards.get_mut(&shard)?;
        if self.in_flight.contains(&shard) || queue.retry.is_some() || queue.waiting.is_empty() {
            return None;
        }
        self.take(shard)
    }

    /// Takes the next batch of the shard: one that has failed, else the outcomes that wait, up to the limit. The next
    /// [`SettleQueue::succeeded`] or [`SettleQueue::failed`] of the shard must report how it ended.
    pub(crate) fn take(&mut self, shard: Shard) -> Option<SettleBatch> {
        let queue = self.shards.get_mut(&shard)?;
        let batch = match &mut queue.retry {
            Some(retry) => retry.batch.take()?,
            None => {
                let batch = queue.waiting.drain(..queue.waiting.len().min(self.max_batch)).collect();
                if queue.waiting.is_empty() {
                    queue.since = None;
                }
                batch
            }
        };
        self.in_flight.insert(shard);
        self.metrics.settle_batch.record(batch.items.len() as u64, &[]);
        Some(batch)
    }

    pub(crate) fn succeeded(&mut self, shard: Shard, jobs: &[JobKey], results: &[SettleResult]) {
        self.in_flight.remove(&shard);
        if let Some(queue) = self.shards.get_mut(&shard) {
            queue.retry = None;
        }
        if self.outage.succeeded(&shard) {
            info!("settle succeeds again");
        }
        for (job, settled) in jobs.iter().zip(results) {
            self.report(job, *settled);
        }
    }

    fn report(&self, job: &JobKey, settled: SettleResult) {
        match settled {
            SettleResult::Applied | SettleResult::Replayed => {}
            SettleResult::Late => {
                self.metrics.late_settles.add(1, &[]);
                info!(job.topic = job.topic.as_str(), job.id = %job.id, "late settle: the lease had expired, the success was recorded");
            }
            SettleResult::Stale => {
                self.metrics.stale_settles.add(1, &[]);
                info!(job.topic = job.topic.as_str(), job.id = %job.id, "stale settle: the lease had expired, the outcome was discarded");
            }
        }
    }

    /// Schedules the retry of a settle that failed. Returns how many of its outcomes are given up, which is counted
    /// and logged, because a retry could no longer record them.
    pub(crate) fn failed(
        &mut self,
        shard: Shard,
        unsettled: Unsettled,
        meta: SentBatch,
        now: Instant,
    ) -> usize {
        let SentBatch { notes, .. } = meta;
        self.in_flight.remove(&shard);
        let (jobs, error) = (unsettled.items.len(), unsettled.error);
        let (items, expired): (Vec<_>, Vec<_>) =
            unsettled.items.into_iter().partition(|item| now < retry_until(item));
        self.give_up(&expired);
        if self.outage.failed(shard) {
            warn!(shard = shard.number(), jobs, error = with_causes(&error), "settle failed; retrying");
        }
        let queue = self.shards.entry(shard).or_default();
        let retry = queue.retry.take();
        let mut backoff = retry.map_or_else(|| Backoff::new(random::generator()), |retry| retry.backoff);
        if !items.is_empty() {
            let batch = Some(SettleBatch { items, notes });
            queue.retry = Some(Retry { batch, at: now + backoff.next(), backoff });
        } else if !notes.is_empty() {
            self.metrics.unlogged.add(notes.len() as u64, &[]);
        }
        expired.len()
    }

    /// Gives up at the end of the grace period: counts and logs the `jobs` that are not settled, waiting or in flight.
    pub(crate) fn close(self, jobs: usize) {
        if jobs > 0 {
            self.metrics.unsettled.add(jobs as u64, &[]);
            warn!(jobs, "jobs not settled within the grace period; they will be delivered again");
        }
    }

    fn give_up(&self, items: &[(Lease, Outcome)]) {
        if items.is_empty() {
            return;
        }
        self.metrics.unsettled.add(items.len() as u64, &[]);
        warn!(
            jobs = items.len(),
            "jobs not settled before their leases expired; they will be delivered again"
        );
        for (lease, _) in items {
            let job = &lease.key;
            debug!(job.topic = job.topic.as_str(), job.id = %job.id, "not settled before the lease expired");
        }
    }
}

/// Returns until when a settle is retried. A failure counts only before the lease expires. A success
/// still counts later, and spares the receiver a second delivery.
fn retry_until((lease, outcome): &(Lease, Outcome)) -> Instant {
    match outcome {
        Outcome::Complete => lease.deadline() + LATE_SUCCESS,
        Outcome::Retry { .. } | Outcome::Bury { .. } | Outcome::Release { .. } | Outcome::Return => {
            lease.deadline()
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry::metrics::noop::NoopMeterProvider;
    use ringback_core::clock::{SystemClock, Timestamp};
    use ringback_core::job::NewJob;
    use ringback_core::outcome::LastAttempt;
    use ringback_core::store_types::{Attempt, AttemptLogEntry, Options, Reserve, StoreError, Waiting};
    use ringback_store::{Memory, Store, settings};
    use ringback_wire::{Defaults, parse_job};

    use super::*;

    fn queue() -> SettleQueue {
        SettleQueue::new(Metrics::new(&NoopMeterProvider::new().meter("test")))
    }

    fn job(id: &str) -> NewJob {
        let json = format!(r#"{{"topic":"t","id":"{id}","url":"http://receiver.example/hook"}}"#);
        let make_id = &mut |_: &_| panic!("the job has an id");
        let make_token = &mut || panic!("it changes no job");
        let defaults =
            Defaults { now: Timestamp::from_millis(0), make_id, make_token, trace: None, tenant: None };
        parse_job(json.as_bytes(), defaults).unwrap()
    }

    /// `count` settlements of jobs of each of two shards.
    async fn settlements(count: usize) -> [Vec<Settlement>; 2] {
        let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
        let store = Store::in_memory(&Memory::new(SystemClock), options);
        store.prepare().await.unwrap();
        let mut settlements = [Vec::new(), Vec::new()];
        for (shard, settlements) in store.shards().zip(&mut settlements) {
            let jobs = (0..).map(|n| job(&n.to_string()));
            let jobs: Vec<_> = jobs.filter(|job| store.shard_of(&job.key) == shard).take(count).collect();
            store.submit(shard, &jobs).await.unwrap();
            let ask = Reserve {
                caller: "test",
                sequence: 1,
                limit: count,
                lane_limit: count,
                lane_limits: Vec::new(),
                admitted: Vec::new(),
                origin_limit: usize::MAX,
                tenant_limit: usize::MAX,
                group_limits: Vec::new(),
                bits: [0; 8],
                waiting: Waiting::No,
                margin: Duration::from_secs(1),
            };
            let leases = store.reserve(shard, &ask).await.unwrap().leases;
            assert_eq!(leases.len(), count);
            let settlement = |lease| Settlement { lease, outcome: Outcome::Complete, note: None };
            settlements.extend(leases.into_iter().map(settlement));
        }
        settlements
    }

    fn names(batch: &SettleBatch) -> Vec<JobKey> {
        batch.items.iter().map(|(lease, _)| lease.key.clone()).collect()
    }

    fn failure(batch: SettleBatch) -> (Unsettled, SentBatch) {
        let meta = SentBatch { jobs: names(&batch), notes: batch.notes, unlogged: 0 };
        (Unsettled { error: StoreError::Closed, items: batch.items }, meta)
    }

    #[tokio::test]
    async fn a_batch_goes_at_once_unless_others_go_or_a_reserve_is_expected() {
        let [one, other] = settlements(2).await;
        let (a, b) = (one[0].lease.shard(), other[0].lease.shard());
        let (mut queue, now) = (queue(), Instant::now());
        assert_eq!(queue.next(|_| false), None);
        one.into_iter().for_each(|settlement| queue.add(settlement, now));
        assert_eq!(queue.next(|_| false), Some((a, now)));
        assert_eq!(queue.next(|_| true), Some((a, now + RESERVE_WAIT)));
        let batch = queue.take(a).unwrap();
        other.into_iter().for_each(|settlement| queue.add(settlement, now));
        assert_eq!(queue.next(|_| false), Some((b, now + TURN)), "the first shard is in flight");
        queue.succeeded(a, &names(&batch), &[SettleResult::Applied; 2]);
        assert_eq!(queue.next(|_| false), Some((b, now)));
        assert_eq!(queue.take_with_reserve(b).unwrap().items.len(), 2);
        assert!(queue.is_empty() && queue.take_with_reserve(b).is_none());
    }

    #[tokio::test]
    async fn outcomes_added_during_a_call_share_the_next_one() {
        let [settlements, _] = settlements(3).await;
        let (shard, now) = (settlements[0].lease.shard(), Instant::now());
        let mut queue = queue();
        let mut settlements = settlements.into_iter();
        queue.add(settlements.next().unwrap(), now);
        let first = queue.take(shard).unwrap();
        settlements.for_each(|settlement| queue.add(settlement, now));
        assert!(queue.next(|_| false).is_none() && queue.take_with_reserve(shard).is_none());
        queue.succeeded(shard, &names(&first), &[SettleResult::Applied]);
        assert_eq!(queue.take_with_reserve(shard).unwrap().items.len(), 2);
    }

    #[tokio::test]
    async fn a_failed_batch_is_retried_unchanged_after_a_pause_and_without_a_reserve() {
        let [settlements, _] = settlements(3).await;
        let (shard, now) = (settlements[0].lease.shard(), Instant::now());
        let mut queue = queue();
        let mut settlements = settlements.into_iter().map(|settlement| {
            let note = Some(Box::new(AttemptLogEntry::of(&settlement.lease, Attempt::default())));
            Settlement { note, ..settlement }
        });
        settlements.by_ref().take(2).for_each(|settlement| queue.add(settlement, now));
        let batch = queue.take_with_reserve(shard).unwrap();
        let known = names(&batch);
        let (unsettled, meta) = failure(batch);
        assert_eq!(queue.failed(shard, unsettled, meta, now), 0);
        settlements.for_each(|settlement| queue.add(settlement, now));
        assert!(queue.take_with_reserve(shard).is_none());
        let (_, at) = queue.next(|_| false).unwrap();
        assert!(at > now, "it backs off");
        let again = queue.take(shard).unwrap();
        assert_eq!((names(&again), again.notes.len()), (known.clone(), 2));
        assert!(queue.next(|_| false).is_none());
        queue.succeeded(shard, &known, &[SettleResult::Applied, SettleResult::Replayed]);
        assert_eq!(
            queue.take_with_reserve(shard).unwrap().items.len(),
            1,
            "then the others go, with a reserve too"
        );
    }

    #[tokio::test]
    async fn a_failure_is_retried_until_its_lease_expires_and_a_success_for_longer() {
        let [mut settlements, _] = settlements(2).await;
        let last = LastAttempt {
            at: Timestamp::from_millis(0),
            status: None,
            error: None,
            duration: Duration::ZERO,
        };
        settlements[0].outcome = Outcome::Retry { after: Duration::ZERO, last };
        let (shard, ends) = (settlements[0].lease.shard(), settlements[0].lease.deadline());
        let mut queue = queue();
        settlements.into_iter().for_each(|settlement| queue.add(settlement, ends));
        for (now, given_up) in [(ends - TURN, 0), (ends, 1), (ends + TURN, 0), (ends + LATE_SUCCESS, 1)] {
            let (unsettled, meta) = failure(queue.take(shard).unwrap());
            assert_eq!(queue.failed(shard, unsettled, meta, now), given_up, "at {now:?}");
        }
        assert!(queue.is_empty() && queue.next(|_| false).is_none());
    }
}
