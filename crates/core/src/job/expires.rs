//! [`Expires`]: the time after which no attempt of a job begins, and how it follows from the due time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::duration::format_duration;

/// When a job expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expires {
    /// This long after the job was first due.
    After(Duration),
    At(Timestamp),
}

impl Expires {
    /// When a job that is now due at `due`, and was first due at `first_due`, expires. `None` if `due` is not before
    /// that time, as after a late revive: such a job does not expire.
    pub fn of(self, due: Timestamp, first_due: Timestamp) -> Option<Timestamp> {
        let time = self.time(first_due);
        (due < time).then_some(time)
    }

    /// The expiry of a job that was first due at `first_due`, whenever the job is due now.
    pub fn time(self, first_due: Timestamp) -> Timestamp {
        match self {
            Self::After(duration) => first_due.plus(duration),
            Self::At(time) => time,
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
    fn a_duration_counts_from_the_first_due_time() {
        let at = Timestamp::from_millis;
        assert_eq!(Expires::After(Duration::from_millis(5)).time(at(100)), at(105));
        assert_eq!(Expires::At(at(7)).time(at(100)), at(7));
        assert_eq!(Expires::After(Duration::from_secs(90)).to_string(), "1m 30s");
    }
}
