//! What a notifier counts. Names appear on `/metrics` as they stand here.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

/// How an attempt is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Complete,
    Retry,
    Bury,
    Release,
    LeaseLost,
}

impl Counted {
    const ALL: [Self; 5] = [Self::Complete, Self::Retry, Self::Bury, Self::Release, Self::LeaseLost];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Retry => "retry",
            Self::Bury => "bury",
            Self::Release => "release",
            Self::LeaseLost => "lease_lost",
        }
    }
}

/// The notifier's instruments.
#[derive(Clone)]
pub(crate) struct Metrics {
    attempts: Counter<u64>,
    labels: [[KeyValue; 1]; 5],
    /// How long attempts took.
    pub(crate) attempt: Histogram<f64>,
    /// From due to sent.
    pub(crate) lateness: Histogram<f64>,
    /// Callbacks in flight.
    pub(crate) in_flight: Gauge<u64>,
    /// Jobs per reserve.
    pub(crate) reserved: Histogram<u64>,
    /// Jobs per settle.
    pub(crate) settle_batch: Histogram<u64>,
    /// Settles that came after their lease had run out and changed nothing.
    pub(crate) stale_settles: Counter<u64>,
    /// Successes that came after their lease had run out and counted all the same.
    pub(crate) late_settles: Counter<u64>,
    /// Outcomes that could not be told to the store in time.
    pub(crate) unsettled: Counter<u64>,
    /// Attempts that are not in the log.
    pub(crate) unnoted: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name, about| meter.u64_counter(name).with_description(about).build();
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
        Self {
            attempts: counter("ringback_notifier_attempts_total", "Attempts, by what became of them"),
            labels: Counted::ALL.map(|result| [KeyValue::new("result", result.name())]),
            attempt: seconds("ringback_notifier_attempt_seconds", "How long attempts took"),
            lateness: seconds("ringback_notifier_lateness_seconds", "From due to sent"),
            in_flight: meter
                .u64_gauge("ringback_notifier_in_flight")
                .with_description("Callbacks in flight")
                .build(),
            reserved: jobs("ringback_notifier_reserve_jobs", "Jobs per reserve"),
            settle_batch: jobs("ringback_notifier_settle_jobs", "Jobs per settle"),
            stale_settles: counter("ringback_notifier_stale_settles_total", "Outcomes too late to count"),
            late_settles: counter(
                "ringback_notifier_late_settles_total",
                "Successes that came late and counted",
            ),
            unsettled: counter("ringback_notifier_unsettled_total", "Outcomes that never reached the store"),
            unnoted: counter(
                "ringback_notifier_unnoted_attempts_total",
                "Attempts that could not be noted in the log of attempts",
            ),
        }
    }

    /// Counts one attempt.
    pub(crate) fn count(&self, result: Counted) {
        self.attempts.add(1, &self.labels[result as usize]);
    }
}
