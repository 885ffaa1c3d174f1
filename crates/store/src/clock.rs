//! The clock of a store, and how far this machine's clock is from it.

use std::sync::Arc;

use ringback_core::clock::{Clock, Timestamp};
use ringback_core::store_types::{AcceptClock, ClockGap, Shard, StoreError};
use ringback_store_redis::RedisStore;

use crate::backend::{Backend, backend};
use crate::store::Store;

impl Store {
    /// How far the time of the store is ahead of this machine's clock, if that is more than a minute. On Redis as the
    /// last look at the store has shown it; the embedded store follows the clock, and shows how far its time was ahead
    /// until that makes no difference.
    pub fn clock_gap(&self) -> Option<ClockGap> {
        backend!(self.clock_gap())
    }

    /// Whether the time of a shard's server and this machine's clock agree within a minute: only then is something
    /// deleted because it is old. Asks the server.
    pub async fn is_time_sure(&self, shard: Shard) -> Result<bool, StoreError> {
        backend!(self.agrees_on_time(shard).await)
    }

    /// How many seconds the time of the store is ahead of this machine's clock, for a metric. 0 for an embedded store
    /// that follows the clock.
    pub fn clock_ahead_seconds(&self) -> f64 {
        backend!(self.clock_ahead()).ahead_ms as f64 / 1000.0
    }

    /// Says that the machine's clock is right, and not the time that an embedded store had before.
    pub async fn accept_clock(&self) -> Result<AcceptClock, StoreError> {
        backend!(self.accept_clock().await)
    }

    /// The time of day for what anchors, refuses and signs: that of `clock`, or that of the store where the two are more
    /// than a minute apart.
    pub fn clock(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        match &self.backend {
            Backend::Redis(store) => Arc::new(ServerClock { clock, store: Arc::clone(store) }),
            Backend::Embedded(_) => clock,
        }
    }
}

/// A clock that shows the time of Redis where it is far from that of this machine.
struct ServerClock {
    clock: Arc<dyn Clock>,
    store: Arc<RedisStore>,
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1000)
    }

    fn micros(&self) -> u64 {
        let (micros, gap) = (self.clock.micros(), self.store.clock_ahead());
        if gap.is_wide() { micros.saturating_add_signed(gap.ahead_ms.saturating_mul(1000)) } else { micros }
    }
}
