//! Restores the missing links of jobs for a repair: entries of indexes, topics in the schedule, and
//! the turns of lanes. Nothing else would ever find such jobs.

use ringback_core::contract::StoreError;
use ringback_core::lane::Lane;
use ringback_core::state::State;

use super::Txn;
use super::transitions::To;
use crate::error::Result;
use crate::tables::{PULL, QueueEnd, Record, Stage};

impl Txn<'_> {
    /// Restores the missing links of a job. Returns whether any was missing.
    pub(crate) fn relink(&mut self, number: u64) -> Result<bool> {
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
            Stage::Reserved { deadline, put_off, .. } => {
                self.tables.leases.add(shard, deadline + put_off, number)?;
                self.wake_at(deadline + put_off);
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

    /// Puts a ready job back at its position, or behind the others where another job has that.
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

    /// Puts a topic with delayed jobs into the schedule. Returns whether it has any.
    pub(crate) fn relink_topic(&mut self, topic: &str) -> Result<bool> {
        let first = self.tables.due.relink(self.shard(), topic)?;
        first.into_iter().for_each(|first| self.wake_at(first));
        Ok(first.is_some())
    }

    /// Gives a lane with ready jobs its turn. Returns whether it has any.
    pub(crate) fn relink_lane(&mut self, lane: &str) -> Result<bool> {
        if self.tables.ready.is_empty(self.shard(), lane)? {
            return Ok(false);
        }
        self.give_turn(lane)?;
        Ok(true)
    }

    /// Gives a lane a turn behind the others, and wakes those who reserve from it.
    pub(crate) fn give_turn(&mut self, lane: &str) -> Result<()> {
        let lane = Lane::parse(lane).ok_or(StoreError::Unreadable("a lane's name"))?;
        let turn = if lane.is_pull() { PULL } else { self.next_turn() };
        self.tables.ready.set_turn(self.edge.shard, &lane.name(), Some(turn))?;
        self.wake_lane(lane);
        Ok(())
    }
}
