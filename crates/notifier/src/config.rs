//! The notifier's configuration.

use std::time::Duration;

use ringback_core::contract::Options;
use ringback_core::retry::{self, RetryPolicy};
use ringback_service::settings::drain_allows;
use ringback_service::{Lookup, Setting, files};
use ringback_store::settings;

/// One call to the store may take this long, and half of the margin at most: so a lease
/// whose reserve was slow to answer is still settled in time.
const PATIENCE: Duration = Duration::from_secs(3);
/// Of this half is as little as a call to a store on another machine may be given.
const LEAST_MARGIN: Duration = Duration::from_millis(200);
const MOST_MARGIN: Duration = Duration::from_secs(600);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTING);
const OWN: &[Setting] = &[
    Setting::new(
        "CONCURRENCY",
        "512",
        "Callbacks in flight, 1 to 65536; each may need an open file (ulimit -Hn), 64 more are kept free (320 in ringback up)",
    ),
    Setting::new(
        "LANE_CONCURRENCY",
        "64",
        "Of them, at most so many per lane (topic and origin); less while few are free",
    ),
    Setting::new(
        "LEASE_MARGIN",
        "10s",
        "How much longer than an attempt's timeout a lease is, 200ms to 10m; a call to the store may take half of it, 3s at most, and DRAIN no less",
    ),
    Setting::new("ADMIN_LISTEN", "127.0.0.1:7414", "Where /healthz, /readyz and /metrics are served"),
];

/// What a notifier is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The store.
    pub store: Options,
    /// Callbacks in flight (`CONCURRENCY`, 512).
    pub concurrency: usize,
    /// Callbacks in flight per lane (`LANE_CONCURRENCY`, 64).
    pub lane_concurrency: usize,
    /// The policy of jobs that bring none (`RETRY`).
    pub retry: RetryPolicy,
    /// What a lease is longer than an attempt may take (`LEASE_MARGIN`, 10s).
    pub lease_margin: Duration,
}

impl Config {
    /// All settings of a notifier.
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN];

    /// Reads the settings; mistakes are collected in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let lease_margin = lookup.duration_in("LEASE_MARGIN", LEAST_MARGIN..=MOST_MARGIN);
        let patience = PATIENCE.min(lease_margin / 2);
        drain_allows(lookup, patience, "LEASE_MARGIN", "giving jobs back");
        let concurrency = lookup.number_in("CONCURRENCY", 1..=65_536);
        if let Err(most) = files::fits(concurrency as u64, files::most()) {
            lookup.reject(
                "CONCURRENCY",
                format!(
                    "does not fit the limit of open files, of which {} are kept free: at most {most}, or raise the hard limit (ulimit -Hn)",
                    files::RESERVE
                ),
            );
        }
        Self {
            store: lookup.group(|get| settings::parse(get, patience), || settings::defaults(patience)),
            concurrency,
            // More than all there are would mean the same.
            lane_concurrency: lookup.number_in("LANE_CONCURRENCY", 1..=65_536).min(concurrency),
            retry: lookup.parse("RETRY"),
            lease_margin,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Config, Vec<String>) {
        let env = env.iter().map(|(name, value)| (format!("RINGBACK_{name}"), (*value).to_owned())).collect();
        let groups = [STORE, RETRY, OWN, ringback_service::settings::SETTINGS];
        let mut lookup = Lookup::new(&groups, BTreeMap::new(), env);
        let config = Config::load(&mut lookup);
        (config, lookup.mistakes().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_call_may_take_half_of_the_margin_and_three_seconds_at_most() {
        for (margin, patience) in [("200ms", 100), ("1s", 500), ("6s", 3_000), ("10m", 3_000)] {
            let (config, mistakes) = load(&[("LEASE_MARGIN", margin)]);
            assert_eq!(mistakes, [""; 0]);
            assert_eq!(config.store.call_timeout, Duration::from_millis(patience), "{margin}");
        }
    }

    #[test]
    fn a_drain_too_short_to_give_jobs_back_is_refused_and_both_settings_are_named() {
        let (_, mistakes) = load(&[("DRAIN", "2s")]);
        let [mistake] = mistakes.as_slice() else { panic!("{mistakes:?}") };
        for word in ["RINGBACK_DRAIN", "2s", "RINGBACK_LEASE_MARGIN", "at least 3s"] {
            assert!(mistake.contains(word), "no {word} in {mistake}");
        }
        assert_eq!(load(&[("DRAIN", "2s"), ("LEASE_MARGIN", "4s")]).1, [""; 0]);
    }

    #[test]
    fn a_lane_may_have_no_more_than_all_there_are() {
        assert_eq!(load(&[("CONCURRENCY", "7")]).0.lane_concurrency, 7);
    }
}
