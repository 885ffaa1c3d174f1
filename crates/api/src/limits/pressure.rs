//! Refuses submits while the store uses more than 80 % of its memory limit, so that the jobs it
//! already holds can still be delivered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Submits are refused from this share of the memory limit.
const HIGH: f64 = 0.8;
/// How long a reading of the store's memory counts. It is read only while submits arrive.
const EVERY: Duration = Duration::from_secs(1);

/// The last reading of the store's memory.
#[derive(Default)]
pub(crate) struct Pressure {
    is_high: AtomicBool,
    read_at: Mutex<Option<Instant>>,
}

impl Pressure {
    /// Whether to refuse submits. One caller at a time reads the store; the others use the last
    /// reading. If the store does not answer, the last reading stays.
    pub(crate) async fn is_high(&self, store: &Store) -> bool {
        if let Ok(mut read_at) = self.read_at.try_lock()
            && read_at.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(share) = store.memory_share().await {
                self.update(share >= HIGH);
            }
            *read_at = Some(Instant::now());
        }
        self.is_high.load(Ordering::Relaxed)
    }

    fn update(&self, is_high: bool) {
        let was_high = self.is_high.swap(is_high, Ordering::Relaxed);
        if is_high && !was_high {
            tracing::warn!(
                "the store uses more than 80 % of its memory limit; submits are refused until it uses less"
            );
        } else if was_high && !is_high {
            tracing::info!("the store has memory again; submits are accepted");
        }
    }
}
