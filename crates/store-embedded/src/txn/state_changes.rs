//! The state changes of jobs: each moves the entry of a job from the index of one state to that of another, keeps
//! record, ledger and counts in step, and publishes the events and wake-ups. Also evicts tombstones.

use ringback_core::clock::Timestamp;
use ringback_core::job::Tags;
use ringback_core::state::State;
use ringback_core::store_types::{EndedState, EventKind, LeaseId, Success};

use super::{KeepTombstones, Txn};
use crate::error::Result;
use crate::tables::{PULL, QueueEnd, Record, Stage};

/// How many tombstones a transition checks for eviction, in addition to two for each job that it ends.
const CHECKED: usize = 16;
/// The least age at which a tombstone is evicted because there are too many, in ms.
const LEAST_KEPT: u64 = 120_000;

/// Why a job that was reserved is cancelled.
const REQUESTED: &str = "cancel requested";

/// The state that a job enters.
pub(crate) enum To {
    /// Due at a time, in ms.
    Delayed(u64),
    Ready(QueueEnd),
    /// Leased until a deadline, in ms.
    Reserved(LeaseId, u64),
    Dead(Box<str>),
}

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Cancelled,
}

impl Txn<'_> {
    pub(crate) fn add(&mut self, mut record: Record, body: &[u8], to: To) -> Result<Record> {
        self.tables.records.add(&mut record, body)?;
        self.tables.tagged.add(&record)?;
        self.row.ledger.accepted += 1;
        self.arrive(record, None, to)
    }

    /// Puts a submitted job in the place of the delayed, ready or dead job `before`, whose number `record` has, and
    /// returns its record. The ledger counts no further accepted job.
    pub(crate) fn replace(&mut self, before: &Record, record: Record, body: &[u8], to: To) -> Result<Record> {
        self.unlink(before)?;
        if before.tags != record.tags {
            self.tables.tagged.remove(before)?;
            self.tables.tagged.add(&record)?;
        }
        self.tables.records.replace_body(record.number, body)?;
        let record = self.arrive(record, Some(before.state()), to)?;
        self.tidy(before)?;
        Ok(record)
    }

    /// Publishes and logs a submit; links, writes and returns its record. `from` is the state of a replaced job.
    fn arrive(&mut self, mut record: Record, from: Option<State>, to: To) -> Result<Record> {
        let due = Timestamp::from_millis(record.due);
        self.publish(&record, || EventKind::Submitted { due })?;
        self.number_arrival(&mut record)?;
        self.link(&mut record, to)?;
        self.tables.records.put(&record)?;
        self.follow_order(&record)?;
        self.log_transition(&record, from, Some(record.state()), record.reason())?;
        Ok(record)
    }

    /// Moves a job to another state, or place in its state's index. Writes the record and logs the transition.
    pub(crate) fn enter(&mut self, record: &mut Record, to: To) -> Result<()> {
        let from = record.state();
        self.unlink(record)?;
        self.link(record, to)?;
        self.tables.records.put(record)?;
        self.follow_order(record)?;
        self.log_transition(record, Some(from), Some(record.state()), record.reason())
    }

    /// Moves a job to the dead, and puts it into the archive outbox and its notice into the outbox.
    pub(crate) fn die(&mut self, job: &mut Record, reason: Box<str>) -> Result<()> {
        let (body, kind) = (self.tables.records.body(job.number)?, EndedState::of_reason(&reason));
        self.enter(job, To::Dead(reason))?;
        self.archive(kind, job)?;
        if let Some(body) = body {
            let now = self.now();
            self.tables.outbox.add(now, None, job, &body)?;
            self.wake_at(now);
        }
        Ok(())
    }

    /// Puts the notice of a success into the outbox. Must be called before the job is done, while it has its body.
    pub(crate) fn note_success(&mut self, job: &Record, success: &Success) -> Result<()> {
        if let Some(body) = self.tables.records.body(job.number)? {
            let now = self.now();
            self.tables.outbox.add(now, Some(success), job, &body)?;
            self.wake_at(now);
        }
        Ok(())
    }

    /// Makes a delayed or dead job due now, and ready at the back of its lane.
    pub(crate) fn make_ready(&mut self, record: &mut Record) -> Result<()> {
        let from = record.state();
        self.unlink(record)?;
        record.set_due(self.now());
        self.number_arrival(record)?;
        self.publish(record, || EventKind::Promoted)?;
        self.link(record, To::Ready(QueueEnd::Back))?;
        self.tables.records.put(record)?;
        self.log_transition(record, Some(from), Some(State::Ready), None)
    }

    /// Postpones the next check of an expired lease to a time, in ms.
    pub(crate) fn postpone_recovery(&mut self, record: &mut Record, until: u64) -> Result<()> {
        let (shard, number) = (self.shard(), record.number);
        let Stage::Reserved { deadline, postponed, .. } = &mut record.stage else { return Ok(()) };
        self.tables.leases.remove(shard, *deadline + *postponed, number)?;
        *postponed = until.saturating_sub(*deadline);
        self.tables.leases.add(shard, *deadline + *postponed, number)?;
        self.wake_at(until);
        self.tables.records.put(record)
    }

    /// Ends a job: puts it into the archive outbox, removes its body, and keeps its record as a tombstone. `settled` is
    /// the number of the last lease that was settled.
    pub(crate) fn finish(&mut self, mut record: Record, end: End, settled: u64) -> Result<()> {
        self.publish(&record, || match end {
            End::Done => EventKind::Done,
            End::Cancelled => EventKind::Cancelled,
        })?;
        let (from, to, reason) = match (record.state(), end) {
            (from, End::Done) => (from, State::Done, None),
            (State::Reserved, End::Cancelled) => (State::Reserved, State::Cancelled, Some(REQUESTED)),
            (from, End::Cancelled) => (from, State::Cancelled, None),
        };
        self.log_transition(&record, Some(from), Some(to), reason)?;
        self.archive(if end == End::Done { EndedState::Done } else { EndedState::Cancelled }, &record)?;
        self.unlink(&record)?;
        let shard = self.shard();
        self.tidy(&record)?;
        let (at, maybe_in_flight) = (self.now(), record.maybe_in_flight());
        record.stage = match end {
            End::Done => Stage::Done { at },
            End::Cancelled => Stage::Cancelled { at, maybe_in_flight },
        };
        self.leave_order(&record)?;
        self.tables.counts.note_end(shard, &record.topic, record.state())?;
        self.tables.tagged.remove(&record)?;
        (record.settled, record.last) = (settled, None);
        (record.topic, record.origin, record.tags) = (Box::default(), Box::default(), Tags::default());
        (record.token, record.generation, record.lease_lost, record.first_due) = (None, None, false, None);
        self.row.ledger.enter(record.state());
        self.row.tombstones += 1;
        self.transition.ended += 1;
        self.tables.tombstones.add(shard, at, record.number)?;
        self.tables.records.remove_body(record.number)?;
        self.tables.records.put(&record)
    }

    /// Takes the topic of a delayed job out of the schedule, or removes the turn of a ready job's lane, if the job that
    /// has left was its last.
    fn tidy(&mut self, left: &Record) -> Result<()> {
        let shard = self.shard();
        match left.state() {
            State::Delayed => self.tables.due.tidy(shard, &left.topic),
            State::Ready => self.tables.ready.tidy(shard, &left.lane().name()),
            State::Reserved | State::Done | State::Dead | State::Cancelled => Ok(()),
        }
    }

    /// Removes a dead job without a tombstone, and puts it into the archive outbox as purged.
    pub(crate) fn purge(&mut self, job: &Record) -> Result<()> {
        self.log_transition(job, Some(job.state()), None, None)?;
        self.archive(EndedState::Purged, job)?;
        self.unlink(job)?;
        self.leave_order(job)?;
        self.row.ledger.purged += 1;
        self.tables.tagged.remove(job)?;
        self.tables.records.remove(job)
    }

    pub(crate) fn evict(&mut self, tombstone: &Record) -> Result<()> {
        if let Some(at) = tombstone.ended() {
            let shard = self.shard();
            self.tables.tombstones.remove(shard, at, tombstone.number)?;
            self.tables.records.remove(tombstone)?;
            self.row.tombstones = self.row.tombstones.saturating_sub(1);
        }
        Ok(())
    }

    /// Evicts tombstones that are too old, or beyond the limit and at least two minutes old; these count as evicted
    /// early. Does nothing if this transition ended no job. Evicts up to twice as many as it ended and 16 more, so that
    /// their number falls.
    pub(crate) fn evict_tombstones(&mut self, keep: KeepTombstones) -> Result<()> {
        if self.transition.ended == 0 {
            return Ok(());
        }
        let (shard, now, limit) = (self.shard(), self.now(), CHECKED + 2 * self.transition.ended);
        for (at, number) in self.tables.tombstones.until(shard, now, limit)? {
            let is_old = now > at.saturating_add(keep.time);
            let is_early =
                self.row.tombstones > keep.count && now >= at.saturating_add(LEAST_KEPT.min(keep.time));
            if !is_old && !is_early {
                break;
            }
            match self.tables.records.get(number)? {
                Some(tombstone) => self.evict(&tombstone)?,
                None => self.tables.tombstones.remove(shard, at, number)?,
            }
            self.row.ledger.evicted_early += u64::from(!is_old);
        }
        Ok(())
    }

    /// Adds a job to the index and the counts of a state, sets its stage, and wakes the process that handles the state.
    /// The caller writes the record.
    pub(crate) fn link(&mut self, record: &mut Record, to: To) -> Result<()> {
        let (shard, number) = (self.shard(), record.number);
        record.stage = match to {
            To::Delayed(due) => {
                record.set_due(due);
                self.tables.due.add(shard, &record.topic, due, number)?;
                self.wake_at(due);
                self.claim_key(record)?;
                Stage::Delayed
            }
            To::Ready(_) if self.waits_in_order(record)? => Stage::Waiting(record.place()),
            To::Ready(end) => self.enqueue(record, end)?,
            To::Reserved(LeaseId { number: lease, bits }, deadline) => {
                self.claim_key(record)?;
                self.tables.leases.add(shard, deadline, number)?;
                self.wake_at(deadline);
                Stage::Reserved { lease, bits, deadline, cancel: false, postponed: 0 }
            }
            To::Dead(reason) => {
                let since = self.now();
                self.tables.dead.add(shard, since, number)?;
                self.row.held_dead = self.row.held_dead.min((since, number));
                self.publish(record, || EventKind::Dead { reason: reason.clone() })?;
                Stage::Dead { since, reason }
            }
        };
        self.row.ledger.enter(record.state());
        self.tables.counts.note(shard, record, record.state(), 1)
    }

    /// Adds a job to an end of the queue of its lane. Returns its stage.
    pub(super) fn enqueue(&mut self, record: &Record, end: QueueEnd) -> Result<Stage> {
        let (shard, lane) = (self.shard(), record.lane());
        let turn = if lane.is_pull() { PULL } else { self.next_turn() };
        let (position, was_empty) = self.tables.ready.push(shard, &lane.name(), record.number, end, turn)?;
        if was_empty {
            self.wake_lane(lane);
        }
        Ok(Stage::Ready { position })
    }

    /// Removes a job from the index and the counts of its state.
    fn unlink(&mut self, record: &Record) -> Result<()> {
        let (shard, number) = (self.shard(), record.number);
        self.row.ledger.leave(record.state());
        self.tables.counts.note(shard, record, record.state(), -1)?;
        match &record.stage {
            Stage::Delayed => self.tables.due.remove(shard, &record.topic, record.due, number),
            Stage::Ready { position } => self.tables.ready.remove(shard, &record.lane().name(), *position),
            Stage::Waiting(place) => match self.tables.order_key(record)? {
                Some(key) => self.remove_waiting(&key, *place),
                None => Ok(()),
            },
            Stage::Reserved { deadline, postponed, .. } => {
                self.tables.leases.remove(shard, deadline + postponed, number)
            }
            Stage::Dead { since, .. } => self.tables.dead.remove(shard, *since, number),
            Stage::Done { at } | Stage::Cancelled { at, .. } => {
                self.tables.tombstones.remove(shard, *at, number)
            }
        }
    }
}
