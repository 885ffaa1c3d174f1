//! Scripts that notifiers call: reserve, settle, renew.

use super::{Batch, Code, JobState, Receipt, Record, Store, Tombstone};
use crate::bounds::Bounds;
use crate::planted::Planted;
use crate::sets::{Job, JobSet, NUMBERS_PER_TICK, Number, TimeSet};

/// A lease, as its caller gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The job.
    pub(crate) job: Job,
    /// The proof.
    pub(crate) receipt: Receipt,
    /// The failures so far, which choose what another failure leads to.
    pub(crate) failures: u8,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    /// The receiver accepted the job.
    Complete,
    /// It did not; the job is tried again.
    Retry,
    /// It did not, for the last time.
    Bury,
    /// No attempt was made.
    Release,
}

/// What a settle did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The outcome counts.
    Applied,
    /// It counted before.
    Replayed,
    /// A success counts although its lease was no longer current.
    Late,
    /// It does not count.
    Stale,
}

impl Store {
    /// ready -> reserved, for these jobs as far as they are ready. Their entries leave the queues. A caller that
    /// repeats its sequence gets the leases of its last call that it still holds. `bits` is the next grant's;
    /// `caller` is none once the process has gone. Returns the leases, and whether they are new.
    pub(crate) fn reserve(
        &mut self,
        caller: Option<(usize, u8)>,
        jobs: JobSet,
        mut bits: u8,
        bounds: &Bounds,
    ) -> (Vec<Grant>, bool) {
        if let Some(number) = caller.and_then(|(caller, sequence)| self.repeated(caller, sequence, bounds)) {
            return (self.grants_of(number), false);
        }
        let clock = self.number_now() - 1;
        let number = 1 + if bounds.has(Planted::LeaseWithoutClock) {
            self.last_lease
        } else {
            self.last_lease.max(clock)
        };
        let (mut granted, deadline) = (JobSet::default(), self.now + bounds.lease);
        let mut grants = Vec::new();
        for job in jobs.iter() {
            let entries = std::mem::take(&mut self.queued[job]);
            let from = self.state(job);
            let record = self.records[job].or_else(|| self.record_of_entry(job, entries, bounds));
            let Some(record) =
                record.filter(|record| record.code == Code::Waiting && entries.contains(record.due))
            else {
                continue;
            };
            let attempts = record.attempts + 1;
            let number = if bounds.has(Planted::AttemptAsReceipt) { attempts.into() } else { number };
            let receipt = Receipt { number, bits };
            bits += 1;
            self.records[job] =
                Some(Record { code: Code::Reserved, attempts, lease: receipt, deadline, ..record });
            self.tombstones[job] = None;
            if !bounds.has(Planted::LedgerOutside) {
                self.count_move(from, JobState::Reserved);
            }
            granted.insert(job);
            grants.push(Grant { job, receipt, failures: record.failures });
        }
        if let Some(first) = grants.first() {
            let number = first.receipt.number;
            self.batches.push(Batch { number, jobs: granted, look_at: deadline });
            self.last_lease = number;
            if let Some((caller, sequence)) = caller {
                self.callers[caller] = Some((sequence, number));
            }
        }
        (grants, true)
    }

    /// The number of the leases that a caller got for the same sequence.
    fn repeated(&self, caller: usize, sequence: u8, bounds: &Bounds) -> Option<Number> {
        let (known, number) = self.callers[caller]?;
        (known == sequence && !bounds.has(Planted::ReserveForgetsCaller)).then_some(number)
    }

    /// The leases of a number that are still current.
    fn grants_of(&self, number: Number) -> Vec<Grant> {
        let jobs =
            self.batches.iter().filter(|batch| batch.number == number).flat_map(|batch| batch.jobs.iter());
        let held =
            jobs.filter(|job| self.holds(number, *job)).filter_map(|job| Some((job, self.records[job]?)));
        held.map(|(job, record)| Grant { job, receipt: record.lease, failures: record.failures }).collect()
    }

    /// The job of an entry whose record has gone, if entries held whole jobs.
    fn record_of_entry(&self, job: Job, entries: TimeSet, bounds: &Bounds) -> Option<Record> {
        let is_whole = bounds.has(Planted::EntriesUnchecked) && self.tombstones[job].is_some();
        let due = (0..=self.now).find(|at| entries.contains(*at))?;
        is_whole.then_some(Record::new(due, due))
    }

    /// reserved -> done, delayed, dead, or ready; cancelled where that was requested. `is_last` if the batch of the
    /// lease has no other job left for its caller. The store may have one: a fail-over loses settles.
    pub(crate) fn settle(
        &mut self,
        job: Job,
        receipt: Receipt,
        outcome: Outcome,
        is_last: bool,
        bounds: &Bounds,
    ) -> Settled {
        // A job that was never reserved has no job state on Redis, and a settle reads nothing else.
        let Some(record) = self.records[job].filter(|record| record.attempts > 0) else {
            let is_replay = self.tombstones[job].is_some_and(|tombstone| tombstone.lease == receipt.number);
            return if is_replay { Settled::Replayed } else { Settled::Stale };
        };
        let is_current = record.code == Code::Reserved && self.is_receipt(record.lease, receipt, bounds);
        if is_current {
            self.apply(job, record, receipt.number, outcome, bounds);
            let is_over = || bounds.has(Planted::CallerTrusted) || !self.is_any_held(receipt.number);
            if is_last && is_over() || bounds.has(Planted::BatchDropped) {
                self.batches.retain(|batch| batch.number != receipt.number);
            }
            return Settled::Applied;
        }
        if record.settled == receipt.number {
            return Settled::Replayed;
        }
        if bounds.has(Planted::StaleFailureCounts)
            && outcome == Outcome::Retry
            && record.code == Code::Waiting
        {
            self.records[job] = Some(Record { failures: record.failures + 1, lost: 0, ..record });
            return Settled::Applied;
        }
        self.late_success(job, &record, receipt.number, outcome)
    }

    /// Whether a job of a batch is still reserved.
    fn is_any_held(&self, number: Number) -> bool {
        let mut batches = self.batches.iter().filter(|batch| batch.number == number);
        batches.any(|batch| batch.jobs.iter().any(|job| self.holds(number, job)))
    }

    fn is_receipt(&self, current: Receipt, given: Receipt, bounds: &Bounds) -> bool {
        match bounds.planted {
            Some(Planted::SettleUnchecked) => true,
            Some(Planted::AttemptAsReceipt) => current.number == given.number,
            _ => current == given,
        }
    }

    /// Applies the outcome of a current lease.
    fn apply(&mut self, job: Job, record: Record, lease: Number, outcome: Outcome, bounds: &Bounds) {
        let tombstone =
            Tombstone { is_done: outcome == Outcome::Complete, lease, maybe_in_flight: record.lease_lost };
        let settled = Record { settled: lease, ..record };
        let lease_lost = record.lease_lost && !bounds.has(Planted::LossForgotten);
        let failed = Record { failures: record.failures + 1, lost: 0, lease_lost, ..settled };
        let is_requested = record.is_cancel_requested && !bounds.has(Planted::RequestForgotten);
        match outcome {
            Outcome::Complete => self.end(job, &record, tombstone),
            Outcome::Retry | Outcome::Bury | Outcome::Release if is_requested => {
                self.end(job, &record, tombstone);
            }
            Outcome::Retry => {
                let due = self.now + bounds.retry;
                self.records[job] = Some(Record { code: Code::Waiting, due, ..failed });
                self.scheduled[job].insert(due);
                self.count_move(JobState::Reserved, JobState::Delayed);
            }
            Outcome::Bury => {
                self.bury(job, Record { code: Code::Dead { by_loss: false }, ..failed });
                if bounds.has(Planted::OutboxOutside) {
                    self.outbox.remove(job);
                }
            }
            Outcome::Release => {
                self.records[job] = Some(Record { code: Code::Waiting, ..settled });
                self.queued[job].insert(record.due);
                self.count_move(JobState::Reserved, JobState::Ready);
            }
        }
    }

    /// Judges a receipt that is no longer current. Only a success counts, and only for this life of the job.
    fn late_success(&mut self, job: Job, record: &Record, lease: Number, outcome: Outcome) -> Settled {
        let is_over = record.code == Code::Dead { by_loss: false };
        let is_of_another = lease < Number::from(record.created) * NUMBERS_PER_TICK;
        if outcome != Outcome::Complete || is_over || is_of_another {
            return Settled::Stale;
        }
        self.end(job, record, Tombstone { is_done: true, lease, maybe_in_flight: record.lease_lost });
        Settled::Late
    }

    /// reserved -> reserved with a later deadline. Its batch is looked at when that was planned.
    pub(crate) fn renew(&mut self, job: Job, receipt: Receipt, bounds: &Bounds) {
        let deadline = self.now + bounds.lease;
        let Some(record) = &mut self.records[job] else { return };
        if record.code == Code::Reserved && (record.lease == receipt || bounds.has(Planted::RenewUnchecked)) {
            record.deadline = record.deadline.max(deadline);
        }
    }
}
