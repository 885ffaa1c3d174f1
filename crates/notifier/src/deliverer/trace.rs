//! The trace context of an attempt: its span, and the `traceparent` that it sends.

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::contract::Lease;
use ringback_service::TraceParent;
use ringback_service::telemetry::tracing_active;
use tracing::{Span, info_span};

use crate::request;

/// Creates the span of the attempt in the trace of its job; none unless traces are exported.
pub(crate) fn span(lease: &Lease) -> Span {
    if !tracing_active() {
        return Span::none();
    }
    let span =
        info_span!("deliver", job.topic = %lease.key.topic, job.id = %lease.key.id, attempt = lease.attempt);
    if let Some(trace) = of_job(lease) {
        trace.adopt(&span);
    }
    span
}

/// Returns the context that the attempt sends: the current span, or, if this process exports no
/// traces, a new span id in the trace of the job.
pub(crate) fn to_send(lease: &Lease, rng: &mut StdRng) -> TraceParent {
    TraceParent::current().unwrap_or_else(|| {
        let known = of_job(lease);
        TraceParent {
            trace_id: known.map_or_else(|| request::trace_id(lease), |trace| trace.trace_id),
            span_id: rng.random::<u64>().max(1).to_be_bytes(),
            sampled: known.is_some_and(|trace| trace.sampled),
        }
    })
}

/// Returns the trace that the job was submitted in.
fn of_job(lease: &Lease) -> Option<TraceParent> {
    let trace = lease.delivery.trace?;
    Some(TraceParent { trace_id: trace.trace_id, span_id: trace.parent_id, sampled: trace.flags & 1 == 1 })
}
