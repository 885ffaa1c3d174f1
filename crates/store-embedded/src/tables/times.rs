//! The indexes of jobs by time, and the list of known topics. Delayed jobs are ordered by topic and due time, and the
//! schedule says when each topic is promoted next: topics take turns, so that a topic with very many jobs does not
//! delay the others. Reserved jobs, dead jobs and tombstones are ordered by a time alone. Times are in ms.

use std::collections::HashMap;

use redb::ReadableTable as _;

use super::definitions::{ByTime, DUE, SCHEDULE, TOPICS};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The time of a topic that is not in the schedule.
const NEVER: u64 = u64::MAX;
/// Comes after every topic and every lane, which are ASCII.
pub(crate) const LAST: &str = "\u{10ffff}";

/// The first due jobs of a topic.
pub(crate) struct DueJobs {
    /// Due time and number of each.
    pub(crate) found: Vec<(u64, u64)>,
    /// The due time of the topic's next job after these; `None` if there is none.
    pub(crate) following: Option<u64>,
}

pub(crate) struct Due<A: Access> {
    due: Rows<A, (u16, &'static str, u64, u64), ()>,
    schedule: Rows<A, (u16, u64, &'static str), ()>,
    /// Every topic that ever had a job or was paused, and its time in the schedule.
    topics: Rows<A, (u16, &'static str), u64>,
    /// Rows of `topics` that the writer has looked up: every submit needs one.
    cache: HashMap<u16, HashMap<Box<str>, u64>>,
}

impl<A: Access> Due<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            due: access.open(DUE)?,
            schedule: access.open(SCHEDULE)?,
            topics: access.open(TOPICS)?,
            cache: HashMap::new(),
        })
    }

    pub(crate) fn has(&self, shard: u16, topic: &str, at: u64, number: u64) -> Result<bool> {
        self.due.has((shard, topic, at, number))
    }

    /// Returns how many delayed jobs there are in all shards.
    pub(crate) fn len(&self) -> Result<u64> {
        self.due.len()
    }

    /// Returns the time of the first topic in the schedule of a shard; `None` if it has none.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>> {
        let first = self.schedule.list((shard, 0, "")..=(shard, u64::MAX, LAST), 1, |(_, at, _), ()| at)?;
        Ok(first.first().copied())
    }

    /// Returns when the first delayed job of a topic is due; `None` if there is none.
    pub(crate) fn first_of(&self, shard: u16, topic: &str) -> Result<Option<u64>> {
        Ok(self.of_topic(shard, topic, 0, 0)?.following)
    }

    /// Returns the first `limit` topics that are scheduled at or before `now`.
    pub(crate) fn scheduled(&self, shard: u16, now: u64, limit: usize) -> Result<Vec<String>> {
        self.schedule.list((shard, 0, "")..=(shard, now, LAST), limit, |(.., topic), ()| topic.to_owned())
    }

    /// Returns the first jobs of a topic that are due at `now`, at most `limit`.
    pub(crate) fn of_topic(&self, shard: u16, topic: &str, now: u64, limit: usize) -> Result<DueJobs> {
        let mut found = Vec::new();
        for row in self.due.range((shard, topic, 0, 0)..=(shard, topic, u64::MAX, u64::MAX))? {
            let (_, _, at, number) = row?.0.value();
            if found.len() == limit || at > now {
                return Ok(DueJobs { found, following: Some(at) });
            }
            found.push((at, number));
        }
        Ok(DueJobs { found, following: None })
    }

    /// Returns due time and number of the delayed jobs of a topic from `from` to before the time `before`, in order, at
    /// most `limit`.
    pub(crate) fn between(
        &self,
        shard: u16,
        topic: &str,
        from: (u64, u64),
        before: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let first = (shard, topic, from.0, from.1);
        let range = first..(shard, topic, before, 0).max(first);
        self.due.list(range, limit, |(_, _, at, number), ()| (at, number))
    }

    /// Whether a topic ever had a job in a shard, or was paused.
    pub(crate) fn is_known(&self, shard: u16, topic: &str) -> Result<bool> {
        self.topics.has((shard, topic))
    }

    /// Returns the first `limit` topics that ever had a job in a shard or were paused, by name, from the name `from` on.
    pub(crate) fn topics(&self, shard: u16, from: &str, limit: usize) -> Result<Vec<String>> {
        self.topics.list((shard, from)..=(shard, LAST), limit, |(_, topic), _| topic.to_owned())
    }

    /// Returns the time of a topic in the schedule, [`NEVER`] if it is not there; `None` for an unknown topic.
    pub(crate) fn time_of(&self, shard: u16, topic: &str) -> Result<Option<u64>> {
        self.topics.read((shard, topic), |at| at)
    }

    /// Whether the schedule has a topic at a time.
    pub(crate) fn is_scheduled(&self, shard: u16, topic: &str, at: u64) -> Result<bool> {
        self.schedule.has((shard, at, topic))
    }

    /// Calls `visit` with shard, topic and due time of the first delayed job of each topic.
    pub(crate) fn each_topic(&self, mut visit: impl FnMut(u16, &str, u64) -> Result<()>) -> Result<()> {
        let mut previous = None;
        self.due.each(|(shard, topic, at, _), ()| {
            if previous.as_ref().is_none_or(|(of, name)| *of != shard || name != topic) {
                visit(shard, topic, at)?;
                previous = Some((shard, topic.to_owned()));
            }
            Ok(())
        })
    }

    /// Calls `visit` with shard, topic and time of each entry of the schedule.
    pub(crate) fn each_scheduled(&self, mut visit: impl FnMut(u16, &str, u64) -> Result<()>) -> Result<()> {
        self.schedule.each(|(shard, at, topic), ()| visit(shard, topic, at))
    }
}

impl Due<Writing<'_>> {
    /// Adds a topic to the known ones, without a time in the schedule, unless it is known already.
    pub(crate) fn register(&mut self, shard: u16, topic: &str) -> Result<()> {
        if self.cached_time(shard, topic)?.is_none() { self.note(shard, topic, NEVER) } else { Ok(()) }
    }

    pub(crate) fn add(&mut self, shard: u16, topic: &str, at: u64, number: u64) -> Result<()> {
        self.due.insert((shard, topic, at, number), ())?;
        if at < self.cached_time(shard, topic)?.unwrap_or(NEVER) {
            self.schedule(shard, topic, Some(at))
        } else {
            Ok(())
        }
    }

    /// Removes an entry; the topic stays in the schedule.
    pub(crate) fn remove(&mut self, shard: u16, topic: &str, at: u64, number: u64) -> Result<()> {
        self.due.remove((shard, topic, at, number)).map(drop)
    }

    /// Takes a topic out of the schedule if it has no delayed jobs.
    pub(crate) fn tidy(&mut self, shard: u16, topic: &str) -> Result<()> {
        if self.first_of(shard, topic)?.is_none() { self.schedule(shard, topic, None) } else { Ok(()) }
    }

    /// Sets the time of a topic in the schedule; `None` takes the topic out.
    pub(crate) fn schedule(&mut self, shard: u16, topic: &str, at: Option<u64>) -> Result<()> {
        let (before, after) = (self.cached_time(shard, topic)?.unwrap_or(NEVER), at.unwrap_or(NEVER));
        if before == after {
            return Ok(());
        }
        self.schedule.remove((shard, before, topic))?;
        if after != NEVER {
            self.schedule.insert((shard, after, topic), ())?;
        }
        self.note(shard, topic, after)
    }

    /// Puts a topic with delayed jobs into the schedule again, and returns its time there; `None` if it has no such jobs.
    pub(crate) fn relink(&mut self, shard: u16, topic: &str) -> Result<Option<u64>> {
        let first = self.first_of(shard, topic)?;
        if let Some(first) = first {
            self.schedule(shard, topic, None)?;
            self.schedule(shard, topic, Some(first))?;
            self.schedule.insert((shard, first, topic), ())?;
        }
        Ok(first)
    }

    fn cached_time(&mut self, shard: u16, topic: &str) -> Result<Option<u64>> {
        if let Some(at) = self.cache.get(&shard).and_then(|topics| topics.get(topic)) {
            return Ok(Some(*at));
        }
        let found = self.time_of(shard, topic)?;
        if let Some(at) = found {
            self.cache.entry(shard).or_default().insert(topic.into(), at);
        }
        Ok(found)
    }

    fn note(&mut self, shard: u16, topic: &str, at: u64) -> Result<()> {
        self.topics.insert((shard, topic), at)?;
        self.cache.entry(shard).or_default().insert(topic.into(), at);
        Ok(())
    }
}

/// Jobs ordered by a time.
pub(crate) struct Times<A: Access>(pub(crate) Rows<A, ByTime, ()>);

impl<A: Access> Times<A> {
    pub(crate) fn has(&self, shard: u16, at: u64, number: u64) -> Result<bool> {
        self.0.has((shard, at, number))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.0.len()
    }

    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>> {
        self.range(shard, (0, 0), u64::MAX)?.next().map(|row| Ok(row?.0)).transpose()
    }

    /// Returns time and number of the first `limit` entries at or before a time.
    pub(crate) fn until(&self, shard: u16, time: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.range(shard, (0, 0), time.saturating_add(1))?.take(limit).collect()
    }

    /// Returns the entries from `from` (time and number) to before the time `before`, in order.
    pub(crate) fn range(
        &self,
        shard: u16,
        from: (u64, u64),
        before: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, u64)>>> {
        let first = (shard, from.0, from.1);
        let rows = self.0.range(first..(shard, before, 0).max(first))?;
        Ok(rows.map(|row| {
            let (_, at, number) = row?.0.value();
            Ok((at, number))
        }))
    }
}

impl Times<Writing<'_>> {
    pub(crate) fn add(&mut self, shard: u16, at: u64, number: u64) -> Result<()> {
        self.0.insert((shard, at, number), ())
    }

    pub(crate) fn remove(&mut self, shard: u16, at: u64, number: u64) -> Result<()> {
        self.0.remove((shard, at, number)).map(drop)
    }
}
