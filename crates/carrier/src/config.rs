//! The configuration of a carrier: its settings, and the checks that its timeouts fit each other.

use std::time::Duration;

use ringback_core::limits::MAX_LOCK_TTL;
use ringback_core::retry::{self, InstallationRetry};
use ringback_core::store_types::Options;
use ringback_service::settings::check_drain;
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

/// The longest timeout of a store call. It is also at most a third of the lock TTL, so that a heartbeat
/// without an answer is repeated while the shards are still held.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The shortest lock TTL. A third of it is the shortest reasonable timeout of a call over a network.
const MIN_LOCK_TTL: Duration = Duration::from_millis(300);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTINGS);
const OWN: &[Setting] = &[
    Setting::new(
        "LOCK_TTL",
        "5s",
        "How long a carrier keeps its shards without a heartbeat, 300ms to 5m; it sends three within this time. A call to the store times out after a third of it, at most 3s, and --shutdown-timeout must be at least that",
    ),
    Setting::new(
        "ADMIN_LISTEN",
        "127.0.0.1:7413",
        "Where /healthz, /readyz and /metrics are served, IP address and port; two processes on one machine need two ports",
    ),
];

/// The configuration of a carrier.
#[derive(Clone, Debug)]
pub struct Config {
    /// How to reach the store.
    pub store: Options,
    /// How long a carrier keeps its shards without a heartbeat (`LOCK_TTL`, 5s).
    pub lock_ttl: Duration,
    /// The retry policy of pull jobs whose lease expires, if neither they nor their topic have one
    /// (`RETRY`), and the limits of all policies (`RETRY_MIN_DELAY`, `RETRY_MAX_FAILURES`, `RETRY_MAX_AGE`).
    pub retry: InstallationRetry,
}

impl Config {
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN];

    /// Reads the settings. Mistakes are collected in `lookup`, and defaults stand in for wrong values.
    pub fn load(lookup: &mut Lookup) -> Self {
        let lock_ttl = lookup.duration_in("LOCK_TTL", MIN_LOCK_TTL..=MAX_LOCK_TTL);
        let call_timeout = MAX_CALL_TIMEOUT.min(lock_ttl / 3);
        check_drain(lookup, call_timeout, "LOCK_TTL", "releasing the shards");
        let store =
            lookup.group(|get| settings::parse(get, call_timeout), || settings::defaults(call_timeout));
        Self {
            store,
            lock_ttl,
            retry: lookup.group(|get| InstallationRetry::parse(get), InstallationRetry::none),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_service::settings::load_from;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Config, Vec<String>) {
        load_from(Config::SETTINGS, env, Config::load)
    }

    #[test]
    fn the_call_timeout_is_a_third_of_the_lock_ttl_and_at_most_three_seconds() {
        for (lock, timeout) in [("300ms", 100), ("6s", 2_000), ("9s", 3_000), ("5m", 3_000)] {
            let (config, mistakes) = load(&[("LOCK_TTL", lock)]);
            assert_eq!(mistakes, [""; 0]);
            assert_eq!(config.store.call_timeout, Duration::from_millis(timeout), "{lock}");
        }
    }

    #[test]
    fn a_drain_too_short_to_release_the_shards_is_rejected_and_both_settings_are_named() {
        let (_, mistakes) = load(&[("LOCK_TTL", "6s"), ("SHUTDOWN_TIMEOUT", "1999ms")]);
        let [mistake] = mistakes.as_slice() else { panic!("{mistakes:?}") };
        for word in ["RINGBACK_SHUTDOWN_TIMEOUT", "1999ms", "RINGBACK_LOCK_TTL", "at least 2s"] {
            assert!(mistake.contains(word), "no {word} in {mistake}");
        }
        assert_eq!(load(&[("LOCK_TTL", "6s"), ("SHUTDOWN_TIMEOUT", "2s")]).1, [""; 0]);
    }

    #[test]
    fn a_lock_ttl_too_short_for_a_call_is_rejected_with_all_other_mistakes() {
        let (_, mistakes) = load(&[("LOCK_TTL", "299ms"), ("SHUTDOWN_TIMEOUT", "0s"), ("SHARDS", "0")]);
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    }
}
