//! The store's time: that of a clock, but never going back, not over a restart either.

use std::sync::Arc;

use ringback_core::clock::Clock;

/// Follows a clock that may be set back: then the time goes on from where it was, at half
/// the clock's pace, until the clock has caught up. So nothing stands still meanwhile; what
/// is due after a delay takes up to twice as long.
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    /// What the clock showed last.
    wall_us: u64,
    now_us: u64,
}

impl Time {
    /// `last_us` is the last time that was written down.
    pub(crate) fn new(clock: Arc<dyn Clock>, last_us: u64) -> Self {
        let wall_us = clock.micros();
        Self { clock, wall_us, now_us: wall_us.max(last_us) }
    }

    /// The time now, in µs.
    pub(crate) fn read(&mut self) -> u64 {
        let wall = self.clock.micros();
        let passed = wall.saturating_sub(self.wall_us);
        self.wall_us = wall;
        self.now_us = wall.max(self.now_us.saturating_add(passed / 2));
        self.now_us
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ringback_core::clock::{ManualClock, Timestamp};

    #[test]
    fn a_clock_that_is_set_back_does_not_turn_the_time_back_or_stop_it() {
        let clock = ManualClock::at(Timestamp::from_millis(1000));
        let mut time = Time::new(Arc::new(clock.clone()), 400);
        assert_eq!(time.read(), 1_000_000);
        clock.set(Timestamp::from_millis(200));
        assert_eq!(time.read(), 1_000_000);
        clock.advance(Duration::from_millis(50));
        assert_eq!(time.read(), 1_025_000);
        clock.advance(Duration::from_secs(3));
        assert_eq!(time.read(), 3_250_000, "the clock has caught up");
        clock.set(Timestamp::from_millis(5000));
        assert_eq!(time.read(), 5_000_000);
        assert_eq!(Time::new(Arc::new(clock), 9_000_000).read(), 9_000_000, "over a restart");
    }
}
