//! What is known of topics, and the sums of a shard.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::jobs::less;

/// Whether a topic is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::embedded) enum Hold {
    #[default]
    None,
    Paused,
    /// Some of its lanes are parked still.
    Resuming,
}

/// What is known of a topic. In the row of a shard: how many of its topics have jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::embedded) struct Known {
    /// Lanes that have jobs.
    pub(in crate::store::embedded) lanes: u64,
    pub(in crate::store::embedded) hold: Hold,
    /// In the row of a shard alone: topics that have jobs or are paused.
    pub(in crate::store::embedded) topics: u64,
    /// In the row of a shard alone: topics that are paused.
    pub(in crate::store::embedded) paused: u64,
}

impl Known {
    pub(super) fn is_paused(self) -> bool {
        self.hold != Hold::None
    }

    pub(super) fn counts(self) -> bool {
        self.lanes > 0 || self.is_paused()
    }
}

/// Sums over the topics of a shard: lanes, topics that have jobs or are paused, those that are paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store::embedded) struct Sums(pub(super) [i64; 3]);

impl Sums {
    /// As the row of a shard has them.
    pub(in crate::store::embedded) fn told(of_shard: Known) -> Self {
        Self([of_shard.lanes, of_shard.topics, of_shard.paused].map(u64::cast_signed))
    }

    /// One more topic.
    pub(in crate::store::embedded) fn add(&mut self, topic: Known) {
        let [lanes, topics, paused] = &mut self.0;
        *lanes += topic.lanes.cast_signed();
        *topics += i64::from(topic.counts());
        *paused += i64::from(topic.is_paused());
    }

    /// By how many each is more than another.
    pub(in crate::store::embedded) fn minus(self, other: Self) -> Self {
        Self(less(self.0, other.0))
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lanes, topics, paused] = self.0;
        write!(f, "{lanes} lanes with jobs, {topics} topics with jobs or paused, {paused} paused")
    }
}
