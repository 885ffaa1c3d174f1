//! The outcome of one attempt, with which a notifier, or a consumer by its receipt, settles the lease. Also the reasons
//! of dead jobs, and what is kept of the last failed attempt.

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
        last: LastAttempt,
    },
    /// The job is dead.
    Bury { reason: Reason, last: LastAttempt },
    /// The attempt was not made or does not count. The job is ready again after a delay.
    Release {
        /// The delay; zero: at once.
        after: Duration,
    },
    /// The attempt was not begun. The job is ready again at once, and the next attempt has the same number.
    Return,
}

impl Outcome {
    /// Makes a retry or a release that would be due when the job has expired, or later, a bury with
    /// [`Reason::Expired`]. Other outcomes stay. `last` gives the attempt for a release that becomes a bury.
    #[must_use]
    pub fn in_time(
        self,
        expires: Option<Timestamp>,
        now: Timestamp,
        last: impl FnOnce() -> LastAttempt,
    ) -> Self {
        let is_late = |after: &Duration| expires.is_some_and(|expires| now.plus(*after) >= expires);
        let bury = |last| Self::Bury { reason: Reason::Expired, last };
        match self {
            Self::Retry { after, last } if is_late(&after) => bury(last),
            Self::Release { after } if is_late(&after) => bury(last()),
            outcome => outcome,
        }
    }
}

/// Why a job is dead.
#[derive(Clone, Debug, PartialEq, Eq, strum::AsRefStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// Its retries are used up, or the next one would come later than the installation allows.
    Exhausted,
    /// The receiver answered 410 Gone (RFC 9110, section 15.5.11).
    Gone,
    /// The receiver answered with a status that the policy of the topic says is final.
    Rejected,
    /// It was to be attempted, or retried, after the time at which it expires.
    Expired,
    /// The address guard forbids its destination.
    ForbiddenAddress,
    /// [`MAX_LOST`](crate::limits::MAX_LOST) leases in a row ran out without an outcome.
    Lost,
    /// Its consumer's reason; at most [`MAX_REASON`](crate::limits::MAX_REASON) bytes are kept.
    #[strum(transparent)]
    Custom(String),
}

/// The last failed attempt of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastAttempt {
    /// When it was sent, by the store's clock.
    pub at: Timestamp,
    /// The response's status, if there was a response.
    pub status: Option<u16>,
    /// The class of the error, such as `timeout`, if there was no response; or the text that a consumer gave. At
    /// most [`MAX_ERROR`](crate::limits::MAX_ERROR) bytes are kept.
    pub error: Option<String>,
    pub duration: Duration,
}

impl LastAttempt {
    /// A consumer's attempt. The store fills in when the lease began, and how long ago that was.
    pub fn by_consumer(error: Option<String>) -> Self {
        Self { error, ..Self::default() }
    }
}
