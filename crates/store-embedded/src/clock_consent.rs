//! What is known of a time of the store that was ahead of the machine's clock, and the word of an operator that the
//! clock is right. `writer` follows the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringback_core::clock::Clock;
use ringback_core::store_types::ClockGap;

/// Whether somebody has said that the clock is right, and not the time before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockConsent {
    Awaited,
    Given,
}

/// A time ahead of the clock by which jobs were accepted or became due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) time_us: u64,
    pub(crate) jobs: u64,
}

#[derive(Default)]
pub(crate) struct ClockWord {
    ahead: Mutex<Option<Ahead>>,
    is_given: AtomicBool,
}

impl ClockWord {
    pub(crate) fn ahead(&self) -> Option<Ahead> {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_ahead(&self, ahead: Option<Ahead>) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
    }

    pub(crate) fn give(&self) {
        self.is_given.store(true, Ordering::Release);
    }

    /// The word, which counts once.
    pub(crate) fn take(&self) -> ClockConsent {
        // Most often it was not given, and reading is cheaper.
        let is_given = self.is_given.load(Ordering::Acquire) && self.is_given.swap(false, Ordering::AcqRel);
        if is_given { ClockConsent::Given } else { ClockConsent::Awaited }
    }

    /// How far the time is still ahead of a clock, if that is far.
    pub(crate) fn gap(&self, clock: &dyn Clock) -> Option<ClockGap> {
        let Ahead { time_us, jobs } = self.ahead()?;
        let by = Duration::from_micros(time_us.saturating_sub(clock.micros()));
        Some(ClockGap::ahead(by, jobs)).filter(|gap| gap.is_wide())
    }
}
