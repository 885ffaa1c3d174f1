//! Logs claims of shards, and the calls that used or lost them, at the level `debug`. The log shows whether two
//! carriers held a shard at once.

use ringback_core::clock::Clock;
use ringback_core::store_types::{Epoch, Pass, Shard, StoreError};
use tracing::{Level, debug, enabled};

/// When a call to the store began, in µs; `None` if the level `debug` is off, and then nothing is logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallStart(Option<u64>);

impl CallStart {
    /// Reads the clock if the level `debug` is on.
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self(enabled!(Level::DEBUG).then(|| clock.micros()))
    }

    pub(crate) fn claimed(self, shard: Shard, epoch: &Epoch) {
        let Some(asked) = self.0 else { return };
        debug!(shard = shard.number(), epoch = epoch.0, asked, "epoch begins");
    }

    /// Logs a pass that was fenced or changed jobs. A failed pass is not logged: whether it changed jobs is not known.
    pub(crate) fn passed(self, shard: Shard, epoch: &Epoch, pass: &Result<Pass, StoreError>) {
        match pass {
            Ok(Pass::Fenced) => self.used(shard, epoch, true),
            Ok(Pass::Held { moved, other, .. }) if moved + other > 0 => self.used(shard, epoch, false),
            Ok(Pass::Held { .. } | Pass::Left(_)) | Err(_) => {}
        }
    }

    /// Logs a call that was made under an epoch, and whether it was fenced.
    pub(crate) fn used(self, shard: Shard, epoch: &Epoch, fenced: bool) {
        let Some(asked) = self.0 else { return };
        debug!(shard = shard.number(), epoch = epoch.0, asked, fenced, "epoch used");
    }
}
