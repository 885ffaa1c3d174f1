//! The calls of carriers: heartbeats, claims of shards, and passes over a shard. promote: delayed and due → ready;
//! topics take turns, and none takes more than its share. evict: removes dead jobs after their retention, but none that
//! holds its key. Both check that the carrier still holds the shard, and report when the next pass is needed. `recover`
//! has the third pass.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::state::State;
use ringback_core::store_types::{
    Epoch, EventKind, LiveCarriers, Pass, PassLimits, Shard, StoreError, TransitionName, Wake,
};

use crate::error::Result;
use crate::location::CarrierLock;
use crate::mutex::lock;
use crate::tables::{DueJobs, QueueEnd};
use crate::txn::Txn;
use crate::txn::state_changes::To;
use crate::{EmbeddedStore, TRANSITION_BYTES};

/// The most topics whose jobs one promote moves.
const TOPICS: usize = 64;

impl EmbeddedStore {
    /// Records, in memory only, that a carrier lives for `ttl`; zero removes it. Returns the live carriers and when the
    /// next other one expires. Wakes all carriers if one joins or leaves.
    pub async fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        self.writer()?;
        let location = &self.shared.location;
        let now = location.clock.micros();
        let mut live = lock(&location.carriers);
        live.retain(|_, lock| lock.until > now);
        // A lock that would last longer than its length was stored before the clock was set back.
        live.values_mut().for_each(|lock| lock.until = lock.until.min(now.saturating_add(lock.length)));
        let changed = if ttl.is_zero() {
            live.remove(carrier).is_some()
        } else {
            let length = millis_up(ttl).saturating_mul(1000);
            live.insert(carrier.to_owned(), CarrierLock { until: now.saturating_add(length), length })
                .is_none()
        };
        let others = live.iter().filter(|(name, _)| *name != carrier);
        let next_change = others.map(|(_, lock)| Duration::from_micros(lock.until - now)).min();
        let carriers = live.keys().cloned().collect();
        drop(live);
        if changed {
            // An error means that nobody listens.
            let _ = location.wakes.send(Wake::Carriers);
        }
        // A wake-up or `take_bulk` says when a bulk operation is free.
        Ok(LiveCarriers { carriers, next_change, next_bulk: None })
    }

    /// Claims a shard: returns a new, later epoch. From then on, passes with an earlier epoch are fenced.
    pub async fn take_shard(&self, shard: Shard, _carrier: &str) -> Result<Epoch, StoreError> {
        self.call(shard, TRANSITION_BYTES, |txn| {
            txn.row.epoch = txn.now_us().max(txn.row.epoch + 1);
            Ok(Epoch(txn.row.epoch.to_string()))
        })
        .await
    }

    /// Does nothing: the epoch stays, so that the next carrier gets a later one. Fails if the store is not prepared.
    pub async fn release_shard(&self, _shard: Shard, _epoch: &Epoch) -> Result<(), StoreError> {
        self.writer().map(drop)
    }

    pub async fn promote(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        self.pass(shard, PassRequest::new(self, epoch, limits), promote).await
    }

    pub async fn evict(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        self.pass(shard, PassRequest::new(self, epoch, limits), evict).await
    }

    async fn pass(
        &self,
        shard: Shard,
        (limits, bytes): (PassRequest, usize),
        pass: fn(&mut Txn<'_>, &PassRequest) -> Result<Pass>,
    ) -> Result<Pass, StoreError> {
        let run = move |txn: &mut Txn<'_>| {
            if limits.is_fenced(txn) { Ok(Pass::Fenced) } else { pass(txn, &limits) }
        };
        self.call(shard, bytes, run).await
    }
}

/// The epoch and the limits of one pass.
#[derive(Clone, Debug)]
pub(crate) struct PassRequest {
    epoch: Epoch,
    /// The most jobs or index entries that the pass handles.
    pub(crate) jobs: usize,
    /// The longest time for which the carrier will sleep afterwards, in ms.
    max_sleep: u64,
    /// How long dead jobs are kept, in ms.
    pub(crate) retention: u64,
}

impl PassRequest {
    /// Returns the epoch and the limits of a pass, and about how many bytes it writes.
    pub(crate) fn new(store: &EmbeddedStore, epoch: &Epoch, limits: PassLimits) -> (Self, usize) {
        let (jobs, max_sleep) = (limits.jobs as usize, millis_up(limits.max_sleep));
        let retention = millis_up(store.options.keep_dead);
        (Self { epoch: epoch.clone(), jobs, max_sleep, retention }, jobs * TRANSITION_BYTES)
    }

    /// Whether the shard was claimed again after this epoch.
    pub(crate) fn is_fenced(&self, txn: &Txn<'_>) -> bool {
        txn.row.is_fenced(&self.epoch)
    }

    /// Returns the report of a pass: how many jobs it moved, and when the next job, lease, dead job, notice and schedule
    /// are due. Records when the carrier is expected to make the next pass.
    pub(crate) fn report(&self, txn: &mut Txn<'_>, moved: u32, other: u32) -> Result<Pass> {
        let (shard, now_us) = (txn.shard(), txn.now_us());
        // In µs, so that the carrier does not sleep a part of a millisecond too long.
        let wait = |at: Option<u64>, more: u64| {
            at.map(|at| at.saturating_add(more).saturating_mul(1000).saturating_sub(now_us))
        };
        let due = wait(txn.tables.due.first(shard)?, 0);
        let lease = wait(txn.tables.leases.first(shard)?, 0);
        let first_dead = txn.tables.dead.range(shard, txn.row.held_dead, u64::MAX)?.next().transpose()?;
        let dead = wait(first_dead.map(|(since, _)| since), self.retention);
        // Notices are published and schedules fire without a pass, so these do not count below.
        let notice = wait(txn.tables.outbox.first(shard)?, 0);
        let firing = wait(txn.tables.schedules.first(shard)?, 0);
        let next =
            [due, lease, dead].into_iter().flatten().fold(self.max_sleep.saturating_mul(1000), u64::min);
        txn.plan_pass(now_us.saturating_add(next) / 1000);
        let [next_due, next_lease, next_dead, next_notice, next_firing] =
            [due, lease, dead, notice, firing].map(|wait| wait.map(Duration::from_micros));
        Ok(Pass::Held { moved, other, next_due, next_lease, next_dead, next_notice, next_firing })
    }
}

fn promote(txn: &mut Txn<'_>, limits: &PassRequest) -> Result<Pass> {
    let (shard, now) = (txn.shard(), txn.now());
    let topics = txn.tables.due.scheduled(shard, now, TOPICS)?;
    let share = limits.jobs.div_ceil(topics.len().max(1));
    let (mut left, mut moved, mut stale) = (limits.jobs, 0, 0);
    for topic in topics {
        let take = share.min(left);
        if take == 0 {
            break;
        }
        let of_topic = promote_topic(txn, &topic, take)?;
        (moved, stale) = (moved + of_topic.0, stale + of_topic.1);
        left = left.saturating_sub((of_topic.0 + of_topic.1) as usize);
    }
    limits.report(txn, moved, stale)
}

/// Promotes the first due jobs of a topic, at most `limit`. Returns how many, and how many entries led to no such job.
pub(super) fn promote_topic(txn: &mut Txn<'_>, topic: &str, limit: usize) -> Result<(u32, u32)> {
    let (shard, now) = (txn.shard(), txn.now());
    let DueJobs { found, following } = txn.tables.due.of_topic(shard, topic, now, limit)?;
    let (mut moved, mut stale) = (0, 0);
    txn.because(TransitionName::Promote, None);
    for (due, number) in found {
        match txn.tables.records.get(number)? {
            Some(mut job) if job.state() == State::Delayed && job.due == due => {
                txn.publish(&job, || EventKind::Promoted)?;
                txn.enter(&mut job, To::Ready(QueueEnd::Back))?;
                moved += 1;
            }
            _ => {
                txn.tables.due.remove(shard, topic, due, number)?;
                stale += 1;
            }
        }
    }
    // A topic that is still due goes behind the others that are due.
    txn.tables.due.schedule(shard, topic, following.map(|at| at.max(now)))?;
    Ok((moved, stale))
}

fn evict(txn: &mut Txn<'_>, limits: &PassRequest) -> Result<Pass> {
    let shard = txn.shard();
    let mut evicted = 0;
    txn.because(TransitionName::Evict, None);
    if let Some(until) = txn.now().checked_sub(limits.retention) {
        let dead = txn.tables.dead.range(shard, txn.row.held_dead, until.saturating_add(1))?;
        for (since, number) in dead.take(limits.jobs).collect::<Result<Vec<_>>>()? {
            let job = txn.tables.records.get(number)?.filter(|job| job.state() == State::Dead);
            if job.as_ref().map_or(Ok(false), |job| txn.holds_key(job))? {
                txn.row.held_dead = (since, number + 1);
                continue;
            }
            txn.tables.dead.remove(shard, since, number)?;
            if let Some(job) = job {
                txn.purge(&job)?;
                evicted += 1;
            }
        }
    }
    limits.report(txn, evicted, 0)
}
