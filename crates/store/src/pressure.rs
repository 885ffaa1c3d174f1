//! Memory pressure: whether the store has used 80 % of its memory limit. Above that, no new jobs should
//! come in and attempts are not logged, so that the stored jobs can still be delivered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_core::contract::StoreError;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The share of the memory limit from which pressure is high.
const HIGH: f64 = 0.8;
/// How long a reading counts. There are no readings while nobody asks.
const EVERY: Duration = Duration::from_secs(1);

/// The last reading.
#[derive(Default)]
pub(crate) struct MemoryPressure {
    is_high: AtomicBool,
    read_at: Mutex<Option<Instant>>,
}

impl MemoryPressure {
    /// Whether pressure is high. One caller reads the share, the others take the last result. If the store
    /// does not reply, the result stays the same.
    pub(crate) async fn is_high(&self, share: impl AsyncFnOnce() -> Result<f64, StoreError>) -> bool {
        if let Ok(mut read_at) = self.read_at.try_lock()
            && read_at.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(share) = share().await {
                self.record(share >= HIGH);
            }
            *read_at = Some(Instant::now());
        }
        self.is_high.load(Ordering::Relaxed)
    }

    fn record(&self, is_high: bool) {
        let before = self.is_high.swap(is_high, Ordering::Relaxed);
        if is_high && !before {
            tracing::warn!(
                "the store has passed 80 % of its memory limit; submits are refused and attempts are not logged until it has room"
            );
        } else if before && !is_high {
            tracing::info!("the store has room again; submits are accepted");
        }
    }
}
