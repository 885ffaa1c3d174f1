//! Changes what is stored when the store's time goes back to a clock that is far behind it, since times that were stored
//! meanwhile are ahead of the clock. Ready jobs that are not due wait again; leases, turns, notices, schedules and claims
//! of bulk operations are moved; and jobs whose times may be wrong are counted.

use ringback_core::clock::millis_up;
use ringback_core::limits::MAX_LEASE;
use ringback_core::state::State;
use ringback_core::store_types::Shard;

use super::Txn;
use super::state_changes::To;
use crate::clock_consent::ClockConsent;
use crate::error::Result;
use crate::tables::{QueueEnd, Record, Stage};

/// One step back: from which time to which, in µs, and whether an operator has said that the clock is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetBack {
    pub(crate) shards: u16,
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
    pub(crate) word: ClockConsent,
}

impl SetBack {
    const fn now(&self) -> u64 {
        self.to_us / 1000
    }

    /// Returns a stored time, in ms, moved back by as much as the store's time, but not into the past.
    const fn moved(&self, at: u64) -> u64 {
        let by = self.from_us.saturating_sub(self.to_us) / 1000;
        let (at, now) = (at.saturating_sub(by), self.now());
        if at > now { at } else { now }
    }

    /// Whether a job that has not ended was accepted or tried by the wrong time, or became due by it.
    fn is_touched(&self, job: &Record) -> bool {
        let became_due = match job.stage {
            Stage::Ready { .. } | Stage::Waiting(_) | Stage::Reserved { .. } => job.due > self.now(),
            // The job has waited again since; `move_job_back` has set its first due time.
            Stage::Delayed => {
                job.first_due == Some(job.due) && job.due > self.now() && job.due <= self.from_us / 1000
            }
            Stage::Dead { .. } | Stage::Done { .. } | Stage::Cancelled { .. } => false,
        };
        let is_waiting = matches!(job.state(), State::Delayed | State::Ready | State::Reserved);
        became_due || is_waiting && (job.arrived() > self.now() || self.was_tried_meanwhile(job))
    }

    fn was_tried_meanwhile(&self, job: &Record) -> bool {
        job.last.as_ref().is_some_and(|last| last.at > self.now())
    }

    /// Returns the state that a job has to enter now, if any. If the clock is known to be right, the due time of a retry
    /// moves back too.
    fn enters(&self, job: &Record) -> Option<To> {
        let (now, is_given) = (self.now(), self.word == ClockConsent::Given);
        let is_retry = is_given && self.was_tried_meanwhile(job);
        let longest = now.saturating_add(millis_up(MAX_LEASE)).min(self.from_us / 1000);
        match &job.stage {
            // The job was submitted without a delay, and is due now.
            Stage::Ready { .. } | Stage::Waiting(_) if job.due > now && job.due <= job.arrived() => {
                Some(To::Ready(QueueEnd::Back))
            }
            Stage::Ready { .. } | Stage::Waiting(_) | Stage::Delayed if job.due > now && is_retry => {
                Some(To::Delayed(self.moved(job.due)))
            }
            Stage::Ready { .. } | Stage::Waiting(_) if job.due > now => Some(To::Delayed(job.due)),
            Stage::Reserved { deadline, .. } if *deadline > longest => {
                Some(To::Reserved(job.lease()?, self.moved(*deadline)))
            }
            Stage::Dead { since, reason } if is_given && *since > now => Some(To::Dead(reason.clone())),
            _ => None,
        }
    }
}

impl Txn<'_> {
    /// Changes jobs, shards and bulk operations for the time `step.to_us`, and forgets planned passes. Returns how many
    /// jobs the wrong time has touched: they were accepted or tried by it, or became due. Reads all jobs, which may take
    /// a second for a million.
    pub(crate) fn set_back(&mut self, step: &SetBack) -> Result<u64> {
        let (mut touched, mut changed) = (0, Vec::new());
        self.tables.records.each(|number, job| {
            if let Some(job) = job {
                touched += u64::from(step.is_touched(&job));
                let is_late_tombstone =
                    step.word == ClockConsent::Given && job.ended().is_some_and(|at| at > step.now());
                if is_late_tombstone || step.enters(&job).is_some() {
                    changed.push((job.shard, number));
                }
            }
            Ok(())
        })?;
        changed.sort_unstable();
        for shard in 0..step.shards {
            self.begin(Shard(shard), step.to_us, 0)?;
            let first = changed.partition_point(|(of, _)| *of < shard);
            for (_, number) in changed[first..].iter().take_while(|(of, _)| *of == shard) {
                self.move_job_back(step, *number)?;
            }
            self.move_shard_back(step)?;
            self.end();
        }
        self.move_bulks_back(step)?;
        self.passes.clear();
        Ok(touched)
    }

    /// Forgets the latest time that shards have stored, so that the clock's time is the store's from now on.
    pub(crate) fn forget_time(&mut self, shards: u16, now_us: u64) -> Result<()> {
        for shard in 0..shards {
            self.begin(Shard(shard), now_us, 0)?;
            self.row.time_us = 0;
            self.end();
        }
        Ok(())
    }

    fn move_job_back(&mut self, step: &SetBack, number: u64) -> Result<()> {
        let Some(mut job) = self.tables.records.get(number)? else { return Ok(()) };
        let Some(to) = step.enters(&job) else { return self.end_now(job, step.now()) };
        let was_cancelled = matches!(job.stage, Stage::Reserved { cancel: true, .. });
        let lane = (job.state() == State::Ready).then(|| job.lane().name());
        match to {
            To::Ready(_) => job.set_due(step.now()),
            To::Delayed(due) if due == job.due => job.first_due = job.first_due.or(Some(due)),
            To::Delayed(_) | To::Reserved(..) | To::Dead(_) => {}
        }
        self.enter(&mut job, to)?;
        if let Some(lane) = lane {
            let shard = self.shard();
            self.tables.ready.tidy(shard, &lane)?;
        }
        if let Stage::Reserved { cancel, .. } = &mut job.stage
            && was_cancelled
        {
            *cancel = true;
            self.tables.records.put(&job)?;
        }
        Ok(())
    }

    /// Changes the end of a tombstone to now; does nothing for other jobs.
    fn end_now(&mut self, mut job: Record, now: u64) -> Result<()> {
        let Some(before) = job.ended() else { return Ok(()) };
        let shard = self.shard();
        self.tables.tombstones.remove(shard, before, job.number)?;
        if let Stage::Done { at } | Stage::Cancelled { at, .. } = &mut job.stage {
            *at = now;
        }
        self.tables.tombstones.add(shard, now, job.number)?;
        self.tables.records.put(&job)
    }

    /// Moves turns of lanes, waiting notices and next times of schedules to the time of the clock, and wakes the carrier.
    /// The number of the last lease is raised to the wrong time, since lease numbers only grow.
    fn move_shard_back(&mut self, step: &SetBack) -> Result<()> {
        let shard = self.shard();
        self.tables.schedules.look_at_all(shard, step.now())?;
        if self.row == super::ShardRow::default() {
            return Ok(());
        }
        // So a job that was accepted by the wrong time has no lease with an earlier number.
        self.row.lease = self.row.lease.max(step.from_us);
        let lanes = self.tables.ready.lanes(shard, (0, ""), u64::MAX, usize::MAX)?;
        let first = step.to_us.saturating_sub(lanes.len() as u64);
        for (turn, (_, lane)) in (first..).zip(&lanes) {
            self.tables.ready.set_turn(shard, lane, Some(turn))?;
        }
        self.row.turn = self.row.turn.min(step.to_us);
        for notice in self.tables.outbox.after(shard, step.now())? {
            self.tables.outbox.defer(notice, step.now())?;
        }
        self.wake_at(step.now());
        Ok(())
    }

    fn move_bulks_back(&mut self, step: &SetBack) -> Result<()> {
        for mut bulk in self.tables.bulks.all()? {
            if bulk.until > step.now() {
                bulk.until = step.moved(bulk.until);
                self.tables.bulks.put(&bulk)?;
            }
        }
        Ok(())
    }
}
