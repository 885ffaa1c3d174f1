//! The clock of a simulation: tokio's virtual time since the start of the simulation, after a fixed date.

use ringback_core::clock::{Clock, Timestamp};
use tokio::time::Instant;

/// When every simulation starts: 2026-01-01T00:00:00Z, in µs.
const START_US: u64 = 1_767_225_600_000_000;

#[derive(Clone, Copy)]
pub(crate) struct VirtualClock(Instant);

impl VirtualClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1000)
    }

    fn micros(&self) -> u64 {
        START_US + u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
