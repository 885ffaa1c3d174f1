//! The metrics of a notifier. Each appears on `/metrics` under the name given here.

use std::array;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_service::telemetry::{Metric, counter};
use strum::VariantArray as _;

const ATTEMPTS: Metric = Metric::counter(
    "ringback_notifier_attempts_total",
    "Delivery attempts: complete, retry, bury, release, lease_lost",
)
.by(&["result"]);
const ATTEMPT: Metric =
    Metric::histogram("ringback_notifier_attempt_duration_seconds", "Duration of delivery attempts");
const LATENESS: Metric = Metric::histogram(
    "ringback_notifier_lateness_seconds",
    "Time from due to sent, by the clock of the store",
);
const IN_FLIGHT: Metric =
    Metric::gauge("ringback_notifier_in_flight_jobs", "Jobs reserved and not settled yet");
const RESERVE_BATCH: Metric = Metric::histogram(
    "ringback_notifier_reserve_batch_jobs",
    "Jobs per reserve, with or without a settle in the same call",
);
const SETTLE_BATCH: Metric = Metric::histogram(
    "ringback_notifier_settle_batch_jobs",
    "Jobs per settle, with or without a reserve in the same call",
);
const LATE_SETTLES: Metric = Metric::counter(
    "ringback_notifier_late_settles_total",
    "Successes recorded after their lease had expired",
);
const STALE_SETTLES: Metric = Metric::counter(
    "ringback_notifier_stale_settles_total",
    "Outcomes discarded because their lease had expired",
);
const UNSETTLED: Metric = Metric::counter(
    "ringback_notifier_unsettled_jobs_total",
    "Jobs whose outcome could not be settled in time: a failure until its lease expired, a success for five minutes more",
);
const UNLOGGED: Metric = Metric::counter(
    "ringback_notifier_unlogged_attempts_total",
    "Attempts that are missing in the attempt log, because the store was too full, too slow or away",
);
const FORBIDDEN: Metric = Metric::counter(
    "ringback_notifier_forbidden_connections_total",
    "Connections to destinations that the address guard has refused",
);

/// The metrics of a notifier.
pub const METRICS: &[Metric] = &[
    ATTEMPTS,
    ATTEMPT,
    LATENESS,
    IN_FLIGHT,
    RESERVE_BATCH,
    SETTLE_BATCH,
    LATE_SETTLES,
    STALE_SETTLES,
    UNSETTLED,
    UNLOGGED,
    FORBIDDEN,
];

/// The label `result` of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum AttemptResult {
    Complete,
    Retry,
    Bury,
    Release,
    LeaseLost,
}

/// The instruments of a notifier.
#[derive(Clone)]
pub(crate) struct Metrics {
    attempts: Counter<u64>,
    labels: [[KeyValue; 1]; 5],
    pub(crate) attempt: Histogram<f64>,
    pub(crate) lateness: Histogram<f64>,
    pub(crate) in_flight: Gauge<u64>,
    pub(crate) reserve_batch: Histogram<u64>,
    pub(crate) settle_batch: Histogram<u64>,
    pub(crate) late_settles: Counter<u64>,
    pub(crate) stale_settles: Counter<u64>,
    pub(crate) unsettled: Counter<u64>,
    pub(crate) unlogged: Counter<u64>,
    pub(crate) forbidden: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |metric| counter(meter, metric);
        let jobs = |metric: Metric| {
            let bounds = vec![0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
            meter.u64_histogram(metric.name).with_description(metric.about).with_boundaries(bounds).build()
        };
        let seconds = |metric: Metric| {
            let bounds = vec![
                0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0,
                3600.0,
            ];
            meter.f64_histogram(metric.name).with_description(metric.about).with_boundaries(bounds).build()
        };
        let in_flight = meter.u64_gauge(IN_FLIGHT.name).with_description(IN_FLIGHT.about);
        let attempts = counter(ATTEMPTS);
        let labels = array::from_fn(|n| [KeyValue::new("result", <&str>::from(AttemptResult::VARIANTS[n]))]);
        labels.iter().for_each(|label| attempts.add(0, label));
        Self {
            attempts,
            labels,
            attempt: seconds(ATTEMPT),
            lateness: seconds(LATENESS),
            in_flight: in_flight.build(),
            reserve_batch: jobs(RESERVE_BATCH),
            settle_batch: jobs(SETTLE_BATCH),
            late_settles: counter(LATE_SETTLES),
            stale_settles: counter(STALE_SETTLES),
            unsettled: counter(UNSETTLED),
            unlogged: counter(UNLOGGED),
            forbidden: counter(FORBIDDEN),
        }
    }

    pub(crate) fn count(&self, result: AttemptResult) {
        self.attempts.add(1, &self.labels[result as usize]);
    }
}
