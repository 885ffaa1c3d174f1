//! Options of a store: its address and TLS, its number of shards, what it keeps for how long, and its durability.

use std::fmt;
use std::time::Duration;

use super::attempts::AttemptRetention;
use super::error::StoreError;
use super::shard::Shard;
use super::stats::Profile;
use crate::clock::millis_up;
use crate::connection_url::shown;
use crate::topic_policy::Logging;

/// The address of a store, and the settings of its installation.
#[derive(Clone)]
pub struct Options {
    /// `redis://`, `rediss://`, `redis-cluster://`, `redis-sentinel://`, or `embedded:` and a directory.
    pub url: String,
    /// TLS to a `rediss://` server.
    pub tls: StoreTls,
    /// Prefix of all keys, or name of the embedded store's file: `[A-Za-z0-9._-]{1,32}`.
    pub prefix: String,
    /// Number of shards, fixed at the first start.
    pub shards: u16,
    /// How long tombstones of done and cancelled jobs are kept; at least a minute.
    pub keep_done: Duration,
    /// How many MiB all tombstones may take.
    pub keep_done_mib: u32,
    /// How long dead jobs are kept.
    pub keep_dead: Duration,
    /// Which attempts are logged, unless a topic's policy says otherwise.
    pub attempts: Logging,
    /// How long logged attempts are kept; at least a minute.
    pub keep_attempts: Duration,
    /// How many MiB all logged attempts may take; 0 keeps none.
    pub keep_attempts_mib: u32,
    /// How many MiB of its disk an embedded store leaves free; 0 means no limit.
    pub keep_free_mib: u32,
    /// How durable the store has to be at least; `None` takes it as it is. With [`Profile::Replicated`] changes are
    /// acknowledged when a replica has them.
    pub durability: Option<Profile>,
    /// How long one store call may take.
    pub call_timeout: Duration,
}

/// The settings of TLS to a store, in PEM form.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoreTls {
    /// The authorities that the server is trusted by; `None` for those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The certificate of this process, and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, prefix) = (shown(&self.url), &self.prefix);
        f.debug_struct("Options").field("url", &url).field("prefix", prefix).finish_non_exhaustive()
    }
}

impl Options {
    pub fn all_shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.shards).map(Shard)
    }

    /// How many tombstones a shard may keep if each takes `bytes`: its share of `keep_done_mib`, but at least one.
    pub fn tombstones(&self, bytes: u64) -> u64 {
        let all_shards = u64::from(self.keep_done_mib) * 1024 * 1024 / bytes;
        (all_shards / u64::from(self.shards)).max(1)
    }

    /// How long, and in how many bytes, a shard keeps logged attempts: its share of `keep_attempts_mib`.
    pub fn attempt_retention(&self) -> AttemptRetention {
        let bytes = u64::from(self.keep_attempts_mib) * 1024 * 1024 / u64::from(self.shards);
        AttemptRetention { time: millis_up(self.keep_attempts), bytes }
    }

    /// How long logging attempts may delay the settle that follows: a quarter of the call timeout. Callers have time
    /// for a slow settle and one more slow call, but not for a third.
    pub fn log_attempts_timeout(&self) -> Duration {
        self.call_timeout / 4
    }

    /// Which attempts are logged; `None` if the store keeps no attempt log.
    pub fn logging(&self) -> Option<Logging> {
        (self.keep_attempts_mib > 0).then_some(self.attempts)
    }

    /// The error for a store that was set up with another number of shards.
    pub fn shard_mismatch(&self, stored: impl std::fmt::Display) -> StoreError {
        StoreError::Unfit(format!(
            "the store was set up with {stored} shards, not {}; set RINGBACK_SHARDS={stored}, or another RINGBACK_PREFIX",
            self.shards
        ))
    }
}
