//! Traces between processes: the current span as a [`Trace`], and a [`Trace`] as the parent of a span.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use ringback_core::job::Trace;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::telemetry::tracing_active;

/// Makes `span` a child of `parent`. Call it before the span is entered or asked for its context. Does
/// nothing unless traces are exported.
pub fn adopt(span: &Span, parent: &Trace) {
    if tracing_active() {
        // Fails only for spans that a filter dropped.
        span.set_parent(remote(parent)).ok();
    }
}

/// Returns the current span; `None` if traces are not exported or there is none. This fixes the parent of the span, so
/// call [`adopt`] first.
#[must_use]
pub fn current() -> Option<Trace> {
    if !tracing_active() {
        return None;
    }
    let context = Span::current().context();
    let span = context.span();
    let found = span.span_context();
    found.is_valid().then(|| Trace {
        trace_id: found.trace_id().to_bytes(),
        parent_id: found.span_id().to_bytes(),
        flags: found.is_sampled().into(),
    })
}

/// The context of a remote parent, without trace state.
fn remote(parent: &Trace) -> Context {
    let flags = TraceFlags::default().with_sampled(parent.is_sampled());
    let (trace, span) = (TraceId::from_bytes(parent.trace_id), SpanId::from_bytes(parent.parent_id));
    Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, TraceState::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_becomes_a_remote_context() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
        let context = remote(&parent);
        let span = context.span();
        assert!(span.span_context().is_remote() && span.span_context().is_sampled());
        assert_eq!(span.span_context().trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    }

    #[test]
    fn without_an_exporter_there_is_no_current_span() {
        assert_eq!(current(), None);
    }
}
