//! A log of epochs, at the level `debug`: each claim of a shard, and each pass
//! under a claim that changed something or was fenced. Two holders of a shard at the same time would show in it.

use ringback_core::clock::Clock;
use ringback_core::contract::{Epoch, Pass, Shard, StoreError};
use tracing::{Level, debug, enabled};

/// When a call to the store began, in µs; `None` if that is not logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(Option<u64>);

impl Asked {
    /// Begins now.
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self(enabled!(Level::DEBUG).then(|| clock.micros()))
    }

    /// The shard was claimed.
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
