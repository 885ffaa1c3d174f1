//! What is known of topics, and the sums of a shard.

use std::fmt;

use ringback_core::state::State;
use serde::{Deserialize, Serialize};

use super::jobs::less;

/// Whether a topic is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hold {
    #[default]
    None,
    Paused,
    /// Some of its lanes are parked still.
    Resuming,
}

/// What is known of a topic. In the row of a shard: how many of its topics have jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Lanes that have jobs.
    pub(crate) lanes: u64,
    pub(crate) hold: Hold,
    /// In the row of a shard alone: topics that have jobs or are paused.
    pub(crate) topics: u64,
    /// In the row of a shard alone: topics that are paused.
    pub(crate) paused: u64,
    /// Written behind the others, where it is anything: rows of before it was counted are whole.
    #[serde(skip)]
    pub(crate) ended: Ended,
}

/// How many jobs of a topic have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) done: u64,
    pub(crate) cancelled: u64,
}

impl Known {
    pub(crate) fn is_paused(self) -> bool {
        self.hold != Hold::None
    }

    pub(crate) fn counts(self) -> bool {
        self.lanes > 0 || self.is_paused()
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut row = postcard::to_stdvec(self).expect("plain data always serialises");
        if self.ended != Ended::default() {
            row = postcard::to_extend(&self.ended, row).expect("plain data always serialises");
        }
        row
    }

    /// None where it is something else.
    pub(crate) fn unpack(row: &[u8]) -> Option<Self> {
        let (known, rest) = postcard::take_from_bytes::<Self>(row).ok()?;
        let ended = if rest.is_empty() { Ended::default() } else { postcard::from_bytes(rest).ok()? };
        Some(Self { ended, ..known })
    }
}

/// Sums over the topics of a shard: lanes, topics that have jobs or are paused, those that are paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums(pub(crate) [i64; 3]);

impl Ended {
    /// One more has ended so.
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

impl Sums {
    /// As the row of a shard has them.
    pub(crate) fn told(of_shard: Known) -> Self {
        Self([of_shard.lanes, of_shard.topics, of_shard.paused].map(u64::cast_signed))
    }

    /// One more topic.
    pub(crate) fn add(&mut self, topic: Known) {
        let [lanes, topics, paused] = &mut self.0;
        *lanes += topic.lanes.cast_signed();
        *topics += i64::from(topic.counts());
        *paused += i64::from(topic.is_paused());
    }

    /// By how many each is more than another.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(less(self.0, other.0))
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lanes, topics, paused] = self.0;
        write!(f, "{lanes} lanes with jobs, {topics} topics with jobs or paused, {paused} paused")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_before_ends_were_counted_is_read_and_one_of_now_comes_back() {
        let before = Known { lanes: 300, hold: Hold::Paused, ..Known::default() };
        assert_eq!(Known::unpack(&[0xac, 0x02, 1, 0, 0]), Some(before));
        assert_eq!(before.pack(), [0xac, 0x02, 1, 0, 0]);
        let now = Known { ended: Ended { done: 1, cancelled: 1 << 40 }, ..before };
        assert_eq!(Known::unpack(&now.pack()), Some(now));
        assert_eq!(Known::unpack(&[1, 9]), None);
    }
}
