//! The carrier's configuration.

use std::time::Duration;

use ringback_core::store::{Options, settings};
use ringback_service::{Lookup, Setting};

/// One call to the store may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const OWN: &[Setting] = &[
    Setting::new("LOCK_TTL", "5s", "How long a carrier that is silent keeps its shards, 100ms to 5m"),
    Setting::new("ADMIN_LISTEN", "127.0.0.1:7413", "Where /healthz, /readyz and /metrics are served"),
];

/// What a carrier is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The store.
    pub store: Options,
    /// How long a carrier that is silent keeps its shards (`LOCK_TTL`, 5s).
    pub lock_ttl: Duration,
}

impl Config {
    /// All settings of a carrier.
    pub const SETTINGS: &[&[Setting]] = &[STORE, OWN];

    /// Reads the settings; mistakes are collected in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        Self {
            store: lookup.group(|get| Options::parse(get, PATIENCE), || Options::default_with(PATIENCE)),
            lock_ttl: lookup.duration_in("LOCK_TTL", Duration::from_millis(100)..=Duration::from_secs(300)),
        }
    }
}
