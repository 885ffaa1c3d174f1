//! Measures how far the clock of the server is ahead of this machine's, whenever the installation's row is read, and logs
//! when they begin to differ much and when they agree again.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::store_types::ClockGap;

/// A call that takes longer says too little about a clock.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    ahead_ms: AtomicI64,
}

impl ClockWatch {
    /// Compares a server's time, in µs, with this machine's clock. Ignores a call if `took`, its duration, is over 5 s.
    pub(crate) fn saw(&self, server_us: u64, took: Duration) {
        if took > LONGEST_LOOK {
            return;
        }
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let own_us = SystemClock.micros().saturating_sub(ringback_core::clock::micros(took / 2));
        let ahead_ms = number(server_us).saturating_sub(number(own_us)) / 1000;
        let (before, now) = (self.gap(), ClockGap { ahead_ms, jobs: 0 });
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
        match (before.is_wide(), now.is_wide()) {
            (false, true) => tracing::warn!(
                ahead_ms,
                "the clock of Redis is {now} the clock of this machine: set the wrong one right. Meanwhile the time of Redis counts, and nothing that depends on a clock is deleted here"
            ),
            (true, false) => tracing::info!(ahead_ms, "the clocks of Redis and of this machine agree again"),
            (true, true) | (false, false) => {}
        }
    }

    /// Returns the time of the server in µs, within a few ms if it is computed from a recent look.
    pub(crate) fn server_us(&self) -> u64 {
        SystemClock.micros().saturating_add_signed(self.gap().ahead_ms.saturating_mul(1000))
    }

    pub(crate) fn gap(&self) -> ClockGap {
        ClockGap { ahead_ms: self.ahead_ms.load(Ordering::Relaxed), jobs: 0 }
    }
}
