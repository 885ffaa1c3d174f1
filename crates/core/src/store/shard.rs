//! Shards: how an installation's jobs are divided, and who may move them.

use std::fmt;

use crate::job::JobKey;

/// The most shards an installation can have.
pub const MAX_SHARDS: u16 = 256;

/// One division of an installation's jobs, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(pub(crate) u16);

impl Shard {
    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The shard of a job, among `count`.
    pub(crate) fn of(key: &JobKey, count: u16) -> Self {
        Self((key.shard_hash() % u32::from(count)) as u16)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Proof that a carrier holds a shard; grows with every change of hands. Whoever comes
/// with an older one is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch(pub(crate) String);
