//! Memory pressure: whether the store is so full that attempts are no longer recorded. They never take the
//! place of a job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::check;
use super::topology::Topology;

/// The share of the memory limit above which the store counts as full.
const HIGH: f64 = 0.8;
/// How long a measurement is valid. The store is asked only while there are attempts to record.
const EVERY: Duration = Duration::from_secs(1);

/// The last measurement.
#[derive(Default)]
pub(crate) struct MemoryPressure {
    is_high: AtomicBool,
    measured: Mutex<Option<Instant>>,
}

impl MemoryPressure {
    /// Whether memory is short. One caller measures while the others use the last result. A store that does
    /// not answer leaves the result as it was.
    pub(crate) async fn is_high(&self, topology: &Topology) -> bool {
        if let Ok(mut measured) = self.measured.try_lock()
            && measured.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(share) = check::memory_share(topology).await {
                self.is_high.store(share >= HIGH, Ordering::Relaxed);
            }
            *measured = Some(Instant::now());
        }
        self.is_high.load(Ordering::Relaxed)
    }
}
