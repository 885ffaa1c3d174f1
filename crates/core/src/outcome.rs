//! The outcome of one delivery, with which its lease is settled.

use std::time::Duration;

use crate::clock::Timestamp;

/// How a lease is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job is delivered and done.
    Complete,
    /// The attempt failed. The job is retried after a delay.
    Retry {
        /// The delay, by the store's clock.
        after: Duration,
        /// The failed attempt.
        last: LastAttempt,
    },
    /// The job is dead.
    Bury {
        /// Why.
        reason: Reason,
        /// The failed attempt.
        last: LastAttempt,
    },
    /// The attempt was not made or does not count. The job is ready again after a delay.
    Release {
        /// The delay; zero: at once.
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
    /// [`MAX_LOST`](crate::limits::MAX_LOST) leases in a row ran out without an outcome.
    Lost,
}

impl Reason {
    /// Its name in the API and the docs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Gone => "gone",
            Self::Lost => "lost",
        }
    }
}

/// The last failed attempt of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastAttempt {
    /// When it was sent, by the store's clock.
    pub at: Timestamp,
    /// The response's status, if there was a response.
    pub status: Option<u16>,
    /// The class of the error, such as `timeout`, if there was no response.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Duration,
}
