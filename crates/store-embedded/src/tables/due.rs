//! Due times: delayed jobs by topic and due time, and which topic has its turn when, so
//! that the herd of one topic does not stand before the others. Times are in ms.

use std::collections::HashMap;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::StoreError;

use super::Entry;
use super::rows::{Journal, Name, Rows};

pub(crate) const DUE: TableDefinition<'static, (u16, &str, u64, u64), ()> = TableDefinition::new("due");
pub(crate) const TURNS: TableDefinition<'static, (u16, u64, &str), ()> = TableDefinition::new("turns");
/// Every topic that ever had a job here, and when it has its turn.
pub(crate) const TOPICS: TableDefinition<'static, (u16, &str), u64> = TableDefinition::new("topics");

/// A topic without a turn.
const NEVER: u64 = u64::MAX;
/// Behind every topic and every lane: they are ASCII.
pub(crate) const LAST: &str = "\u{10ffff}";

/// What is due of a topic.
pub(crate) struct First {
    /// Due time and number of each.
    pub(crate) found: Vec<(u64, u64)>,
    /// The due time of the one that follows them.
    pub(crate) following: Option<u64>,
}

pub(crate) struct Due<'t> {
    pub(crate) due: Rows<'t, (u16, &'static str, u64, u64), ()>,
    pub(crate) turns: Rows<'t, (u16, u64, &'static str), ()>,
    pub(crate) topics: Rows<'t, (u16, &'static str), u64>,
    /// Turns that were looked up, as they stand in `topics`: every submit asks for one.
    known: HashMap<u16, HashMap<Box<str>, u64>>,
}

impl<'t> Due<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            due: Rows::open(txn, journal, Name::Due, DUE)?,
            turns: Rows::open(txn, journal, Name::Turns, TURNS)?,
            topics: Rows::open(txn, journal, Name::Topics, TOPICS)?,
            known: HashMap::new(),
        })
    }

    /// Remembers a topic.
    pub(crate) fn know(&mut self, shard: u16, topic: &str) -> Result<(), StoreError> {
        if self.turn(shard, topic)?.is_none() {
            self.note(shard, topic, NEVER)?;
        }
        Ok(())
    }

    pub(crate) fn knows(&mut self, shard: u16, topic: &str) -> Result<bool, StoreError> {
        Ok(self.turn(shard, topic)?.is_some())
    }

    pub(crate) fn add(&mut self, shard: u16, topic: &str, at: u64, number: u64) -> Result<(), StoreError> {
        self.due.insert((shard, topic, at, number), ())?;
        if at < self.turn(shard, topic)?.unwrap_or(NEVER) {
            self.set_turn(shard, topic, Some(at))
        } else {
            Ok(())
        }
    }

    /// Whether an entry is there.
    pub(crate) fn has(&self, shard: u16, topic: &str, at: u64, number: u64) -> Result<bool, StoreError> {
        Ok(self.due.get((shard, topic, at, number))?.is_some())
    }

    /// Gives a topic that has something left its turn again, at its first due time.
    pub(crate) fn lead_to(&mut self, shard: u16, topic: &str) -> Result<Option<u64>, StoreError> {
        let first = self.of_topic(shard, topic, 0, 0)?.following;
        if let Some(first) = first {
            self.set_turn(shard, topic, None)?;
            self.set_turn(shard, topic, Some(first))?;
            self.turns.insert((shard, first, topic), ())?;
        }
        Ok(first)
    }

    /// Takes an entry away; the topic's turn stays.
    pub(crate) fn remove(&mut self, shard: u16, topic: &str, at: u64, number: u64) -> Result<(), StoreError> {
        self.due.remove((shard, topic, at, number))?;
        Ok(())
    }

    /// Takes away the turn of a topic that has nothing left.
    pub(crate) fn tidy(&mut self, shard: u16, topic: &str) -> Result<(), StoreError> {
        let left = self.due.range((shard, topic, 0, 0)..=(shard, topic, u64::MAX, u64::MAX))?.next();
        if left.transpose()?.is_none() { self.set_turn(shard, topic, None) } else { Ok(()) }
    }

    /// When a topic has its turn; none for one that is not known.
    fn turn(&mut self, shard: u16, topic: &str) -> Result<Option<u64>, StoreError> {
        let known = self.known.entry(shard).or_default();
        if let Some(at) = known.get(topic) {
            return Ok(Some(*at));
        }
        let found = self.topics.get((shard, topic))?.map(|at| at.value());
        if let Some(at) = found {
            known.insert(topic.into(), at);
        }
        Ok(found)
    }

    fn note(&mut self, shard: u16, topic: &str, at: u64) -> Result<(), StoreError> {
        self.topics.insert((shard, topic), at)?;
        self.known.entry(shard).or_default().insert(topic.into(), at);
        Ok(())
    }

    pub(crate) fn set_turn(&mut self, shard: u16, topic: &str, at: Option<u64>) -> Result<(), StoreError> {
        let (before, after) = (self.turn(shard, topic)?.unwrap_or(NEVER), at.unwrap_or(NEVER));
        if before == after {
            return Ok(());
        }
        self.turns.remove((shard, before, topic))?;
        if after != NEVER {
            self.turns.insert((shard, after, topic), ())?;
        }
        self.note(shard, topic, after)
    }

    /// When the first topic has its turn.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>, StoreError> {
        let mut rows = self.turns.range((shard, 0, "")..=(shard, u64::MAX, LAST))?;
        rows.next().map(|row| Ok(row?.0.value().1)).transpose()
    }

    /// The topics whose turn it is.
    pub(crate) fn topics(&self, shard: u16, now: u64, limit: usize) -> Result<Vec<String>, StoreError> {
        let rows = self.turns.range((shard, 0, "")..=(shard, now, LAST))?.take(limit);
        rows.map(|row| Ok(row?.0.value().2.to_owned())).collect()
    }

    /// The first of a topic that are due, at most `limit`.
    pub(crate) fn of_topic(
        &self,
        shard: u16,
        topic: &str,
        now: u64,
        limit: usize,
    ) -> Result<First, StoreError> {
        let mut found = Vec::new();
        for row in self.due.range((shard, topic, 0, 0)..=(shard, topic, u64::MAX, u64::MAX))? {
            let (_, _, at, number) = row?.0.value();
            if found.len() == limit || at > now {
                return Ok(First { found, following: Some(at) });
            }
            found.push((at, number));
        }
        Ok(First { found, following: None })
    }

    /// Whether a topic ever had a job in a shard, or was paused.
    pub(crate) fn is_known(&self, shard: u16, topic: &str) -> Result<bool, StoreError> {
        Ok(self.topics.get((shard, topic))?.is_some())
    }

    /// Every topic that ever had a job in a shard.
    pub(crate) fn known(&self, shard: u16) -> Result<Vec<String>, StoreError> {
        let rows = self.topics.range((shard, "")..=(shard, LAST))?;
        rows.map(|row| Ok(row?.0.value().1.to_owned())).collect()
    }
}

/// When the first delayed job of a topic is due, in a snapshot.
pub(crate) fn first_of(
    due: &ReadOnlyTable<(u16, &'static str, u64, u64), ()>,
    shard: u16,
    topic: &str,
) -> Result<Option<u64>, StoreError> {
    let mut rows = due.range((shard, topic, 0, 0)..=(shard, topic, u64::MAX, u64::MAX))?;
    rows.next().map(|row| Ok(row?.0.value().2)).transpose()
}

pub(crate) fn entries(
    txn: &ReadTransaction,
    see: &mut impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for row in txn.open_table(DUE)?.iter()? {
        let key = row?.0;
        let (shard, topic, at, number) = key.value();
        see(Entry::Due(shard, topic.to_owned(), at, number))?;
    }
    for row in txn.open_table(TURNS)?.iter()? {
        let key = row?.0;
        let (shard, at, topic) = key.value();
        see(Entry::Topic(shard, topic.to_owned(), at))?;
    }
    Ok(())
}
