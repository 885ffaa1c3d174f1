//! When a job expires: no attempt of it begins later.

use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::duration::format_duration;

/// When a job expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// So long after it was first due.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

impl Expires {
    /// The time, of a job that was first due at `first_due`. `None` if the time had passed by then: the job was revived
    /// after it had expired, or was imported.
    pub fn time(self, first_due: Timestamp) -> Option<Timestamp> {
        match self {
            Self::After(duration) => Some(first_due.plus(duration)),
            Self::At(time) => Some(time).filter(|time| *time > first_due),
        }
    }
}

/// As a submit writes it.
impl fmt::Display for Expires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(duration) => f.write_str(&format_duration(*duration)),
            Self::At(time) => time.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_had_passed_when_the_job_was_due_has_no_effect() {
        let at = Timestamp::from_millis;
        assert_eq!(Expires::After(Duration::from_millis(5)).time(at(100)), Some(at(105)));
        for (first_due, expected) in [(99, Some(at(100))), (100, None), (101, None)] {
            assert_eq!(Expires::At(at(100)).time(at(first_due)), expected, "{first_due}");
        }
    }
}
