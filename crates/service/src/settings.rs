//! The settings that every process has, whatever its work.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Lookup, PREFIX, Setting};
use crate::telemetry::LogFormat;

/// Added to the groups of every [`Service`](crate::Service). `ADMIN_LISTEN` is read too, but listed
/// by each role, because its default differs.
pub const SETTINGS: &[Setting] = &[
    Setting::new("LOG", "info", "What is logged: a level, or directives such as info,ringback_core=debug"),
    Setting::new("LOG_FORMAT", "text", "How log lines look: text or json"),
    Setting::new("DRAIN", "30s", "How long work may go on after the first signal to stop"),
];

const LONGEST_DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The values of [`SETTINGS`], and of the standard `OTEL_` variables that are looked at here.
pub(crate) struct Own {
    pub(crate) admin: SocketAddr,
    pub(crate) filter: EnvFilter,
    pub(crate) format: LogFormat,
    pub(crate) drain: Duration,
    pub(crate) export_traces: bool,
}

impl Own {
    pub(crate) fn load(lookup: &mut Lookup, env: &BTreeMap<String, String>) -> Self {
        Self {
            admin: lookup.address("ADMIN_LISTEN"),
            filter: filter(lookup),
            format: lookup.parse("LOG_FORMAT"),
            drain: drain(lookup),
            export_traces: exports_traces(env),
        }
    }
}

/// The grace on shutdown.
fn drain(lookup: &mut Lookup) -> Duration {
    lookup.duration_in("DRAIN", Duration::ZERO..=LONGEST_DRAIN)
}

/// Refuses a grace that is shorter than one call to what the role depends on may take. `by` is
/// the setting that allows the call so long, `need` what the call is needed for at the end.
pub fn drain_allows(lookup: &mut Lookup, patience: Duration, by: &str, need: &str) {
    if drain(lookup) < patience {
        lookup.reject(
            "DRAIN",
            format!(
                "does not fit {PREFIX}{by}, by which a call to the store may take {patience:?}: {need} needs one, so at least {patience:?}"
            ),
        );
    }
}

/// A single word that is no level would be taken for a target, and everything else fall silent.
fn filter(lookup: &mut Lookup) -> EnvFilter {
    let text = lookup.text("LOG");
    if text.chars().all(char::is_alphanumeric) && text.parse::<LevelFilter>().is_err() {
        lookup.reject(
            "LOG",
            "must be off, error, warn, info, debug, trace, or directives such as info,hyper=warn",
        );
    }
    lookup.parse("LOG")
}

fn exports_traces(env: &BTreeMap<String, String>) -> bool {
    let set = |name: &str| env.get(name).is_some_and(|value| !value.is_empty());
    let disabled = env.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    !disabled && (set("OTEL_EXPORTER_OTLP_ENDPOINT") || set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: &[Setting] = &[Setting::new("ADMIN_LISTEN", "127.0.0.1:7412", "the admin port")];

    fn load(env: &[(&str, &str)]) -> (Own, Vec<String>) {
        let env: BTreeMap<_, _> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut lookup = Lookup::new(&[ADMIN, SETTINGS], BTreeMap::new(), env.clone());
        let own = Own::load(&mut lookup, &env);
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
        assert_eq!(load(&[("RINGBACK_LOG", "info,ringback_core=loud")]).1.len(), 1);
        assert!(load(&[("RINGBACK_LOG", "info,ringback_core=debug")]).1.is_empty());
    }

    #[test]
    fn no_grace_at_all_is_allowed() {
        let (own, mistakes) = load(&[("RINGBACK_DRAIN", "0s")]);
        assert_eq!((own.drain, mistakes.len()), (Duration::ZERO, 0));
    }

    #[test]
    fn either_endpoint_turns_the_export_on_and_the_standard_switch_turns_it_off() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        assert!(load(&[endpoint]).0.export_traces);
        assert!(
            load(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/v1/traces")])
                .0
                .export_traces
        );
        assert!(!load(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]).0.export_traces);
        assert!(!load(&[endpoint, ("OTEL_SDK_DISABLED", "true")]).0.export_traces);
    }
}
