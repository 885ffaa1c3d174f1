//! What is seen of every request: a count, a duration, a span where traces are exported, and
//! a log line for those who ask for it. Never its query, its headers or its body.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use ringback_service::telemetry::tracing_active;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, field};

use crate::extract::trace_parent;
use crate::routes::PATHS;
use crate::state::Api;

/// The route of a request that no route matches.
const UNMATCHED: &str = "unmatched";

pub(crate) async fn observe(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let (route, method) = (route(&request), request.method().clone());
    let response = if tracing_active() {
        let span = span(&request, route);
        let response = next.run(request).instrument(span.clone()).await;
        span.record("http.response.status_code", response.status().as_u16());
        response
    } else {
        next.run(request).await
    };
    let (status, took) = (response.status(), start.elapsed());
    api.metrics.request(route, &method, status, took);
    tracing::debug!(
        http.method = %method, http.route = route, http.status = status.as_u16(),
        duration_us = took.as_micros(), "a request was answered"
    );
    response
}

fn route(request: &Request) -> &'static str {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    PATHS.iter().copied().find(|path| Some(*path) == matched).unwrap_or(UNMATCHED)
}

fn span(request: &Request, route: &'static str) -> Span {
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
        parent.adopt(&span);
    }
    span
}
