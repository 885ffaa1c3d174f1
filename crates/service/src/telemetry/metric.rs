//! How a metric is declared: name, kind, labels and description. Roles create their instruments from declarations, and
//! the reference page lists them.

use opentelemetry::metrics::{Counter, Meter};

/// A metric as it appears on `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name, with its unit at the end.
    pub name: &'static str,
    /// What its values are.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The description, without a full stop.
    pub about: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum MetricKind {
    /// It only grows while a process runs.
    Counter,
    /// A value of now.
    Gauge,
    /// Counts of values by bucket.
    Histogram,
}

impl Metric {
    /// Declares a counter.
    #[must_use]
    pub const fn counter(name: &'static str, about: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, labels: &[], about }
    }

    /// Declares a gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, about: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, labels: &[], about }
    }

    /// Declares a histogram.
    #[must_use]
    pub const fn histogram(name: &'static str, about: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, labels: &[], about }
    }

    /// Adds labels to a declaration.
    #[must_use]
    pub const fn by(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }
}

/// Creates a counter. Without labels it is on `/metrics` from the start: the increase of a counter that appears with its
/// first event has no beginning, so no alarm would see that event.
#[must_use]
pub fn counter(meter: &Meter, metric: Metric) -> Counter<u64> {
    let counter = meter.u64_counter(metric.name).with_description(metric.about).build();
    if metric.labels.is_empty() {
        counter.add(0, &[]);
    }
    counter
}
