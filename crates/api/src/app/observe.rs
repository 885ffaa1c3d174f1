//! Counts and times each request, traces it if traces are exported, and logs it at debug level. It never records the
//! query, the headers or the body.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use ringback_service::telemetry::tracing_active;
use ringback_service::trace;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, field};

use crate::extract::trace_parent;
use crate::metrics::{Metrics, UNMATCHED};
use crate::operation::Operation;

pub(super) async fn observe<F: Future<Output = Response>>(
    metrics: &Metrics,
    operation: Option<&Operation>,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let start = Instant::now();
    let route = operation.map_or(UNMATCHED, |operation| &operation.path);
    let method = request.method().clone();
    let response = if tracing_active() {
        let span = span(&request, route);
        let response = answer(request).instrument(span.clone()).await;
        span.record("http.response.status_code", response.status().as_u16());
        response
    } else {
        answer(request).await
    };
    let (status, took) = (response.status(), start.elapsed());
    metrics.request(operation.map(|operation| Arc::clone(&operation.path)), &method, status, took);
    tracing::debug!(
        http.method = %method, http.route = route, http.status = status.as_u16(),
        duration_us = took.as_micros(), "request answered"
    );
    response
}

fn span(request: &Request, route: &str) -> Span {
    let method = request.method();
    let span = tracing::info_span!(
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = trace_parent(request.headers()) {
        trace::adopt(&span, &parent);
    }
    span
}
