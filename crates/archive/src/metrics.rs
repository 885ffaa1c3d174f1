//! The metrics of an archiver. Each appears on `/metrics` under the name given here.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_service::telemetry::{Metric, counter};

const ARCHIVED: Metric =
    Metric::counter("ringback_archiver_archived_ended_jobs_total", "Ended jobs that are new in the database");
const REFUSED: Metric = Metric::counter(
    "ringback_archiver_refused_ended_jobs_total",
    "Ended jobs that the database refuses for what is in them; they are logged and not archived",
);
const UNREADABLE: Metric = Metric::counter(
    "ringback_archiver_unreadable_ended_jobs_total",
    "Ended jobs in the store that cannot be read; they are not archived",
);
const UNWANTED: Metric = Metric::counter(
    "ringback_archiver_unwanted_ended_jobs_total",
    "Ended jobs that the policy of their topic keeps out of the archive",
);
const AUDIT_ENTRIES: Metric = Metric::counter(
    "ringback_archiver_audit_log_entries_total",
    "Entries of the audit log that are new in the database",
);
const LOST_AUDIT_ENTRIES: Metric = Metric::counter(
    "ringback_archiver_lost_audit_log_entries_total",
    "Entries of the audit log that cannot be read or that the database refuses; they are logged and not archived, and counted again after a restart",
);
const FAILURES: Metric = Metric::counter(
    "ringback_archiver_failures_total",
    "Batches that could not be written, and are tried again",
);
const WRITE: Metric =
    Metric::histogram("ringback_archiver_write_duration_seconds", "How long a batch takes to be written");
const LAG: Metric = Metric::gauge(
    "ringback_archiver_lag_seconds",
    "How long ago the oldest ended job of the last batch had ended when it was written",
);

/// The metrics of an archiver.
pub const METRICS: &[Metric] =
    &[ARCHIVED, REFUSED, UNREADABLE, UNWANTED, AUDIT_ENTRIES, LOST_AUDIT_ENTRIES, FAILURES, WRITE, LAG];

/// The instruments of an archiver.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) archived: Counter<u64>,
    pub(crate) refused: Counter<u64>,
    pub(crate) unreadable: Counter<u64>,
    pub(crate) unwanted: Counter<u64>,
    pub(crate) audit_entries: Counter<u64>,
    pub(crate) lost_audit_entries: Counter<u64>,
    pub(crate) failures: Counter<u64>,
    pub(crate) write: Histogram<f64>,
    pub(crate) lag: Gauge<f64>,
}

impl Metrics {
    /// Creates the instruments.
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |metric| counter(meter, metric);
        let write = meter.f64_histogram(WRITE.name).with_description(WRITE.about);
        let write =
            write.with_boundaries(vec![0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0]);
        Self {
            archived: counter(ARCHIVED),
            refused: counter(REFUSED),
            unreadable: counter(UNREADABLE),
            unwanted: counter(UNWANTED),
            audit_entries: counter(AUDIT_ENTRIES),
            lost_audit_entries: counter(LOST_AUDIT_ENTRIES),
            failures: counter(FAILURES),
            write: write.build(),
            lag: meter.f64_gauge(LAG.name).with_description(LAG.about).build(),
        }
    }
}
