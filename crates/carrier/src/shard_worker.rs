//! The worker of one held shard: promotes due jobs, recovers expired leases, evicts old dead jobs, sleeps
//! in between, and stops when another carrier claims the shard. The outbox relay and the schedules run beside it.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::clock::Clock;
use ringback_core::crash_point;
use ringback_core::store_types::{
    AttemptLogEntry, Epoch, ExpiredLease, Pass, PassLimits, Recovered, SettleResult, Shard, StoreError,
};
use ringback_service::random;
use ringback_service::telemetry::with_causes;
use ringback_store::{ConfigUnknown, Retries, Store};
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::deadline_signal::{DeadlineSignal, DeadlineSignals};
use crate::epoch_log::CallStart;
use crate::metrics::Metrics;
use crate::outbox_relay::OutboxRelay;
use crate::pace::{self, MIN_SLEEP, NextDue, PassKind, Step};
use crate::pass_backoff::PassBackoff;
use crate::schedules::{Counts, ScheduleRunner};

/// The most jobs of one pass: a script of this size takes a few milliseconds.
const PASS_LIMIT: u32 = 500;

/// The error in the attempt log of an attempt whose consumer did not settle in time.
const LEASE_EXPIRED: &str = "lease ran out";

/// What the last pass that was not left to a notifier has found, and when it began.
#[derive(Default)]
struct Plan {
    at: Option<Instant>,
    next_due: NextDue,
}

impl Plan {
    /// What is due next at a later time, with the next promote after `wait`.
    fn with_due(&self, wait: Duration, now: Instant) -> NextDue {
        let passed = self.at.map_or(Duration::ZERO, |at| now - at);
        let NextDue([_, lease, dead]) = self.next_due;
        NextDue([
            Some(wait),
            lease.map(|wait| wait.saturating_sub(passed)),
            dead.map(|wait| wait.saturating_sub(passed)),
        ])
    }
}

/// The worker of one held shard.
pub(crate) struct ShardWorker {
    pub(crate) store: Store,
    pub(crate) signals: Arc<DeadlineSignals>,
    pub(crate) metrics: Metrics,
    pub(crate) shard: Shard,
    pub(crate) epoch: Epoch,
    pub(crate) retries: Retries,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ShardWorker {
    /// Runs passes, the outbox relay and the schedules until another carrier claims the shard. May be dropped at any time.
    pub(crate) async fn run(&self) {
        let (outbox, firings) = (DeadlineSignal::default(), DeadlineSignal::default());
        let relay = OutboxRelay {
            store: &self.store,
            metrics: &self.metrics,
            policies: &self.retries.policies,
            shard: self.shard,
            epoch: &self.epoch,
            due: &outbox,
            clock: &*self.clock,
        };
        let schedules = ScheduleRunner {
            store: &self.store,
            metrics: &self.metrics,
            policies: &self.retries.policies,
            shard: self.shard,
            due: &firings,
            clock: &*self.clock,
            counts: Counts::default(),
        };
        // All belong to one task, so they end together.
        tokio::select! {
            biased;
            () = self.run_passes(&outbox, &firings) => {}
            () = relay.run() => {}
            () = schedules.run() => {}
        }
        self.metrics.fenced.add(1, &[]);
        info!(shard = self.shard.number(), "shard claimed by another carrier");
    }

    /// Runs passes until one is fenced. Sets `outbox` and `firings` to when the next notice and schedule are due.
    async fn run_passes(&self, outbox: &DeadlineSignal, firings: &DeadlineSignal) {
        let mut backoff = PassBackoff::new([(); 3].map(|()| random::generator()));
        // The first passes find everything that happened before.
        let mut kind = PassKind::Promote;
        let mut plan = Plan::default();
        loop {
            let (allowed, wait) = backoff.allowed(kind, Instant::now());
            // Even the shortest sleep takes a millisecond.
            if !wait.is_zero() {
                sleep(wait).await;
            }
            kind = self.possible(allowed).await;
            let started = Instant::now();
            crash_point!("carrier.before_pass");
            let call_start = CallStart::now(&*self.clock);
            let may_leave = plan.at.is_some_and(|at| started < at + pace::MAX_SLEEP);
            let passed = self.pass(kind, may_leave).await;
            crash_point!("carrier.after_pass");
            call_start.passed(self.shard, &self.epoch, &passed);
            match passed {
                Ok(Pass::Fenced) => return,
                Ok(Pass::Held {
                    moved,
                    other,
                    next_due,
                    next_lease,
                    next_dead,
                    next_notice,
                    next_firing,
                }) => {
                    self.metrics.pass.record(started.elapsed().as_secs_f64(), &[]);
                    self.count(kind, moved, other);
                    next_notice.iter().for_each(|wait| outbox.set(started + *wait));
                    next_firing.iter().for_each(|wait| firings.set(started + *wait));
                    if backoff.succeeded(kind) {
                        info!(shard = self.shard.number(), "passes succeed again");
                    }
                    let next_dead = next_dead.filter(|_| self.store.clock_gap().is_none());
                    plan = Plan { at: Some(started), next_due: NextDue([next_due, next_lease, next_dead]) };
                    let least = if moved > 0 { MIN_SLEEP } else { Duration::ZERO };
                    let next_due = backoff.delay(plan.next_due, started);
                    kind = self.next(next_due, kind, started, least).await;
                }
                Ok(Pass::Left(wait)) => {
                    backoff.succeeded(kind);
                    let next_due = backoff.delay(plan.with_due(wait, started), started);
                    kind = self.next(next_due, kind, started, Duration::ZERO).await;
                }
                Err(error) => {
                    if backoff.failed(kind, Instant::now()) {
                        let (shard, error) = (self.shard.number(), with_causes(&error));
                        warn!(shard, error, ?kind, "pass failed; retrying");
                    }
                    kind = kind.after_failure();
                }
            }
        }
    }

    /// Returns the kind of the next pass, after it has slept until that is due, for `least` at least.
    async fn next(&self, next_due: NextDue, last: PassKind, started: Instant, least: Duration) -> PassKind {
        match pace::next_step(next_due, Some(last)) {
            Step::Pass(next) => next,
            Step::Sleep(wait) => {
                // Counted from the call, since the answer may have waited for the disk.
                let until = (started + wait).max(Instant::now() + least);
                self.signals.shard(self.shard).sleep_until(Some(until)).await;
                PassKind::Promote
            }
        }
    }

    /// Returns `kind`, but `Promote` instead of `Evict` unless the store's time is sure: a wrong one removes too early.
    async fn possible(&self, kind: PassKind) -> PassKind {
        let is_wrong = kind == PassKind::Evict && !self.store.is_time_sure(self.shard).await.unwrap_or(false);
        if is_wrong { PassKind::Promote } else { kind }
    }

    async fn pass(&self, kind: PassKind, may_leave: bool) -> Result<Pass, StoreError> {
        let (shard, epoch) = (self.shard, &self.epoch);
        let limits = PassLimits { jobs: PASS_LIMIT, max_sleep: pace::MAX_SLEEP, may_leave };
        match kind {
            PassKind::Promote => self.store.promote(shard, epoch, limits).await,
            PassKind::Recover => {
                let recovered = self.store.recover(shard, epoch, limits).await?;
                self.settle_expired(recovered).await
            }
            PassKind::Evict => self.store.evict(shard, epoch, limits).await,
        }
    }

    /// Logs the attempts of expired pull leases and settles the jobs as failed. Returns `recovered.pass`, due again at
    /// once if there were such jobs. Settles nothing before the policies are known, or if the store fails; then a
    /// later recover returns the same leases.
    async fn settle_expired(&self, recovered: Recovered) -> Result<Pass, StoreError> {
        let Recovered { pass, expired } = recovered;
        if expired.is_empty() {
            return Ok(pass);
        }
        let mut rng = random::generator();
        let (now, error) = (self.clock.now(), || Some(LEASE_EXPIRED.to_owned()));
        let outcomes = expired.iter().map(|ExpiredLease { receipt, tries }| {
            Ok((*receipt, self.retries.failed(tries, error(), now, &mut rng)?))
        });
        // The delay of a retry is not known before the policies are.
        let Ok(outcomes) = outcomes.collect::<Result<Vec<_>, ConfigUnknown>>() else { return Ok(pass) };
        crash_point!("carrier.after_recover");
        self.log_attempts(&expired).await;
        crash_point!("carrier.after_log_expired");
        let settled = self.store.settle_expired(self.shard, &outcomes).await?;
        crash_point!("carrier.after_settle_expired");
        let applied = settled.iter().filter(|settled| **settled == SettleResult::Applied).count() as u64;
        self.metrics.expired_pull_leases.add(applied, &[]);
        debug!(shard = self.shard.number(), applied, "pull leases expired");
        Ok(pass.with_due(Duration::ZERO))
    }

    async fn log_attempts(&self, expired: &[ExpiredLease]) {
        let is_logged = |job: &&ExpiredLease| {
            let policy = job.tries.topic.as_ref().and_then(|topic| self.retries.policies.get(topic).ok()?);
            self.store.logging(policy.as_deref()).notes_failure()
        };
        let logged = expired.iter().filter(is_logged);
        let notes: Vec<_> = logged.map(|job| AttemptLogEntry::expired(&job.receipt, LEASE_EXPIRED)).collect();
        if !notes.is_empty() {
            let unlogged = self.store.log_attempts_once(self.shard, &notes).await;
            self.metrics.unlogged.add(unlogged as u64, &[]);
        }
    }

    fn count(&self, kind: PassKind, moved: u32, other: u32) {
        if moved == 0 && other == 0 {
            return;
        }
        debug!(shard = self.shard.number(), ?kind, moved, other, "moved jobs");
        let (moved, other) = (u64::from(moved), u64::from(other));
        match kind {
            PassKind::Promote => self.metrics.promoted.add(moved, &[]),
            PassKind::Recover => {
                self.metrics.recovered.add(moved, &[]);
                self.metrics.lost.add(other, &[]);
            }
            PassKind::Evict => self.metrics.evicted.add(moved, &[]),
        }
    }
}
