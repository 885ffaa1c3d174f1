//! How a store is reached, and what it is told to keep.

use std::time::Duration;

use super::attempts::KeepAttempts;
use super::{Logging, StoreError};
use crate::clock::millis_up;

/// How to reach a store, and what is fixed for the installation.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis://`, `rediss://`, `redis-cluster://`, or `embedded:` and a directory.
    pub url: String,
    /// Before every key, or the name of the file: `[A-Za-z0-9._-]{1,32}`.
    pub prefix: String,
    /// How many shards; fixed at the first start.
    pub shards: u16,
    /// How long done and cancelled jobs are remembered; at least a minute.
    pub keep_done: Duration,
    /// How many MiB these memories may take.
    pub keep_done_mib: u32,
    /// How long dead jobs are kept.
    pub keep_dead: Duration,
    /// Which attempts are logged.
    pub attempts: Logging,
    /// How long the log of a job's attempts is kept; at least a minute.
    pub keep_attempts: Duration,
    /// How many MiB these logs may take; 0 keeps none.
    pub keep_attempts_mib: u32,
    /// How long one call may take.
    pub patience: Duration,
}

impl Options {
    /// How many tombstones a shard may keep when each takes so many bytes; at least one.
    pub(super) fn tombstones(&self, bytes: u64) -> u64 {
        let room = u64::from(self.keep_done_mib) * 1024 * 1024 / bytes;
        (room / u64::from(self.shards)).max(1)
    }

    /// How long and how many bytes of attempts a shard keeps.
    pub(super) fn logs(&self) -> KeepAttempts {
        let bytes = u64::from(self.keep_attempts_mib) * 1024 * 1024 / u64::from(self.shards);
        KeepAttempts { time: millis_up(self.keep_attempts), bytes }
    }

    /// Which attempts are logged; `None` without room for any.
    pub(super) fn logging(&self) -> Option<Logging> {
        (self.keep_attempts_mib > 0).then_some(self.attempts)
    }

    /// Why a store that was set up with another number of shards is not to be used.
    pub(super) fn other_shards(&self, stored: impl std::fmt::Display) -> StoreError {
        StoreError::Unfit(format!(
            "the store was set up with {stored} shards, not {}; set RINGBACK_SHARDS={stored}, or another RINGBACK_PREFIX",
            self.shards
        ))
    }
}
