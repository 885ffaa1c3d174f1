//! Shards, the parts of an installation's jobs: their numbers, the proof of who owns one, and the live carriers.

use std::fmt;
use std::time::Duration;

use crate::job::JobKey;

/// The most shards of an installation.
pub const MAX_SHARDS: u16 = 256;

/// The number of a shard, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(pub u16);

impl Shard {
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The shard of a job, of `count` shards.
    pub fn of(key: &JobKey, count: u16) -> Self {
        Self((key.shard_hash() % u32::from(count)) as u16)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Proof that a carrier owns a shard. It grows each time the shard changes owner; the store fences
/// calls with an older epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch(pub String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCarriers {
    /// Their names, sorted, so that all carriers see the same order.
    pub carriers: Vec<String>,
    /// When the first of the other carriers expires, unless it sends a heartbeat before.
    pub next_change: Option<Duration>,
    /// When the next bulk operation becomes free to take. `None` when a wake-up announces it instead.
    pub next_bulk: Option<Duration>,
}
