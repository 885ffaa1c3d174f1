//! Pressure: whether the store is nearly full. Then submits are to be refused and attempts are not logged, so that the
//! stored jobs can still be delivered. Redis is nearly full at 80 % of its memory limit, an embedded store when its
//! disk has less room than is to be left free.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_core::store_types::StoreError;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The share of the memory limit from which pressure is high.
pub(crate) const HIGH: f64 = 0.8;
/// How long a reading counts. There are no readings while nobody asks.
const EVERY: Duration = Duration::from_secs(1);

/// The resource of which a store that is nearly full has too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    Memory,
    /// Room on the disk: less than this many MiB.
    Disk(u32),
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the store has passed 80 % of its memory limit"),
            Self::Disk(mib) => write!(f, "the disk of the store has less than {mib} MiB free"),
        }
    }
}

/// The last reading.
pub(crate) struct Pressure {
    /// What there is too little of when pressure is high.
    shortage: Shortage,
    is_high: AtomicBool,
    read_at: Mutex<Option<Instant>>,
}

impl Pressure {
    pub(crate) fn new(shortage: Shortage) -> Self {
        Self { shortage, is_high: AtomicBool::default(), read_at: Mutex::default() }
    }

    /// What there is too little of; `None` if the store has room. At most once a second, one caller runs `read`, which
    /// says whether pressure is high; the others get the last result. If `read` fails, the last result stays.
    pub(crate) async fn shortage(
        &self,
        read: impl AsyncFnOnce() -> Result<bool, StoreError>,
    ) -> Option<Shortage> {
        if let Ok(mut read_at) = self.read_at.try_lock()
            && read_at.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(is_high) = read().await {
                self.record(is_high);
            }
            *read_at = Some(Instant::now());
        }
        self.is_high.load(Ordering::Relaxed).then_some(self.shortage)
    }

    fn record(&self, is_high: bool) {
        let before = self.is_high.swap(is_high, Ordering::Relaxed);
        if is_high && !before {
            tracing::warn!(
                "{}; submits are refused and attempts are not logged until it has room",
                self.shortage
            );
        } else if before && !is_high {
            tracing::info!("the store has room again; submits are accepted");
        }
    }
}
