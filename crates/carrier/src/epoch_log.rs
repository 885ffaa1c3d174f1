//! Logs claims of shards, and the passes made under them, at the level `debug`. It shows whether two carriers held a
//! shard at once.

use ringback_core::clock::Clock;
use ringback_core::store_types::{Epoch, Pass, Shard, StoreError};
use tracing::{Level, debug, enabled};

/// When a call to the store began, in µs; `None` if that is not logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallStart(Option<u64>);

impl CallStart {
    /// Begins now.
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self(enabled!(Level::DEBUG).then(|| clock.micros()))
    }

    pub(crate) fn claimed(self, shard: Shard, epoch: &Epoch) {
        let Some(asked) = self.0 else { return };
        debug!(shard = shard.number(), epoch = epoch.0, asked, "epoch begins");
    }

    /// A pass has ended. Whether one without an answer changed something is not known, so it is left out.
    pub(crate) fn passed(self, shard: Shard, epoch: &Epoch, pass: &Result<Pass, StoreError>) {
        match pass {
            Ok(Pass::Fenced) => self.used(shard, epoch, true),
            Ok(Pass::Held { moved, other, .. }) if moved + other > 0 => self.used(shard, epoch, false),
            Ok(Pass::Held { .. }) | Err(_) => {}
        }
    }

    /// Something was done under an epoch, or was fenced.
    pub(crate) fn used(self, shard: Shard, epoch: &Epoch, fenced: bool) {
        let Some(asked) = self.0 else { return };
        debug!(shard = shard.number(), epoch = epoch.0, asked, fenced, "epoch used");
    }
}
