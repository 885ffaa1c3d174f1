//! The notifier's configuration.

use std::time::Duration;

use ringback_core::retry::{DEFAULT_TIERS, RetryPolicy};
use ringback_core::store::{Options, settings};
use ringback_service::{Lookup, Setting};

/// One call to the store may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const OWN: &[Setting] = &[
    Setting::new("CONCURRENCY", "512", "Callbacks in flight, 1 to 65536"),
    Setting::new(
        "LANE_CONCURRENCY",
        "64",
        "Of them, at most so many per lane (topic and destination); less while few are free",
    ),
    Setting::new(
        "RETRY",
        DEFAULT_TIERS,
        "Waits before each retry of jobs that bring no policy: 1 to 50, each 10ms to 30d",
    ),
    Setting::new("LEASE_MARGIN", "10s", "How much longer than an attempt's timeout a lease is, 100ms to 10m"),
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
    pub const SETTINGS: &[&[Setting]] = &[STORE, OWN];

    /// Reads the settings; mistakes are collected in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let mut config = Self {
            store: lookup.group(|get| Options::parse(get, PATIENCE), || Options::default_with(PATIENCE)),
            concurrency: lookup.number_in("CONCURRENCY", 1..=65_536),
            lane_concurrency: lookup.number_in("LANE_CONCURRENCY", 1..=65_536),
            retry: lookup.parse("RETRY"),
            lease_margin: lookup
                .duration_in("LEASE_MARGIN", Duration::from_millis(100)..=Duration::from_secs(600)),
        };
        // More than all there are would mean the same.
        config.lane_concurrency = config.lane_concurrency.min(config.concurrency);
        config
    }
}
