//! The findings of a check and their repairs, which the writer applies. A repair corrects a count, or restores an entry
//! of an index, a topic in the schedule or the list, a lane's turn, the head of a key, or the time of a schedule.

use ringback_core::lane::Lane;
use ringback_core::state::State;
use ringback_core::store_types::{Check, Finding, Repair};

use crate::error::Result;
use crate::tables::{LaneCounts, QueueEnd, Record, Stage, Sums};
use crate::txn::Txn;
use crate::txn::state_changes::To;

/// The most repairs after one walk. If there are more, another walk follows.
const MAX_FIXES: usize = 10_000;

/// The result of a walk: findings to report, and findings to repair.
pub(crate) struct Findings {
    pub(crate) repair: Repair,
    pub(crate) check: Check,
    pub(crate) fixes: Vec<Fix>,
}

impl Findings {
    /// Adds a finding to the repairs, if they are wanted and there is an action, else to the report. Drops it if there
    /// are [`MAX_FIXES`] repairs; the next walk finds it again.
    pub(crate) fn add(&mut self, finding: Finding, action: Option<Action>) {
        match action {
            Some(action) if self.repair == Repair::Yes => {
                if self.fixes.len() < MAX_FIXES {
                    self.fixes.push(Fix { finding, action });
                }
            }
            _ => self.check.find(finding),
        }
    }
}

/// A finding, and how to repair it.
pub(crate) struct Fix {
    pub(crate) finding: Finding,
    pub(crate) action: Action,
}

/// One repair. Counts are corrected by a difference, which stays right while jobs change.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Restores the index entries of a job, by its number.
    RelinkJob(u64),
    /// Restores a job in the index of tags, by its number.
    RelinkTags(u64),
    /// Puts a topic into the schedule.
    RelinkTopic(Box<str>),
    /// Gives a lane its turn.
    RelinkLane(Box<str>),
    /// Lets the first job of a key that waits go.
    PassOn(Box<str>),
    /// Restores the time of a schedule.
    RelinkSchedule(Box<str>),
    /// Corrects the counts of states, and then those of accepted and missing jobs.
    ShiftLedger(Vec<(State, i64)>),
    ShiftTombstones(i64),
    /// Corrects how many keys have jobs that wait.
    ShiftKeys(i64),
    ShiftLane(Box<str>, LaneCounts),
    ShiftTopic(Box<str>, i64),
    /// Corrects the sums of a shard, or of a tenant in it.
    ShiftSums(Box<str>, Sums),
    RegisterTopic(Box<str>),
}

impl Action {
    /// Applies the repair. Returns false if an index entry turns out not to be missing; a count is always changed.
    pub(crate) fn apply(&self, txn: &mut Txn<'_>) -> Result<bool> {
        let shard = txn.shard();
        match self {
            Self::RelinkJob(number) => return txn.relink(*number),
            Self::RelinkTags(number) => return txn.relink_tags(*number),
            Self::RelinkTopic(topic) => return txn.relink_topic(topic),
            Self::RelinkLane(lane) => return txn.relink_lane(lane),
            Self::PassOn(key) => return txn.relink_key(key),
            Self::RelinkSchedule(name) => {
                let next = txn.tables.schedules.relink(name)?;
                next.iter().for_each(|_| txn.wake_at(txn.now()));
                return Ok(next.is_some());
            }
            Self::ShiftLedger(counts) => {
                counts.iter().for_each(|(state, by)| txn.row.ledger.shift(*state, *by));
                txn.row.ledger.balance();
            }
            Self::ShiftTombstones(by) => {
                txn.row.tombstones = txn.row.tombstones.saturating_add_signed(*by);
            }
            Self::ShiftKeys(by) => {
                txn.row.waiting_keys = txn.row.waiting_keys.saturating_add_signed(*by);
            }
            Self::ShiftLane(lane, by) => txn.tables.counts.shift_lane(shard, lane, *by)?,
            Self::ShiftTopic(topic, by) => txn.tables.counts.shift_topic(shard, topic, *by)?,
            Self::ShiftSums(name, by) => txn.tables.counts.shift_sums(shard, name, *by)?,
            Self::RegisterTopic(topic) => txn.tables.due.register(shard, topic)?,
        }
        Ok(true)
    }
}

impl Txn<'_> {
    /// Restores the missing index entries of a job, and wakes the carrier for its time. Returns whether any was
    /// missing; false if the job is gone.
    fn relink(&mut self, number: u64) -> Result<bool> {
        let Some(mut record) = self.tables.records.get(number)? else { return Ok(false) };
        let was_missing = self.tables.records.relink(&record)?;
        if self.tables.is_indexed(&record)? {
            return Ok(was_missing);
        }
        let shard = self.shard();
        match record.stage {
            Stage::Delayed => {
                self.tables.due.add(shard, &record.topic, record.due, number)?;
                self.wake_at(record.due);
            }
            Stage::Ready { position } => self.relink_ready(&mut record, position)?,
            Stage::Waiting(place) => {
                let Some(key) = self.tables.order_key(&record)? else { return Ok(was_missing) };
                self.add_waiting(&key, place, number)?;
                self.relink_key(&key)?;
            }
            Stage::Reserved { deadline, postponed, .. } => {
                self.tables.leases.add(shard, deadline + postponed, number)?;
                self.wake_at(deadline + postponed);
            }
            Stage::Dead { since, .. } => {
                self.tables.dead.add(shard, since, number)?;
                self.wake_at(since);
            }
            Stage::Done { at } | Stage::Cancelled { at, .. } => {
                self.tables.tombstones.add(shard, at, number)?;
                self.wake_at(at);
            }
        }
        Ok(true)
    }

    /// Restores a job in the index of tags. Returns whether any of its tags was missing; false if the job is gone.
    fn relink_tags(&mut self, number: u64) -> Result<bool> {
        let Some(record) = self.tables.records.get(number)? else { return Ok(false) };
        let (_, missing) = self.tables.tagged.count(&record)?;
        self.tables.tagged.add(&record)?;
        Ok(missing > 0)
    }

    /// Puts a ready job back at its position, or at its lane's end if that is taken, and gives the lane its turn.
    fn relink_ready(&mut self, record: &mut Record, position: i64) -> Result<()> {
        let (shard, lane) = (self.shard(), record.lane().name());
        if self.tables.ready.at(shard, &lane, position)?.is_none() {
            self.tables.ready.fill(shard, &lane, position, record.number)?;
        } else {
            self.row.ledger.leave(State::Ready);
            self.tables.counts.note(shard, record, State::Ready, -1)?;
            self.link(record, To::Ready(QueueEnd::Back))?;
            self.tables.records.put(record)?;
        }
        self.relink_lane(&lane).map(drop)
    }

    /// Lets the first job of a key that waits go, as its head. Returns false if the key has a head.
    fn relink_key(&mut self, key: &str) -> Result<bool> {
        let row = self.tables.order.topic(self.shard(), Lane::topic_of(key))?;
        let has_head = row.map_or(Ok(None), |row| self.head(row, key))?.is_some();
        if !has_head {
            self.pass_on(key)?;
        }
        Ok(!has_head)
    }

    /// Puts a topic into the schedule and wakes the carrier for its first delayed job. Returns false if it has none.
    fn relink_topic(&mut self, topic: &str) -> Result<bool> {
        let first = self.tables.due.relink(self.shard(), topic)?;
        first.into_iter().for_each(|first| self.wake_at(first));
        Ok(first.is_some())
    }

    /// Gives a lane with ready jobs its turn. Returns false if the lane has none.
    fn relink_lane(&mut self, lane: &str) -> Result<bool> {
        if self.tables.ready.is_empty(self.shard(), lane)? {
            return Ok(false);
        }
        self.give_turn(lane)?;
        Ok(true)
    }
}
