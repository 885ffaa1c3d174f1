//! What is done with what is stored when the store's time goes back to a clock that is far behind it. Times that were
//! stored meanwhile are ahead of the time as it is then. What is ready although it is not due waits again; what only
//! counts from the wrong time is moved; and jobs whose times may be wrong are counted.

use ringback_core::clock::millis_up;
use ringback_core::limits::MAX_LEASE;
use ringback_core::state::State;
use ringback_core::store_types::Shard;

use super::Txn;
use super::state_changes::To;
use crate::clock_consent::ClockConsent;
use crate::error::Result;
use crate::tables::{QueueEnd, Record, Stage};

/// How the time goes back; times are in µs.
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

    /// The time now of what was stored as `at`, in ms: as far from the time as it was, and not in the past.
    const fn moved(&self, at: u64) -> u64 {
        let by = self.from_us.saturating_sub(self.to_us) / 1000;
        let (at, now) = (at.saturating_sub(by), self.now());
        if at > now { at } else { now }
    }

    /// Whether a job that has not ended was accepted or tried by the wrong time, or became due by it.
    fn is_touched(&self, job: &Record) -> bool {
        let became_due = match job.stage {
            Stage::Ready { .. } | Stage::Reserved { .. } => job.due > self.now(),
            // It has waited again since, which `move_job_back` has noted.
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

    /// The state that a job enters now, if it has to change. A retry counts from its attempt.
    fn enters(&self, job: &Record) -> Option<To> {
        let (now, is_given) = (self.now(), self.word == ClockConsent::Given);
        let is_retry = is_given && self.was_tried_meanwhile(job);
        let longest = now.saturating_add(millis_up(MAX_LEASE)).min(self.from_us / 1000);
        match &job.stage {
            // It came without a delay, and is due now.
            Stage::Ready { .. } if job.due > now && job.due <= job.arrived() => {
                Some(To::Ready(QueueEnd::Back))
            }
            Stage::Ready { .. } | Stage::Delayed if job.due > now && is_retry => {
                Some(To::Delayed(self.moved(job.due)))
            }
            Stage::Ready { .. } if job.due > now => Some(To::Delayed(job.due)),
            Stage::Reserved { deadline, .. } if *deadline > longest => {
                Some(To::Reserved(job.lease()?, self.moved(*deadline)))
            }
            Stage::Dead { since, reason } if is_given && *since > now => Some(To::Dead(reason.clone())),
            _ => None,
        }
    }
}

impl Txn<'_> {
    /// Takes the time back. Returns how many jobs the wrong time has touched: they were accepted or tried by it, or
    /// became due. Reads all jobs, which may take a second for a million.
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

    /// The clock's time is the store's from now on: that it was ahead is forgotten.
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

    /// Lets a tombstone count as one that ended now.
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

    /// The turns of lanes, the notices that wait, and the next times of schedules are those of the clock. The numbers of
    /// leases only grow.
    fn move_shard_back(&mut self, step: &SetBack) -> Result<()> {
        let shard = self.shard();
        self.tables.schedules.look_at_all(shard, step.now())?;
        if self.row == super::ShardRow::default() {
            return Ok(());
        }
        // A job that was accepted by the wrong time has no lease from before it.
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
