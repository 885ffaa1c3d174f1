//! Looking things up in a snapshot: whether an index has an entry, and which turns there are.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata as _};
use ringback_core::contract::StoreError;

use super::{Body, Entry, due, ready, records, times};

type Times = ReadOnlyTable<(u16, u64, u64), ()>;

/// The tables of a snapshot.
pub(crate) struct Look {
    ids: ReadOnlyTable<[u8; 12], u64>,
    bodies: ReadOnlyTable<u64, &'static [u8]>,
    due: ReadOnlyTable<(u16, &'static str, u64, u64), ()>,
    turns: ReadOnlyTable<(u16, u64, &'static str), ()>,
    topics: ReadOnlyTable<(u16, &'static str), u64>,
    ready: ReadOnlyTable<(u16, &'static str, i64), u64>,
    lanes: ReadOnlyTable<(u16, u64, &'static str), ()>,
    lane_turns: ReadOnlyTable<(u16, &'static str), u64>,
    leases: Times,
    dead: Times,
    ended: Times,
}

impl Look {
    pub(crate) fn into(txn: &ReadTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            ids: txn.open_table(records::IDS)?,
            bodies: txn.open_table(records::BODIES)?,
            due: txn.open_table(due::DUE)?,
            turns: txn.open_table(due::TURNS)?,
            topics: txn.open_table(due::TOPICS)?,
            ready: txn.open_table(ready::READY)?,
            lanes: txn.open_table(ready::LANES)?,
            lane_turns: txn.open_table(ready::LANE_TURNS)?,
            leases: txn.open_table(times::LEASES.1)?,
            dead: txn.open_table(times::DEAD.1)?,
            ended: txn.open_table(times::ENDED.1)?,
        })
    }

    /// Whether an index has an entry. A topic or a lane is named together with its turn.
    pub(crate) fn has(&self, entry: &Entry) -> Result<bool, StoreError> {
        Ok(match entry {
            Entry::Id(locator, number) => self.ids.get(locator)?.is_some_and(|n| n.value() == *number),
            Entry::Body(number) => self.bodies.get(number)?.is_some(),
            Entry::Due(shard, topic, at, number) => {
                self.due.get((*shard, topic.as_str(), *at, *number))?.is_some()
            }
            Entry::Ready(shard, lane, position, number) => {
                let found = self.ready.get((*shard, lane.as_str(), *position))?;
                found.is_some_and(|found| found.value() == *number)
            }
            Entry::Lease(shard, at, number) => self.leases.get((*shard, *at, *number))?.is_some(),
            Entry::Dead(shard, at, number) => self.dead.get((*shard, *at, *number))?.is_some(),
            Entry::Ended(shard, at, number) => self.ended.get((*shard, *at, *number))?.is_some(),
            Entry::Topic(shard, topic, at) => self.turns.get((*shard, *at, topic.as_str()))?.is_some(),
            Entry::Lane(shard, lane, turn) => self.lanes.get((*shard, *turn, lane.as_str()))?.is_some(),
        })
    }

    /// How many entries all indexes of jobs have, and how many bodies there are.
    pub(crate) fn entries(&self) -> Result<u64, StoreError> {
        let times = self.leases.len()? + self.dead.len()? + self.ended.len()?;
        Ok(self.ids.len()? + self.bodies.len()? + self.due.len()? + self.ready.len()? + times)
    }

    /// The id of a job that has not ended.
    pub(crate) fn id(&self, number: u64) -> Result<Option<String>, StoreError> {
        Ok(self.bodies.get(number)?.and_then(|raw| Body::unpack(raw.value())).map(|body| body.id))
    }

    /// When a topic has its turn, as is noted with it.
    pub(crate) fn topic_turn(&self, shard: u16, topic: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.topics.get((shard, topic))?.map(|at| at.value()))
    }

    /// The turn of a lane, as is noted with it.
    pub(crate) fn lane_turn(&self, shard: u16, lane: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.lane_turns.get((shard, lane))?.map(|turn| turn.value()))
    }

    /// When the first delayed job of a topic is due.
    pub(crate) fn first_due(&self, shard: u16, topic: &str) -> Result<Option<u64>, StoreError> {
        due::first_of(&self.due, shard, topic)
    }

    /// Whether a lane's queue has anything.
    pub(crate) fn is_waiting(&self, shard: u16, lane: &str) -> Result<bool, StoreError> {
        let mut rows = self.ready.range((shard, lane, i64::MIN)..=(shard, lane, i64::MAX))?;
        Ok(rows.next().transpose()?.is_some())
    }
}
