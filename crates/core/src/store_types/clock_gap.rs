//! How far the time of the store is from this machine's clock, also as a text; and the result of accepting that clock.

use std::fmt;
use std::time::Duration;

use crate::clock::{MAX_DIFFERENCE, millis};

/// How far the time of the store is ahead of this machine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockGap {
    /// In milliseconds; negative if it is behind.
    pub ahead_ms: i64,
    /// How many jobs have to be looked at before an embedded store takes the clock: they were accepted or tried by the
    /// wrong time, or became due by it.
    pub jobs: u64,
}

impl ClockGap {
    /// Whether the gap is over [`MAX_DIFFERENCE`], so that one of the two clocks must be wrong.
    pub const fn is_wide(self) -> bool {
        self.ahead_ms.unsigned_abs() > MAX_DIFFERENCE.as_millis() as u64
    }

    /// The size of the gap: in seconds below 2 minutes, in minutes below 2 hours, in hours below 2 days, else in days.
    fn size(self) -> String {
        let (seconds, minute) = (self.ahead_ms.unsigned_abs() / 1000, 60);
        match seconds {
            n if n < 2 * minute => format!("{n} s"),
            n if n < 120 * minute => format!("{} min", n / minute),
            n if n < 48 * 60 * minute => format!("{} h", n / 3600),
            n => format!("{} days", n / 86_400),
        }
    }
}

/// The size and the side, such as `2 h ahead of`.
impl fmt::Display for ClockGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        write!(f, "{} {side}", self.size())
    }
}

/// The result of accepting the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptClock {
    /// The store was so far ahead, and follows the clock now.
    Accepted(ClockGap),
    /// The time of the store is that of the clock.
    Right,
    /// The time of the store is that of its server.
    OfServer,
}

impl ClockGap {
    /// The gap of a store whose time is `by` ahead of the machine's clock.
    pub fn ahead(by: Duration, jobs: u64) -> Self {
        Self { ahead_ms: i64::try_from(millis(by)).unwrap_or(i64::MAX), jobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_wide_beyond_a_minute_and_shown_in_the_unit_that_fits() {
        for (ahead_ms, is_wide, text) in [
            (60_000, false, "60 s ahead of"),
            (60_001, true, "60 s ahead of"),
            (-90_000, true, "90 s behind"),
            (3_600_000, true, "60 min ahead of"),
            (7_200_000, true, "2 h ahead of"),
            (-172_800_000, true, "2 days behind"),
            (i64::MIN, true, "106751991167 days behind"),
        ] {
            let gap = ClockGap { ahead_ms, jobs: 0 };
            assert_eq!((gap.is_wide(), gap.to_string().as_str()), (is_wide, text), "{ahead_ms}");
        }
    }
}
