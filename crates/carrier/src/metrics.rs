//! The metrics of a carrier. Each appears on `/metrics` under the name given here.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_core::contract::BulkVerb;
use ringback_service::telemetry::{Metric, counter};
use ringback_store::Store;
use strum::VariantArray as _;

/// Gauges that are read from the store when metrics are asked for. Their sums and maxima over all carriers are
/// those of the installation.
pub(crate) const JOBS: Metric = Metric::gauge(
    "ringback_jobs",
    "Jobs by state in the shards held by this carrier; done and cancelled since the installation began",
)
.by(&["state"]);
pub(crate) const MISSING_JOBS: Metric = Metric::gauge(
    "ringback_missing_jobs",
    "Accepted jobs of the shards held by this carrier that repairs have found to be missing",
);
pub(crate) const EVICTED_EARLY: Metric = Metric::gauge(
    "ringback_tombstones_evicted_early",
    "Tombstones of these shards that were evicted before RINGBACK_KEEP_DONE, since the installation began",
);
pub(crate) const MEMORY: Metric = Metric::gauge(
    "ringback_store_memory_ratio",
    "The share of maxmemory that Redis uses, of several servers that of the fullest; absent without a limit and on an embedded store",
);
pub(crate) const OLDEST_READY: Metric = Metric::gauge(
    "ringback_oldest_ready_seconds",
    "How long the oldest ready job in the shards held by this carrier has been due, those of paused topics and destinations included; 0 if none is ready",
);
pub(crate) const TOPIC_JOBS: Metric = Metric::gauge(
    "ringback_topic_jobs",
    "Jobs by topic and state in the shards held by this carrier, for topics whose policy has metrics; done and cancelled since the topic became known",
)
.by(&["topic", "state"]);
pub(crate) const TOPIC_OLDEST_READY: Metric = Metric::gauge(
    "ringback_topic_oldest_ready_seconds",
    "How long the oldest ready job of such a topic in the shards held by this carrier has been due",
)
.by(&["topic"]);
pub(crate) const COUNTED_SHARDS: Metric = Metric::gauge(
    "ringback_carrier_counted_shards",
    "Shards whose jobs this carrier counts in its gauges: all that it holds, or 0 if one cannot be read",
);
pub(crate) const ARCHIVE_PENDING: Metric = Metric::gauge(
    "ringback_archive_pending_ended_jobs",
    "Ended jobs that wait for the archive in the shards held by this carrier",
);
pub(crate) const ARCHIVE_BYTES: Metric =
    Metric::gauge("ringback_archive_pending_bytes", "How many bytes these ended jobs take in the store");
pub(crate) const ARCHIVE_DROPPED: Metric = Metric::gauge(
    "ringback_archive_dropped_ended_jobs",
    "Ended jobs of these shards that were dropped since the installation began, and are in no archive",
);
pub(crate) const ARCHIVE_OLDEST: Metric = Metric::gauge(
    "ringback_archive_oldest_seconds",
    "How long ago the first of these jobs ended; 0 if none waits",
);
pub(crate) const ARCHIVE_FULL: Metric = Metric::gauge(
    "ringback_archive_full_shards",
    "Shards held by this carrier that refuse submits because too many ended jobs wait for the archive",
);

const PROMOTED: Metric =
    Metric::counter("ringback_carrier_promoted_jobs_total", "Jobs moved from delayed to ready");
const RECOVERED: Metric = Metric::counter(
    "ringback_carrier_recovered_jobs_total",
    "Push jobs made ready again after their lease expired",
);
const EXPIRED_PULL_LEASES: Metric = Metric::counter(
    "ringback_carrier_expired_pull_leases_total",
    "Pull jobs failed because the lease of their consumer expired",
);
const UNLOGGED: Metric = Metric::counter(
    "ringback_carrier_unlogged_attempts_total",
    "Expired pull leases that are missing in the attempt log",
);
const LOST: Metric =
    Metric::counter("ringback_carrier_lost_jobs_total", "Jobs dead after five leases in a row expired");
const EVICTED: Metric =
    Metric::counter("ringback_carrier_evicted_jobs_total", "Dead jobs removed after RINGBACK_KEEP_DEAD");
const CHANGED: Metric = Metric::counter(
    "ringback_carrier_changed_jobs_total",
    "Jobs changed by bulk operations: cancel, run, revive, reschedule, purge",
)
.by(&["action"]);
const PUBLISHED_NOTICES: Metric = Metric::counter(
    "ringback_carrier_notices_published_total",
    "Notices of deaths and successes submitted as jobs, repetitions included",
);
const REJECTED_NOTICES: Metric = Metric::counter(
    "ringback_carrier_rejected_dead_letter_notices_total",
    "Submits of notices that failed; each is retried",
);
const OUTBOX_UNREADABLE: Metric = Metric::counter(
    "ringback_carrier_outbox_unreadable_total",
    "Outbox entries without a notice because they cannot be read",
);
const FIRED: Metric =
    Metric::counter("ringback_carrier_fired_jobs_total", "Jobs that schedules have submitted");
const FIRING_LATENESS: Metric = Metric::histogram(
    "ringback_carrier_firing_lateness_seconds",
    "Time from a firing until its job is submitted, by the clock of the store",
);
const MISSED_FIRINGS: Metric = Metric::counter(
    "ringback_carrier_missed_firings_total",
    "Firings of schedules that were missed and not made up for",
);
const OVERLAPPED_FIRINGS: Metric = Metric::counter(
    "ringback_carrier_overlapped_firings_total",
    "Firings left out because the job of the one before had not ended",
);
const REFUSED_FIRINGS: Metric = Metric::counter(
    "ringback_carrier_refused_firings_total",
    "Jobs of schedules that a quota or a limit has refused; each is retried",
);
const FENCED: Metric = Metric::counter(
    "ringback_carrier_fenced_passes_total",
    "Passes refused because another carrier holds the shard",
);
const PASS: Metric =
    Metric::histogram("ringback_carrier_pass_duration_seconds", "Duration of a pass over a shard");
const HELD_SHARDS: Metric = Metric::gauge(
    "ringback_carrier_held_shards",
    "Shards held by this carrier; the sum over all carriers is RINGBACK_SHARDS while no shard moves",
);
const EVICTS_KEYS: Metric = Metric::gauge(
    "ringback_store_evicts_keys",
    "1 if the maxmemory-policy of Redis removes jobs when memory is short, else 0; with 1 submits are refused and no process is ready",
);

/// The metrics of a carrier.
pub const METRICS: &[Metric] = &[
    HELD_SHARDS,
    COUNTED_SHARDS,
    PASS,
    PROMOTED,
    RECOVERED,
    EXPIRED_PULL_LEASES,
    UNLOGGED,
    LOST,
    EVICTED,
    CHANGED,
    PUBLISHED_NOTICES,
    REJECTED_NOTICES,
    OUTBOX_UNREADABLE,
    FIRED,
    FIRING_LATENESS,
    MISSED_FIRINGS,
    OVERLAPPED_FIRINGS,
    REFUSED_FIRINGS,
    FENCED,
    JOBS,
    MISSING_JOBS,
    OLDEST_READY,
    TOPIC_JOBS,
    TOPIC_OLDEST_READY,
    EVICTED_EARLY,
    MEMORY,
    EVICTS_KEYS,
    ARCHIVE_PENDING,
    ARCHIVE_BYTES,
    ARCHIVE_OLDEST,
    ARCHIVE_FULL,
    ARCHIVE_DROPPED,
];

/// The instruments of a carrier.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) promoted: Counter<u64>,
    pub(crate) recovered: Counter<u64>,
    pub(crate) expired_pull_leases: Counter<u64>,
    pub(crate) unlogged: Counter<u64>,
    pub(crate) lost: Counter<u64>,
    pub(crate) evicted: Counter<u64>,
    pub(crate) changed: Counter<u64>,
    pub(crate) published_notices: Counter<u64>,
    pub(crate) rejected_notices: Counter<u64>,
    pub(crate) outbox_unreadable: Counter<u64>,
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
        let counter = |metric| counter(meter, metric);
        let seconds = |metric: Metric| {
            let bounds = vec![0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0];
            meter.f64_histogram(metric.name).with_description(metric.about).with_boundaries(bounds).build()
        };
        let changed = counter(CHANGED);
        for &verb in BulkVerb::VARIANTS {
            changed.add(0, &[KeyValue::new("action", <&str>::from(verb))]);
        }
        Self {
            promoted: counter(PROMOTED),
            recovered: counter(RECOVERED),
            expired_pull_leases: counter(EXPIRED_PULL_LEASES),
            unlogged: counter(UNLOGGED),
            lost: counter(LOST),
            evicted: counter(EVICTED),
            changed,
            published_notices: counter(PUBLISHED_NOTICES),
            rejected_notices: counter(REJECTED_NOTICES),
            outbox_unreadable: counter(OUTBOX_UNREADABLE),
            fired: counter(FIRED),
            missed_firings: counter(MISSED_FIRINGS),
            overlapped_firings: counter(OVERLAPPED_FIRINGS),
            refused_firings: counter(REFUSED_FIRINGS),
            firing_lateness: seconds(FIRING_LATENESS),
            fenced: counter(FENCED),
            pass: seconds(PASS),
            shards: meter.u64_gauge(HELD_SHARDS.name).with_description(HELD_SHARDS.about).build(),
        }
    }
}

/// Shows whether the store removes jobs when its memory is short.
pub(crate) fn show_eviction(meter: &Meter, store: Store) {
    meter
        .u64_observable_gauge(EVICTS_KEYS.name)
        .with_description(EVICTS_KEYS.about)
        .with_callback(move |gauge| gauge.observe(u64::from(store.evicts()), &[]))
        .build();
}
