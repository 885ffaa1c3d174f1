//! The trace that a request belongs to, by its `traceparent` header (W3C Trace Context).

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;
use ringback_core::job::Trace;
use ringback_service::trace;

use crate::error::ApiError;

/// The trace of a request: our own span if traces are exported, else the caller's.
pub(crate) struct RequestTrace(pub(crate) Option<Trace>);

impl<S: Sync> FromRequestParts<S> for RequestTrace {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(trace_of(parts)))
    }
}

pub(crate) fn trace_of(parts: &Parts) -> Option<Trace> {
    trace::current().or_else(|| trace_parent(&parts.headers))
}

/// The trace of the caller's header `traceparent`; `None` if the header is absent or, as the specification asks,
/// invalid.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<Trace> {
    Trace::from_header(headers.get("traceparent")?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;

    use super::*;

    async fn caller(traceparent: &'static str) -> Option<Trace> {
        let request = Request::builder().header("traceparent", traceparent).body(Body::empty()).unwrap();
        let (mut parts, _) = request.into_parts();
        RequestTrace::from_request_parts(&mut parts, &()).await.unwrap().0
    }

    #[tokio::test]
    async fn the_callers_trace_is_taken_from_its_header() {
        let trace = caller("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").await.unwrap();
        assert_eq!((trace.trace_id[0], trace.parent_id[0], trace.flags), (0x0a, 0xb7, 1));
    }

    #[tokio::test]
    async fn an_invalid_traceparent_counts_as_none() {
        assert_eq!(caller("00-nonsense").await, None);
    }
}
