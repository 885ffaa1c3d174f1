//! The trace context of an attempt: makes its span, and the `traceparent` that it sends.

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::job::Trace;
use ringback_core::store_types::Lease;
use ringback_service::telemetry::tracing_active;
use ringback_service::trace;
use tracing::{Span, field, info_span};

use crate::request;

/// Creates the span of the attempt in the trace of its job; none unless traces are exported.
pub(crate) fn span(lease: &Lease) -> Span {
    if !tracing_active() {
        return Span::none();
    }
    let span = info_span!(
        "deliver",
        otel.kind = "client",
        job.topic = lease.key.topic.as_str(),
        job.id = %lease.key.id,
        attempt = lease.attempt,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = &lease.delivery.trace {
        trace::adopt(&span, parent);
    }
    span
}

/// Adds the status of the response to the current span.
pub(crate) fn responded(status: u16) {
    Span::current().record("http.response.status_code", status);
}

/// Returns the context that the attempt sends: the current span, or, if this process exports no
/// traces, a new span id in the trace of the job.
pub(crate) fn to_send(lease: &Lease, rng: &mut StdRng) -> Trace {
    trace::current().unwrap_or_else(|| {
        let known = lease.delivery.trace;
        Trace {
            trace_id: known.map_or_else(|| request::trace_id(lease), |trace| trace.trace_id),
            parent_id: rng.random::<u64>().max(1).to_be_bytes(),
            flags: known.is_some_and(|trace| trace.is_sampled()).into(),
        }
    })
}
