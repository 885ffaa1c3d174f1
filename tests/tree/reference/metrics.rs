//! The page of metrics, from the metrics that each role declares.

use std::fmt::Write as _;

use ringback_service::telemetry::{self, Metric};

use super::cell;

const HEAD: &str = include_str!("heads/metrics.md");

/// The metrics of each kind of process.
fn groups() -> [(&'static str, &'static [Metric]); 6] {
    [
        ("API", ringback_api::METRICS),
        ("Carrier", ringback_carrier::METRICS),
        ("Notifier", ringback_notifier::METRICS),
        ("Archiver", ringback_archive::METRICS),
        ("Feed process", ringback_feed::METRICS),
        ("Every process", telemetry::METRICS),
    ]
}

/// The names of all metrics.
pub(crate) fn names() -> std::collections::BTreeSet<String> {
    groups().iter().flat_map(|(_, metrics)| *metrics).map(|metric| metric.name.to_owned()).collect()
}

pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    for (name, metrics) in groups() {
        write!(page, "\n## {name}\n\n| metric | type | meaning |\n|---|---|---|\n").expect("a text");
        for metric in metrics {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let by = if labels.is_empty() { String::new() } else { format!(" by {}", labels.join(", ")) };
            let (name, kind, about) = (metric.name, metric.kind, cell(metric.about));
            writeln!(page, "| `{name}` | {kind}{by} | {about} |").expect("a text");
        }
    }
    page
}
