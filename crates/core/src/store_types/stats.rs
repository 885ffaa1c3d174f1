//! Statistics of a shard or of all shards: jobs by state, lateness and the archive outbox. Also how durable a store is.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::archive::ArchiveStatus;
use super::lateness::Lateness;
use crate::state::State;

/// How durable the store is, the least durable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Profile {
    /// A restart, or a crash of the machine, can lose all jobs or those of the last half minute or more.
    Memory,
    /// The server does not reveal its settings.
    Unknown,
    /// Data is synced every second. A crash can lose the last second.
    Everysec,
    /// Data is synced before a call returns.
    Disk,
    /// A replica has a change before it is answered, and the server keeps an append-only file.
    Replicated,
}

impl Profile {
    /// Whether no acknowledged change may get lost.
    pub const fn keeps_all(self) -> bool {
        match self {
            Self::Disk | Self::Replicated => true,
            Self::Memory | Self::Unknown | Self::Everysec => false,
        }
    }
}

/// Reads a profile that a setting can require: all but `unknown`.
impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let asked = [Self::Memory, Self::Everysec, Self::Disk, Self::Replicated];
        let found = asked.into_iter().find(|profile| <&str>::from(profile) == text);
        found.ok_or_else(|| "must be memory, everysec, disk or replicated".to_owned())
    }
}

/// Jobs by state, and those that are in none any more. Done, cancelled and purged jobs are counted since the
/// installation began. The API answers with them as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateCounts {
    /// Waiting for their due time.
    pub delayed: u64,
    /// Due, waiting to be reserved.
    pub ready: u64,
    /// Being delivered.
    pub reserved: u64,
    /// Delivered.
    pub done: u64,
    /// Failed for good and kept.
    pub dead: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Dead and then removed.
    pub purged: u64,
    /// Accepted, and found by a repair to have no record and no end: they will not be delivered.
    pub missing: u64,
}

impl StateCounts {
    pub fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Delayed => &mut self.delayed,
            State::Ready => &mut self.ready,
            State::Reserved => &mut self.reserved,
            State::Done => &mut self.done,
            State::Dead => &mut self.dead,
            State::Cancelled => &mut self.cancelled,
        }
    }

    /// Adds other counts, such as those of another shard.
    pub fn add(&mut self, other: &Self) {
        let Self { delayed, ready, reserved, done, dead, cancelled, purged, missing } = other;
        self.delayed += delayed;
        self.ready += ready;
        self.reserved += reserved;
        self.done += done;
        self.dead += dead;
        self.cancelled += cancelled;
        self.purged += purged;
        self.missing += missing;
    }
}

/// Statistics of a shard, or of all shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Jobs ever accepted.
    pub accepted: u64,
    pub states: StateCounts,
    /// Topics that had a job. On Redis at most the latest 10,000.
    pub topics: BTreeSet<String>,
    /// Lateness over the last five minutes.
    pub lateness: Lateness,
    /// Tombstones that were evicted before their retention ended, because there was no room.
    pub evicted_early: u64,
    /// Dead-letter notices that are not published yet.
    pub pending_notices: u64,
    pub archive: ArchiveStatus,
}

impl Stats {
    /// Adds the statistics of another shard.
    pub fn merge(&mut self, other: Self) {
        self.states.add(&other.states);
        self.accepted += other.accepted;
        self.evicted_early += other.evicted_early;
        self.pending_notices += other.pending_notices;
        self.archive.add(&other.archive);
        self.topics.extend(other.topics);
        self.lateness.merge(&other.lateness);
    }
}
