//! Whether the store is so full that no more jobs should come in: from 80 % of its memory
//! limit on, so that what is kept already can drain with room to spare.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_core::store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// From this share of the memory limit on, submits are refused.
const HIGH: f64 = 0.8;
/// How long a look at the store counts. It is looked at only while submits come.
const EVERY: Duration = Duration::from_secs(1);

/// The last look.
#[derive(Default)]
pub(crate) struct Pressure {
    high: AtomicBool,
    looked: Mutex<Option<Instant>>,
}

impl Pressure {
    /// Whether to refuse submits. One caller looks, the others take what was seen last; a
    /// store that does not answer leaves it as it was.
    pub(crate) async fn is_high(&self, store: &Store) -> bool {
        if let Ok(mut looked) = self.looked.try_lock()
            && looked.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(share) = store.memory_share().await {
                self.note(share >= HIGH);
            }
            *looked = Some(Instant::now());
        }
        self.high.load(Ordering::Relaxed)
    }

    fn note(&self, high: bool) {
        let before = self.high.swap(high, Ordering::Relaxed);
        if high && !before {
            tracing::warn!(
                "the store has passed 80 % of its memory limit; submits are refused until it has room"
            );
        } else if before && !high {
            tracing::info!("the store has room again; submits are accepted");
        }
    }
}
