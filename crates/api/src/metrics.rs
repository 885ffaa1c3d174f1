//! The metrics of the API. Labels are bounded: routes come from the route table, methods and statuses
//! from the HTTP standard.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};
use opentelemetry::{KeyValue, Value};
use ringback_core::store_types::{Limit, SubmitResult};
use ringback_service::http_server::Connections;
use strum::VariantArray as _;

pub(crate) const UNMATCHED: &str = "unmatched";

const SECONDS: &[f64] = &[0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const JOBS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

ringback_service::metrics! {
    struct Metrics {
        requests: Counter<u64> = "ringback_api_requests_total",
            "Requests answered", by "route" "method" "status";
        seconds: Histogram<f64> = "ringback_api_request_duration_seconds",
            "From the head of a request to the head of its response", by "route", buckets SECONDS;
        submitted: Counter<u64> = "ringback_api_submitted_jobs_total",
            "Jobs submitted or imported; conflict is a 409, over_quota a refusal by a quota or a part of a tenant, too_many_keys one while jobs of too many keys wait for others of their key, invalid any other 4xx, unavailable a 5xx; also created, repeated, replaced, postponed", by "result";
        pulled: Counter<u64> = "ringback_api_pulled_jobs_total",
            "Jobs that consumers have reserved";
        unlogged: Counter<u64> = "ringback_api_unlogged_attempts_total",
            "Failed attempts of consumers that are missing in the attempt log, because the store was too full or too slow";
        listeners: UpDownCounter<i64> = "ringback_api_event_listeners",
            "Open event streams";
        events_sent: Counter<u64> = "ringback_api_events_sent_total",
            "Events sent, counted once per listener";
        dropped: Counter<u64> = "ringback_api_event_listeners_dropped_total",
            "Event streams ended because they were read too slowly";
        missed_firings: Counter<u64> = "ringback_api_missed_firings_total",
            "Firings whose time had come when their schedule was paused or changed, and that are not made up for";
        batch_jobs: Histogram<u64> = "ringback_api_submit_batch_jobs",
            "Jobs, imported ones included, per call to the store", buckets JOBS;
        audit_log_failures: Counter<u64> = "ringback_audit_log_failures_total",
            "Entries of the audit log that the store did not take; each is a line of the log";
    }
    read {
        CONNECTIONS: Gauge = "ringback_api_connections",
            "Connections of callers";
        REFUSED_CONNECTIONS: Counter = "ringback_api_refused_connections_total",
            "Connections refused because their address has as many as it may have";
    }
}

/// Exports how many connections callers have, and how many were refused.
pub(crate) fn observe(meter: &Meter, connections: &Connections) {
    let open = connections.clone();
    meter
        .u64_observable_gauge(CONNECTIONS.name)
        .with_description(CONNECTIONS.about)
        .with_callback(move |gauge| gauge.observe(open.open() as u64, &[]))
        .build();
    let refused = connections.clone();
    meter
        .u64_observable_counter(REFUSED_CONNECTIONS.name)
        .with_description(REFUSED_CONNECTIONS.about)
        .with_callback(move |counter| counter.observe(refused.refused(), &[]))
        .build();
}

/// The result of a submitted or imported job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum SubmitOutcome {
    Created,
    Repeated,
    Replaced,
    Postponed,
    Conflict,
    Invalid,
    OverQuota,
    TooManyKeys,
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
            SubmitResult::Full(Limit::Keys) => Self::TooManyKeys,
            SubmitResult::Full(Limit::Topics | Limit::Lanes) => Self::Invalid,
        }
    }
}

impl SubmitOutcome {
    fn label(self) -> KeyValue {
        KeyValue::new("result", <&str>::from(self))
    }
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let metrics = Self::create(meter);
        SubmitOutcome::VARIANTS.iter().for_each(|outcome| metrics.submitted.add(0, &[outcome.label()]));
        metrics
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

    pub(crate) fn submitted(&self, outcome: SubmitOutcome, jobs: usize) {
        if jobs > 0 {
            self.submitted.add(jobs as u64, &[outcome.label()]);
        }
    }

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

    pub(crate) fn listener_came(&self) {
        self.listeners.add(1, &[]);
    }

    pub(crate) fn listener_left(&self) {
        self.listeners.add(-1, &[]);
    }

    /// Counts an event stream that is ended because it is read too slowly.
    pub(crate) fn listener_dropped(&self) {
        self.dropped.add(1, &[]);
    }

    /// Counts events, once per listener.
    pub(crate) fn events_sent(&self, events: usize) {
        if events > 0 {
            self.events_sent.add(events as u64, &[]);
        }
    }

    pub(crate) fn audit_log_failed(&self) {
        self.audit_log_failures.add(1, &[]);
    }

    /// Counts firings that a change of their schedule has left out.
    pub(crate) fn missed_firings(&self, firings: u64) {
        if firings > 0 {
            self.missed_firings.add(firings, &[]);
        }
    }

    pub(crate) fn call(&self, jobs: usize) {
        self.batch_jobs.record(jobs as u64, &[]);
    }
}

fn method_label(method: &Method) -> &'static str {
    let standard = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];
    standard.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}
