//! How many jobs of each lane are in each state, and how many lanes each topic has. Rows are
//! kept in memory as long as the transaction is open, and those that changed are written once
//! per group. The row of the empty topic has the sums of a shard.

mod cache;
mod jobs;
mod known;

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::{Limit, MAX_LANES, MAX_TOPICS, StoreError};
use ringback_core::state::State;

use self::cache::Cache;
pub(crate) use self::jobs::Jobs;
use self::jobs::slot;
pub(crate) use self::known::{Ended, Hold, Known, Sums};
use super::records::{Record, Records};
use super::rows::{Journal, Name, Rows};

pub(crate) const COUNTS: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("counts");
pub(crate) const KNOWN: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("known");

/// Where the sums of a shard stand: no topic has this name.
const ALL: &str = "";

/// A lane in words.
#[derive(Clone, Debug, Default)]
struct Last {
    topic: Box<str>,
    lane: Box<str>,
}

impl Last {
    fn is_of(&self, record: &Record) -> bool {
        let origin = self.lane.len().checked_sub(record.origin.len());
        self.topic == record.topic
            && origin == Some(self.topic.len() + 1)
            && self.lane.as_bytes().ends_with(record.origin.as_bytes())
    }
}

pub(crate) struct Counts<'t> {
    pub(crate) counts: Rows<'t, (u16, &'static str), &'static [u8]>,
    pub(crate) known: Rows<'t, (u16, &'static str), &'static [u8]>,
    lanes: Cache<Jobs>,
    topics: Cache<Known>,
    /// What the edge under way moves.
    moved: BTreeMap<Box<str>, Jobs>,
    /// How many jobs of each topic it ends.
    ended: BTreeMap<Box<str>, Ended>,
    /// The lane that was named last: nearly always it is the next too.
    last: Last,
    /// What is new by it: lanes and topics that had no jobs.
    fresh: [BTreeSet<Box<str>>; 2],
}

impl<'t> Counts<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            counts: Rows::open(txn, journal, Name::Counts, COUNTS)?,
            known: Rows::open(txn, journal, Name::Known, KNOWN)?,
            lanes: Cache::new(),
            topics: Cache::new(),
            moved: BTreeMap::new(),
            ended: BTreeMap::new(),
            last: Last::default(),
            fresh: Default::default(),
        })
    }

    /// An edge begins: what one that has failed would have moved is forgotten.
    pub(crate) fn begin(&mut self) {
        self.moved.clear();
        self.ended.clear();
        self.fresh.iter_mut().for_each(BTreeSet::clear);
    }

    /// One more job like this, or one fewer, is in a state.
    pub(crate) fn note(
        &mut self,
        shard: u16,
        record: &Record,
        state: State,
        n: i64,
    ) -> Result<(), StoreError> {
        let Some(slot) = slot(state) else { return Ok(()) };
        if !self.last.is_of(record) {
            self.last = Last { topic: record.topic.clone(), lane: record.lane().into() };
        }
        if let Some(jobs) = self.moved.get_mut(&*self.last.lane) {
            jobs.0[slot] += n;
            return Ok(());
        }
        let Last { topic, lane } = self.last.clone();
        // Whatever counting it needs is read here, where that may fail.
        self.jobs(shard, &lane)?;
        self.known(shard, &topic)?;
        self.known(shard, ALL)?;
        let mut jobs = Jobs::default();
        jobs.0[slot] += n;
        self.moved.insert(lane, jobs);
        Ok(())
    }

    /// One more job of a topic has ended so.
    pub(crate) fn note_end(&mut self, shard: u16, topic: &str, state: State) -> Result<(), StoreError> {
        self.known(shard, topic)?;
        match self.ended.get_mut(topic) {
            Some(ended) => ended.count(state),
            None => self.ended.entry(topic.into()).or_default().count(state),
        }
        Ok(())
    }

    /// Whether a new job's lane, or the topic of that, is one too many; if not there is room for it.
    pub(crate) fn refuse(&mut self, shard: u16, lane: &str) -> Result<Option<Limit>, StoreError> {
        if !self.jobs(shard, lane)?.is_none() || self.fresh[0].contains(lane) {
            return Ok(None);
        }
        let (topic, sums) = (topic_in(lane), self.known(shard, ALL)?);
        let is_new = !self.known(shard, topic)?.counts() && !self.fresh[1].contains(topic);
        let [lanes, topics] = self.fresh.each_ref().map(|fresh| fresh.len() as u64);
        if is_new && sums.topics + topics >= MAX_TOPICS {
            return Ok(Some(Limit::Topics));
        }
        if sums.lanes + lanes >= MAX_LANES {
            return Ok(Some(Limit::Lanes));
        }
        self.fresh[0].insert(lane.into());
        if is_new {
            self.fresh[1].insert(topic.into());
        }
        Ok(None)
    }

    /// Whether there is no room for one more topic that is paused without jobs.
    pub(crate) fn are_full(&mut self, shard: u16, topic: &str) -> Result<bool, StoreError> {
        Ok(!self.known(shard, topic)?.counts() && self.known(shard, ALL)?.topics >= MAX_TOPICS)
    }

    /// The edge has succeeded.
    pub(crate) fn end(&mut self, shard: u16) {
        self.count_ended(shard);
        for (lane, moved) in std::mem::take(&mut self.moved) {
            if moved == Jobs::default() {
                continue;
            }
            let before = self.lanes.get(shard, &lane).unwrap_or_default();
            let after = self.lanes.change(shard, &lane, |jobs| jobs.add(moved));
            match (before.is_none(), after.is_none()) {
                (true, false) => self.count_lane(shard, &lane, 1),
                (false, true) => self.count_lane(shard, &lane, -1),
                (true, true) | (false, false) => {}
            }
        }
    }

    /// Counts what has ended; no sum of the shard hangs on that.
    fn count_ended(&mut self, shard: u16) {
        for (topic, ended) in std::mem::take(&mut self.ended) {
            self.topics.change(shard, &topic, |known| known.ended.add(ended));
        }
    }

    fn count_lane(&mut self, shard: u16, lane: &str, n: i64) {
        self.change(shard, topic_in(lane), |topic| topic.lanes = topic.lanes.saturating_add_signed(n));
    }

    /// Changes what is known of a topic, which was read before, and with it the sums of the shard.
    fn change(&mut self, shard: u16, topic: &str, change: impl FnOnce(&mut Known)) {
        let before = self.topics.get(shard, topic).unwrap_or_default();
        let after = self.topics.change(shard, topic, change);
        self.topics.change(shard, ALL, |sums| {
            sums.lanes = (sums.lanes + after.lanes).saturating_sub(before.lanes);
            sums.topics = (sums.topics + u64::from(after.counts())).saturating_sub(before.counts().into());
            sums.paused =
                (sums.paused + u64::from(after.is_paused())).saturating_sub(before.is_paused().into());
        });
    }

    /// Sets whether a topic is paused.
    pub(crate) fn set_hold(&mut self, shard: u16, topic: &str, hold: Hold) -> Result<(), StoreError> {
        self.known(shard, topic)?;
        self.known(shard, ALL)?;
        self.change(shard, topic, |known| known.hold = hold);
        Ok(())
    }

    /// Puts the counts of a lane right that were found to be off by so many.
    pub(crate) fn shift(&mut self, shard: u16, lane: &str, by: Jobs) -> Result<(), StoreError> {
        self.jobs(shard, lane)?;
        self.known(shard, topic_in(lane))?;
        self.known(shard, ALL)?;
        self.moved.entry(lane.into()).or_default().add(by);
        Ok(())
    }

    /// The same of a topic's lanes.
    pub(crate) fn shift_lanes(&mut self, shard: u16, topic: &str, by: i64) -> Result<(), StoreError> {
        self.known(shard, topic)?;
        self.known(shard, ALL)?;
        self.change(shard, topic, |known| known.lanes = known.lanes.saturating_add_signed(by));
        Ok(())
    }

    /// The same of the sums of the shard.
    pub(crate) fn shift_sums(&mut self, shard: u16, by: Sums) -> Result<(), StoreError> {
        self.known(shard, ALL)?;
        let Sums([lanes, topics, paused]) = by;
        self.topics.change(shard, ALL, |sums| {
            sums.lanes = sums.lanes.saturating_add_signed(lanes);
            sums.topics = sums.topics.saturating_add_signed(topics);
            sums.paused = sums.paused.saturating_add_signed(paused);
        });
        Ok(())
    }

    /// Whether a lane is to be parked, since its topic is paused.
    pub(crate) fn is_held(&mut self, shard: u16, lane: &str) -> Result<bool, StoreError> {
        // Nearly always nothing is paused.
        let is_any = self.known(shard, ALL)?.paused > 0;
        Ok(is_any && self.known(shard, topic_in(lane))?.hold == Hold::Paused)
    }

    /// The jobs of a lane, but for what the edge under way moves.
    fn jobs(&mut self, shard: u16, lane: &str) -> Result<Jobs, StoreError> {
        if let Some(jobs) = self.lanes.get(shard, lane) {
            return Ok(jobs);
        }
        let jobs =
            self.counts.get((shard, lane))?.map_or(Ok(Jobs::default()), |raw| unpack_jobs(raw.value()))?;
        self.lanes.keep(shard, lane, jobs);
        Ok(jobs)
    }

    /// What is known of a topic, but for what the edge under way moves.
    pub(crate) fn known(&mut self, shard: u16, topic: &str) -> Result<Known, StoreError> {
        if let Some(known) = self.topics.get(shard, topic) {
            return Ok(known);
        }
        let known =
            self.known.get((shard, topic))?.map_or(Ok(Known::default()), |raw| unpack_known(raw.value()))?;
        self.topics.keep(shard, topic, known);
        Ok(known)
    }

    /// Writes the rows that have changed.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
        for (shard, lane) in self.lanes.take() {
            let jobs = self.lanes.get(shard, &lane).unwrap_or_default();
            if jobs.is_none() {
                self.counts.remove((shard, &*lane))?;
                self.lanes.forget(shard, &lane);
            } else {
                self.counts.insert((shard, &*lane), jobs.pack().as_slice())?;
            }
        }
        for (shard, topic) in self.topics.take() {
            let known = self.topics.get(shard, &topic).unwrap_or_default();
            if known == Known::default() {
                self.known.remove((shard, &*topic))?;
                self.topics.forget(shard, &topic);
            } else {
                self.known.insert((shard, &*topic), known.pack().as_slice())?;
            }
        }
        Ok(())
    }

    /// Counts anew, from the records.
    pub(crate) fn recount(&mut self, records: &Records<'_>) -> Result<(), StoreError> {
        for (shard, name) in keys(&self.counts)? {
            self.counts.remove((shard, &*name))?;
        }
        for (shard, name) in keys(&self.known)? {
            self.known(shard, &name)?;
            self.known(shard, ALL)?;
            if name != ALL {
                self.change(shard, &name, |known| known.lanes = 0);
            }
        }
        let mut found: BTreeMap<(u16, String), Jobs> = BTreeMap::new();
        records.each(|record| {
            if let Some(slot) = slot(record.state()) {
                found.entry((record.shard, record.lane())).or_default().0[slot] += 1;
            }
        })?;
        for ((shard, lane), jobs) in found {
            self.lanes.keep(shard, &lane, Jobs::default());
            self.moved.insert(lane.into(), jobs);
            self.end(shard);
        }
        self.save()
    }
}

fn keys(rows: &Rows<'_, (u16, &'static str), &'static [u8]>) -> Result<Vec<(u16, String)>, StoreError> {
    let rows = rows.iter()?.map(|row| {
        let key = row?.0;
        let (shard, name) = key.value();
        Ok((shard, name.to_owned()))
    });
    rows.collect()
}

/// The topic of a lane.
pub(crate) fn topic_in(lane: &str) -> &str {
    lane.split(' ').next().unwrap_or_default()
}

const UNREADABLE: StoreError = StoreError::Unreadable("a row of counts");

pub(crate) fn unpack_jobs(raw: &[u8]) -> Result<Jobs, StoreError> {
    Jobs::unpack(raw).ok_or(UNREADABLE)
}

pub(crate) fn unpack_known(raw: &[u8]) -> Result<Known, StoreError> {
    Known::unpack(raw).ok_or(UNREADABLE)
}

/// All rows: jobs by shard and lane, and what is known by shard and topic.
pub(crate) type All = (BTreeMap<(u16, String), Jobs>, BTreeMap<(u16, String), Known>);

pub(crate) fn all(txn: &ReadTransaction) -> Result<All, StoreError> {
    let (counts, known) = (txn.open_table(COUNTS)?, txn.open_table(KNOWN)?);
    let (mut jobs, mut topics) = (BTreeMap::new(), BTreeMap::new());
    for row in counts.iter()? {
        let (key, raw) = row?;
        let (shard, lane) = key.value();
        jobs.insert((shard, lane.to_owned()), unpack_jobs(raw.value())?);
    }
    for row in known.iter()? {
        let (key, raw) = row?;
        let (shard, topic) = key.value();
        topics.insert((shard, topic.to_owned()), unpack_known(raw.value())?);
    }
    Ok((jobs, topics))
}

#[cfg(test)]
mod tests {
    use redb::Database;
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn a_lane_too_many_is_refused_and_those_that_are_there_go_on() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let (txn, journal) = (database.begin_write().unwrap(), Journal::new());
        let mut counts = Counts::open(&txn, &journal).unwrap();
        counts.lanes.change(0, "t http://a", |jobs| jobs.0[1] = 1);
        counts.topics.change(0, ALL, |sums| sums.lanes = MAX_LANES - 1);
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
        // An edge that has failed has taken no room.
        counts.begin();
        assert_eq!(counts.refuse(0, "u http://a").unwrap(), None);
    }
}
