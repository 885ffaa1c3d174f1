//! Retries of pull jobs: the outcome of a failed attempt by the retry policies of job, topic and installation.

use rand::Rng;
use ringback_core::clock::Timestamp;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::retry::InstallationRetry;
use ringback_core::store_types::RetryContext;

use crate::shared_config::{ConfigUnknown, SharedConfig};

/// The retry policies of pull jobs.
#[derive(Clone, Debug)]
pub struct Retries {
    pub policies: SharedConfig,
    /// The policy if neither the job nor its topic has one, and the limits of all.
    pub installation: InstallationRetry,
}

impl Retries {
    /// The outcome of a pull job that has failed once more, at `now`: a retry by its own policy, else its topic's, else
    /// the default, or a bury if no retry is left or it would be too late. Fails before the policies are known.
    pub fn failed(
        &self,
        tries: &RetryContext,
        error: Option<String>,
        now: Timestamp,
        rng: &mut impl Rng,
    ) -> Result<Outcome, ConfigUnknown> {
        let topic = tries.topic.as_ref().map_or(Ok(None), |topic| self.policies.get(topic))?;
        let of_topic = topic.as_ref().and_then(|policy| policy.retry.as_ref());
        let policy = self.installation.policy(tries.retry.as_ref(), of_topic);
        let after = policy.delay(tries.failures.saturating_add(1), None, rng);
        let last = LastAttempt::by_consumer(error);
        let outcome = match after.filter(|after| self.installation.allows(*after, tries.first_due, now)) {
            Some(after) => Outcome::Retry { after, last },
            None => Outcome::Bury { reason: Reason::Exhausted, last },
        };
        Ok(outcome.in_time(tries.expires, now, || LastAttempt::by_consumer(None)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use ringback_core::topic_policy::{Policies, Policy};
    use ringback_wire::parse_policy;

    use super::*;

    fn policy(seconds: u64) -> Policy {
        parse_policy(format!(r#"{{"retry":{{"delays":[{seconds}],"jitter":0}}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn a_failure_goes_by_the_job_then_by_its_topic_then_by_the_default() {
        let installation = InstallationRetry::unlimited(policy(3).retry.unwrap());
        let mut retries = Retries { policies: SharedConfig::default(), installation };
        let mut rng = StdRng::seed_from_u64(1);
        let mut after = |retries: &Retries, retry, topic: Option<&str>| {
            let topic = topic.map(|topic| topic.parse().unwrap());
            let tries = RetryContext { retry, topic, ..RetryContext::default() };
            match retries.failed(&tries, None, Timestamp::default(), &mut rng) {
                Ok(Outcome::Retry { after, .. }) => Ok(after.as_secs()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        assert_eq!(after(&retries, None, Some("t")), Err(ConfigUnknown));
        let policies = Policies::from([
            ("t".parse().unwrap(), policy(2).into()),
            ("u".parse().unwrap(), Arc::default()),
        ]);
        retries.policies = SharedConfig::of(policies);
        assert_eq!(after(&retries, policy(1).retry, Some("t")), Ok(1));
        assert_eq!(after(&retries, None, Some("t")), Ok(2));
        assert_eq!(after(&retries, None, Some("u")), Ok(3), "a policy without retry");
        assert_eq!((after(&retries, None, Some("none")), after(&retries, None, None)), (Ok(3), Ok(3)));
    }

    #[test]
    fn a_job_that_would_be_retried_after_it_expires_is_dead() {
        let installation = InstallationRetry::unlimited(policy(3).retry.unwrap());
        let retries = Retries { policies: SharedConfig::default(), installation };
        let mut rng = StdRng::seed_from_u64(1);
        let expires = Some(Timestamp::from_millis(10_000));
        let tries = RetryContext { expires, ..RetryContext::default() };
        let mut outcome = |now| retries.failed(&tries, None, Timestamp::from_millis(now), &mut rng).unwrap();
        assert!(matches!(outcome(6_999), Outcome::Retry { .. }));
        assert!(matches!(outcome(7_000), Outcome::Bury { reason: Reason::Expired, .. }));
    }

    #[test]
    fn a_job_that_would_be_retried_too_long_after_it_was_first_due_is_dead() {
        let installation = InstallationRetry {
            max_age: Some(std::time::Duration::from_secs(10)),
            ..InstallationRetry::unlimited(policy(3).retry.unwrap())
        };
        let retries = Retries { policies: SharedConfig::default(), installation };
        let mut rng = StdRng::seed_from_u64(1);
        let tries = RetryContext { first_due: Timestamp::from_millis(50_000), ..RetryContext::default() };
        let mut is_retried = |now| match retries.failed(&tries, None, Timestamp::from_millis(now), &mut rng) {
            Ok(Outcome::Retry { .. }) => true,
            Ok(Outcome::Bury { reason: Reason::Exhausted, .. }) => false,
            other => panic!("{other:?}"),
        };
        assert!(is_retried(49_000) && is_retried(57_000) && !is_retried(57_001));
    }
}
