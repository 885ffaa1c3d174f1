//! The store of one shard: records, indexes, leases, tombstones, the outbox and the ledger.
//!
//! The fields follow the layout on Redis. Queues are sets here: a reserve may take any of their entries, as jobs lie
//! in lanes that take turns.

mod carrier_scripts;
mod job_scripts;
mod lease_scripts;

pub(crate) use self::lease_scripts::{Grant, Outcome, Settled};

use crate::bounds::{Bounds, MAX_JOBS, MAX_NOTIFIERS};
use crate::sets::{Job, JobSet, NUMBERS_PER_TICK, Number, Time, TimeSet};

/// The state of a job, as records and indexes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// The store does not know the job.
    Absent,
    /// It waits for its due time.
    Delayed,
    /// It waits for a notifier.
    Ready,
    /// A notifier has a lease of it.
    Reserved,
    /// It was delivered.
    Done,
    /// It was given up.
    Dead,
    /// It was cancelled.
    Cancelled,
}

/// What a record says of its job. Only the indexes distinguish delayed jobs from ready ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Code {
    /// Delayed or ready.
    Waiting,
    /// Under the lease of the record.
    Reserved,
    /// Given up; `by_loss` if too many leases were lost.
    Dead {
        /// Whether a late success still completes the job.
        by_loss: bool,
    },
}

/// The proof of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Receipt {
    /// The number, which the leases of one call share.
    pub(crate) number: Number,
    /// The random bits. Here they number all grants that were ever made, so they identify the lease.
    pub(crate) bits: u8,
}

/// A job that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Record {
    /// What decides the state.
    pub(crate) code: Code,
    /// When it is due.
    pub(crate) due: Time,
    /// When it was submitted.
    pub(crate) created: Time,
    /// How often it was reserved.
    pub(crate) attempts: u8,
    /// How many attempts have failed.
    pub(crate) failures: u8,
    /// How many leases ran out in a row.
    pub(crate) lost: u8,
    /// Whether a lease ever ran out.
    pub(crate) lease_lost: bool,
    /// The last lease.
    pub(crate) lease: Receipt,
    /// When the lease runs out.
    pub(crate) deadline: Time,
    /// The number of the last lease that was settled; 0 for none.
    pub(crate) settled: Number,
    /// Whether a cancel waits for the end of the lease.
    pub(crate) is_cancel_requested: bool,
}

impl Record {
    /// A job that was never reserved.
    fn new(due: Time, created: Time) -> Self {
        Self {
            code: Code::Waiting,
            due,
            created,
            attempts: 0,
            failures: 0,
            lost: 0,
            lease_lost: false,
            lease: Receipt::default(),
            deadline: 0,
            settled: 0,
            is_cancel_requested: false,
        }
    }
}

/// What is kept of a job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tombstone {
    /// Done or else cancelled.
    pub(crate) is_done: bool,
    /// The number of the last lease that was settled.
    pub(crate) lease: Number,
    /// Whether a lease ran out and was never settled.
    pub(crate) maybe_in_flight: bool,
}

/// Leases that one call has granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Batch {
    /// The number of the leases.
    pub(crate) number: Number,
    /// Their jobs.
    pub(crate) jobs: JobSet,
    /// When a recover looks at them.
    pub(crate) look_at: Time,
}

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ledger {
    pub(crate) accepted: u8,
    pub(crate) delayed: u8,
    pub(crate) ready: u8,
    pub(crate) reserved: u8,
    pub(crate) done: u8,
    pub(crate) dead: u8,
    pub(crate) cancelled: u8,
}

/// The last grant to a caller: its sequence, and the number of the leases.
pub(crate) type LastGrant = Option<(u8, Number)>;

/// One shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Store {
    /// The clock.
    pub(crate) now: Time,
    /// The epoch of the last claim.
    pub(crate) epoch: Number,
    /// The last lease number.
    pub(crate) last_lease: Number,
    /// The jobs that have not ended.
    pub(crate) records: [Option<Record>; MAX_JOBS],
    /// The schedule: due times of delayed jobs.
    pub(crate) scheduled: [TimeSet; MAX_JOBS],
    /// The ready queues: due times for which jobs were queued. Entries whose job has gone stay until they are met.
    pub(crate) queued: [TimeSet; MAX_JOBS],
    /// The leases that recover looks at, by number.
    pub(crate) batches: Vec<Batch>,
    /// The index of dead jobs.
    pub(crate) dead: JobSet,
    /// The jobs that have ended.
    pub(crate) tombstones: [Option<Tombstone>; MAX_JOBS],
    /// The deaths whose notices are pending. A job dies at most once.
    pub(crate) outbox: JobSet,
    /// The counts of jobs.
    pub(crate) ledger: Ledger,
    /// The last grants.
    pub(crate) callers: [LastGrant; MAX_NOTIFIERS],
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            now: 1,
            epoch: 0,
            last_lease: 0,
            records: [None; MAX_JOBS],
            scheduled: [TimeSet::default(); MAX_JOBS],
            queued: [TimeSet::default(); MAX_JOBS],
            batches: Vec::new(),
            dead: JobSet::default(),
            tombstones: [None; MAX_JOBS],
            outbox: JobSet::default(),
            ledger: Ledger::default(),
            callers: [None; MAX_NOTIFIERS],
        }
    }

    /// The state of a job.
    #[must_use]
    pub(crate) fn state(&self, job: Job) -> JobState {
        let Some(record) = &self.records[job] else {
            return match self.tombstones[job] {
                None => JobState::Absent,
                Some(Tombstone { is_done: true, .. }) => JobState::Done,
                Some(Tombstone { is_done: false, .. }) => JobState::Cancelled,
            };
        };
        match record.code {
            Code::Waiting if self.scheduled[job].contains(record.due) => JobState::Delayed,
            Code::Waiting => JobState::Ready,
            Code::Reserved => JobState::Reserved,
            Code::Dead { .. } => JobState::Dead,
        }
    }

    /// The clock as a number.
    fn number_now(&self) -> Number {
        Number::from(self.now) * NUMBERS_PER_TICK
    }

    /// The count of a state.
    fn count(&mut self, state: JobState) -> &mut u8 {
        let ledger = &mut self.ledger;
        match state {
            JobState::Absent => &mut ledger.accepted,
            JobState::Delayed => &mut ledger.delayed,
            JobState::Ready => &mut ledger.ready,
            JobState::Reserved => &mut ledger.reserved,
            JobState::Done => &mut ledger.done,
            JobState::Dead => &mut ledger.dead,
            JobState::Cancelled => &mut ledger.cancelled,
        }
    }

    /// Counts a job that changes its state. One that comes from nothing is accepted.
    pub(crate) fn count_move(&mut self, from: JobState, to: JobState) {
        let before = self.count(from);
        *before = if from == JobState::Absent { *before + 1 } else { before.wrapping_sub(1) };
        let after = self.count(to);
        *after = after.wrapping_add(1);
    }

    /// Ends a job, which leaves a tombstone. Entries of the schedule and of the dead letters go with it; one in a
    /// ready queue stays.
    fn end(&mut self, job: Job, record: &Record, tombstone: Tombstone) {
        let from = self.state(job);
        self.scheduled[job].remove(record.due);
        self.dead.remove(job);
        self.records[job] = None;
        self.tombstones[job] = Some(tombstone);
        self.count_move(from, if tombstone.is_done { JobState::Done } else { JobState::Cancelled });
    }

    /// Writes the record of a job that was reserved and is now dead. Its death is recorded in the outbox.
    fn bury(&mut self, job: Job, record: Record) {
        self.records[job] = Some(record);
        self.dead.insert(job);
        self.outbox.insert(job);
        self.count_move(JobState::Reserved, JobState::Dead);
    }

    /// Whether a lease with this number is the current one of a job.
    fn holds(&self, number: Number, job: Job) -> bool {
        self.records[job].is_some_and(|record| record.code == Code::Reserved && record.lease.number == number)
    }

    /// Whether the indexes agree with the record of a job.
    pub(crate) fn is_indexed(&self, job: Job) -> bool {
        let is_dead = self.dead.contains(job);
        let Some(record) = &self.records[job] else { return self.scheduled[job].is_empty() && !is_dead };
        if self.tombstones[job].is_some() {
            return false;
        }
        let (scheduled, queued) = (self.scheduled[job], self.queued[job].contains(record.due));
        let in_batch = |batch: &Batch| batch.number == record.lease.number && batch.jobs.contains(job);
        match record.code {
            Code::Waiting if scheduled.is_empty() => queued && !is_dead,
            Code::Waiting => scheduled.len() == 1 && scheduled.contains(record.due) && !queued && !is_dead,
            Code::Reserved => scheduled.is_empty() && !is_dead && self.batches.iter().any(in_batch),
            Code::Dead { .. } => scheduled.is_empty() && is_dead,
        }
    }

    /// The ledger as the jobs say it.
    pub(crate) fn counted(&self, bounds: &Bounds) -> Ledger {
        let mut counted = Self::new();
        for state in (0..bounds.jobs).map(|job| self.state(job)).filter(|state| *state != JobState::Absent) {
            counted.count_move(JobState::Absent, state);
        }
        counted.ledger
    }
}
