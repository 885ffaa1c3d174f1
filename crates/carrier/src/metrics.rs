//! What a carrier counts. Names appear on `/metrics` as they stand here.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

/// The carrier's instruments.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Jobs moved from delayed to ready.
    pub(crate) promoted: Counter<u64>,
    /// Leases that ran out and whose jobs are ready again.
    pub(crate) recovered: Counter<u64>,
    /// Leases for pull that ran out and whose jobs were settled as failed.
    pub(crate) lapsed: Counter<u64>,
    /// Of them, those that are not in the log of attempts.
    pub(crate) unnoted: Counter<u64>,
    /// Jobs buried because too many leases in a row ran out.
    pub(crate) lost: Counter<u64>,
    /// Dead jobs removed after their retention.
    pub(crate) expired: Counter<u64>,
    /// Dead jobs revived by calls that are about many.
    pub(crate) revived: Counter<u64>,
    /// Deaths of which a notice was submitted.
    pub(crate) told: Counter<u64>,
    /// Notices that were not taken.
    pub(crate) untold: Counter<u64>,
    /// Deaths that could not be read.
    pub(crate) unreadable: Counter<u64>,
    /// Passes refused because another carrier had taken the shard.
    pub(crate) fenced: Counter<u64>,
    /// How long a pass took.
    pub(crate) pass: Histogram<f64>,
    /// How many shards are held.
    pub(crate) shards: Gauge<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name, about| meter.u64_counter(name).with_description(about).build();
        let seconds = vec![0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0];
        Self {
            promoted: counter("ringback_carrier_promoted_jobs_total", "Jobs moved from delayed to ready"),
            recovered: counter(
                "ringback_carrier_recovered_jobs_total",
                "Jobs ready again after a lease ran out",
            ),
            lapsed: counter(
                "ringback_carrier_lapsed_jobs_total",
                "Jobs for pull that failed because a consumer's lease ran out",
            ),
            unnoted: counter(
                "ringback_carrier_unnoted_attempts_total",
                "Leases for pull that ran out and could not be noted in the log of attempts",
            ),
            lost: counter(
                "ringback_carrier_lost_jobs_total",
                "Jobs dead after too many leases ran out in a row",
            ),
            expired: counter(
                "ringback_carrier_expired_jobs_total",
                "Dead jobs removed after their retention",
            ),
            revived: counter(
                "ringback_carrier_revived_jobs_total",
                "Dead jobs ready again by a call that revives many",
            ),
            told: counter("ringback_carrier_told_deaths_total", "Deaths of which a notice was submitted"),
            untold: counter(
                "ringback_carrier_untold_deaths_total",
                "Notices that the store did not take, each time; they are submitted again later",
            ),
            unreadable: counter(
                "ringback_carrier_unreadable_deaths_total",
                "Deaths that were not told because they could not be read",
            ),
            fenced: counter(
                "ringback_carrier_fenced_total",
                "Passes refused because the shard had changed hands",
            ),
            pass: meter
                .f64_histogram("ringback_carrier_pass_seconds")
                .with_description("How long a pass over a shard took")
                .with_boundaries(seconds)
                .build(),
            shards: meter.u64_gauge("ringback_carrier_shards").with_description("Shards held here").build(),
        }
    }
}
