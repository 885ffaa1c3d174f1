//! The rows of counts. A lane's row: how many jobs are in each state. A topic's row: how many lanes have jobs, whether
//! the topic is paused, and how many jobs have ended. The row of a tenant or shard: sums over topics.

use std::fmt;

use ringback_core::state::State;
use serde::{Deserialize, Serialize};

use super::cache::CountRow;

/// How many jobs are delayed, ready, reserved and dead; or a difference of such counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneCounts([i64; 4]);

impl LaneCounts {
    pub(crate) fn of(self, state: State) -> i64 {
        slot(state).map_or(0, |slot| self.0[slot])
    }

    /// Counts `n` more jobs in a state. Ignores done and cancelled jobs.
    pub(crate) fn count(&mut self, state: State, n: i64) {
        if let Some(slot) = slot(state) {
            self.0[slot] += n;
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.iter().sum::<i64>() <= 0
    }
}

impl CountRow for LaneCounts {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl fmt::Display for LaneCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [delayed, ready, reserved, dead] = self.0;
        write!(f, "{delayed} delayed, {ready} ready, {reserved} reserved, {dead} dead")
    }
}

/// Returns the position of a state's count, which is stored and never changes; `None` for done and cancelled jobs.
const fn slot(state: State) -> Option<usize> {
    match state {
        State::Delayed => Some(0),
        State::Ready => Some(1),
        State::Reserved => Some(2),
        State::Dead => Some(3),
        State::Done | State::Cancelled => None,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pause {
    #[default]
    None,
    Paused,
    /// Some of its lanes are still paused.
    Resuming,
}

/// The counts of a topic, or the sums over the topics of a shard or of a tenant in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopicRow {
    pub(crate) lanes: u64,
    pub(crate) pause: Pause,
    /// In rows of sums only: topics that have jobs or are paused.
    pub(crate) topics: u64,
    /// In rows of sums only: topics that are paused.
    pub(crate) paused: u64,
    pub(crate) ended: EndedCounts,
}

/// How many jobs of a topic are done and cancelled, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedCounts {
    pub(crate) done: u64,
    pub(crate) cancelled: u64,
}

impl TopicRow {
    pub(crate) fn is_paused(self) -> bool {
        self.pause != Pause::None
    }

    /// Whether the topic has jobs or is paused, and so counts towards the limit of topics.
    pub(crate) fn is_in_use(self) -> bool {
        self.lanes > 0 || self.is_paused()
    }
}

impl CountRow for TopicRow {
    fn is_blank(&self) -> bool {
        *self == Self::default()
    }
}

impl EndedCounts {
    /// Counts one more job that ended in this state. Ignores states other than done and cancelled.
    pub(crate) fn count(&mut self, state: State) {
        match state {
            State::Done => self.done += 1,
            State::Cancelled => self.cancelled += 1,
            State::Delayed | State::Ready | State::Reserved | State::Dead => {}
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.done += more.done;
        self.cancelled += more.cancelled;
    }
}

/// Sums over the topics of a shard, or of a tenant in it: lanes with jobs, topics with jobs or paused, paused topics. Or
/// a difference of such sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums(pub(crate) [i64; 3]);

impl Sums {
    pub(crate) fn stored(row: TopicRow) -> Self {
        Self([row.lanes, row.topics, row.paused].map(u64::cast_signed))
    }

    pub(crate) fn add(&mut self, topic: TopicRow) {
        let [lanes, topics, paused] = &mut self.0;
        *lanes += topic.lanes.cast_signed();
        *topics += i64::from(topic.is_in_use());
        *paused += i64::from(topic.is_paused());
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lanes, topics, paused] = self.0;
        write!(f, "{lanes} lanes with jobs, {topics} topics with jobs or paused, {paused} paused")
    }
}
