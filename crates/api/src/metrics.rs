//! What is counted. Labels are bounded: routes come from the table, methods and statuses from
//! the HTTP standard.

use std::time::Duration;

use http::{Method, StatusCode};
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};
use opentelemetry::{KeyValue, Value};
use ringback_core::contract::SubmitResult;

const REQUESTS: &str = "ringback_api_requests_total";
const REQUEST_SECONDS: &str = "ringback_api_request_seconds";
const SUBMITTED: &str = "ringback_api_submitted_jobs_total";
const PULLED: &str = "ringback_api_pulled_jobs_total";
const UNNOTED: &str = "ringback_api_unnoted_attempts_total";
const LISTENERS: &str = "ringback_api_event_listeners";
const TOLD: &str = "ringback_api_events_sent_total";
const DROPPED: &str = "ringback_api_event_listeners_dropped_total";
const CALL_JOBS: &str = "ringback_api_submit_batch_jobs";

const SECONDS: [f64; 13] = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const JOBS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

/// What became of a submitted or imported job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Repeated,
    Conflict,
    Invalid,
    Unavailable,
}

impl From<SubmitResult> for Outcome {
    fn from(answer: SubmitResult) -> Self {
        match answer {
            SubmitResult::Created => Self::Created,
            SubmitResult::Repeated => Self::Repeated,
            SubmitResult::Conflict => Self::Conflict,
            SubmitResult::Full(_) => Self::Invalid,
        }
    }
}

/// The instruments.
pub(crate) struct Metrics {
    requests: Counter<u64>,
    seconds: Histogram<f64>,
    submitted: Counter<u64>,
    pulled: Counter<u64>,
    unnoted: Counter<u64>,
    listeners: UpDownCounter<i64>,
    told: Counter<u64>,
    dropped: Counter<u64>,
    call_jobs: Histogram<u64>,
    /// One label set per [`Outcome`], in its order.
    outcomes: [[KeyValue; 1]; 5],
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let outcome = |name: &'static str| [KeyValue::new("result", name)];
        Self {
            requests: meter.u64_counter(REQUESTS).with_description("Requests answered").build(),
            seconds: meter
                .f64_histogram(REQUEST_SECONDS)
                .with_description("From a request's head to its answer's head")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            submitted: meter.u64_counter(SUBMITTED).with_description("Jobs submitted or imported").build(),
            pulled: meter.u64_counter(PULLED).with_description("Jobs that consumers have reserved").build(),
            unnoted: meter
                .u64_counter(UNNOTED)
                .with_description("Consumers' failures that could not be noted in the log of attempts")
                .build(),
            listeners: meter
                .i64_up_down_counter(LISTENERS)
                .with_description("Streams of events that are open")
                .build(),
            told: meter
                .u64_counter(TOLD)
                .with_description("Events sent to listeners, each as often as it has some")
                .build(),
            dropped: meter
                .u64_counter(DROPPED)
                .with_description("Streams of events that were ended because they were read too slowly")
                .build(),
            call_jobs: meter
                .u64_histogram(CALL_JOBS)
                .with_description("Jobs that shared one call of the store")
                .with_boundaries(JOBS.to_vec())
                .build(),
            outcomes: ["created", "repeated", "conflict", "invalid", "unavailable"].map(outcome),
        }
    }

    /// A request was answered.
    pub(crate) fn request(&self, route: &'static str, method: &Method, status: StatusCode, took: Duration) {
        let [route, rest @ ..] = [
            KeyValue::new("route", route),
            KeyValue::new("method", known(method)),
            KeyValue::new("status", Value::I64(status.as_u16().into())),
        ];
        self.seconds.record(took.as_secs_f64(), std::slice::from_ref(&route));
        let [method, status] = rest;
        self.requests.add(1, &[route, method, status]);
    }

    /// So many jobs came to this.
    pub(crate) fn submitted(&self, outcome: Outcome, jobs: usize) {
        if jobs > 0 {
            self.submitted.add(jobs as u64, &self.outcomes[outcome as usize]);
        }
    }

    /// Consumers have reserved so many jobs.
    pub(crate) fn pulled(&self, jobs: usize) {
        if jobs > 0 {
            self.pulled.add(jobs as u64, &[]);
        }
    }

    /// So many failures of consumers are not in the log of attempts.
    pub(crate) fn unnoted(&self, attempts: usize) {
        if attempts > 0 {
            self.unnoted.add(attempts as u64, &[]);
        }
    }

    /// Somebody begins to listen to events.
    pub(crate) fn listener_came(&self) {
        self.listeners.add(1, &[]);
    }

    /// Somebody has stopped.
    pub(crate) fn listener_left(&self) {
        self.listeners.add(-1, &[]);
    }

    /// Somebody reads too slowly.
    pub(crate) fn listener_dropped(&self) {
        self.dropped.add(1, &[]);
    }

    /// So many events were put on their way.
    pub(crate) fn events_told(&self, events: usize) {
        if events > 0 {
            self.told.add(events as u64, &[]);
        }
    }

    /// A call carried so many jobs.
    pub(crate) fn call(&self, jobs: usize) {
        self.call_jobs.record(jobs as u64, &[]);
    }
}

fn known(method: &Method) -> &'static str {
    let standard = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];
    standard.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}
