//! The carrier's configuration, and how its times must fit each other.

use std::time::Duration;

use ringback_core::contract::Options;
use ringback_core::retry::{self, RetryPolicy};
use ringback_service::settings::drain_allows;
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

/// One call to the store may take this long, and a third of the lock's time at most: so a
/// heartbeat that gets no answer is sent again while the shards are still held.
const PATIENCE: Duration = Duration::from_secs(3);
/// Of this a third is as little as a call to a store on another machine may be given.
const SHORTEST_LOCK: Duration = Duration::from_millis(300);
const LONGEST_LOCK: Duration = Duration::from_secs(300);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTING);
const OWN: &[Setting] = &[
    Setting::new(
        "LOCK_TTL",
        "5s",
        "How long a carrier that is silent keeps its shards, 300ms to 5m; a call to the store may take a third of it, 3s at most, and DRAIN no less",
    ),
    Setting::new("ADMIN_LISTEN", "127.0.0.1:7413", "Where /healthz, /readyz and /metrics are served"),
];

/// What a carrier is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The store.
    pub store: Options,
    /// How long a carrier that is silent keeps its shards (`LOCK_TTL`, 5s).
    pub lock_ttl: Duration,
    /// The policy of jobs for pull that bring none, when their lease runs out (`RETRY`).
    pub retry: RetryPolicy,
}

impl Config {
    /// All settings of a carrier.
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN];

    /// Reads the settings; mistakes are collected in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let lock_ttl = lookup.duration_in("LOCK_TTL", SHORTEST_LOCK..=LONGEST_LOCK);
        let patience = PATIENCE.min(lock_ttl / 3);
        drain_allows(lookup, patience, "LOCK_TTL", "the farewell");
        let store = lookup.group(|get| settings::parse(get, patience), || settings::defaults(patience));
        Self { store, lock_ttl, retry: lookup.parse("RETRY") }
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
    fn a_call_may_take_a_third_of_the_lock_and_three_seconds_at_most() {
        for (lock, patience) in [("300ms", 100), ("6s", 2_000), ("9s", 3_000), ("5m", 3_000)] {
            let (config, mistakes) = load(&[("LOCK_TTL", lock)]);
            assert_eq!(mistakes, [""; 0]);
            assert_eq!(config.store.call_timeout, Duration::from_millis(patience), "{lock}");
        }
    }

    #[test]
    fn a_drain_too_short_for_a_farewell_is_refused_and_both_settings_are_named() {
        let (_, mistakes) = load(&[("LOCK_TTL", "6s"), ("DRAIN", "1999ms")]);
        let [mistake] = mistakes.as_slice() else { panic!("{mistakes:?}") };
        for word in ["RINGBACK_DRAIN", "1999ms", "RINGBACK_LOCK_TTL", "at least 2s"] {
            assert!(mistake.contains(word), "no {word} in {mistake}");
        }
        assert_eq!(load(&[("LOCK_TTL", "6s"), ("DRAIN", "2s")]).1, [""; 0]);
    }

    #[test]
    fn a_lock_too_short_for_a_call_is_refused_with_all_other_mistakes() {
        let (_, mistakes) = load(&[("LOCK_TTL", "299ms"), ("DRAIN", "0s"), ("SHARDS", "0")]);
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    }
}
