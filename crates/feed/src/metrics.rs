//! The metrics of a feed process: results of rows, failures, durations of passes, lag, and remembered rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use ringback_core::clock::{Clock, Timestamp};
use ringback_core::store_types::FeedName;
use ringback_service::{GaugeValues, Scrapes};
use strum::VariantArray as _;

const SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0];

ringback_service::metrics! {
    struct Instruments {
        rows: Counter<u64> = "ringback_feed_rows_total",
            "Rows read, each row by each pass: submitted, replaced, kept (the job has other content), unchanged, cancelled, postponed (tried again), refused (not a job)", by "feed" "result";
        failures: Counter<u64> = "ringback_feed_failures_total",
            "Passes and batches that could not be completed, and are tried again", by "feed";
        pass: Histogram<f64> = "ringback_feed_pass_duration_seconds",
            "How long a complete pass over the rows of a feed takes; not for an outbox", by "feed", buckets SECONDS;
    }
    read {
        LAG: Gauge = "ringback_feed_lag_seconds",
            "How long ago the last complete pass over a feed of this process began, or since when rows wait in its outbox, 0 for none", by "feed";
        REMEMBERED: Gauge = "ringback_feed_remembered_rows",
            "Rows of a feed of this process that are remembered", by "feed";
    }
}

/// What a feed process records.
#[derive(Clone)]
pub(crate) struct Metrics {
    instruments: Instruments,
    states: States,
}

/// How far each feed that this process has is.
type States = Arc<Mutex<BTreeMap<String, State>>>;

#[derive(Clone, Copy)]
struct State {
    /// When the last complete pass began; `None` while nothing waits in an outbox.
    complete: Option<Timestamp>,
    remembered: usize,
}

/// What has become of a row, as the label `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum RowResult {
    /// A new job.
    Submitted,
    /// A job was changed.
    Replaced,
    /// A job has other content and keeps it.
    Kept,
    /// Nothing was to be done.
    Unchanged,
    /// A job was cancelled.
    Cancelled,
    /// It can be loaded later.
    Postponed,
    /// It is not a job.
    Refused,
}

impl Metrics {
    /// Creates the instruments.
    pub(crate) fn new(meter: &Meter, scrapes: &Scrapes, clock: Arc<dyn Clock>) -> Self {
        let states = States::default();
        let shown = Arc::clone(&states);
        scrapes.add(move || std::future::ready(gauges(&shown, clock.now())));
        Self { instruments: Instruments::create(meter), states }
    }

    /// Makes the counters of a feed visible with 0.
    pub(crate) fn begin(&self, feed: &FeedName) {
        self.instruments.failures.add(0, &[of(feed)]);
        for &result in RowResult::VARIANTS {
            self.instruments.rows.add(0, &[of(feed), KeyValue::new("result", <&str>::from(result))]);
        }
    }

    pub(crate) fn rows(&self, feed: &FeedName, result: RowResult, count: u64) {
        if count > 0 {
            self.instruments.rows.add(count, &[of(feed), KeyValue::new("result", <&str>::from(result))]);
        }
    }

    /// Counts a pass or a batch that could not be completed.
    pub(crate) fn failed(&self, feed: &FeedName) {
        self.instruments.failures.add(1, &[of(feed)]);
    }

    /// Records how long a complete pass took.
    pub(crate) fn passed(&self, feed: &FeedName, seconds: f64) {
        self.instruments.pass.record(seconds, &[of(feed)]);
    }

    /// Records when the last complete pass over a feed of this process began, and how many rows are remembered.
    pub(crate) fn complete(&self, feed: &FeedName, since: Timestamp, remembered: usize) {
        self.set(feed, State { complete: Some(since), remembered });
    }

    /// Records that nothing waits in the outbox of a feed of this process.
    pub(crate) fn caught_up(&self, feed: &FeedName) {
        self.set(feed, State { complete: None, remembered: 0 });
    }

    /// Records that rows may wait in an outbox since `now`, unless that is recorded with an earlier time.
    pub(crate) fn falls_behind(&self, feed: &FeedName, now: Timestamp) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let state = states.entry(feed.to_string()).or_insert(State { complete: None, remembered: 0 });
        state.complete.get_or_insert(now);
    }

    fn set(&self, feed: &FeedName, state: State) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(feed.to_string(), state);
    }

    /// Removes the lag and the remembered rows of a feed, because another process may have it.
    pub(crate) fn lost(&self, feed: &FeedName) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).remove(feed.as_str());
    }
}

fn of(feed: &FeedName) -> KeyValue {
    KeyValue::new("feed", feed.to_string())
}

fn gauges(states: &States, now: Timestamp) -> Vec<GaugeValues> {
    let states = states.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let gauge = |metric, value: &dyn Fn(&State) -> f64| GaugeValues {
        metric,
        values: states.iter().map(|(feed, state)| (vec![feed.clone()], value(state))).collect(),
    };
    vec![
        gauge(LAG, &|state| state.complete.map_or(0.0, |since| now.since(since).as_secs_f64())),
        gauge(REMEMBERED, &|state| state.remembered as f64),
    ]
}
