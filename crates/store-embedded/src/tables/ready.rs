//! Ready queues: the ready jobs of each lane in order, and the lanes that are not empty, in
//! turn. Lanes for pull have no turn of their own: they stand behind all others, under
//! [`PULL`], and are asked for by name.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::StoreError;

use super::Entry;
use super::due::LAST;
use super::rows::{Journal, Name, Rows};

pub(crate) const READY: TableDefinition<'static, (u16, &str, i64), u64> = TableDefinition::new("ready");
pub(crate) const LANES: TableDefinition<'static, (u16, u64, &str), ()> = TableDefinition::new("lanes");
pub(crate) const LANE_TURNS: TableDefinition<'static, (u16, &str), u64> = TableDefinition::new("lane_turns");

/// The turn of every lane for pull that is not empty.
pub(crate) const PULL: u64 = u64::MAX;

/// The turn of every lane whose topic is paused, once it was met.
pub(crate) const PARKED: u64 = u64::MAX - 1;

/// Which end of its lane's queue a job goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Back,
    /// For those handed over again.
    Front,
}

pub(crate) struct Ready<'t> {
    pub(crate) ready: Rows<'t, (u16, &'static str, i64), u64>,
    pub(crate) lanes: Rows<'t, (u16, u64, &'static str), ()>,
    pub(crate) turns: Rows<'t, (u16, &'static str), u64>,
}

impl<'t> Ready<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            ready: Rows::open(txn, journal, Name::Ready, READY)?,
            lanes: Rows::open(txn, journal, Name::Lanes, LANES)?,
            turns: Rows::open(txn, journal, Name::LaneTurns, LANE_TURNS)?,
        })
    }

    /// Adds a job to its lane's queue and returns its position there. A lane that was empty
    /// gets `turn`; the second value tells that it was.
    pub(crate) fn push(
        &mut self,
        shard: u16,
        lane: &str,
        number: u64,
        queue: Queue,
        turn: u64,
    ) -> Result<(i64, bool), StoreError> {
        let position = {
            let mut rows = self.ready.range((shard, lane, i64::MIN)..=(shard, lane, i64::MAX))?;
            let (end, step) = match queue {
                Queue::Back => (rows.next_back(), 1),
                Queue::Front => (rows.next(), -1),
            };
            end.transpose()?.map_or(0, |(key, _)| key.value().2 + step)
        };
        self.ready.insert((shard, lane, position), number)?;
        let was_empty = self.turns.get((shard, lane))?.is_none();
        if was_empty {
            self.set_turn(shard, lane, Some(turn))?;
        }
        Ok((position, was_empty))
    }

    /// The job in a place of a lane's queue.
    pub(crate) fn at(&self, shard: u16, lane: &str, position: i64) -> Result<Option<u64>, StoreError> {
        Ok(self.ready.get((shard, lane, position))?.map(|number| number.value()))
    }

    /// Puts a job into a place of its lane's queue that is free; the lane's turn stays.
    pub(crate) fn fill(
        &mut self,
        shard: u16,
        lane: &str,
        position: i64,
        number: u64,
    ) -> Result<(), StoreError> {
        self.ready.insert((shard, lane, position), number)?;
        Ok(())
    }

    /// Takes a job out of its lane's queue; the lane's turn stays.
    pub(crate) fn remove(&mut self, shard: u16, lane: &str, position: i64) -> Result<(), StoreError> {
        self.ready.remove((shard, lane, position))?;
        Ok(())
    }

    /// Takes away the turn of a lane that is empty.
    pub(crate) fn tidy(&mut self, shard: u16, lane: &str) -> Result<(), StoreError> {
        if self.first(shard, lane, 1)?.is_empty() { self.set_turn(shard, lane, None) } else { Ok(()) }
    }

    /// The turn of a lane, or none for one that is empty.
    pub(crate) fn set_turn(&mut self, shard: u16, lane: &str, turn: Option<u64>) -> Result<(), StoreError> {
        let before = self.turns.remove((shard, lane))?.map(|turn| turn.value());
        if let Some(before) = before {
            self.lanes.remove((shard, before, lane))?;
        }
        if let Some(turn) = turn {
            self.turns.insert((shard, lane), turn)?;
            self.lanes.insert((shard, turn, lane), ())?;
        }
        Ok(())
    }

    /// The lanes that are not empty, in turn.
    pub(crate) fn lanes(&self, shard: u16, limit: usize) -> Result<Vec<String>, StoreError> {
        let rows = self.lanes.range((shard, 0, "")..(shard, PARKED, ""))?.take(limit);
        rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
    }

    /// The lanes for pull that are not empty, from the one in this place on.
    pub(crate) fn pulls(&self, shard: u16, from: usize, limit: usize) -> Result<Vec<String>, StoreError> {
        let rows = self.lanes.range((shard, PULL, "")..=(shard, PULL, LAST))?.skip(from).take(limit);
        rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
    }

    /// The lanes of a topic that are parked.
    pub(crate) fn parked(&self, shard: u16, topic: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        let rows = self.lanes.range((shard, PARKED, &*first)..=(shard, PARKED, &*last))?.take(limit);
        rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
    }

    /// The first of a lane: position and number.
    pub(crate) fn first(&self, shard: u16, lane: &str, limit: usize) -> Result<Vec<(i64, u64)>, StoreError> {
        let rows = self.ready.range((shard, lane, i64::MIN)..=(shard, lane, i64::MAX))?.take(limit);
        rows.map(|row| row.map(|(key, number)| (key.value().2, number.value())))
            .collect::<Result<_, _>>()
            .map_err(StoreError::from)
    }
}

pub(crate) fn entries(
    txn: &ReadTransaction,
    see: &mut impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for row in txn.open_table(READY)?.iter()? {
        let (key, number) = row?;
        let (shard, lane, position) = key.value();
        see(Entry::Ready(shard, lane.to_owned(), position, number.value()))?;
    }
    for row in txn.open_table(LANES)?.iter()? {
        let key = row?.0;
        let (shard, turn, lane) = key.value();
        see(Entry::Lane(shard, lane.to_owned(), turn))?;
    }
    Ok(())
}
