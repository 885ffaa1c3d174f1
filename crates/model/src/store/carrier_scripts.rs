//! Scripts that carriers call: claim, promote, recover, acknowledge.

use super::{Batch, Code, JobState, Record, Store, Tombstone};
use crate::bounds::{Bounds, MAX_JOBS};
use crate::planted::Planted;
use crate::sets::{Job, JobSet, Number, TimeSet};

impl Store {
    /// A carrier takes the shard. Returns its epoch: the clock, or the counter and one if that is more.
    pub(crate) fn claim(&mut self, bounds: &Bounds) -> Number {
        let (next, now) = (self.epoch + 1, self.number_now());
        self.epoch = match bounds.planted {
            Some(Planted::EpochWithoutClock) => next,
            Some(Planted::EpochWithoutCounter) => now,
            _ => next.max(now),
        };
        self.epoch
    }

    fn is_fenced(&self, epoch: Number, bounds: &Bounds) -> bool {
        self.epoch != epoch && !bounds.has(Planted::FenceUnchecked)
    }

    /// delayed and due -> ready. Returns what a carrier has to queue if promote is in two steps.
    pub(crate) fn promote(&mut self, epoch: Number, bounds: &Bounds) -> [TimeSet; MAX_JOBS] {
        let mut popped = [TimeSet::default(); MAX_JOBS];
        if self.is_fenced(epoch, bounds) {
            return popped;
        }
        for (job, popped) in popped.iter_mut().enumerate().take(bounds.jobs) {
            let due = self.scheduled[job].take_until(self.now);
            for _ in 0..due.len() {
                self.count_move(JobState::Delayed, JobState::Ready);
            }
            if bounds.has(Planted::PromoteInTwoSteps) {
                *popped = due;
            } else {
                self.queued[job] = self.queued[job].union(due);
            }
        }
        popped
    }

    /// reserved and past its deadline -> ready, dead by `lost`, or cancelled where that was requested.
    pub(crate) fn recover(&mut self, epoch: Number, bounds: &Bounds) {
        if self.is_fenced(epoch, bounds) {
            return;
        }
        let is_early = bounds.has(Planted::RecoverEarly);
        for batch in std::mem::take(&mut self.batches) {
            if batch.look_at > self.now && !is_early {
                self.batches.push(batch);
                continue;
            }
            let (mut kept, mut first) = (JobSet::default(), None);
            for job in
                batch.jobs.iter().filter(|job| self.holds(batch.number, *job)).collect::<JobSet>().iter()
            {
                let Some(record) = self.records[job] else { continue };
                if record.deadline > self.now && !is_early {
                    kept.insert(job);
                    first = Some(first.map_or(record.deadline, |first| record.deadline.min(first)));
                } else if record.is_cancel_requested && bounds.has(Planted::RecoverSkipsRequests) {
                    kept.insert(job);
                    first = Some(self.now + 1);
                } else {
                    self.take_back(job, record, bounds);
                }
            }
            if let Some(look_at) = first {
                self.batches.push(Batch { jobs: kept, look_at, ..batch });
            }
        }
    }

    /// Ends a lease that has run out.
    fn take_back(&mut self, job: Job, record: Record, bounds: &Bounds) {
        let lost = if bounds.has(Planted::LossesUncounted) { record.lost } else { record.lost + 1 };
        let failures = record.failures + u8::from(bounds.has(Planted::RunOutIsFailure));
        let record = Record { lost, failures, lease_lost: true, ..record };
        if record.is_cancel_requested {
            let tombstone = Tombstone { is_done: false, lease: record.settled, maybe_in_flight: true };
            self.end(job, &record, tombstone);
        } else if lost >= bounds.max_lost {
            self.bury(job, Record { code: Code::Dead { by_loss: true }, ..record });
        } else {
            self.queued[job].insert(record.due);
            self.records[job] = Some(Record { code: Code::Waiting, ..record });
            self.count_move(JobState::Reserved, JobState::Ready);
        }
    }

    /// Removes entries of the outbox whose notices are stored.
    pub(crate) fn acknowledge(&mut self, epoch: Number, deaths: JobSet, bounds: &Bounds) {
        if !self.is_fenced(epoch, bounds) {
            self.outbox = self.outbox.without(deaths);
        }
    }
}
