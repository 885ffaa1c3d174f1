//! The `OTEL_` variables of the standard: which of them ask for the export of traces, and which are set and not
//! honoured. The OpenTelemetry crates read the others themselves, and pass over what they cannot use without a word.

use std::collections::BTreeMap;

/// Variables that are honoured with every value that can be read.
const HONOURED: &[&str] = &[
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
];
/// Variables whose value is a whole number.
const NUMBERS: &[&str] = &[
    "OTEL_BSP_EXPORT_TIMEOUT",
    "OTEL_BSP_MAX_CONCURRENT_EXPORTS",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
];
/// Variables that are honoured with these values alone.
const VALUES: &[(&str, &[&str])] = &[
    ("OTEL_EXPORTER_OTLP_COMPRESSION", &["none"]),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", &["http/protobuf"]),
    ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", &["none"]),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", &["http/protobuf"]),
    ("OTEL_LOGS_EXPORTER", &["none"]),
    ("OTEL_METRICS_EXPORTER", &["none", "prometheus"]),
    ("OTEL_PROPAGATORS", &["tracecontext"]),
    ("OTEL_TRACES_EXPORTER", &["none", "otlp"]),
    (
        "OTEL_TRACES_SAMPLER",
        &[
            "always_off",
            "always_on",
            "parentbased_always_off",
            "parentbased_always_on",
            "parentbased_traceidratio",
            "traceidratio",
        ],
    ),
];
/// The headers for the collector, which are secrets.
const HEADERS: &[&str] = &["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// Whether traces are exported: an endpoint or the exporter is named, and nothing turns it off.
pub(crate) fn exports_traces(env: &BTreeMap<String, String>) -> bool {
    let value = |name: &str| env.get(name).map_or("", String::as_str);
    let is_named = value("OTEL_TRACES_EXPORTER") == "otlp"
        || ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
            .iter()
            .any(|name| !value(name).is_empty());
    is_named && !is_disabled(env) && !value("OTEL_TRACES_EXPORTER").eq_ignore_ascii_case("none")
}

/// The variables that are set and whose values are not honoured, sorted; none if all of OpenTelemetry is turned off.
pub(crate) fn not_honoured(env: &BTreeMap<String, String>) -> Vec<String> {
    if is_disabled(env) {
        return Vec::new();
    }
    let set = env.iter().filter(|(name, value)| name.starts_with("OTEL_") && !value.is_empty());
    set.filter(|(name, value)| !is_honoured(name, value)).map(|(name, _)| name.clone()).collect()
}

fn is_disabled(env: &BTreeMap<String, String>) -> bool {
    env.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn is_honoured(name: &str, value: &str) -> bool {
    if let Some((_, values)) = VALUES.iter().find(|(known, _)| *known == name) {
        return values.contains(&value.trim());
    }
    if HEADERS.contains(&name) {
        return value.split(',').filter(|header| !header.trim().is_empty()).all(is_header);
    }
    if name == "OTEL_TRACES_SAMPLER_ARG" {
        return value.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio));
    }
    HONOURED.contains(&name) || (NUMBERS.contains(&name) && value.trim().parse::<u64>().is_ok())
}

fn is_header(header: &str) -> bool {
    header.split_once('=').is_some_and(|(name, _)| name.trim().parse::<axum::http::HeaderName>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(set: &[(&str, &str)]) -> BTreeMap<String, String> {
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_endpoint_or_the_exporter_turns_the_export_on_and_the_standard_switches_turn_it_off() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        for (set, expected) in [
            (&[endpoint][..], true),
            (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/v1/traces")], true),
            (&[("OTEL_TRACES_EXPORTER", "otlp")], true),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], false),
            (&[endpoint, ("OTEL_SDK_DISABLED", "true")], false),
            (&[endpoint, ("OTEL_TRACES_EXPORTER", "none")], false),
            (&[], false),
        ] {
            assert_eq!(exports_traces(&env(set)), expected, "{set:?}");
        }
    }

    #[test]
    fn variables_that_are_not_honoured_are_named() {
        for (name, value, expected) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", true),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", false),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", false),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret,x-a=b", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer s3cret", false),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", false),
            ("OTEL_BSP_SCHEDULE_DELAY", "100", true),
            ("OTEL_PROPAGATORS", "b3", false),
            ("OTEL_PROPAGATORS", "tracecontext", true),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote", false),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25", true),
            ("OTEL_TRACES_SAMPLER_ARG", "25%", false),
            ("OTEL_METRICS_EXPORTER", "otlp", false),
            ("OTEL_LOG_LEVEL", "debug", false),
            ("OTEL_SERVICE_NAME", "x", true),
            ("OTEL_LOG_LEVEL", "", true),
        ] {
            assert_eq!(not_honoured(&env(&[(name, value)])).is_empty(), expected, "{name}={value}");
        }
        assert!(not_honoured(&env(&[("OTEL_SDK_DISABLED", "true"), ("OTEL_LOG_LEVEL", "debug")])).is_empty());
    }
}
