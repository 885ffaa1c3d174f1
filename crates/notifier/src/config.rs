//! The configuration of a notifier: its settings, their limits, and how they are parsed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ringback_core::retry::{self, InstallationRetry};
use ringback_core::store_types::Options;
use ringback_egress::Guard;
use ringback_secrets::{MasterKeys, SigningSecret, WebhookHeaders};
use ringback_service::settings::check_drain;
use ringback_service::{Lookup, Setting, open_files};
use ringback_store::settings;

/// The longest timeout of a store call. It is also at most half of the lease margin, so that a lease
/// whose reserve was slow can still be settled in time.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The shortest lease margin. Half of it is the shortest reasonable timeout of a call over a network.
const MIN_MARGIN: Duration = Duration::from_millis(200);
const MAX_MARGIN: Duration = Duration::from_secs(600);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const RETRY: &[Setting] = &Setting::table(retry::SETTINGS);
const EGRESS: &[Setting] = &Setting::table(ringback_egress::NAMES);
const SECRETS: &[Setting] = &[
    Setting::secret(ringback_secrets::MASTER_KEYS),
    Setting::secret(ringback_secrets::SIGNING_SECRET),
    Setting::table([ringback_secrets::WEBHOOK_PREFIX])[0],
];
const OWN: &[Setting] = &[
    Setting::new(
        "CONCURRENCY",
        "512",
        "Maximum callbacks in flight per notifier, 1 to 65536, until their outcome is settled; each may need an open file (ulimit -Hn), and 64 more stay reserved (320 in ringback up)",
    ),
    Setting::new(
        "LANE_CONCURRENCY",
        "64",
        "Maximum callbacks in flight per notifier and lane (topic and origin), 1 to 65536, and at most half of what the other lanes leave free; not strict with more than 256 full lanes. Also the most idle connections per origin",
    ),
    Setting::new(
        "LEASE_MARGIN",
        "10s",
        "How much longer a lease is than its attempt, 200ms to 10m: the timeout of the job, else 10s, at most 15s, longer ones are renewed. A call to the store times out after half of it, at most 3s, and --shutdown-timeout must be at least that",
    ),
    Setting::new(
        "BREAKERS",
        "on",
        "Whether callbacks to a destination that does not answer stop, but for one probe at a time, until it answers: on or off. Use the same everywhere",
    ),
    Setting::new(
        "NAME_SERVERS",
        "",
        "Name servers that look up the hosts of callback URLs, each an IP address with a port, such as 10.0.0.2:53; empty: those of /etc/resolv.conf. /etc/hosts comes first. Read at the start",
    ),
    Setting::new(
        "CA_FILE",
        "",
        "File (PEM) with the certificate authorities that receivers on https are trusted by; empty: those of the system. Read at the start and on SIGHUP",
    ),
    Setting::new(
        "ADMIN_LISTEN",
        "127.0.0.1:7414",
        "Where /healthz, /readyz and /metrics are served, IP address and port; two processes on one machine need two ports",
    ),
];

/// The configuration of a notifier.
#[derive(Clone, Debug)]
pub struct Config {
    /// How to reach the store.
    pub store: Options,
    /// Maximum callbacks in flight (`CONCURRENCY`, 512).
    pub concurrency: usize,
    /// Maximum callbacks in flight per lane (`LANE_CONCURRENCY`, 64).
    pub lane_concurrency: usize,
    /// Whether there are circuit breakers (`BREAKERS`, on).
    pub breakers: bool,
    /// The retry policy of jobs if neither they nor their topic have one (`RETRY`), and the limits of all policies
    /// (`RETRY_MIN_DELAY`, `RETRY_MAX_FAILURES`, `RETRY_MAX_AGE`).
    pub retry: InstallationRetry,
    /// How much longer than the timeout of its attempt a lease is (`LEASE_MARGIN`, 10s).
    pub lease_margin: Duration,
    /// How receivers are reached.
    pub outgoing: Outgoing,
    /// How callbacks are signed.
    pub signing: Signing,
}

/// How callbacks are signed.
#[derive(Clone, Debug, Default)]
pub struct Signing {
    /// The keys that open the secrets of topics (`MASTER_KEYS`).
    pub keys: MasterKeys,
    /// The secrets that sign the callbacks of all topics (`SIGNING_SECRET`).
    pub secrets: Vec<SigningSecret>,
    /// The names of the headers (`WEBHOOK_PREFIX`).
    pub headers: WebhookHeaders,
}

/// How receivers are reached.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// Name servers that look up their names; those of the system without any (`NAME_SERVERS`).
    pub name_servers: Vec<SocketAddr>,
    /// The file with the certificate authorities they are trusted by; those of the system without one (`CA_FILE`).
    pub authorities: Option<PathBuf>,
    /// Where callbacks may go.
    pub guard: Guard,
    /// Where this process listens: no callback may go there.
    pub listeners: Vec<SocketAddr>,
}

impl Config {
    pub const SETTINGS: &[&[Setting]] = &[STORE, RETRY, OWN, EGRESS, SECRETS];

    /// Reads the settings and collects mistakes in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let lease_margin = lookup.duration_in("LEASE_MARGIN", MIN_MARGIN..=MAX_MARGIN);
        let call_timeout = MAX_CALL_TIMEOUT.min(lease_margin / 2);
        check_drain(lookup, call_timeout, "LEASE_MARGIN", "releasing jobs");
        let concurrency = lookup.number_in("CONCURRENCY", 1..=65_536);
        if let Err(max) = open_files::fits(concurrency as u64, open_files::hard_limit()) {
            lookup.reject(
                "CONCURRENCY",
                format!(
                    "exceeds the limit of open files, of which {} stay reserved: set at most {max}, or raise the hard limit (ulimit -Hn)",
                    open_files::RESERVE
                ),
            );
        }
        Self {
            store: lookup
                .group(|get| settings::parse(get, call_timeout), || settings::defaults(call_timeout)),
            concurrency,
            // A higher limit would have the same effect.
            lane_concurrency: lookup.number_in("LANE_CONCURRENCY", 1..=65_536).min(concurrency),
            breakers: lookup.is_on("BREAKERS"),
            retry: lookup.group(|get| InstallationRetry::parse(get), InstallationRetry::none),
            lease_margin,
            outgoing: Outgoing::load(lookup),
            signing: Signing {
                keys: lookup.parse("MASTER_KEYS"),
                secrets: lookup.group(|get| ringback_secrets::parse_signing_secrets(get), Vec::new),
                headers: lookup.parse("WEBHOOK_PREFIX"),
            },
        }
    }
}

impl Outgoing {
    fn load(lookup: &mut Lookup) -> Self {
        let mut name_servers = Vec::new();
        for server in lookup.text("NAME_SERVERS").split([',', ' ']).filter(|text| !text.is_empty()) {
            match server.parse() {
                Ok(address) => name_servers.push(address),
                Err(_) => lookup.reject(
                    "NAME_SERVERS",
                    format!("{server} is not an IP address with a port: such as 10.0.0.2:53,[fd00::2]:53"),
                ),
            }
        }
        let file = lookup.text("CA_FILE");
        Self {
            name_servers,
            authorities: (!file.is_empty()).then(|| file.into()),
            guard: lookup.group(|get| ringback_egress::parse(get), Guard::default),
            listeners: vec![lookup.address("ADMIN_LISTEN")],
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
    fn the_call_timeout_is_half_of_the_margin_and_at_most_three_seconds() {
        for (margin, timeout) in [("200ms", 100), ("1s", 500), ("6s", 3_000), ("10m", 3_000)] {
            let (config, mistakes) = load(&[("LEASE_MARGIN", margin)]);
            assert_eq!(mistakes, [""; 0]);
            assert_eq!(config.store.call_timeout, Duration::from_millis(timeout), "{margin}");
        }
    }

    #[test]
    fn a_drain_too_short_to_release_jobs_is_rejected_and_both_settings_are_named() {
        let (_, mistakes) = load(&[("SHUTDOWN_TIMEOUT", "2s")]);
        let [mistake] = mistakes.as_slice() else { panic!("{mistakes:?}") };
        for word in ["RINGBACK_SHUTDOWN_TIMEOUT", "2s", "RINGBACK_LEASE_MARGIN", "at least 3s"] {
            assert!(mistake.contains(word), "no {word} in {mistake}");
        }
        assert_eq!(load(&[("SHUTDOWN_TIMEOUT", "2s"), ("LEASE_MARGIN", "4s")]).1, [""; 0]);
    }

    #[test]
    fn name_servers_are_addresses_with_ports() {
        let (config, mistakes) = load(&[("NAME_SERVERS", "10.0.0.2:53, [fd00::2]:5353")]);
        assert_eq!(mistakes, [""; 0]);
        let expected = ["10.0.0.2:53", "[fd00::2]:5353"].map(|text| text.parse().unwrap());
        assert_eq!(config.outgoing.name_servers, expected);
        assert!(load(&[]).0.outgoing.name_servers.is_empty());
        for wrong in ["10.0.0.2", "dns.example:53"] {
            let (_, mistakes) = load(&[("NAME_SERVERS", wrong)]);
            assert!(mistakes.len() == 1 && mistakes[0].contains("RINGBACK_NAME_SERVERS"), "{mistakes:?}");
        }
    }

    #[test]
    fn the_limit_of_a_lane_never_exceeds_the_total() {
        assert_eq!(load(&[("CONCURRENCY", "7")]).0.lane_concurrency, 7);
    }
}
