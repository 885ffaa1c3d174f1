//! What a repair puts back: entries and turns that nothing leads to any more.

use ringback_core::contract::StoreError;
use ringback_core::state::State;

use super::{To, Txn};
use crate::tables::{PULL, Queue, Record, Stage};

impl Txn<'_> {
    /// Puts the entries of a job that are missing back; whether any was.
    pub(crate) fn lead_to(&mut self, number: u64) -> Result<bool, StoreError> {
        let Some(mut record) = self.tables.records.get(number)? else { return Ok(false) };
        let (shard, mut is_led) = (self.shard, self.tables.records.name(&record)?);
        match record.stage.clone() {
            Stage::Delayed => {
                if !self.tables.due.has(shard, &record.topic, record.due, number)? {
                    self.tables.due.add(shard, &record.topic, record.due, number)?;
                    self.moment(record.due);
                    is_led = true;
                }
            }
            Stage::Ready { position } => {
                let lane = record.lane();
                match self.tables.ready.at(shard, &lane, position)? {
                    Some(found) if found == number => return Ok(is_led),
                    None => self.tables.ready.fill(shard, &lane, position, number)?,
                    Some(_) => {
                        self.row.ledger.leave(State::Ready);
                        self.tables.counts.note(shard, &record, State::Ready, -1)?;
                        self.place(&mut record, To::Ready(Queue::Back))?;
                        self.tables.records.put(&record)?;
                    }
                }
                self.lead_to_lane(&lane)?;
                is_led = true;
            }
            Stage::Reserved { deadline, put_off, .. } => {
                is_led |= self.lead_to_time(&record, deadline + put_off)?;
            }
            Stage::Dead { since: at, .. } | Stage::Done { at } | Stage::Cancelled { at, .. } => {
                is_led |= self.lead_to_time(&record, at)?;
            }
        }
        Ok(is_led)
    }

    /// Puts the entry of a job that stands by a time back, where it is missing.
    fn lead_to_time(&mut self, record: &Record, at: u64) -> Result<bool, StoreError> {
        let (shard, number) = (self.shard, record.number);
        let index = match record.state() {
            State::Reserved => &mut self.tables.leases,
            State::Dead => &mut self.tables.dead,
            State::Delayed | State::Ready | State::Done | State::Cancelled => &mut self.tables.ended,
        };
        if index.has(shard, at, number)? {
            return Ok(false);
        }
        index.add(shard, at, number)?;
        self.moment(at);
        Ok(true)
    }

    /// Gives a topic with delayed jobs its turn again.
    pub(crate) fn lead_to_topic(&mut self, topic: &str) -> Result<bool, StoreError> {
        let first = self.tables.due.lead_to(self.shard, topic)?;
        first.into_iter().for_each(|first| self.moment(first));
        Ok(first.is_some())
    }

    /// Gives a lane that is not empty its turn again.
    pub(crate) fn lead_to_lane(&mut self, lane: &str) -> Result<bool, StoreError> {
        if self.tables.ready.first(self.shard, lane, 1)?.is_empty() {
            return Ok(false);
        }
        let turn = if lane.ends_with(' ') { PULL } else { self.turn() };
        self.tables.ready.set_turn(self.shard, lane, Some(turn))?;
        self.wake(lane);
        Ok(true)
    }
}
