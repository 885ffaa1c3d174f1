//! Holds how far the store's time is ahead of the machine's clock, with how many jobs, and the word of an operator that
//! the clock is right. `writer` then sets the time back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringback_core::clock::Clock;
use ringback_core::store_types::ClockGap;

/// Whether an operator has said that the clock is right, and the store's time is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockConsent {
    Awaited,
    Given,
}

/// A time ahead of the clock, in µs, and the number of jobs that were accepted or became due by it.
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

    /// Returns whether the word was given, and clears it: the word counts once.
    pub(crate) fn take(&self) -> ClockConsent {
        // Most often the word was not given, and a load is cheaper than a swap.
        let is_given = self.is_given.load(Ordering::Acquire) && self.is_given.swap(false, Ordering::AcqRel);
        if is_given { ClockConsent::Given } else { ClockConsent::Awaited }
    }

    /// Returns how far the time is still ahead of a clock; `None` if the gap is not wide.
    pub(crate) fn gap(&self, clock: &dyn Clock) -> Option<ClockGap> {
        let Ahead { time_us, jobs } = self.ahead()?;
        let by = Duration::from_micros(time_us.saturating_sub(clock.micros()));
        Some(ClockGap::ahead(by, jobs)).filter(|gap| gap.is_wide())
    }
}
