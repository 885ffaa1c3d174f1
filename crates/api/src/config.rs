//! The API's configuration.

use std::net::SocketAddr;
use std::time::Duration;

use ringback_core::contract::Options;
use ringback_core::retry::{self, RetryPolicy};
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

/// How long one call of the store may take. With what waits before it a request is
/// answered within two seconds.
const PATIENCE: Duration = Duration::from_millis(1500);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTING);
const OWN: &[Setting] = &[
    Setting::new("API_LISTEN", "127.0.0.1:7411", "Where the public API is served"),
    Setting::new("EVENT_LISTENERS", "100", "How many callers may listen to events at once"),
    Setting::new("ADMIN_LISTEN", "127.0.0.1:7412", "Where /healthz, /readyz and /metrics are served"),
];

/// What an API is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the public API is served (`API_LISTEN`, 127.0.0.1:7411).
    pub listen: SocketAddr,
    /// The store.
    pub store: Options,
    /// The policy of jobs for pull that bring none, when a consumer has failed (`RETRY`).
    pub retry: RetryPolicy,
    /// How many callers may listen to events at once (`EVENT_LISTENERS`, 100).
    pub event_listeners: usize,
}

impl Config {
    /// All settings of an API.
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN];

    /// Reads the settings; mistakes are collected in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        Self {
            listen: lookup.address("API_LISTEN"),
            store: lookup.group(|get| settings::parse(get, PATIENCE), || settings::defaults(PATIENCE)),
            retry: lookup.parse("RETRY"),
            event_listeners: lookup.number_in("EVENT_LISTENERS", 1..=10_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Config, Vec<&'static str>) {
        let env = env.iter().map(|(name, value)| (format!("RINGBACK_{name}"), (*value).to_owned())).collect();
        let mut lookup = Lookup::new(Config::SETTINGS, BTreeMap::new(), env);
        let config = Config::load(&mut lookup);
        (config, lookup.mistakes().iter().map(|mistake| mistake.name).collect())
    }

    #[test]
    fn the_defaults_hold() {
        let (config, mistakes) = load(&[]);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 7411)));
        assert_eq!((config.store.url.as_str(), config.store.shards), ("redis://127.0.0.1:6379", 4));
        assert_eq!((config.store.call_timeout, config.event_listeners), (PATIENCE, 100));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let (_, mistakes) = load(&[
            ("API_LISTEN", "7411"),
            ("SHARDS", "0"),
            ("PREFIX", "a b"),
            ("KEEP_DONE", "1s"),
            ("EVENT_LISTENERS", "0"),
        ]);
        assert_eq!(mistakes, ["API_LISTEN", "PREFIX", "SHARDS", "KEEP_DONE", "EVENT_LISTENERS"]);
    }
}
