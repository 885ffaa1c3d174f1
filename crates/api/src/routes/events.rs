//! Events as a stream that is written while they happen.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use ringback_core::wire::EventAnswer;

use crate::error::ApiError;
use crate::extract::EventsQuery;
use crate::openapi::{EventKinds, EventsProblems};
use crate::state::Api;

/// Watch what happens to jobs
///
/// A stream of server-sent events, live: what happens from its first event `ready` on, each as an event named
/// by its kind, with the data below. Those of one job come in order. `missed` says that some may be missing,
/// `dropped` that the stream ends because it is read too slowly.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", operation_id = "events",
    params(
        ("topic" = Option<String>, Query, description = "Of this topic only", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = Option<String>, Query, description = "Of the topic's job of this id only", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
        ("kind" = Option<EventKinds>, Query, description = "Of these kinds only, with commas between", style = Form, explode = false),
    ),
    responses(
        (status = 200, description = "The data of each event", body = EventAnswer, content_type = "text/event-stream"),
        EventsProblems,
    ),
)]
pub(crate) async fn events(
    State(api): State<Arc<Api>>,
    EventsQuery(filter): EventsQuery,
) -> Result<Response, ApiError> {
    let listening = api.events.listen(filter).await?;
    // Proxies are told not to keep it back.
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((headers, unbuffered, Body::from_stream(listening.stream())).into_response())
}
