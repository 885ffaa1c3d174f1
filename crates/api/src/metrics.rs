//! The metrics of the API. Labels are bounded: routes come from the route table, methods and statuses
//! from the HTTP standard.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};
use opentelemetry::{KeyValue, Value};
use ringback_core::contract::{Limit, SubmitResult};
use ringback_service::http_server::Connections;
use ringback_service::telemetry;

const REQUESTS: &str = "ringback_api_requests_total";
const REQUEST_DURATION: &str = "ringback_api_request_duration_seconds";
const SUBMITTED: &str = "ringback_api_submitted_jobs_total";
const PULLED: &str = "ringback_api_pulled_jobs_total";
const UNLOGGED: &str = "ringback_api_unlogged_attempts_total";
const LISTENERS: &str = "ringback_api_event_listeners";
const EVENTS_SENT: &str = "ringback_api_events_sent_total";
const DROPPED: &str = "ringback_api_event_listeners_dropped_total";
const CONNECTIONS: &str = "ringback_api_connections";
const REFUSED_CONNECTIONS: &str = "ringback_api_refused_connections_total";
const AUDIT_LOG_FAILURES: &str = "ringback_audit_log_failures_total";
const MISSED_FIRINGS: &str = "ringback_api_missed_firings_total";
const BATCH_JOBS: &str = "ringback_api_submit_batch_jobs";

/// The route of a request that matches none.
pub(crate) const UNMATCHED: &str = "unmatched";

const SECONDS: [f64; 13] = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const JOBS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

/// Exports how many connections callers have, and how many were refused.
pub(crate) fn observe(meter: &Meter, connections: &Connections) {
    let open = connections.clone();
    meter
        .u64_observable_gauge(CONNECTIONS)
        .with_description("Connections of callers")
        .with_callback(move |gauge| gauge.observe(open.open() as u64, &[]))
        .build();
    let refused = connections.clone();
    meter
        .u64_observable_counter(REFUSED_CONNECTIONS)
        .with_description(
            "Connections, and requests over HTTP/2, refused because their address has as many as it may have",
        )
        .with_callback(move |counter| counter.observe(refused.refused(), &[]))
        .build();
}

/// The result of a submitted or imported job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubmitOutcome {
    Created,
    Repeated,
    Replaced,
    Postponed,
    Conflict,
    Invalid,
    OverQuota,
    Unavailable,
}

impl From<SubmitResult> for SubmitOutcome {
    fn from(answer: SubmitResult) -> Self {
        match answer {
            SubmitResult::Created => Self::Created,
            SubmitResult::Repeated => Self::Repeated,
            SubmitResult::Replaced => Self::Replaced,
            SubmitResult::Postponed => Self::Postponed,
            SubmitResult::Conflict | SubmitResult::Cancelled | SubmitResult::Reserved { .. } => {
                Self::Conflict
            }
            SubmitResult::Full(Limit::TenantTopics | Limit::TenantLanes) => Self::OverQuota,
            SubmitResult::Full(Limit::Topics | Limit::Lanes) => Self::Invalid,
        }
    }
}

/// The instruments.
pub(crate) struct Metrics {
    requests: Counter<u64>,
    seconds: Histogram<f64>,
    submitted: Counter<u64>,
    pulled: Counter<u64>,
    unlogged: Counter<u64>,
    listeners: UpDownCounter<i64>,
    events_sent: Counter<u64>,
    dropped: Counter<u64>,
    audit_log_failures: Counter<u64>,
    missed_firings: Counter<u64>,
    batch_jobs: Histogram<u64>,
    /// One label set per [`SubmitOutcome`], in its order.
    outcomes: [[KeyValue; 1]; 8],
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let outcome = |name: &'static str| [KeyValue::new("result", name)];
        let counter = |name, description| telemetry::counter(meter, name, description);
        let labelled = |name, description| meter.u64_counter(name).with_description(description).build();
        let seconds = meter.f64_histogram(REQUEST_DURATION).with_boundaries(SECONDS.to_vec());
        let batch_jobs = meter.u64_histogram(BATCH_JOBS).with_boundaries(JOBS.to_vec());
        let listeners = meter.i64_up_down_counter(LISTENERS).with_description("Open event streams");
        let submitted: Counter<u64> = labelled(SUBMITTED, "Jobs submitted or imported");
        let outcomes = [
            "created",
            "repeated",
            "replaced",
            "postponed",
            "conflict",
            "invalid",
            "over_quota",
            "unavailable",
        ]
        .map(outcome);
        outcomes.iter().for_each(|outcome| submitted.add(0, outcome));
        Self {
            requests: labelled(REQUESTS, "Requests answered"),
            seconds: seconds
                .with_description("From the head of a request to the head of its response")
                .build(),
            submitted,
            pulled: counter(PULLED, "Jobs that consumers have reserved"),
            unlogged: counter(UNLOGGED, "Failed attempts of consumers that are missing in the attempt log"),
            listeners: listeners.build(),
            events_sent: counter(EVENTS_SENT, "Events sent, counted once per listener"),
            dropped: counter(DROPPED, "Event streams ended because they were read too slowly"),
            audit_log_failures: counter(
                AUDIT_LOG_FAILURES,
                "Entries of the audit log that are in the log of the process alone",
            ),
            missed_firings: counter(
                MISSED_FIRINGS,
                "Firings whose time had come when their schedule was paused or changed",
            ),
            batch_jobs: batch_jobs.with_description("Jobs per store call").build(),
            outcomes,
        }
    }

    /// Counts and times an answered request.
    pub(crate) fn request(
        &self,
        route: Option<Arc<str>>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let [route, rest @ ..] = [
            KeyValue::new("route", route.map_or(Value::from(UNMATCHED), Value::from)),
            KeyValue::new("method", method_label(method)),
            KeyValue::new("status", Value::I64(status.as_u16().into())),
        ];
        self.seconds.record(took.as_secs_f64(), std::slice::from_ref(&route));
        let [method, status] = rest;
        self.requests.add(1, &[route, method, status]);
    }

    /// Counts jobs with this result.
    pub(crate) fn submitted(&self, outcome: SubmitOutcome, jobs: usize) {
        if jobs > 0 {
            self.submitted.add(jobs as u64, &self.outcomes[outcome as usize]);
        }
    }

    /// Counts jobs that consumers have reserved.
    pub(crate) fn pulled(&self, jobs: usize) {
        if jobs > 0 {
            self.pulled.add(jobs as u64, &[]);
        }
    }

    /// Counts failed attempts that are missing in the attempt log.
    pub(crate) fn unlogged(&self, attempts: usize) {
        if attempts > 0 {
            self.unlogged.add(attempts as u64, &[]);
        }
    }

    /// An event stream begins.
    pub(crate) fn listener_came(&self) {
        self.listeners.add(1, &[]);
    }

    /// An event stream ends.
    pub(crate) fn listener_left(&self) {
        self.listeners.add(-1, &[]);
    }

    /// An event stream is ended because it is read too slowly.
    pub(crate) fn listener_dropped(&self) {
        self.dropped.add(1, &[]);
    }

    /// Counts events, once per listener.
    pub(crate) fn events_sent(&self, events: usize) {
        if events > 0 {
            self.events_sent.add(events as u64, &[]);
        }
    }

    /// An entry of the audit log was not stored.
    pub(crate) fn audit_log_failed(&self) {
        self.audit_log_failures.add(1, &[]);
    }

    /// Counts firings that a change of their schedule has left out.
    pub(crate) fn missed_firings(&self, firings: u64) {
        if firings > 0 {
            self.missed_firings.add(firings, &[]);
        }
    }

    /// Records the number of jobs of a store call.
    pub(crate) fn call(&self, jobs: usize) {
        self.batch_jobs.record(jobs as u64, &[]);
    }
}

fn method_label(method: &Method) -> &'static str {
    let standard = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];
    standard.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}
