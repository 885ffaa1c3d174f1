//! The settings of the API and how they are parsed.

use std::net::SocketAddr;
use std::time::Duration;

use ringback_archive::ArchiveUrl;
use ringback_archive::pipe::{ChildProgram, Source};
use ringback_core::enum_names::must_be;
use ringback_core::retry::{self, InstallationRetry};
use ringback_core::store_types::Options;
use ringback_egress::Guard;
use ringback_secrets::MasterKeys;
use ringback_service::http_server::Tls;
use ringback_service::settings::DRAIN_DELAY;
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

use crate::access::{self, Access};

/// How long one store call may take, so that a request that first waits in a queue is still
/// answered within two seconds.
const CALL_TIMEOUT: Duration = Duration::from_millis(1500);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTINGS);
const EGRESS: &[Setting] = &Setting::table(ringback_egress::NAMES);
const SECRETS: &[Setting] = &[Setting::secret(ringback_secrets::MASTER_KEYS)];
const OWN: &[Setting] = &[
    Setting::new("API_LISTEN", "127.0.0.1:7411", "Where the public API is served, IP address and port"),
    Setting::new(
        "EVENT_LISTENERS",
        "100",
        "How many callers may listen to events at once, 1 to 10000, one address at most half of what the others leave; more are refused with 503. One that does not read uses up to 1.5 MiB until it is dropped",
    ),
    Setting::new(
        "API_CONNECTIONS",
        "10000",
        "How many connections callers may have at once, 2 to 1000000, and at most half of the open files; one address gets at most half of what the others leave",
    ),
    Setting::new(
        "ARCHIVE",
        "",
        "The database of the archive, for /v1/history: postgres://user:password@host/database, or sqlite: and the path of a file; empty for none",
    ),
    Setting::new(
        "CA_FILE",
        "",
        "File (PEM) with the certificate authorities that PostgreSQL is trusted by on TLS; empty: those of the system",
    ),
    Setting::new("UI", "on", "Whether the dashboard is served at /ui/: on or off"),
    DRAIN_DELAY,
    Setting::new(
        "ADMIN_LISTEN",
        "127.0.0.1:7412",
        "Where /healthz, /readyz and /metrics are served, IP address and port",
    ),
];

/// Whether the dashboard is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum Dashboard {
    /// At `/ui/`.
    On,
    /// Not at all: its paths are unknown.
    Off,
}

/// The configuration of an API process.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the public API is served (`API_LISTEN`, 127.0.0.1:7411).
    pub listen: SocketAddr,
    pub store: Options,
    /// The retry policy of failed pull jobs that have none of their own (`RETRY`), and the limits of all policies
    /// (`RETRY_MIN_DELAY`, `RETRY_MAX_FAILURES`, `RETRY_MAX_AGE`).
    pub retry: InstallationRetry,
    /// How many callers may listen to events at once (`EVENT_LISTENERS`, 100).
    pub event_listeners: usize,
    /// How many connections callers may have at once (`API_CONNECTIONS`, 10000).
    pub connections: usize,
    /// The TLS of the public API (`TLS_CERT`, `TLS_KEY`, `TLS_CLIENT_CA`); plain HTTP without.
    pub tls: Option<Tls>,
    /// Where callbacks may go.
    pub guard: Guard,
    /// The keys that seal the secrets of topics (`MASTER_KEYS`).
    pub master_keys: MasterKeys,
    /// The archiver that answers queries of the history (`ARCHIVE`, `CA_FILE`); none without an archive.
    pub history: Option<ChildProgram>,
    /// Who may call the API (`ROOT_KEY`, `ALLOWED_HOSTS`, `INSECURE`).
    pub access: Access,
    /// Whether the dashboard is served (`UI`, on).
    pub dashboard: Dashboard,
}

impl Config {
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN, access::NAMES, EGRESS, SECRETS];

    /// Reads the settings and collects mistakes in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let (listen, has_client_ca) =
            (lookup.address("API_LISTEN"), !lookup.text("TLS_CLIENT_CA").is_empty());
        Self {
            listen,
            store: lookup
                .group(|get| settings::parse(get, CALL_TIMEOUT), || settings::defaults(CALL_TIMEOUT)),
            retry: lookup.group(|get| InstallationRetry::parse(get), InstallationRetry::none),
            event_listeners: lookup.number_in("EVENT_LISTENERS", 1..=10_000),
            connections: lookup.number_in("API_CONNECTIONS", 2..=1_000_000),
            tls: Tls::load(lookup),
            guard: lookup.group(|get| ringback_egress::parse(get), Guard::default),
            master_keys: lookup.parse("MASTER_KEYS"),
            history: ArchiveUrl::load(lookup)
                .map(|_| ChildProgram::new(lookup, &["ARCHIVE"], Source::History)),
            access: Access::load(lookup, listen, has_client_ca),
            dashboard: lookup.parse("UI"),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_service::settings::load_from;

    use super::*;

    #[test]
    fn the_defaults_hold() {
        let (config, mistakes) = load_from(Config::SETTINGS, &[], Config::load);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 7411)));
        assert_eq!((config.store.url.as_str(), config.store.shards), ("redis://127.0.0.1:6379", 4));
        assert_eq!((config.store.call_timeout, config.event_listeners), (CALL_TIMEOUT, 100));
        assert_eq!(config.connections, 10_000);
        assert_eq!(config.dashboard, Dashboard::On);
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let wrong = [
            ("API_LISTEN", "7411"),
            ("SHARDS", "0"),
            ("PREFIX", "a b"),
            ("KEEP_DONE", "1s"),
            ("EVENT_LISTENERS", "0"),
            ("API_CONNECTIONS", "1"),
            ("UI", "yes"),
        ];
        let (_, mistakes) = load_from(Config::SETTINGS, &wrong, Config::load);
        assert_eq!(mistakes.len(), wrong.len(), "{mistakes:?}");
        for (name, _) in wrong {
            assert!(mistakes.iter().any(|mistake| mistake.contains(name)), "no {name} in {mistakes:?}");
        }
    }
}
