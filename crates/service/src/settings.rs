//! The settings that every process has: log, shutdown, admin port and its TLS; and whether traces are exported.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::config::{Lookup, PREFIX, Setting};
use crate::http_server::{Tls, tls};
use crate::telemetry::{self, LogFormat};

/// Settings that are added to every [`Service`](crate::Service). `ADMIN_LISTEN` is read here too, but
/// each role lists it with a default of its own.
pub const SETTINGS: &[Setting] = &[
    tls::SETTINGS[0],
    tls::SETTINGS[1],
    tls::SETTINGS[2],
    tls::SETTINGS[3],
    Setting::new(
        "LOG",
        "info",
        "What is logged: off, error, warn, info, debug, trace, or directives such as info,ringback_store=debug",
    ),
    Setting::new("LOG_FORMAT", "text", "How log lines on stderr look: text or json"),
    Setting::new(
        "SHUTDOWN_TIMEOUT",
        "30s",
        "How long work may go on after the first signal to stop, 0s to 24h; for a carrier and a notifier no shorter than the timeout of a call to the store",
    ),
];

/// The setting of processes that callers reach through a balancer. Each of their roles lists it; others do not wait.
pub const DRAIN_DELAY: Setting = Setting::new(
    "DRAIN_DELAY",
    "0s",
    "How long the API says that it is not ready and serves on, after the first signal and before --shutdown-timeout begins, 0s to 1h",
);

/// What a balancer needs to notice is far shorter.
const LONGEST_DRAIN_DELAY: Duration = Duration::from_secs(60 * 60);
const LONGEST_DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The values of [`SETTINGS`], and whether the standard `OTEL_` variables ask for trace export.
pub(crate) struct ProcessSettings {
    pub(crate) admin: SocketAddr,
    pub(crate) admin_tls: Option<Tls>,
    pub(crate) filter: Targets,
    pub(crate) format: LogFormat,
    pub(crate) drain: Duration,
    pub(crate) drain_delay: Duration,
    pub(crate) export_traces: bool,
    /// The standard variables that are set and have no effect.
    pub(crate) not_honoured: Vec<String>,
}

impl ProcessSettings {
    pub(crate) fn load(lookup: &mut Lookup, env: &BTreeMap<String, String>) -> Self {
        Self {
            admin: lookup.address("ADMIN_LISTEN"),
            admin_tls: Tls::load_of_admin(lookup),
            filter: filter(lookup),
            format: lookup.parse("LOG_FORMAT"),
            drain: drain(lookup),
            drain_delay: drain_delay(lookup),
            export_traces: telemetry::exports_traces(env),
            not_honoured: telemetry::not_honoured(env),
        }
    }
}

/// Loads the configuration of a role from variables given without [`PREFIX`], and returns it with the
/// mistakes found. For tests.
pub fn load_from<C>(
    groups: &[&'static [Setting]],
    variables: &[(&str, &str)],
    load: fn(&mut Lookup) -> C,
) -> (C, Vec<String>) {
    let env = variables.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
    let mut lookup = Lookup::new(&[groups, &[SETTINGS]].concat(), BTreeMap::new(), env.collect());
    let config = load(&mut lookup);
    (config, lookup.mistakes().iter().map(ToString::to_string).collect())
}

/// Reads the grace period of the shutdown.
fn drain(lookup: &mut Lookup) -> Duration {
    lookup.duration_in("SHUTDOWN_TIMEOUT", Duration::ZERO..=LONGEST_DRAIN)
}

/// Reads how long the process works on after it says that it is not ready; zero without [`DRAIN_DELAY`].
fn drain_delay(lookup: &mut Lookup) -> Duration {
    if !lookup.has(DRAIN_DELAY.name) {
        return Duration::ZERO;
    }
    lookup.duration_in(DRAIN_DELAY.name, Duration::ZERO..=LONGEST_DRAIN_DELAY)
}

/// Rejects a grace period that is shorter than one call to the store may take. `setting` is the
/// setting that `call_timeout` was derived from; `purpose` is what the last call is needed for.
pub fn check_drain(lookup: &mut Lookup, call_timeout: Duration, setting: &str, purpose: &str) {
    if drain(lookup) < call_timeout {
        lookup.reject(
            "SHUTDOWN_TIMEOUT",
            format!(
                "is shorter than a call to the store may take: {PREFIX}{setting} allows {call_timeout:?}, and {purpose} needs one call, so set at least {call_timeout:?}"
            ),
        );
    }
}

/// Reads the log filter. A single word that is not a level is rejected, because the filter would take it
/// for a target and drop everything else.
fn filter(lookup: &mut Lookup) -> Targets {
    let text = lookup.text("LOG");
    if text.chars().all(char::is_alphanumeric) && text.parse::<LevelFilter>().is_err() {
        lookup.reject(
            "LOG",
            "must be off, error, warn, info, debug, trace, or directives such as info,hyper=warn",
        );
    }
    lookup.parse("LOG")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: &[Setting] = &[Setting::new("ADMIN_LISTEN", "127.0.0.1:7412", "the admin port")];

    fn load(env: &[(&str, &str)]) -> (ProcessSettings, Vec<String>) {
        let env: BTreeMap<_, _> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut lookup = Lookup::new(&[ADMIN, SETTINGS], BTreeMap::new(), env.clone());
        let own = ProcessSettings::load(&mut lookup, &env);
        (own, lookup.mistakes().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_defaults_hold() {
        let (own, mistakes) = load(&[]);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(own.admin, SocketAddr::from(([127, 0, 0, 1], 7412)));
        assert_eq!(
            (own.drain, own.format, own.export_traces),
            (Duration::from_secs(30), LogFormat::Text, false)
        );
        assert_eq!(own.filter.to_string(), "info");
    }

    #[test]
    fn a_misspelt_level_is_a_mistake_and_directives_are_not() {
        assert_eq!(load(&[("RINGBACK_LOG", "inof")]).1.len(), 1);
        assert_eq!(load(&[("RINGBACK_LOG", "info,ringback_store=loud")]).1.len(), 1);
        assert!(load(&[("RINGBACK_LOG", "info,ringback_store=debug")]).1.is_empty());
    }

    #[test]
    fn no_grace_at_all_is_allowed() {
        let (own, mistakes) = load(&[("RINGBACK_SHUTDOWN_TIMEOUT", "0s")]);
        assert_eq!((own.drain, mistakes.len()), (Duration::ZERO, 0));
    }
}
