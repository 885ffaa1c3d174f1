//! The clock of a store: how far this machine's clock is from it, accepting that clock, and a clock that follows Redis.

use std::sync::Arc;

use ringback_core::clock::{Clock, Timestamp};
use ringback_core::store_types::{AcceptClock, ClockGap, Shard, StoreError};
use ringback_store_redis::RedisStore;

use crate::backend::{Backend, backend};
use crate::store::Store;

impl Store {
    /// How far the time of the store is ahead of this machine's clock; `None` if they differ by less than a minute. On
    /// Redis as it was last read; the embedded store follows the clock, and shows how far its time was ahead until that
    /// makes no difference.
    pub fn clock_gap(&self) -> Option<ClockGap> {
        backend!(self.clock_gap())
    }

    /// Reads the time of a shard's server. Whether it and this machine's clock agree within a minute: only then is
    /// anything deleted because it is old.
    pub async fn is_time_sure(&self, shard: Shard) -> Result<bool, StoreError> {
        backend!(self.agrees_on_time(shard).await)
    }

    /// How many seconds the time of the store is ahead of this machine's clock, for a metric. 0 for an embedded store
    /// that follows the clock.
    pub fn clock_ahead_seconds(&self) -> f64 {
        backend!(self.clock_ahead()).ahead_ms as f64 / 1000.0
    }

    /// Makes an embedded store follow the machine's clock, if its own time was ahead. Does nothing on Redis.
    pub async fn accept_clock(&self) -> Result<AcceptClock, StoreError> {
        backend!(self.accept_clock().await)
    }

    /// A clock for decisions by the time of day: `clock`, or on Redis the time of the server while the two are more
    /// than a minute apart.
    pub fn clock(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        match &self.backend {
            Backend::Redis(store) => Arc::new(ServerClock { clock, store: Arc::clone(store) }),
            Backend::Embedded(_) => clock,
        }
    }
}

/// A clock that shows the time of Redis while that differs from this machine's by more than a minute.
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
