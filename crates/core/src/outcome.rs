//! What became of one hand-over: the word with which a lease is settled.

use std::time::Duration;

use crate::clock::Timestamp;

/// How a reserved job goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handed over: the job is done.
    Complete,
    /// Failed: one more failure, and again after the delay.
    Retry {
        /// How long to wait, counted by the store's clock.
        after: Duration,
        /// What was seen.
        last: LastAttempt,
    },
    /// Given up: the job is dead.
    Bury {
        /// Why.
        reason: Reason,
        /// What was seen.
        last: LastAttempt,
    },
    /// Not tried, or not to be counted: ready again, or after a delay; no failure.
    Release {
        /// Zero: at once.
        after: Duration,
    },
}

/// Why a job is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its retries are used up.
    Exhausted,
    /// The receiver answered 410 Gone (RFC 9110, section 15.5.11).
    Gone,
    /// Too many leases in a row ran out without an outcome.
    Lost,
}

impl Reason {
    /// The word used in the API and the docs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Gone => "gone",
            Self::Lost => "lost",
        }
    }
}

/// What is remembered of the last failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastAttempt {
    /// When it was sent, by the store's clock.
    pub at: Timestamp,
    /// The answer's status, if there was an answer.
    pub status: Option<u16>,
    /// The class of the error, if there was none: a short word such as `timeout`.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Duration,
}
