//! Retry policies: when a failed job is retried. A pure function of the policy, the number of failures, the receiver's
//! Retry-After, and a random number. `installation` has the default and the limits of an installation.

mod installation;

use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, RngExt};

pub use self::installation::{InstallationRetry, SETTINGS};
use crate::duration::{DurationError, parse_duration};

/// The most delays of a policy, which are called its tiers.
pub const MAX_TIERS: usize = 50;
pub const MIN_TIER: Duration = Duration::from_millis(10);
pub const MAX_TIER: Duration = Duration::from_secs(30 * 86_400);
/// How much longer each delay that grows is than the one before, if the policy does not say.
pub const DEFAULT_FACTOR: f64 = 2.0;
/// The largest factor of delays that grow.
pub const MAX_FACTOR: f64 = 100.0;
/// The longest delay that a receiver can ask for with Retry-After.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(86_400);
/// The share of a tier that is added at random if the policy does not say.
pub const DEFAULT_JITTER: f32 = 0.1;
pub const DEFAULT_TIERS: &str = "15s 3m 10m 30m 30m 1h 2h 6h 15h";
/// The example schedule of the Standard Webhooks specification.
pub const STANDARD_WEBHOOKS_TIERS: &str = "5s 5m 30m 2h 5h 10h 14h 20h 24h";

/// After how many failures a job is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Max {
    /// One more than there are tiers, so that each tier is waited for once.
    Tiers,
    /// This many. The last tier repeats if there are fewer tiers.
    Failures(u32),
    /// Never. The last tier repeats.
    Unlimited,
}

/// A retry policy: the delays after each failure.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RetryPolicy {
    delays: Vec<Duration>,
    max: Max,
    jitter: f32,
}

/// Why a policy was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There are no tiers, or too many.
    #[error("{0} delays; allowed are 1 to {MAX_TIERS}")]
    Count(usize),
    /// A tier is too short or too long.
    #[error("a delay of {0:?}; allowed are 10 ms to 30 days")]
    Tier(Duration),
    #[error("a jitter of {0}; allowed are 0 to 1")]
    Jitter(String),
    /// A tier cannot be read.
    #[error("{tier:?} is not a duration: {why}")]
    Unreadable { tier: String, why: DurationError },
}

impl RetryPolicy {
    /// A policy of 1 to [`MAX_TIERS`] delays from [`MIN_TIER`] to [`MAX_TIER`], with a jitter from 0 to 1.
    ///
    /// # Errors
    /// No delays, too many, or a delay or a jitter outside its limits.
    pub fn new(delays: Vec<Duration>, max: Max, jitter: f32) -> Result<Self, PolicyError> {
        if delays.is_empty() || delays.len() > MAX_TIERS {
            return Err(PolicyError::Count(delays.len()));
        }
        if let Some(bad) = delays.iter().find(|d| !(MIN_TIER..=MAX_TIER).contains(d)) {
            return Err(PolicyError::Tier(*bad));
        }
        if !(0.0..=1.0).contains(&jitter) {
            return Err(PolicyError::Jitter(jitter.to_string()));
        }
        Ok(Self { delays, max, jitter })
    }

    /// The policy without retries: the job is dead after its first failure.
    pub fn none() -> Self {
        Self { delays: Vec::new(), max: Max::Failures(1), jitter: 0.0 }
    }

    /// A named policy: `default`, `standard-webhooks` or `none`; `None` for another name.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "default" => DEFAULT_TIERS.parse().ok(),
            "standard-webhooks" => STANDARD_WEBHOOKS_TIERS.parse().ok(),
            "none" => Some(Self::none()),
            _ => None,
        }
    }

    /// Delays that grow: `count` of them, the first is `base`, each is `factor` times as long as the one before, none
    /// is longer than `max`. The job is dead after one more failure than there are delays. The jitter is the default.
    ///
    /// # Errors
    /// As [`RetryPolicy::new`].
    pub fn growing(base: Duration, factor: f64, max: Duration, count: usize) -> Result<Self, PolicyError> {
        if count > MAX_TIERS {
            return Err(PolicyError::Count(count));
        }
        // To the millisecond, as stores keep delays.
        let millis = |delay: f64| Duration::from_millis((delay * 1_000.0).round() as u64);
        let grown = |n: usize| base.as_secs_f64() * factor.powi(i32::try_from(n).unwrap_or(i32::MAX));
        let delays = (0..count).map(|n| millis(grown(n).min(max.as_secs_f64())));
        Self::new(delays.collect(), Max::Tiers, DEFAULT_JITTER)
    }

    /// This policy with another maximum and jitter. A policy without delays stays as it is.
    ///
    /// # Errors
    /// If the jitter is not from 0 to 1.
    pub fn with(self, max: Max, jitter: f32) -> Result<Self, PolicyError> {
        if self.delays.is_empty() { Ok(self) } else { Self::new(self.delays, max, jitter) }
    }

    /// The tiers; empty without retries.
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// After how many failures a job is dead.
    pub const fn max(&self) -> Max {
        self.max
    }

    /// The share of a tier that is added at random, 0 to 1.
    pub const fn jitter(&self) -> f32 {
        self.jitter
    }

    /// The delay after a failure; `None` if the job is dead now.
    ///
    /// `failures` includes this failure, so it is at least 1. It chooses the tier. Jitter only adds to the
    /// delay. A `retry_after` counts up to [`MAX_RETRY_AFTER`] and never shortens the delay.
    pub fn delay(
        &self,
        failures: u32,
        retry_after: Option<Duration>,
        rng: &mut impl Rng,
    ) -> Option<Duration> {
        let tiers = u32::try_from(self.delays.len()).unwrap_or(u32::MAX);
        let last = match self.max {
            Max::Tiers => failures > tiers,
            Max::Failures(max) => failures >= max,
            Max::Unlimited => false,
        };
        if last {
            return None;
        }
        let index = failures.clamp(1, tiers.max(1)) - 1;
        let tier = *self.delays.get(index as usize)?;
        let wait = tier.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER));
        Some(wait + tier.mul_f32(self.jitter * rng.random::<f32>()))
    }
}

impl FromStr for RetryPolicy {
    type Err = PolicyError;

    /// Parses tiers separated by spaces or commas, such as `15s 3m 10m`, with [`Max::Tiers`] and [`DEFAULT_JITTER`].
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let parts = text.split([' ', ',']).filter(|p| !p.is_empty());
        let delays = parts.map(|tier| {
            parse_duration(tier).map_err(|why| PolicyError::Unreadable { tier: tier.to_owned(), why })
        });
        Self::new(delays.collect::<Result<_, _>>()?, Max::Tiers, DEFAULT_JITTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn policy(max: Max, jitter: f32) -> RetryPolicy {
        RetryPolicy::new(vec![secs(1), secs(5), secs(30)], max, jitter).unwrap()
    }

    #[test]
    fn each_failure_waits_for_its_tier_and_the_one_after_the_last_is_the_end() {
        let mut rng = StdRng::seed_from_u64(1);
        let waits: Vec<_> = (1..=4).map(|f| policy(Max::Tiers, 0.0).delay(f, None, &mut rng)).collect();
        assert_eq!(waits, [Some(secs(1)), Some(secs(5)), Some(secs(30)), None]);
    }

    #[test]
    fn the_last_tier_repeats_up_to_a_larger_max_and_for_ever_without_one() {
        let mut rng = StdRng::seed_from_u64(1);
        let six = policy(Max::Failures(6), 0.0);
        assert_eq!(six.delay(5, None, &mut rng), Some(secs(30)));
        assert_eq!(six.delay(6, None, &mut rng), None);
        assert_eq!(policy(Max::Failures(2), 0.0).delay(2, None, &mut rng), None);
        assert_eq!(policy(Max::Unlimited, 0.0).delay(u32::MAX, None, &mut rng), Some(secs(30)));
        assert_eq!(RetryPolicy::none().delay(1, None, &mut rng), None);
    }

    #[test]
    fn jitter_only_ever_adds() {
        let mut rng = StdRng::seed_from_u64(7);
        for _ in 0..1000 {
            let wait = policy(Max::Tiers, 0.1).delay(2, None, &mut rng).unwrap();
            assert!((secs(5)..=Duration::from_millis(5500)).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn retry_after_lengthens_a_tier_never_shortens_it_and_is_capped_at_a_day() {
        let mut rng = StdRng::seed_from_u64(1);
        let p = policy(Max::Tiers, 0.0);
        assert_eq!(p.delay(1, Some(secs(20)), &mut rng), Some(secs(20)));
        assert_eq!(p.delay(3, Some(secs(20)), &mut rng), Some(secs(30)));
        assert_eq!(p.delay(1, Some(secs(900_000)), &mut rng), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn the_presets_are_what_they_are_called() {
        let mut rng = StdRng::seed_from_u64(1);
        let default = RetryPolicy::preset("default").unwrap().with(Max::Tiers, 0.0).unwrap();
        let total: Duration = (1..=9).filter_map(|f| default.delay(f, None, &mut rng)).sum();
        assert_eq!(total, secs(15 + 180 + 600 + 1800 + 1800 + 3600 + 7200 + 21_600 + 54_000));
        assert!(RetryPolicy::preset("standard-webhooks").is_some());
        assert!(RetryPolicy::preset("other").is_none());
    }

    #[test]
    fn policies_outside_the_limits_are_refused() {
        assert!(RetryPolicy::new(vec![], Max::Tiers, 0.0).is_err());
        assert!(RetryPolicy::new(vec![secs(1); 51], Max::Tiers, 0.0).is_err());
        assert!(RetryPolicy::new(vec![Duration::from_millis(9)], Max::Tiers, 0.0).is_err());
        assert!(RetryPolicy::new(vec![secs(31 * 86_400)], Max::Tiers, 0.0).is_err());
        assert!(RetryPolicy::new(vec![secs(1)], Max::Tiers, 2.0).is_err());
        assert!(RetryPolicy::new(vec![secs(1)], Max::Tiers, f32::NAN).is_err());
        assert!("15s -3m".parse::<RetryPolicy>().is_err());
    }
}
