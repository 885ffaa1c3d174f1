//! The retries of an installation: the policy of jobs that have none, the limits of all policies, and their settings.

use std::borrow::Cow;
use std::time::Duration;

use super::{DEFAULT_TIERS, MAX_TIER, MIN_TIER, Max, RetryPolicy};
use crate::clock::Timestamp;
use crate::duration::parse_duration;

/// The longest `RETRY_MAX_AGE`: a year.
const LONGEST_AGE: Duration = Duration::from_secs(366 * 86_400);

/// The settings: name, default and meaning. They are the same for every process that settles failures.
pub const SETTINGS: [(&str, &str, &str); 4] = [
    (
        "RETRY",
        DEFAULT_TIERS,
        "Waits before each retry of jobs whose policy, and that of their topic, says nothing: 1 to 50, each 10ms to 30d. Read at each failure, also of jobs that already wait. Use the same everywhere",
    ),
    (
        "RETRY_MIN_DELAY",
        "10ms",
        "Shortest wait before a retry, 10ms to 30d, whatever a job or a policy says. Use the same everywhere",
    ),
    (
        "RETRY_MAX_FAILURES",
        "-1",
        "Failures after which a job is dead at the latest, 1 to 4294967295, whatever it or a policy says; -1 for no limit. Use the same everywhere",
    ),
    (
        "RETRY_MAX_AGE",
        "0",
        "How long after it was first due a job is still retried, 10ms to 366d, whatever it or a policy says; 0 for no limit. A job whose next retry would come later is dead. Use the same everywhere",
    ),
];

/// The retries of an installation.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallationRetry {
    /// The policy where neither the job nor its topic has one.
    pub default: RetryPolicy,
    /// No retry comes sooner after a failure.
    pub min_delay: Duration,
    /// No job has more failures; `None` for no limit.
    pub max_failures: Option<u32>,
    /// No retry comes later than this after the job was first due; `None` for no limit.
    pub max_age: Option<Duration>,
}

impl InstallationRetry {
    /// `default` for jobs that have no policy, and no limits.
    pub const fn unlimited(default: RetryPolicy) -> Self {
        Self { default, min_delay: MIN_TIER, max_failures: None, max_age: None }
    }

    /// No retries for jobs that have no policy, and no limits.
    pub fn none() -> Self {
        Self::unlimited(RetryPolicy::none())
    }

    /// Parses the values of [`SETTINGS`]. `get` returns the value of a name.
    ///
    /// # Errors
    /// Each wrong value by its name, and what is allowed.
    pub fn parse(mut get: impl FnMut(&'static str) -> String) -> Result<Self, Vec<(&'static str, String)>> {
        let [(default, ..), (min_delay, ..), (max_failures, ..), (max_age, ..)] = SETTINGS;
        let values = (
            get(default).parse::<RetryPolicy>().map_err(|why| (default, why.to_string())),
            parse_min_delay(&get(min_delay))
                .ok_or((min_delay, "must be a duration from 10ms to 30d".to_owned())),
            parse_max_failures(&get(max_failures))
                .ok_or((max_failures, format!("must be a whole number from 1 to {}, or -1", u32::MAX))),
            parse_max_age(&get(max_age))
                .ok_or((max_age, "must be a duration from 10ms to 366d, or 0".to_owned())),
        );
        match values {
            (Ok(default), Ok(min_delay), Ok(max_failures), Ok(max_age)) => {
                Ok(Self { default, min_delay, max_failures, max_age })
            }
            (default, min_delay, max_failures, max_age) => {
                let wrong = [default.err(), min_delay.err(), max_failures.err(), max_age.err()];
                Err(wrong.into_iter().flatten().collect())
            }
        }
    }

    /// Whether a job that was first due at `first_due` may be retried `after` a wait from `now`: not beyond `max_age`.
    pub fn allows(&self, after: Duration, first_due: Timestamp, now: Timestamp) -> bool {
        self.max_age.is_none_or(|age| after <= age.saturating_sub(now.since(first_due)))
    }

    /// The policy of a job (its own, else its topic's, else the default), delays and maximum brought within the limits.
    pub fn policy<'a>(
        &'a self,
        own: Option<&'a RetryPolicy>,
        of_topic: Option<&'a RetryPolicy>,
    ) -> Cow<'a, RetryPolicy> {
        let policy = own.or(of_topic).unwrap_or(&self.default);
        let is_too_short = policy.delays.iter().any(|delay| *delay < self.min_delay);
        let max = self.max_failures.map_or(policy.max, |limit| lower(policy, limit));
        if !is_too_short && max == policy.max {
            return Cow::Borrowed(policy);
        }
        let delays = policy.delays.iter().map(|delay| *delay.max(&self.min_delay)).collect();
        Cow::Owned(RetryPolicy { delays, max, jitter: policy.jitter })
    }
}

/// The maximum of a policy, lowered to `limit` failures if the policy allows more.
fn lower(policy: &RetryPolicy, limit: u32) -> Max {
    let failures = match policy.max {
        Max::Tiers => u32::try_from(policy.delays.len()).unwrap_or(u32::MAX).saturating_add(1),
        Max::Failures(failures) => failures,
        Max::Unlimited => u32::MAX,
    };
    if limit < failures { Max::Failures(limit) } else { policy.max }
}

fn parse_min_delay(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|delay| (MIN_TIER..=MAX_TIER).contains(delay))
}

/// Parses the setting: `None` for a wrong value, `Some(None)` for no limit.
fn parse_max_failures(text: &str) -> Option<Option<u32>> {
    if text == "-1" {
        return Some(None);
    }
    text.parse().ok().filter(|max| *max > 0).map(Some)
}

/// Parses the setting: `None` for a wrong value, `Some(None)` for no limit.
fn parse_max_age(text: &str) -> Option<Option<Duration>> {
    let age = if text == "0" { Duration::ZERO } else { parse_duration(text).ok()? };
    if age.is_zero() {
        return Some(None);
    }
    Some(age).filter(|age| (MIN_TIER..=LONGEST_AGE).contains(age)).map(Some)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn policy(seconds: &[u64], max: Max) -> RetryPolicy {
        RetryPolicy::new(seconds.iter().copied().map(secs).collect(), max, 0.0).unwrap()
    }

    fn limited(min_delay: u64, max_failures: Option<u32>) -> InstallationRetry {
        let default = policy(&[1], Max::Unlimited);
        InstallationRetry {
            min_delay: secs(min_delay),
            max_failures,
            ..InstallationRetry::unlimited(default)
        }
    }

    #[test]
    fn the_own_policy_counts_then_that_of_the_topic_then_the_default() {
        let (own, topic) = (policy(&[2], Max::Tiers), policy(&[3], Max::Tiers));
        let retry = InstallationRetry::unlimited(policy(&[1], Max::Tiers));
        assert_eq!(*retry.policy(Some(&own), Some(&topic)), own);
        assert_eq!(*retry.policy(None, Some(&topic)), topic);
        assert_eq!(*retry.policy(None, None), retry.default);
        assert!(matches!(retry.policy(Some(&own), None), Cow::Borrowed(_)), "nothing is copied");
    }

    #[test]
    fn no_retry_comes_sooner_than_the_installation_allows() {
        let retry = limited(5, None);
        let own = policy(&[1, 5, 9], Max::Tiers);
        assert_eq!(*retry.policy(Some(&own), None), policy(&[5, 5, 9], Max::Tiers));
        assert_eq!(*retry.policy(None, Some(&own)), policy(&[5, 5, 9], Max::Tiers));
        assert_eq!(*retry.policy(None, None), policy(&[5], Max::Unlimited));
        assert_eq!(*retry.policy(Some(&RetryPolicy::none()), None), RetryPolicy::none());
    }

    #[test]
    fn no_job_fails_more_often_than_the_installation_allows() {
        for (max, limit, expected) in [
            (Max::Unlimited, 7, Max::Failures(7)),
            (Max::Failures(9), 7, Max::Failures(7)),
            (Max::Failures(6), 7, Max::Failures(6)),
            (Max::Tiers, 7, Max::Tiers),
            (Max::Tiers, 4, Max::Tiers),
            (Max::Tiers, 3, Max::Failures(3)),
        ] {
            let (own, retry) = (policy(&[2, 2, 2], max), limited(1, Some(limit)));
            let policy = retry.policy(Some(&own), None);
            assert_eq!(policy.max(), expected, "{max:?} below {limit}");
            let mut rng = StdRng::seed_from_u64(1);
            let retries =
                (1..20).filter(|failures| policy.delay(*failures, None, &mut rng).is_some()).count();
            assert!(retries < limit as usize, "{max:?} below {limit}: {retries}");
        }
    }

    #[test]
    fn a_retry_comes_no_later_than_the_age_allows() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        let limited = InstallationRetry { max_age: Some(secs(10)), ..limited(1, None) };
        for (now, longest) in [(53, 7), (60, 0), (99, 0), (40, 10)] {
            let allows = |after| limited.allows(after, at(50), at(now));
            assert!(allows(secs(longest)) && !allows(secs(longest) + Duration::from_millis(1)), "{now}");
        }
        assert!(InstallationRetry::none().allows(secs(u64::from(u32::MAX)), at(50), at(99)));
    }

    #[test]
    fn a_retry_after_counts_against_the_age_also_for_a_policy_without_end() {
        let mut rng = StdRng::seed_from_u64(1);
        let retry = InstallationRetry { max_age: Some(secs(60)), ..limited(1, None) };
        let own = policy(&[9], Max::Unlimited);
        for (retry_after, is_retried) in [(None, true), (Some(60), true), (Some(61), false)] {
            let after = retry.policy(Some(&own), None).delay(70_000, retry_after.map(secs), &mut rng);
            let after = after.expect("a policy without end");
            assert_eq!(retry.allows(after, Timestamp::default(), Timestamp::default()), is_retried);
        }
    }

    #[test]
    fn each_wrong_setting_is_named() {
        let parse = |values: [&'static str; 4]| {
            InstallationRetry::parse(|name| {
                let at = SETTINGS.iter().position(|(known, ..)| *known == name).unwrap();
                values[at].to_owned()
            })
        };
        assert_eq!(
            parse(SETTINGS.map(|(_, default, _)| default)),
            Ok(InstallationRetry::unlimited(RetryPolicy::preset("default").unwrap()))
        );
        assert_eq!(parse(["1s", "2s", "9", "0"]).unwrap().max_failures, Some(9));
        let max_age = |text| parse(["1s", "2s", "9", text]).unwrap().max_age;
        assert_eq!(["0", "0s", "2d"].map(max_age), [None, None, Some(secs(2 * 86_400))]);
        let wrong = |values| parse(values).unwrap_err().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(wrong(["never", "9ms", "0", "9ms"]), SETTINGS.map(|(name, ..)| name));
        for (delay, failures) in [("31d", "9"), ("soon", "9"), ("1s", "-2"), ("1s", "4294967296"), ("1s", "")]
        {
            assert_eq!(wrong(["1s", delay, failures, "0"]).len(), 1, "{delay} {failures}");
        }
        for age in ["", "-1", "1", "367d", "9ms", "-1s", "1 month"] {
            assert_eq!(wrong(["1s", "1s", "9", age]), ["RETRY_MAX_AGE"], "{age}");
        }
    }
}
