//! Counts of jobs by lane and state, and of lanes by topic. The row of the empty topic has the sums
//! of a shard. The writer keeps the rows in memory while its transaction is open, and writes those
//! that changed once per group.

mod cache;
pub(crate) mod lane;
pub(crate) mod topic;

use std::collections::{BTreeMap, BTreeSet};

use redb::ReadableTable;
use ringback_core::contract::{Limit, MAX_LANES, MAX_TOPICS, StoreError};
use ringback_core::lane::Lane;
use ringback_core::state::State;

use self::cache::Cache;
use self::lane::LaneCounts;
use self::topic::{EndedCounts, Pause, ShardSums, TopicRow};
use super::due::LAST;
use super::list::{LANE_COUNTS, TOPIC_COUNTS};
use super::record::Record;
use super::records::Records;
use super::rows::{Access, Writing};
use crate::error::Result;

/// The name under which the sums of a shard are stored: no topic is empty.
const ALL: &str = "";

const UNREADABLE: StoreError = StoreError::Unreadable("a row of counts");

pub(crate) struct Counts<A: Access> {
    lanes: A::Table<(u16, &'static str), &'static [u8]>,
    topics: A::Table<(u16, &'static str), &'static [u8]>,
    unsaved: Unsaved,
}

/// What the writer knows beside the stored rows.
#[derive(Default)]
struct Unsaved {
    lanes: Cache<LaneCounts>,
    topics: Cache<TopicRow>,
    /// The changes that the present edge makes to lanes.
    moved: BTreeMap<Box<str>, LaneCounts>,
    /// How many jobs of each topic the present edge ends.
    ended: BTreeMap<Box<str>, EndedCounts>,
    /// Lanes without jobs to which the present edge adds some.
    new_lanes: BTreeSet<Box<str>>,
    /// Topics that are not in use to which the present edge adds jobs.
    new_topics: BTreeSet<Box<str>>,
    /// The lane that was counted last: nearly always the next one is the same.
    last: Box<str>,
}

/// Stored rows by shard and name.
pub(crate) type ByName<T> = BTreeMap<(u16, String), T>;

impl<A: Access> Counts<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        let (lanes, topics) = (access.open(LANE_COUNTS)?, access.open(TOPIC_COUNTS)?);
        Ok(Self { lanes, topics, unsaved: Unsaved::default() })
    }

    /// The stored row of a topic.
    pub(crate) fn stored_topic(&self, shard: u16, topic: &str) -> Result<TopicRow> {
        self.topics.get((shard, topic))?.map_or(Ok(TopicRow::default()), |raw| unpack_topic(raw.value()))
    }

    /// The stored rows of the lanes of a topic that have jobs.
    pub(crate) fn stored_lanes(
        &self,
        shard: u16,
        topic: &str,
    ) -> Result<impl Iterator<Item = Result<(String, LaneCounts)>>> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        let rows = self.lanes.range((shard, &*first)..=(shard, &*last))?;
        Ok(rows.map(|row| {
            let (key, raw) = row?;
            Ok((key.value().1.to_owned(), unpack_lane(raw.value())?))
        }))
    }

    /// The stored rows of all lanes.
    pub(crate) fn all_lanes(&self) -> Result<ByName<LaneCounts>> {
        all(&self.lanes, unpack_lane)
    }

    /// The stored rows of all topics and shards.
    pub(crate) fn all_topics(&self) -> Result<ByName<TopicRow>> {
        all(&self.topics, unpack_topic)
    }
}

impl Counts<Writing<'_>> {
    /// Begins an edge, and drops the changes of one that has failed.
    pub(crate) fn begin(&mut self) {
        self.unsaved.moved.clear();
        self.unsaved.ended.clear();
        self.unsaved.new_lanes.clear();
        self.unsaved.new_topics.clear();
    }

    /// Counts `n` more jobs like this one in a state.
    pub(crate) fn note(&mut self, shard: u16, record: &Record, state: State, n: i64) -> Result<()> {
        if state.is_terminal() {
            return Ok(());
        }
        if Lane::parse(&self.unsaved.last) != Some(record.lane()) {
            self.unsaved.last = record.lane().name().into();
        }
        if let Some(jobs) = self.unsaved.moved.get_mut(&*self.unsaved.last) {
            jobs.count(state, n);
            return Ok(());
        }
        let lane = self.unsaved.last.clone();
        // The rows are read here, where that may fail; `end` needs them.
        self.lane(shard, &lane)?;
        self.topic(shard, &record.topic)?;
        self.topic(shard, ALL)?;
        self.unsaved.moved.entry(lane).or_default().count(state, n);
        Ok(())
    }

    /// Counts one more job of a topic that ended in this state.
    pub(crate) fn note_end(&mut self, shard: u16, topic: &str, state: State) -> Result<()> {
        self.topic(shard, topic)?;
        match self.unsaved.ended.get_mut(topic) {
            Some(ended) => ended.count(state),
            None => self.unsaved.ended.entry(topic.into()).or_default().count(state),
        }
        Ok(())
    }

    /// Checks whether a new job in this lane would exceed a limit. If not, the lane is reserved for
    /// the present edge.
    pub(crate) fn refuse(&mut self, shard: u16, lane: &str) -> Result<Option<Limit>> {
        if !self.lane(shard, lane)?.is_empty() || self.unsaved.new_lanes.contains(lane) {
            return Ok(None);
        }
        let (topic, sums) = (Lane::topic_of(lane), self.topic(shard, ALL)?);
        let is_new = !self.topic(shard, topic)?.is_in_use() && !self.unsaved.new_topics.contains(topic);
        let Unsaved { new_lanes, new_topics, .. } = &mut self.unsaved;
        if is_new && sums.topics + new_topics.len() as u64 >= MAX_TOPICS {
            return Ok(Some(Limit::Topics));
        }
        if sums.lanes + new_lanes.len() as u64 >= MAX_LANES {
            return Ok(Some(Limit::Lanes));
        }
        new_lanes.insert(lane.into());
        if is_new {
            new_topics.insert(topic.into());
        }
        Ok(None)
    }

    /// Whether this topic, which may have no jobs, would exceed the limit of topics if paused.
    pub(crate) fn is_full(&mut self, shard: u16, topic: &str) -> Result<bool> {
        Ok(!self.topic(shard, topic)?.is_in_use() && self.topic(shard, ALL)?.topics >= MAX_TOPICS)
    }

    /// Ends an edge that has succeeded.
    pub(crate) fn end(&mut self, shard: u16) {
        for (topic, ended) in std::mem::take(&mut self.unsaved.ended) {
            self.unsaved.topics.change(shard, &topic, |row| row.ended.add(ended));
        }
        for (lane, moved) in std::mem::take(&mut self.unsaved.moved) {
            if moved == LaneCounts::default() {
                continue;
            }
            let before = self.unsaved.lanes.get(shard, &lane).unwrap_or_default();
            let after = self.unsaved.lanes.change(shard, &lane, |jobs| jobs.add(moved));
            let lanes = i64::from(before.is_empty()) - i64::from(after.is_empty());
            if lanes != 0 {
                let add = |row: &mut TopicRow| row.lanes = row.lanes.saturating_add_signed(lanes);
                self.change_topic(shard, Lane::topic_of(&lane), add);
            }
        }
    }

    /// Changes the row of a topic, which was read before, and with it the sums of the shard.
    fn change_topic(&mut self, shard: u16, topic: &str, change: impl FnOnce(&mut TopicRow)) {
        let topics = &mut self.unsaved.topics;
        let before = topics.get(shard, topic).unwrap_or_default();
        let after = topics.change(shard, topic, change);
        let moved = |sum: u64, after: u64, before: u64| (sum + after).saturating_sub(before);
        topics.change(shard, ALL, |sums| {
            sums.lanes = moved(sums.lanes, after.lanes, before.lanes);
            sums.topics = moved(sums.topics, after.is_in_use().into(), before.is_in_use().into());
            sums.paused = moved(sums.paused, after.is_paused().into(), before.is_paused().into());
        });
    }

    /// Sets whether a topic is paused.
    pub(crate) fn set_pause(&mut self, shard: u16, topic: &str, pause: Pause) -> Result<()> {
        self.topic(shard, topic)?;
        self.topic(shard, ALL)?;
        self.change_topic(shard, topic, |row| row.pause = pause);
        Ok(())
    }

    /// Corrects the counts of a lane by a difference that the audit found.
    pub(crate) fn shift_lane(&mut self, shard: u16, lane: &str, by: LaneCounts) -> Result<()> {
        self.lane(shard, lane)?;
        self.topic(shard, Lane::topic_of(lane))?;
        self.topic(shard, ALL)?;
        self.unsaved.moved.entry(lane.into()).or_default().add(by);
        Ok(())
    }

    /// Corrects the number of lanes of a topic by a difference that the audit found.
    pub(crate) fn shift_topic(&mut self, shard: u16, topic: &str, by: i64) -> Result<()> {
        self.topic(shard, topic)?;
        self.topic(shard, ALL)?;
        self.change_topic(shard, topic, |row| row.lanes = row.lanes.saturating_add_signed(by));
        Ok(())
    }

    /// Corrects the sums of a shard by a difference that the audit found.
    pub(crate) fn shift_sums(&mut self, shard: u16, by: ShardSums) -> Result<()> {
        self.topic(shard, ALL)?;
        let ShardSums([lanes, topics, paused]) = by;
        self.unsaved.topics.change(shard, ALL, |sums| {
            sums.lanes = sums.lanes.saturating_add_signed(lanes);
            sums.topics = sums.topics.saturating_add_signed(topics);
            sums.paused = sums.paused.saturating_add_signed(paused);
        });
        Ok(())
    }

    /// Whether the topic of a lane is paused, so that the lane must be parked.
    pub(crate) fn is_lane_paused(&mut self, shard: u16, lane: &str) -> Result<bool> {
        // Nearly always nothing is paused.
        let is_any = self.topic(shard, ALL)?.paused > 0;
        Ok(is_any && self.topic(shard, Lane::topic_of(lane))?.pause == Pause::Paused)
    }

    /// The row of a lane, without the changes of the present edge.
    fn lane(&mut self, shard: u16, lane: &str) -> Result<LaneCounts> {
        if let Some(jobs) = self.unsaved.lanes.get(shard, lane) {
            return Ok(jobs);
        }
        let stored = self.lanes.get((shard, lane))?;
        let jobs = stored.map_or(Ok(LaneCounts::default()), |raw| unpack_lane(raw.value()))?;
        self.unsaved.lanes.insert(shard, lane, jobs);
        Ok(jobs)
    }

    /// The row of a topic, without the changes of the present edge.
    pub(crate) fn topic(&mut self, shard: u16, topic: &str) -> Result<TopicRow> {
        if let Some(row) = self.unsaved.topics.get(shard, topic) {
            return Ok(row);
        }
        let row = self.stored_topic(shard, topic)?;
        self.unsaved.topics.insert(shard, topic, row);
        Ok(row)
    }

    /// Writes the rows that have changed.
    pub(crate) fn save(&mut self) -> Result<()> {
        for (shard, lane) in self.unsaved.lanes.take_changed() {
            let jobs = self.unsaved.lanes.get(shard, &lane).unwrap_or_default();
            if jobs.is_empty() {
                self.lanes.remove((shard, &*lane))?;
                self.unsaved.lanes.remove(shard, &lane);
            } else {
                self.lanes.insert((shard, &*lane), jobs.pack().as_slice())?;
            }
        }
        for (shard, topic) in self.unsaved.topics.take_changed() {
            let row = self.unsaved.topics.get(shard, &topic).unwrap_or_default();
            if row == TopicRow::default() {
                self.topics.remove((shard, &*topic))?;
                self.unsaved.topics.remove(shard, &topic);
            } else {
                self.topics.insert((shard, &*topic), row.pack().as_slice())?;
            }
        }
        Ok(())
    }

    /// Counts all jobs anew from their records, for a file from before they were counted.
    pub(crate) fn recount(&mut self, records: &Records<Writing<'_>>) -> Result<()> {
        for (shard, lane) in self.all_lanes()?.into_keys() {
            self.lanes.remove((shard, &*lane))?;
        }
        for (shard, topic) in self.all_topics()?.into_keys().filter(|(_, topic)| topic != ALL) {
            self.shift_topic(shard, &topic, i64::MIN)?;
        }
        let mut found: ByName<LaneCounts> = BTreeMap::new();
        records.each(|_, record| {
            if let Some(record) = record.filter(|record| !record.state().is_terminal()) {
                found.entry((record.shard, record.lane().name())).or_default().count(record.state(), 1);
            }
            Ok(())
        })?;
        for ((shard, lane), jobs) in found {
            self.unsaved.lanes.insert(shard, &lane, LaneCounts::default());
            self.unsaved.moved.insert(lane.into(), jobs);
            self.end(shard);
        }
        self.save()
    }
}

fn unpack_lane(raw: &[u8]) -> Result<LaneCounts> {
    Ok(LaneCounts::unpack(raw).ok_or(UNREADABLE)?)
}

fn unpack_topic(raw: &[u8]) -> Result<TopicRow> {
    Ok(TopicRow::unpack(raw).ok_or(UNREADABLE)?)
}

fn all<T>(
    table: &impl ReadableTable<(u16, &'static str), &'static [u8]>,
    unpack: fn(&[u8]) -> Result<T>,
) -> Result<ByName<T>> {
    let rows = table.iter()?.map(|row| {
        let (key, raw) = row?;
        let (shard, name) = key.value();
        Ok(((shard, name.to_owned()), unpack(raw.value())?))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use redb::Database;
    use redb::backends::InMemoryBackend;

    use super::super::rows::Journal;
    use super::*;

    #[test]
    fn a_lane_too_many_is_refused_and_those_that_are_there_go_on() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let (txn, journal) = (database.begin_write().unwrap(), Journal::new());
        let mut counts = Counts::open(&Writing { txn: &txn, journal: &journal }).unwrap();
        counts.unsaved.lanes.change(0, "t http://a", |jobs| jobs.count(State::Ready, 1));
        counts.unsaved.topics.change(0, ALL, |sums| sums.lanes = MAX_LANES - 1);
        counts.begin();
        for (lane, answer) in [
            ("t http://a", None),
            ("t http://b", None),
            ("t http://c", Some(Limit::Lanes)),
            ("t http://b", None),
            ("u http://a", Some(Limit::Lanes)),
        ] {
            assert_eq!(counts.refuse(0, lane).unwrap(), answer, "{lane}");
        }
        // A failed edge leaves its lanes free.
        counts.begin();
        assert_eq!(counts.refuse(0, "u http://a").unwrap(), None);
    }
}
