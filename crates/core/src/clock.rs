//! Time: [`Timestamp`] in whole milliseconds, [`Clock`] with the machine's clock and one for tests, durations in whole
//! milliseconds or microseconds, and the limits of a credible clock. When jobs are due, the store's clock decides.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC. Printed as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time `by` later, at most `u64::MAX` milliseconds; a fraction of a millisecond counts as a whole one.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis_up(by)))
    }

    /// The time `by` earlier, at least the epoch; a fraction of a millisecond does not count.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }

    /// How long after `earlier` this is; zero if it is before that.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.3}")
    }
}

/// How far a process's clock may differ from the store's. Beyond that one of the two is wrong: this is reported, and
/// nothing is deleted or refused because of the wrong time.
pub const MAX_DIFFERENCE: Duration = Duration::from_secs(60);

/// A clock that shows a time before this one, 2020-01-01, has not been set.
pub const EARLIEST: Timestamp = Timestamp(1_577_836_800_000);

/// A duration in whole microseconds, rounded down, at most `u64::MAX`.
pub fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds, rounded down, at most `u64::MAX`.
pub fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds, rounded up so that a wait is never shortened, at most `u64::MAX`.
pub fn millis_up(d: Duration) -> u64 {
    u64::try_from(d.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// The time now in microseconds since the Unix epoch, as precise as the clock is.
    fn micros(&self) -> u64 {
        self.now().as_millis().saturating_mul(1000)
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the machine's time is read")]
    fn micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.micros() / 1000)
    }
}

/// A clock for tests: it shows the same time until a call moves it.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(now.0)))
    }

    /// Moves the clock forward by `by`, rounded up to a whole millisecond.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(millis_up(by), Ordering::SeqCst);
    }

    /// Sets the clock, to an earlier time too.
    pub fn set(&self, to: Timestamp) {
        self.0.store(to.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(1_763_600_000_120).to_string(), "2025-11-20T00:53:20.120Z");
        assert!(Timestamp::from_millis(u64::MAX).to_string().starts_with("9999-12-30"));
    }

    #[test]
    fn fractions_of_a_millisecond_are_rounded_up() {
        assert_eq!(millis_up(Duration::from_micros(1)), 1);
        assert_eq!(millis_up(Duration::from_millis(2)), 2);
        assert_eq!(millis_up(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_manual_clock_moves_only_when_moved() {
        let clock = ManualClock::at(Timestamp::from_millis(5));
        clock.advance(Duration::from_millis(7));
        assert_eq!(clock.now(), Timestamp::from_millis(12));
    }
}
