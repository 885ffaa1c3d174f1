//! The metrics of a notifier. Each appears on `/metrics` under the name given here.

use std::array;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use ringback_service::telemetry;
use strum::VariantArray as _;

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

/// The instruments of a notifier; their descriptions are in [`Metrics::new`].
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
        let counter = |name, about| telemetry::counter(meter, name, about);
        let jobs = |name, about| {
            let bounds = vec![0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
            meter.u64_histogram(name).with_description(about).with_boundaries(bounds).build()
        };
        let seconds = |name, about| {
            let bounds = vec![
                0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0,
                3600.0,
            ];
            meter.f64_histogram(name).with_description(about).with_boundaries(bounds).build()
        };
        let in_flight = meter.u64_gauge("ringback_notifier_in_flight_jobs");
        let attempts = meter.u64_counter("ringback_notifier_attempts_total");
        let attempts = attempts.with_description("Delivery attempts, by result").build();
        let labels = array::from_fn(|n| [KeyValue::new("result", <&str>::from(AttemptResult::VARIANTS[n]))]);
        labels.iter().for_each(|label| attempts.add(0, label));
        Self {
            attempts,
            labels,
            attempt: seconds("ringback_notifier_attempt_duration_seconds", "Duration of delivery attempts"),
            lateness: seconds("ringback_notifier_lateness_seconds", "Time from due to sent"),
            in_flight: in_flight.with_description("Jobs reserved and not settled yet").build(),
            reserve_batch: jobs("ringback_notifier_reserve_batch_jobs", "Jobs per reserve"),
            settle_batch: jobs("ringback_notifier_settle_batch_jobs", "Jobs per settle"),
            late_settles: counter(
                "ringback_notifier_late_settles_total",
                "Successes recorded after their lease had expired",
            ),
            stale_settles: counter(
                "ringback_notifier_stale_settles_total",
                "Outcomes discarded because their lease had expired",
            ),
            unsettled: counter(
                "ringback_notifier_unsettled_jobs_total",
                "Jobs whose outcome could not be settled in time",
            ),
            unlogged: counter(
                "ringback_notifier_unlogged_attempts_total",
                "Attempts that could not be written to the attempt log",
            ),
            forbidden: counter(
                "ringback_notifier_forbidden_connections_total",
                "Connections to destinations that the address guard has refused",
            ),
        }
    }

    pub(crate) fn count(&self, result: AttemptResult) {
        self.attempts.add(1, &self.labels[result as usize]);
    }
}
