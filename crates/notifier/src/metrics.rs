//! The metrics of a notifier: attempts, lateness, jobs in flight, and reserves and settles.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use strum::VariantArray as _;

const SECONDS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];
const JOBS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

ringback_service::metrics! {
    struct Metrics {
        attempts: Counter<u64> = "ringback_notifier_attempts_total",
            "Delivery attempts: complete, retry, bury, release, lease_lost", by "result";
        attempt: Histogram<f64> = "ringback_notifier_attempt_duration_seconds",
            "Duration of delivery attempts", buckets SECONDS;
        lateness: Histogram<f64> = "ringback_notifier_lateness_seconds",
            "Time from due to sent, by the clock of the store", buckets SECONDS;
        in_flight: Gauge<u64> = "ringback_notifier_in_flight_jobs",
            "Jobs reserved and not settled yet";
        reserve_batch: Histogram<u64> = "ringback_notifier_reserve_batch_jobs",
            "Jobs per reserve, with or without a settle in the same call", buckets JOBS;
        settle_batch: Histogram<u64> = "ringback_notifier_settle_batch_jobs",
            "Jobs per settle, with or without a reserve in the same call", buckets JOBS;
        late_settles: Counter<u64> = "ringback_notifier_late_settles_total",
            "Successes recorded after their lease had expired";
        stale_settles: Counter<u64> = "ringback_notifier_stale_settles_total",
            "Outcomes discarded because their lease had expired";
        unsettled: Counter<u64> = "ringback_notifier_unsettled_jobs_total",
            "Jobs whose outcome could not be settled in time: a failure until its lease expired, a success for five minutes more";
        unlogged: Counter<u64> = "ringback_notifier_unlogged_attempts_total",
            "Attempts that are missing in the attempt log, because the store was too full, too slow or away";
        breaker_openings: Counter<u64> = "ringback_notifier_breaker_openings_total",
            "Breakers that have opened, or opened again, by reports of this notifier";
        forbidden: Counter<u64> = "ringback_notifier_forbidden_connections_total",
            "Connections to destinations that the address guard has refused";
    }
}

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

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let metrics = Self::create(meter);
        AttemptResult::VARIANTS.iter().for_each(|result| metrics.attempts.add(0, &[result.label()]));
        metrics
    }

    pub(crate) fn count(&self, result: AttemptResult) {
        self.attempts.add(1, &[result.label()]);
    }
}

impl AttemptResult {
    fn label(self) -> KeyValue {
        KeyValue::new("result", <&str>::from(self))
    }
}
