//! The metrics of a carrier. Of the gauges that are read from the store, the sums and maxima over all carriers are those
//! of the installation.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_core::store_types::BulkVerb;
use ringback_store::Store;
use strum::VariantArray as _;

const SECONDS: &[f64] = &[0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0];

ringback_service::metrics! {
    struct Metrics {
        shards: Gauge<u64> = "ringback_carrier_held_shards",
            "Shards held by this carrier; the sum over all carriers is RINGBACK_SHARDS while no shard moves";
        pass: Histogram<f64> = "ringback_carrier_pass_duration_seconds",
            "Duration of a pass over a shard", buckets SECONDS;
        promoted: Counter<u64> = "ringback_carrier_promoted_jobs_total",
            "Jobs that carriers moved from delayed to ready";
        recovered: Counter<u64> = "ringback_carrier_recovered_jobs_total",
            "Push jobs made ready again after their lease expired";
        expired_pull_leases: Counter<u64> = "ringback_carrier_expired_pull_leases_total",
            "Pull jobs failed because the lease of their consumer expired";
        unlogged: Counter<u64> = "ringback_carrier_unlogged_attempts_total",
            "Expired pull leases that are missing in the attempt log";
        lost: Counter<u64> = "ringback_carrier_lost_jobs_total",
            "Jobs dead after five leases in a row expired";
        evicted: Counter<u64> = "ringback_carrier_evicted_jobs_total",
            "Dead jobs removed after RINGBACK_KEEP_DEAD";
        changed: Counter<u64> = "ringback_carrier_changed_jobs_total",
            "Jobs changed by bulk operations: cancel, run, revive, reschedule, purge", by "action";
        published_notices: Counter<u64> = "ringback_carrier_notices_published_total",
            "Notices of deaths and successes submitted as jobs, repetitions included";
        rejected_notices: Counter<u64> = "ringback_carrier_rejected_dead_letter_notices_total",
            "Submits of notices that failed; each is retried";
        outbox_unreadable: Counter<u64> = "ringback_carrier_outbox_unreadable_total",
            "Outbox entries without a notice because they cannot be read";
        fired: Counter<u64> = "ringback_carrier_fired_jobs_total",
            "Jobs that schedules have submitted";
        missed_firings: Counter<u64> = "ringback_carrier_missed_firings_total",
            "Firings of schedules that were missed and not made up for";
        overlapped_firings: Counter<u64> = "ringback_carrier_overlapped_firings_total",
            "Firings left out because the job of the one before had not ended";
        refused_firings: Counter<u64> = "ringback_carrier_refused_firings_total",
            "Jobs of schedules that a quota or a limit has refused; each is retried";
        firing_lateness: Histogram<f64> = "ringback_carrier_firing_lateness_seconds",
            "Time from a firing until its job is submitted, by the clock of the store", buckets SECONDS;
        fenced: Counter<u64> = "ringback_carrier_fenced_passes_total",
            "Passes refused because another carrier holds the shard";
    }
    read {
        COUNTED_SHARDS: Gauge = "ringback_carrier_counted_shards",
            "Shards whose jobs this carrier counts in its gauges: all that it holds, or 0 if one cannot be read";
        JOBS: Gauge = "ringback_jobs",
            "Jobs by state in the shards held by this carrier; done and cancelled since the installation began", by "state";
        MISSING_JOBS: Gauge = "ringback_missing_jobs",
            "Accepted jobs of the shards held by this carrier that repairs have found to be missing";
        OLDEST_READY: Gauge = "ringback_oldest_ready_seconds",
            "How long the oldest ready job in the shards held by this carrier has been due, those of paused topics and destinations included; 0 if none is ready";
        TOPIC_JOBS: Gauge = "ringback_topic_jobs",
            "Jobs by topic and state in the shards held by this carrier, for topics whose policy has metrics; done and cancelled since the topic became known", by "topic" "state";
        TOPIC_OLDEST_READY: Gauge = "ringback_topic_oldest_ready_seconds",
            "How long the oldest ready job of such a topic in the shards held by this carrier has been due", by "topic";
        EVICTED_EARLY: Gauge = "ringback_tombstones_evicted_early",
            "Tombstones of these shards that were evicted before RINGBACK_KEEP_DONE, since the installation began";
        MEMORY: Gauge = "ringback_store_memory_ratio",
            "The share of maxmemory that Redis uses, of several servers that of the fullest; absent without a limit and on an embedded store";
        OPEN_BREAKERS: Gauge = "ringback_open_breakers",
            "Breakers of tenants and origins that are open or returning, of the whole installation, in each carrier that holds shards";
        EVICTS_KEYS: Gauge = "ringback_store_evicts_keys",
            "1 if the maxmemory-policy of Redis removes jobs when memory is short, else 0; with 1 submits are refused and no process is ready";
        ARCHIVE_PENDING: Gauge = "ringback_archive_pending_ended_jobs",
            "Ended jobs that wait for the archive in the shards held by this carrier";
        ARCHIVE_BYTES: Gauge = "ringback_archive_pending_bytes",
            "How many bytes these ended jobs take in the store";
        ARCHIVE_OLDEST: Gauge = "ringback_archive_oldest_seconds",
            "How long ago the first of these jobs ended; 0 if none waits";
        ARCHIVE_FULL: Gauge = "ringback_archive_full_shards",
            "Shards held by this carrier that refuse submits because too many ended jobs wait for the archive";
        ARCHIVE_DROPPED: Gauge = "ringback_archive_dropped_ended_jobs",
            "Ended jobs of these shards that were dropped since the installation began, and are in no archive";
    }
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let metrics = Self::create(meter);
        for &verb in BulkVerb::VARIANTS {
            metrics.changed.add(0, &[KeyValue::new("action", <&str>::from(verb))]);
        }
        metrics
    }
}

/// Registers the gauge that shows whether the store removes jobs when its memory is short.
pub(crate) fn show_eviction(meter: &Meter, store: Store) {
    meter
        .u64_observable_gauge(EVICTS_KEYS.name)
        .with_description(EVICTS_KEYS.about)
        .with_callback(move |gauge| gauge.observe(u64::from(store.evicts()), &[]))
        .build();
}
