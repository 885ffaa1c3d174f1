//! The outcome of one delivery, with which its lease is settled: by a notifier, or by a consumer with the
//! receipt of a pull job.

use std::time::Duration;

use rand::Rng;

use crate::clock::Timestamp;
use crate::retry::RetryPolicy;

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
}

impl Outcome {
    /// The outcome of one more failure: a retry after the next delay of the policy; or `exhausted`, after the last
    /// delay of the policy or if the retry would come too late.
    pub fn failed(policy: &RetryPolicy, failure: &Failure, last: LastAttempt, rng: &mut impl Rng) -> Self {
        let &Failure { before, retry_after, longest_delay } = failure;
        let after = policy.delay(before.saturating_add(1), retry_after, rng);
        match after.filter(|after| longest_delay.is_none_or(|longest| *after <= longest)) {
            Some(after) => Self::Retry { after, last },
            None => Self::Bury { reason: Reason::Exhausted, last },
        }
    }

    /// The outcome of a job that expires: what would be due again later buries it.
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

/// What decides on the retry of a failed attempt, beside the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// How many attempts failed before.
    pub before: u32,
    /// The receiver's Retry-After: the retry comes no sooner.
    pub retry_after: Option<Duration>,
    /// The longest delay that the installation allows this job; `None` for no limit.
    pub longest_delay: Option<Duration>,
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
    /// How long it took.
    pub duration: Duration,
}

impl LastAttempt {
    /// A consumer's attempt. The store fills in when the lease began, and how long ago that was.
    pub fn by_consumer(error: Option<String>) -> Self {
        Self { error, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    #[test]
    fn a_failure_is_retried_by_the_policy_and_ends_after_the_last_tier() {
        let mut rng = StdRng::seed_from_u64(1);
        let after = Duration::from_secs(9);
        let policy = RetryPolicy::new(vec![after], crate::retry::Max::Tiers, 0.0).unwrap();
        let last = LastAttempt::default();
        let mut failed = |before| {
            let failure = Failure { before, ..Failure::default() };
            Outcome::failed(&policy, &failure, last.clone(), &mut rng)
        };
        assert_eq!(failed(0), Outcome::Retry { after, last: last.clone() });
        assert_eq!(failed(1), Outcome::Bury { reason: Reason::Exhausted, last: last.clone() });
    }

    #[test]
    fn a_retry_that_would_come_too_late_is_none_also_for_a_policy_without_end() {
        let mut rng = StdRng::seed_from_u64(1);
        let secs = Duration::from_secs;
        let policy = RetryPolicy::new(vec![secs(9)], crate::retry::Max::Unlimited, 0.0).unwrap();
        let last = LastAttempt::default();
        let mut is_retried = |longest: Option<u64>, retry_after: Option<u64>| {
            let (longest_delay, retry_after) = (longest.map(secs), retry_after.map(secs));
            let failure = Failure { before: 70_000, retry_after, longest_delay };
            let outcome = Outcome::failed(&policy, &failure, last.clone(), &mut rng);
            let dead = Outcome::Bury { reason: Reason::Exhausted, last: last.clone() };
            assert!(outcome == dead || matches!(outcome, Outcome::Retry { .. }), "{outcome:?}");
            outcome != dead
        };
        assert!(is_retried(None, None) && is_retried(None, Some(60)));
        assert!(is_retried(Some(9), None) && !is_retried(Some(8), None) && !is_retried(Some(0), None));
        assert!(is_retried(Some(60), Some(60)) && !is_retried(Some(59), Some(60)), "a Retry-After counts");
    }
}
