//! The metrics of a carrier. Each appears on `/metrics` under the name given here.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_core::contract::BulkVerb;
use ringback_service::telemetry;
use ringback_store::Store;
use strum::VariantArray as _;

/// Gauges that are read from the store when metrics are asked for. Their sums and maxima over all carriers are
/// those of the installation.
pub(crate) const JOBS: &str = "ringback_jobs";
pub(crate) const MISSING_JOBS: &str = "ringback_missing_jobs";
pub(crate) const EVICTED_EARLY: &str = "ringback_tombstones_evicted_early";
pub(crate) const MEMORY: &str = "ringback_store_memory_ratio";
pub(crate) const OLDEST_READY: &str = "ringback_oldest_ready_seconds";
pub(crate) const TOPIC_JOBS: &str = "ringback_topic_jobs";
pub(crate) const TOPIC_OLDEST_READY: &str = "ringback_topic_oldest_ready_seconds";
pub(crate) const COUNTED_SHARDS: &str = "ringback_carrier_counted_shards";
pub(crate) const ARCHIVE_PENDING: &str = "ringback_archive_pending_ended_jobs";
pub(crate) const ARCHIVE_BYTES: &str = "ringback_archive_pending_bytes";
pub(crate) const ARCHIVE_DROPPED: &str = "ringback_archive_dropped_ended_jobs";
pub(crate) const ARCHIVE_OLDEST: &str = "ringback_archive_oldest_seconds";
pub(crate) const ARCHIVE_FULL: &str = "ringback_archive_full_shards";

/// The instruments of a carrier; their descriptions are in [`Metrics::new`].
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) promoted: Counter<u64>,
    pub(crate) recovered: Counter<u64>,
    pub(crate) expired_pull_leases: Counter<u64>,
    pub(crate) unlogged: Counter<u64>,
    pub(crate) lost: Counter<u64>,
    pub(crate) evicted: Counter<u64>,
    pub(crate) revived: Counter<u64>,
    pub(crate) changed: Counter<u64>,
    pub(crate) published_notices: Counter<u64>,
    pub(crate) rejected_notices: Counter<u64>,
    pub(crate) unreadable_dead_letters: Counter<u64>,
    pub(crate) fired: Counter<u64>,
    pub(crate) missed_firings: Counter<u64>,
    pub(crate) overlapped_firings: Counter<u64>,
    pub(crate) refused_firings: Counter<u64>,
    pub(crate) firing_lateness: Histogram<f64>,
    pub(crate) fenced: Counter<u64>,
    pub(crate) pass: Histogram<f64>,
    pub(crate) shards: Gauge<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name, about| telemetry::counter(meter, name, about);
        let seconds = vec![0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0];
        let pass =
            meter.f64_histogram("ringback_carrier_pass_duration_seconds").with_boundaries(seconds.clone());
        let lateness =
            meter.f64_histogram("ringback_carrier_firing_lateness_seconds").with_boundaries(seconds);
        let changed = meter.u64_counter("ringback_carrier_changed_jobs_total");
        let changed = changed.with_description("Jobs changed by bulk operations on a filter").build();
        for &verb in BulkVerb::VARIANTS {
            changed.add(0, &[KeyValue::new("action", <&str>::from(verb))]);
        }
        Self {
            promoted: counter("ringback_carrier_promoted_jobs_total", "Jobs moved from delayed to ready"),
            recovered: counter(
                "ringback_carrier_recovered_jobs_total",
                "Push jobs made ready again after their lease expired",
            ),
            expired_pull_leases: counter(
                "ringback_carrier_expired_pull_leases_total",
                "Pull jobs failed because the lease of their consumer expired",
            ),
            unlogged: counter(
                "ringback_carrier_unlogged_attempts_total",
                "Expired pull leases not in the attempt log",
            ),
            lost: counter("ringback_carrier_lost_jobs_total", "Jobs dead after too many lost leases"),
            evicted: counter("ringback_carrier_evicted_jobs_total", "Dead jobs removed after retention"),
            revived: counter("ringback_carrier_revived_jobs_total", "Dead jobs made ready by bulk revives"),
            changed,
            published_notices: counter(
                "ringback_carrier_published_dead_letter_notices_total",
                "Notices submitted as jobs",
            ),
            rejected_notices: counter(
                "ringback_carrier_rejected_dead_letter_notices_total",
                "Submits of notices that failed; each is retried",
            ),
            unreadable_dead_letters: counter(
                "ringback_carrier_unreadable_dead_letters_total",
                "Outbox entries without a notice because they cannot be read",
            ),
            fired: counter("ringback_carrier_fired_jobs_total", "Jobs that schedules have submitted"),
            missed_firings: counter(
                "ringback_carrier_missed_firings_total",
                "Firings of schedules that were missed and not made up for",
            ),
            overlapped_firings: counter(
                "ringback_carrier_overlapped_firings_total",
                "Firings left out because the job of the one before had not ended",
            ),
            refused_firings: counter(
                "ringback_carrier_refused_firings_total",
                "Jobs of schedules that a quota or a limit has refused; each is retried",
            ),
            firing_lateness: lateness
                .with_description("Time from that of a firing until its job is submitted")
                .build(),
            fenced: counter(
                "ringback_carrier_fenced_shards_total",
                "Shards lost because another carrier claimed them",
            ),
            pass: pass.with_description("Duration of a pass over a shard").build(),
            shards: meter
                .u64_gauge("ringback_carrier_held_shards")
                .with_description("Shards held by this carrier")
                .build(),
        }
    }
}

/// Shows whether the store removes jobs when its memory is short.
pub(crate) fn show_eviction(meter: &Meter, store: Store) {
    meter
        .u64_observable_gauge("ringback_store_evicts_keys")
        .with_description("1 if the maxmemory-policy of the store removes jobs when memory is short, else 0")
        .with_callback(move |gauge| gauge.observe(u64::from(store.evicts()), &[]))
        .build();
}
