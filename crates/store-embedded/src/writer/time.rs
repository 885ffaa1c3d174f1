//! The store's time, which follows a clock: it does not go back with one that is set back by up to a minute.

use std::sync::Arc;

use ringback_core::clock::{Clock, EARLIEST, MAX_DIFFERENCE, micros};

/// A time that follows a clock. If the clock is set back by up to a minute, the time goes on from where it was, at half
/// the pace of the clock, until the clock has caught up: so no time is repeated and nothing stops, and a delay takes up
/// to twice as long. From further ahead it has to go back to the clock, because nothing may be delivered before it is
/// due.
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    /// The last time of the clock.
    wall_us: u64,
    now_us: u64,
    /// The last time that was written before the store was opened, if the clock is far behind it.
    written_us: Option<u64>,
}

impl Time {
    /// `last_us` is the last time that the store has written.
    pub(crate) fn new(clock: Arc<dyn Clock>, last_us: u64) -> Self {
        let wall_us = clock.micros();
        let mut time = Self { clock, wall_us, now_us: wall_us, written_us: None };
        time.is_opened_at(last_us);
        time
    }

    /// Continues from `last_us`, the last time that the store has written, after it was opened. If the clock is far
    /// behind that, remembers it for [`Self::is_to_go_back_from`] instead.
    pub(crate) fn is_opened_at(&mut self, last_us: u64) {
        if is_far_behind(self.clock.micros(), last_us) {
            self.written_us = Some(last_us);
        } else {
            self.now_us = self.now_us.max(last_us);
        }
    }

    /// Returns the time now, in µs.
    pub(crate) fn read(&mut self) -> u64 {
        let wall = self.clock.micros();
        let passed = wall.saturating_sub(self.wall_us);
        self.wall_us = wall;
        self.now_us = wall.max(self.now_us.saturating_add(passed / 2));
        self.now_us
    }

    /// Returns the time from which the store has to go back to the clock, in µs; `None` if the clock is not far behind.
    pub(crate) fn is_to_go_back_from(&self) -> Option<u64> {
        let is_behind = || is_far_behind(self.clock.micros(), self.now_us).then_some(self.now_us);
        self.written_us.or_else(is_behind)
    }

    /// Sets the time to the clock's, and forgets the last written time. Returns the time now, in µs.
    pub(crate) fn go_back(&mut self) -> u64 {
        self.written_us = None;
        self.wall_us = self.clock.micros();
        self.now_us = self.wall_us;
        self.now_us
    }
}

/// Whether a clock is more than [`MAX_DIFFERENCE`] behind a time. False for a clock before [`EARLIEST`], which has lost
/// its time, unless the other time is as early.
fn is_far_behind(wall_us: u64, time_us: u64) -> bool {
    let earliest = EARLIEST.as_millis().saturating_mul(1000);
    let is_lost = wall_us < earliest && time_us >= earliest;
    time_us > wall_us.saturating_add(micros(MAX_DIFFERENCE)) && !is_lost
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ringback_core::clock::{ManualClock, Timestamp};

    #[test]
    fn a_clock_that_is_set_back_by_a_little_does_not_turn_the_time_back_or_stop_it() {
        let clock = ManualClock::at(Timestamp::from_millis(1000));
        let mut time = Time::new(Arc::new(clock.clone()), 400);
        assert_eq!(time.read(), 1_000_000);
        clock.set(Timestamp::from_millis(200));
        assert_eq!((time.read(), time.is_to_go_back_from()), (1_000_000, None));
        clock.advance(Duration::from_millis(50));
        assert_eq!(time.read(), 1_025_000);
        clock.advance(Duration::from_secs(3));
        assert_eq!(time.read(), 3_250_000, "the clock has caught up");
        clock.set(Timestamp::from_millis(5000));
        assert_eq!(time.read(), 5_000_000);
        assert_eq!(Time::new(Arc::new(clock), 9_000_000).read(), 9_000_000, "over a restart");
    }

    #[test]
    fn the_time_goes_back_to_a_clock_that_is_more_than_a_minute_behind() {
        let clock = ManualClock::at(Timestamp::from_millis(200_000));
        let mut time = Time::new(Arc::new(clock.clone()), 260_000_000);
        assert_eq!((time.is_to_go_back_from(), time.read()), (None, 260_000_000), "a minute is not too much");
        let mut opened = Time::new(Arc::new(clock.clone()), 260_000_001);
        assert_eq!((opened.is_to_go_back_from(), opened.read()), (Some(260_000_001), 200_000_000));
        assert_eq!((opened.go_back(), opened.is_to_go_back_from()), (200_000_000, None));
        clock.set(Timestamp::from_millis(100_000));
        assert_eq!(time.is_to_go_back_from(), Some(260_000_000));
        assert_eq!((time.go_back(), time.read()), (100_000_000, 100_000_000));
    }

    #[test]
    fn a_clock_that_has_lost_its_time_is_not_followed() {
        let clock = ManualClock::at(EARLIEST.plus(Duration::from_secs(3600)));
        let mut time = Time::new(Arc::new(clock.clone()), 0);
        let before = time.read();
        clock.set(Timestamp::from_millis(5));
        assert_eq!((time.is_to_go_back_from(), time.read()), (None, before));
    }
}
