//! The metrics of an archiver.

use opentelemetry::metrics::{Counter, Gauge, Histogram};

const SECONDS: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0];

ringback_service::metrics! {
    struct Metrics {
        archived: Counter<u64> = "ringback_archiver_archived_ended_jobs_total",
            "Ended jobs that are new in the database";
        refused: Counter<u64> = "ringback_archiver_refused_ended_jobs_total",
            "Ended jobs that the database refuses for what is in them; they are logged and not archived";
        unreadable: Counter<u64> = "ringback_archiver_unreadable_ended_jobs_total",
            "Ended jobs in the store that cannot be read; they are not archived";
        unwanted: Counter<u64> = "ringback_archiver_unwanted_ended_jobs_total",
            "Ended jobs that the policy of their topic keeps out of the archive";
        audit_entries: Counter<u64> = "ringback_archiver_audit_log_entries_total",
            "Entries of the audit log that are new in the database";
        lost_audit_entries: Counter<u64> = "ringback_archiver_lost_audit_log_entries_total",
            "Entries of the audit log that cannot be read or that the database refuses; they are logged and not archived, and counted again after a restart";
        failures: Counter<u64> = "ringback_archiver_failures_total",
            "Batches that could not be written, and are tried again";
        write: Histogram<f64> = "ringback_archiver_write_duration_seconds",
            "How long a batch takes to be written", buckets SECONDS;
        lag: Gauge<f64> = "ringback_archiver_lag_seconds",
            "How long ago the oldest ended job of the last batch had ended when it was written";
    }
}
