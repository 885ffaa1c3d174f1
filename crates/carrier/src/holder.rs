//! One held shard: promote, recover and expire as each is due, sleep in between, and stop
//! at once when the shard has changed hands. Deaths are told beside that.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::contract::{Epoch, ExpiredLease, Note, Pass, Recovered, Settled, Shard, StoreError};
use ringback_service::random;
use ringback_store::{PoliciesUnknown, Retries, Store};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use crate::bells::{Bell, Bells};
use crate::metrics::Metrics;
use crate::pace::{self, BREATH, Next, Waits};
use crate::setbacks::Setbacks;
use crate::teller::Teller;

/// At most so many jobs a pass: a script of this size takes a few milliseconds.
const LIMIT: u32 = 500;

/// What is kept of an attempt whose consumer was not heard of again.
const RAN_OUT: &str = "lease ran out";
/// Jobs for pull whose leases ran out wait no longer for their notes.
const NOTE_WITHIN: Duration = Duration::from_millis(400);

/// What a holder works with.
pub(crate) struct Holder {
    pub(crate) store: Store,
    pub(crate) bells: Arc<Bells>,
    pub(crate) metrics: Metrics,
    pub(crate) shard: Shard,
    pub(crate) epoch: Epoch,
    pub(crate) retries: Retries,
}

impl Holder {
    /// Works until the shard has changed hands. Dropping it in between is safe.
    pub(crate) async fn run(&self) {
        let deaths = Bell::default();
        let teller = Teller {
            store: &self.store,
            metrics: &self.metrics,
            policies: &self.retries.policies,
            shard: self.shard,
            epoch: &self.epoch,
            deaths: &deaths,
        };
        // Both are of one task, so they end together.
        tokio::select! {
            () = self.passes(&deaths) => {}
            () = teller.run() => {}
        }
        self.metrics.fenced.add(1, &[]);
        info!(shard = self.shard.number(), "another carrier has taken the shard");
    }

    /// One pass after the other, until one is refused.
    async fn passes(&self, deaths: &Bell) {
        let mut setbacks = Setbacks::new([(); 3].map(|()| random::generator()));
        // Whatever happened before is found by a full look.
        let mut next = Next::Promote;
        loop {
            let (allowed, wait) = setbacks.allowed(next, Instant::now());
            // Even the shortest sleep takes a millisecond.
            if !wait.is_zero() {
                sleep(wait).await;
            }
            next = allowed;
            let started = Instant::now();
            match self.pass(next).await {
                Ok(Pass::Fenced) => return,
                Ok(Pass::Held { moved, other, next_due, next_lease, next_dead, next_notice }) => {
                    self.metrics.pass.record(started.elapsed().as_secs_f64(), &[]);
                    self.count(next, moved, other);
                    next_notice.iter().for_each(|wait| deaths.ring(started + *wait));
                    if setbacks.worked(next) {
                        info!(shard = self.shard.number(), "the store answers again");
                    }
                    let waits = Waits { due: next_due, lease: next_lease, dead: next_dead };
                    next = pace::next(setbacks.hold(waits, started), Some(next));
                    if let Next::Sleep(wait) = next {
                        // From when it was asked: the answer may have waited for the disk.
                        let breath = if moved > 0 { BREATH } else { Duration::ZERO };
                        self.sleep_until((started + wait).max(Instant::now() + breath)).await;
                        next = Next::Promote;
                    }
                }
                Err(error) => {
                    if setbacks.failed(next, Instant::now()) {
                        warn!(
                            shard = self.shard.number(),
                            error = crate::cause(&error),
                            "a pass failed; trying again"
                        );
                    }
                    next = pace::after_failure(next);
                }
            }
        }
    }

    async fn pass(&self, what: Next) -> Result<Pass, StoreError> {
        let (shard, epoch) = (self.shard, &self.epoch);
        match what {
            Next::Promote | Next::Sleep(_) => self.store.promote(shard, epoch, LIMIT, pace::FLOOR).await,
            Next::Recover => {
                let recovered = self.store.recover(shard, epoch, LIMIT, pace::FLOOR).await?;
                self.fail(recovered).await
            }
            Next::Expire => self.store.evict(shard, epoch, LIMIT, pace::FLOOR).await,
        }
    }

    /// Settles jobs for pull whose leases ran out as failed. Where that cannot be done they are
    /// answered by a later recover again.
    async fn fail(&self, recovered: Recovered) -> Result<Pass, StoreError> {
        let Recovered { pass, expired: lapsed } = recovered;
        if lapsed.is_empty() {
            return Ok(pass);
        }
        let mut rng = random::generator();
        let error = || Some(RAN_OUT.to_owned());
        let words = lapsed.iter().map(|ExpiredLease { receipt, tries }| {
            Ok((*receipt, self.retries.failed(tries, error(), &mut rng)?))
        });
        // Before the policies are known nobody can say when; the jobs are answered again.
        let Ok(words) = words.collect::<Result<Vec<_>, PoliciesUnknown>>() else { return Ok(pass) };
        self.note(&lapsed).await;
        let settled = self.store.settle_expired(self.shard, &words).await?;
        let applied = settled.iter().filter(|settled| **settled == Settled::Applied).count() as u64;
        self.metrics.lapsed.add(applied, &[]);
        debug!(shard = self.shard.number(), applied, "consumers' leases ran out");
        Ok(pass.with_due(Duration::ZERO))
    }

    async fn note(&self, lapsed: &[ExpiredLease]) {
        let is_noted = |job: &&ExpiredLease| {
            let policy = job.tries.topic.as_ref().and_then(|topic| self.retries.policies.get(topic).ok()?);
            self.store.logging(policy.as_deref()).notes_failure()
        };
        let noted = lapsed.iter().filter(is_noted);
        let notes: Vec<_> = noted.map(|job| Note::expired(&job.receipt, RAN_OUT)).collect();
        if !notes.is_empty() {
            let unnoted = self.store.note_within(self.shard, &notes, NOTE_WITHIN).await;
            self.metrics.unnoted.add(unnoted as u64, &[]);
        }
    }

    fn count(&self, what: Next, moved: u32, other: u32) {
        if moved == 0 && other == 0 {
            return;
        }
        debug!(shard = self.shard.number(), ?what, moved, other, "moved jobs");
        let (moved, other) = (u64::from(moved), u64::from(other));
        match what {
            Next::Promote | Next::Sleep(_) => self.metrics.promoted.add(moved, &[]),
            Next::Recover => {
                self.metrics.recovered.add(moved, &[]);
                self.metrics.lost.add(other, &[]);
            }
            Next::Expire => self.metrics.expired.add(moved, &[]),
        }
    }

    /// Sleeps, unless a bell names an earlier moment.
    async fn sleep_until(&self, mut until: Instant) {
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                at = self.bells.rung(self.shard) => until = until.min(at),
            }
        }
    }
}
