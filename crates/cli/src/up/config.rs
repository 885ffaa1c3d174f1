//! The configuration of `ringback up`: that of the three roles and the archive together, with other defaults for the
//! store and the admin port, and the open files shared among them.

use std::net::SocketAddr;
use std::sync::LazyLock;

use ringback_service::{Lookup, Setting, open_files};

use super::archive::Archive;

/// Connections kept for callers of the API while all deliveries are in flight.
const API_CONNECTIONS: u64 = 256;

/// Settings whose defaults replace those of the roles.
const OWN: &[Setting] = &[
    Setting::new(
        "STORE",
        "embedded:./ringback-data",
        "Store of the jobs: embedded: and a directory on this machine, or redis://, rediss://, redis-cluster://a:1,b:2,c:3, redis-sentinel://a,b,c/name",
    ),
    Setting::new(
        "ADMIN_LISTEN",
        "127.0.0.1:7412",
        "Where /healthz, /readyz and /metrics are served, IP address and port",
    ),
];

static SETTINGS: LazyLock<Vec<&'static [Setting]>> = LazyLock::new(|| {
    let roles = [
        ringback_api::Config::SETTINGS,
        ringback_carrier::Config::SETTINGS,
        ringback_notifier::Config::SETTINGS,
    ];
    [OWN]
        .into_iter()
        .chain(roles.into_iter().flatten().copied())
        .chain([ringback_archive::SETTINGS])
        .collect()
});

/// All settings of `ringback up`, in groups.
pub(crate) fn settings() -> &'static [&'static [Setting]] {
    &SETTINGS
}

/// The configuration of the process.
pub(crate) struct Config {
    pub(crate) api: ringback_api::Config,
    pub(crate) carrier: ringback_carrier::Config,
    pub(crate) notifier: ringback_notifier::Config,
    /// The archive, if there is one.
    pub(crate) archive: Option<Archive>,
    /// The address of the admin port.
    pub(crate) admin: SocketAddr,
    /// Whether the admin port speaks https.
    pub(crate) is_admin_tls: bool,
    /// The store, without secrets.
    pub(crate) store: String,
}

impl Config {
    /// Reads the settings. Mistakes are collected in `lookup`.
    pub(crate) fn load(lookup: &mut Lookup) -> Self {
        let mut config = Self {
            api: ringback_api::Config::load(lookup),
            carrier: ringback_carrier::Config::load(lookup),
            notifier: ringback_notifier::Config::load(lookup),
            archive: Archive::load(lookup),
            admin: lookup.address("ADMIN_LISTEN"),
            is_admin_tls: lookup.text("ADMIN_TLS") == "on",
            store: shown(lookup, "STORE"),
        };
        config.share_call_timeout();
        check_open_files(lookup, config.notifier.concurrency as u64);
        config.leave_files_to_the_others();
        config
    }

    /// Lowers the limit of the API's connections to the open files that deliveries and the rest of the process leave.
    fn leave_files_to_the_others(&mut self) {
        let others = self.notifier.concurrency as u64 + API_CONNECTIONS + open_files::RESERVE;
        let left = open_files::hard_limit().saturating_sub(others).max(2);
        self.api.connections =
            usize::try_from(left).map_or(self.api.connections, |left| left.min(self.api.connections));
    }

    /// Sets the store timeout of all three roles to the shortest of them, since they share one store.
    fn share_call_timeout(&mut self) {
        let stores = [&mut self.api.store, &mut self.carrier.store, &mut self.notifier.store];
        let shortest = stores.iter().map(|store| store.call_timeout).min();
        for store in stores {
            store.call_timeout = shortest.unwrap_or(store.call_timeout);
        }
    }
}

/// The value of a setting with its secrets hidden; empty if there is no such setting.
fn shown(lookup: &Lookup, name: &str) -> String {
    let is_it = |variable: &str| variable.strip_prefix(ringback_service::config::PREFIX) == Some(name);
    let found = lookup.effective().into_iter().find(|(variable, _)| is_it(variable));
    found.map_or_else(String::new, |(_, value)| value)
}

/// Checks that the limit of open files has room for callers of the API beside all deliveries; a mistake of
/// `CONCURRENCY` otherwise, unless the notifier has found that one itself.
fn check_open_files(lookup: &mut Lookup, deliveries: u64) {
    let limit = open_files::hard_limit();
    if open_files::fits(deliveries, limit).is_ok()
        && let Err(max) = fits_with_api(deliveries, limit)
    {
        lookup.reject(
            "CONCURRENCY",
            format!(
                "does not fit the limit of open files, of which {} are kept for callers of the API and other needs: at most {max}, or raise the hard limit (ulimit -Hn)",
                open_files::RESERVE + API_CONNECTIONS
            ),
        );
    }
}

/// Checks that this many deliveries fit into a limit of open files beside the API. The error is the number that fits.
fn fits_with_api(deliveries: u64, limit: u64) -> Result<(), u64> {
    open_files::fits(deliveries + API_CONNECTIONS, limit).map_err(|left| left.saturating_sub(API_CONNECTIONS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Config, Vec<&'static str>) {
        let env = env.iter().map(|(name, value)| (format!("RINGBACK_{name}"), (*value).to_owned())).collect();
        let groups = [settings(), &[ringback_service::settings::SETTINGS]].concat();
        let mut lookup = Lookup::new(&groups, BTreeMap::new(), env);
        let config = Config::load(&mut lookup);
        (config, lookup.mistakes().iter().map(|mistake| mistake.name).collect())
    }

    #[test]
    fn the_defaults_are_those_of_one_process_that_has_all() {
        let found = ringback_service::config::distinct(settings());
        let default = |name| found.iter().find(|setting| setting.name == name).map(|setting| setting.default);
        assert_eq!(default("STORE"), Some("embedded:./ringback-data"));
        assert_eq!(default("ADMIN_LISTEN"), Some("127.0.0.1:7412"));
        assert_eq!(default("API_LISTEN"), Some("127.0.0.1:7411"));
        assert_eq!(default("LOCK_TTL"), Some("5s"));
    }

    #[test]
    fn all_roles_have_the_store_and_the_shortest_call_timeout() {
        let (config, mistakes) = load(&[("STORE", "redis://:secret@h:1"), ("LOCK_TTL", "600ms")]);
        assert_eq!(mistakes, [""; 0]);
        for store in [&config.api.store, &config.carrier.store, &config.notifier.store] {
            assert_eq!(
                (store.url.as_str(), store.call_timeout),
                ("redis://:secret@h:1", Duration::from_millis(200))
            );
        }
        assert!(!config.store.contains("secret"), "{}", config.store);
    }

    #[test]
    fn the_mistakes_of_all_roles_are_reported_once_each() {
        let (_, mistakes) = load(&[
            ("STORE", "ftp://x"),
            ("API_LISTEN", "7411"),
            ("LOCK_TTL", "1ms"),
            ("RETRY", "never"),
            ("ADMIN_LISTEN", "here"),
        ]);
        assert_eq!(mistakes, ["API_LISTEN", "STORE", "RETRY", "LOCK_TTL", "ADMIN_LISTEN"]);
    }

    #[test]
    fn open_files_are_kept_for_the_callers_of_the_api() {
        let least = 512 + API_CONNECTIONS + open_files::RESERVE;
        assert_eq!(fits_with_api(512, least), Ok(()));
        assert_eq!(fits_with_api(512, least - 1), Err(511));
        assert_eq!(fits_with_api(1, 10), Err(0));
    }
}
