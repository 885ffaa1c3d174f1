//! What the rows of a shard say of its lanes and topics, and what of that is not so. Compared are
//! only rows that were read while nothing has moved.

use std::collections::{BTreeMap, HashMap};

use ringback_core::contract::{DamageKind, Finding, Shard};

use super::{Count, Jobs, Lane};

/// What a lane is said to have.
pub(crate) struct LaneRow {
    pub(crate) jobs: Jobs,
    pub(crate) topic: Box<str>,
}

/// What a topic is said to have.
#[derive(Clone, Copy, Default)]
pub(crate) struct TopicRow {
    pub(crate) lanes: u32,
    pub(crate) is_paused: bool,
}

/// All rows. A scan can meet one twice.
#[derive(Default)]
pub(crate) struct Told {
    lanes: HashMap<Lane, LaneRow>,
    topics: HashMap<Box<str>, TopicRow>,
}

/// A lane whose counts are not those of its jobs.
pub(crate) struct WrongLane<'t> {
    pub(crate) lane: Lane,
    row: &'t LaneRow,
    pub(crate) counted: Jobs,
}

/// A topic that has another number of lanes.
pub(crate) struct WrongTopic<'t> {
    pub(crate) topic: &'t str,
    told: u32,
    pub(crate) counted: u32,
}

/// The lanes of a shard, its topics, and those that are paused.
#[derive(Clone, Copy)]
pub(crate) struct WrongSums {
    told: [i64; 3],
    pub(crate) counted: [i64; 3],
}

/// What is not so.
#[derive(Default)]
pub(crate) struct Wrong<'t> {
    pub(crate) lanes: Vec<WrongLane<'t>>,
    pub(crate) topics: Vec<WrongTopic<'t>>,
    pub(crate) sums: Option<WrongSums>,
}

impl Told {
    /// The same with more of them; none when there are too many lanes.
    pub(crate) fn with(
        mut self,
        lanes: Vec<(Lane, LaneRow)>,
        topics: Vec<(Box<str>, TopicRow)>,
        most: usize,
    ) -> Option<Self> {
        self.lanes.extend(lanes);
        self.topics.extend(topics);
        (self.lanes.len() <= most).then_some(self)
    }

    /// How many entries of the lists of topics there are to be: of each topic by name and by hour, and
    /// of each lane by name.
    pub(crate) fn listed(&self) -> u64 {
        (self.lanes.len() + 2 * self.topics.len()) as u64
    }

    /// What is not so; nothing is known where there were too many lanes.
    pub(crate) fn wrong(&self, count: &Count, sums: [i64; 3]) -> Option<Wrong<'_>> {
        let counted = count.lanes.as_ref()?;
        let of = |lane: &Lane| counted.get(lane).copied().unwrap_or_default();
        // Which of those that were lost were delayed nobody knows.
        let known = |[delayed, ready, rest @ ..]: Jobs| {
            if count.lost > 0 { (delayed + ready, 0, rest) } else { (delayed, ready, rest) }
        };
        let rows = self.lanes.iter().map(|(lane, row)| WrongLane { lane: *lane, row, counted: of(lane) });
        let lanes = rows.filter(|lane| known(lane.row.jobs) != known(lane.counted)).collect();

        let mut per_topic: BTreeMap<&str, u32> = self.topics.keys().map(|topic| (&**topic, 0)).collect();
        for (_, row) in self.lanes.iter().filter(|(lane, _)| of(lane).iter().any(|n| *n > 0)) {
            *per_topic.entry(&row.topic).or_default() += 1;
        }
        let (mut topics, mut all) = (Vec::new(), [0; 3]);
        for (topic, counted) in per_topic {
            let TopicRow { lanes: told, is_paused } = self.topics.get(topic).copied().unwrap_or_default();
            all[0] += i64::from(counted);
            all[1] += i64::from(counted > 0 || is_paused);
            all[2] += i64::from(is_paused);
            if told != counted {
                topics.push(WrongTopic { topic, told, counted });
            }
        }
        let sums = (sums != all).then_some(WrongSums { told: sums, counted: all });
        Some(Wrong { lanes, topics, sums })
    }
}

impl Wrong<'_> {
    pub(crate) fn is_right(&self) -> bool {
        self.lanes.is_empty() && self.topics.is_empty() && self.sums.is_none()
    }

    pub(crate) fn findings(&self, shard: Shard) -> impl Iterator<Item = Finding> {
        let lanes = self.lanes.iter().map(move |lane| {
            let (told, counted) = (say(lane.row.jobs), say(lane.counted));
            let detail = format!("a lane is said to have {told} jobs, and has {counted}");
            Finding::new(DamageKind::LaneCount, shard, detail).of_topic(&lane.row.topic)
        });
        let topics = self.topics.iter().map(move |WrongTopic { topic, told, counted }| {
            let detail = format!("topic {topic:?} is said to have {told} lanes with jobs, and has {counted}");
            Finding::new(DamageKind::Topic, shard, detail).of_topic(topic)
        });
        let sums = self.sums.map(|WrongSums { told, counted }| {
            let say = |[lanes, topics, paused]: [i64; 3]| {
                format!("{lanes} lanes with jobs, {topics} topics with jobs or paused, {paused} paused")
            };
            let detail = format!("the shard is said to have {}, and has {}", say(told), say(counted));
            Finding::new(DamageKind::Topic, shard, detail)
        });
        lanes.chain(topics).chain(sums)
    }
}

fn say([delayed, ready, reserved, dead]: Jobs) -> String {
    format!("{delayed} delayed, {ready} ready, {reserved} reserved, {dead} dead")
}
