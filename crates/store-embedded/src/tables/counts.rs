//! Counts of jobs by lane and state, and of lanes by topic. The row of the empty topic has the sums
//! of a shard, that of `~tenant` the sums of a tenant in it. The writer keeps the rows in memory while its transaction
//! is open, and writes those that have changed once per group.

mod cache;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use redb::ReadableTable as _;
use ringback_core::job::{Tenant, TenantLimits};
use ringback_core::lane::{Lane, NO_TENANT};
use ringback_core::state::State;
use ringback_core::store_types::{Limit, MAX_LANES, MAX_TOPICS, tenant_limit};

pub(crate) use self::cache::ByName;
use self::cache::{Cache, unpack};
pub(crate) use self::rows::{EndedCounts, LaneCounts, Pause, Sums, TopicRow};
use super::definitions::{LANE_COUNTS, TOPIC_COUNTS};
use super::record::Record;
use super::rows::{Access, Writing};
use super::times::LAST;
use crate::error::Result;

/// The name under which the sums of a shard are stored: no topic is empty.
const ALL: &str = "";

/// Whether the row with this name has sums over topics: those of a shard, or of a tenant in it.
pub(crate) fn is_sum(name: &str) -> bool {
    name == ALL || tenant_of(name).is_some_and(|tenant| tenant == name)
}

/// Returns the name of the row with the sums of a topic's tenant; `None` for a topic without one.
pub(crate) fn tenant_of(topic: &str) -> Option<&str> {
    topic.starts_with(Tenant::MARK).then(|| topic.split_once('/').map_or(topic, |(tenant, _)| tenant))
}

pub(crate) struct Counts<A: Access> {
    /// Rows of lanes. The changes of the present transition are not in them until it ends.
    pub(crate) lanes: Cache<A, LaneCounts>,
    /// Rows of topics and shards, likewise.
    pub(crate) topics: Cache<A, TopicRow>,
    transition: TransitionCounts,
    /// The lane that was counted last: nearly always the next one is the same.
    last: Box<str>,
}

/// The changes of the present transition.
#[derive(Default)]
struct TransitionCounts {
    moved: BTreeMap<Box<str>, LaneCounts>,
    /// How many jobs of each topic end.
    ended: BTreeMap<Box<str>, EndedCounts>,
    /// Lanes without jobs that get some.
    new_lanes: BTreeSet<Box<str>>,
    /// Topics that are not in use and get jobs.
    new_topics: BTreeSet<Box<str>>,
    /// How many of the new topics and lanes each tenant has.
    new_of: BTreeMap<Box<str>, [u64; 2]>,
}

impl<A: Access> Counts<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            lanes: Cache::new(access.open(LANE_COUNTS)?),
            topics: Cache::new(access.open(TOPIC_COUNTS)?),
            transition: TransitionCounts::default(),
            last: Box::default(),
        })
    }

    /// Returns the stored rows of the lanes of a topic. Lanes without jobs have none.
    pub(crate) fn stored_lanes(
        &self,
        shard: u16,
        topic: &str,
    ) -> Result<impl Iterator<Item = Result<(String, LaneCounts)>>> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        self.lanes_between(Bound::Included((shard, &*first)), Bound::Included((shard, &*last)))
    }

    /// Returns the stored rows of the lanes between two bounds. Lanes without jobs have none.
    pub(crate) fn lanes_between<'s, 'k>(
        &'s self,
        from: Bound<(u16, &'k str)>,
        till: Bound<(u16, &'k str)>,
    ) -> Result<impl Iterator<Item = Result<(String, LaneCounts)>> + use<'s, A>> {
        let rows = self.lanes.stored.range((from, till))?;
        Ok(rows.map(|row| {
            let (key, raw) = row?;
            Ok((key.value().1.to_owned(), unpack(raw.value())?))
        }))
    }
}

impl Counts<Writing<'_>> {
    /// Begins a transition, and drops the changes of one that has failed.
    pub(crate) fn begin(&mut self) {
        self.transition = TransitionCounts::default();
    }

    /// Counts `n` more jobs in the lane of `record` and in a state, once the transition ends. Ignores done and cancelled
    /// jobs.
    pub(crate) fn note(&mut self, shard: u16, record: &Record, state: State, n: i64) -> Result<()> {
        if state.is_terminal() {
            return Ok(());
        }
        if Lane::parse(&self.last) != Some(record.lane()) {
            self.last = record.lane().name().into();
        }
        if let Some(jobs) = self.transition.moved.get_mut(&*self.last) {
            jobs.count(state, n);
            return Ok(());
        }
        let lane = self.last.clone();
        // The rows are read here, where reading may fail; `end` needs them.
        self.lanes.load(shard, &lane)?;
        self.load_topic(shard, &record.topic)?;
        self.transition.moved.entry(lane).or_default().count(state, n);
        Ok(())
    }

    /// Counts one more job of a topic that ended in this state.
    pub(crate) fn note_end(&mut self, shard: u16, topic: &str, state: State) -> Result<()> {
        self.topics.load(shard, topic)?;
        match self.transition.ended.get_mut(topic) {
            Some(ended) => ended.count(state),
            None => self.transition.ended.entry(topic.into()).or_default().count(state),
        }
        Ok(())
    }

    /// Returns the limit that a new job in this lane would exceed. If there is none, the present transition counts the
    /// lane, and its topic, as used from now on.
    pub(crate) fn refuse(
        &mut self,
        shard: u16,
        lane: &str,
        limits: Option<TenantLimits>,
    ) -> Result<Option<Limit>> {
        if !self.lanes.load(shard, lane)?.is_empty() || self.transition.new_lanes.contains(lane) {
            return Ok(None);
        }
        let (topic, sums) = (Lane::topic_of(lane), self.topics.load(shard, ALL)?);
        let is_new =
            !self.topics.load(shard, topic)?.is_in_use() && !self.transition.new_topics.contains(topic);
        let TransitionCounts { new_lanes, new_topics, new_of, .. } = &mut self.transition;
        let (topics, lanes) = (sums.topics + new_topics.len() as u64, sums.lanes + new_lanes.len() as u64);
        if is_new && topics >= MAX_TOPICS {
            return Ok(Some(Limit::Topics));
        }
        if lanes >= MAX_LANES {
            return Ok(Some(Limit::Lanes));
        }
        if let Some(tenant) = tenant_of(topic) {
            let row = self.topics.load(shard, tenant)?;
            let [new_topics, new_lanes] = new_of.get(tenant).copied().unwrap_or_default();
            let (own_topics, own_lanes) = (row.topics + new_topics, row.lanes + new_lanes);
            if let Some(limits) = limits {
                if is_new && own_topics >= tenant_limit(limits.topics, MAX_TOPICS, topics, own_topics) {
                    return Ok(Some(Limit::TenantTopics));
                }
                if own_lanes >= tenant_limit(limits.lanes, MAX_LANES, lanes, own_lanes) {
                    return Ok(Some(Limit::TenantLanes));
                }
            }
            new_of.insert(tenant.into(), [new_topics + u64::from(is_new), new_lanes + 1]);
        }
        new_lanes.insert(lane.into());
        if is_new {
            new_topics.insert(topic.into());
        }
        Ok(None)
    }

    /// Returns the limit of topics that a pause of this topic would exceed; `None` if the topic is in use already.
    pub(crate) fn refuse_pause(
        &mut self,
        shard: u16,
        topic: &str,
        limits: Option<TenantLimits>,
    ) -> Result<Option<Limit>> {
        if self.topics.load(shard, topic)?.is_in_use() {
            return Ok(None);
        }
        let topics = self.topics.load(shard, ALL)?.topics;
        if topics >= MAX_TOPICS {
            return Ok(Some(Limit::Topics));
        }
        let (Some(tenant), Some(limits)) = (tenant_of(topic), limits) else { return Ok(None) };
        let own = self.topics.load(shard, tenant)?.topics;
        let is_beyond = own >= tenant_limit(limits.topics, MAX_TOPICS, topics, own);
        Ok(is_beyond.then_some(Limit::TenantTopics))
    }

    /// Ends a transition that has succeeded: applies its changes to the rows in memory.
    pub(crate) fn end(&mut self, shard: u16) {
        for (topic, ended) in std::mem::take(&mut self.transition.ended) {
            self.topics.change(shard, &topic, |row| row.ended.add(ended));
        }
        for (lane, moved) in std::mem::take(&mut self.transition.moved) {
            if moved == LaneCounts::default() {
                continue;
            }
            let before = self.lanes.loaded(shard, &lane);
            let after = self.lanes.change(shard, &lane, |jobs| jobs.add(moved));
            let lanes = i64::from(before.is_empty()) - i64::from(after.is_empty());
            if lanes != 0 {
                let add = |row: &mut TopicRow| row.lanes = row.lanes.saturating_add_signed(lanes);
                self.change_topic(shard, Lane::topic_of(&lane), add);
            }
        }
    }

    /// Changes the row of a topic, which was read before, and with it the sums of the shard and of the tenant.
    fn change_topic(&mut self, shard: u16, topic: &str, change: impl FnOnce(&mut TopicRow)) {
        let before = self.topics.loaded(shard, topic);
        let after = self.topics.change(shard, topic, change);
        let moved = |sum: u64, after: u64, before: u64| (sum + after).saturating_sub(before);
        for name in [Some(ALL), tenant_of(topic)].into_iter().flatten() {
            self.topics.change(shard, name, |sums| {
                sums.lanes = moved(sums.lanes, after.lanes, before.lanes);
                sums.topics = moved(sums.topics, after.is_in_use().into(), before.is_in_use().into());
                sums.paused = moved(sums.paused, after.is_paused().into(), before.is_paused().into());
            });
        }
    }

    pub(crate) fn set_pause(&mut self, shard: u16, topic: &str, pause: Pause) -> Result<()> {
        self.load_topic(shard, topic)?;
        self.change_topic(shard, topic, |row| row.pause = pause);
        Ok(())
    }

    /// Corrects the counts of a lane by a difference that the check found.
    pub(crate) fn shift_lane(&mut self, shard: u16, lane: &str, by: LaneCounts) -> Result<()> {
        self.lanes.load(shard, lane)?;
        self.load_topic(shard, Lane::topic_of(lane))?;
        self.transition.moved.entry(lane.into()).or_default().add(by);
        Ok(())
    }

    /// Corrects the number of lanes of a topic by a difference that the check found.
    pub(crate) fn shift_topic(&mut self, shard: u16, topic: &str, by: i64) -> Result<()> {
        self.load_topic(shard, topic)?;
        self.change_topic(shard, topic, |row| row.lanes = row.lanes.saturating_add_signed(by));
        Ok(())
    }

    /// Corrects the sums of a row by a difference that the check found.
    pub(crate) fn shift_sums(&mut self, shard: u16, name: &str, by: Sums) -> Result<()> {
        self.topics.load(shard, name)?;
        let Sums([lanes, topics, paused]) = by;
        self.topics.change(shard, name, |sums| {
            sums.lanes = sums.lanes.saturating_add_signed(lanes);
            sums.topics = sums.topics.saturating_add_signed(topics);
            sums.paused = sums.paused.saturating_add_signed(paused);
        });
        Ok(())
    }

    /// Whether the topic of a lane is paused, and not resuming, so that the lane gets no turn.
    pub(crate) fn is_lane_paused(&mut self, shard: u16, lane: &str) -> Result<bool> {
        // Nearly always nothing is paused.
        let is_any = self.topics.load(shard, ALL)?.paused > 0;
        Ok(is_any && self.topics.load(shard, Lane::topic_of(lane))?.pause == Pause::Paused)
    }

    /// Returns how many lanes with jobs a tenant has in a shard; for a group that is no tenant, how many the shard has.
    pub(crate) fn lanes_of(&mut self, shard: u16, group: &str) -> Result<u64> {
        let is_tenant = group != NO_TENANT && tenant_of(group).is_some();
        Ok(self.topics.load(shard, if is_tenant { group } else { ALL })?.lanes)
    }

    /// Returns how many ready jobs a lane has, with the changes of the present transition.
    pub(crate) fn ready(&mut self, shard: u16, lane: &str) -> Result<u32> {
        let moved = self.transition.moved.get(lane).map_or(0, |jobs| jobs.of(State::Ready));
        let ready = self.lanes.load(shard, lane)?.of(State::Ready) + moved;
        Ok(u32::try_from(ready.max(0)).unwrap_or(u32::MAX))
    }

    /// Loads the rows of a topic, its tenant and its shard, so that changing them cannot fail.
    fn load_topic(&mut self, shard: u16, topic: &str) -> Result<()> {
        for name in [Some(topic), tenant_of(topic), Some(ALL)].into_iter().flatten() {
            self.topics.load(shard, name)?;
        }
        Ok(())
    }

    /// Writes the rows in memory that have changed since the last time.
    pub(crate) fn save(&mut self) -> Result<()> {
        self.lanes.save()?;
        self.topics.save()
    }
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
        counts.lanes.change(0, "t http://a", |jobs| jobs.count(State::Ready, 1));
        counts.topics.change(0, ALL, |sums| sums.lanes = MAX_LANES - 1);
        counts.begin();
        for (lane, answer) in [
            ("t http://a", None),
            ("t http://b", None),
            ("t http://c", Some(Limit::Lanes)),
            ("t http://b", None),
            ("u http://a", Some(Limit::Lanes)),
        ] {
            assert_eq!(counts.refuse(0, lane, None).unwrap(), answer, "{lane}");
        }
        // A failed transition leaves its lanes free.
        counts.begin();
        assert_eq!(counts.refuse(0, "u http://a", None).unwrap(), None);
    }
}
