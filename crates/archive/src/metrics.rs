//! The metrics of an archiver. Each appears on `/metrics` under the name given here.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_service::telemetry;

/// The instruments of an archiver; their descriptions are in [`Metrics::new`].
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
        let counter = |name, about| telemetry::counter(meter, name, about);
        let write = meter.f64_histogram("ringback_archiver_write_duration_seconds");
        let write =
            write.with_boundaries(vec![0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0]);
        Self {
            archived: counter(
                "ringback_archiver_archived_ended_jobs_total",
                "Ends that are new in the database",
            ),
            refused: counter(
                "ringback_archiver_refused_ended_jobs_total",
                "Ends that the database refuses for what is in them; they are logged and not archived",
            ),
            unreadable: counter(
                "ringback_archiver_unreadable_ended_jobs_total",
                "Ends in the store that cannot be read; they are not archived",
            ),
            unwanted: counter(
                "ringback_archiver_unwanted_ended_jobs_total",
                "Ends that the policy of their topic keeps out of the archive",
            ),
            audit_entries: counter(
                "ringback_archiver_audit_log_entries_total",
                "Entries of the audit log that are new in the database",
            ),
            lost_audit_entries: counter(
                "ringback_archiver_lost_audit_log_entries_total",
                "Entries of the audit log that cannot be read or that the database refuses; they are logged and not archived",
            ),
            failures: counter(
                "ringback_archiver_failures_total",
                "Batches that could not be written, and are tried again",
            ),
            write: write.with_description("How long a batch takes to be written").build(),
            lag: meter
                .f64_gauge("ringback_archiver_lag_seconds")
                .with_description(
                    "How long ago the oldest end of the last batch had ended when it was written",
                )
                .build(),
        }
    }
}
