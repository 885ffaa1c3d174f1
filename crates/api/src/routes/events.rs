//! `GET /v1/events`: live events as server-sent events.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use ringback_service::http_server::Peer;
use ringback_wire::JobEvent;

use crate::access::Authenticated;
use crate::error::ApiError;
use crate::events::Filter;
use crate::extract::Query;
use crate::schema::{EventKinds, JobIdText, QueryProblems, TopicName};
use crate::state::ApiState;

/// Stream events of jobs
///
/// Streams live events as server-sent events. The first is `ready`; everything that happens after it is
/// sent as an event named by its kind, with the data below. The events of one job arrive in order.
/// `missed` means that events may be missing, and `dropped` that the stream ends because it is read too
/// slowly.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", operation_id = "events",
    params(
        ("topic" = Option<TopicName>, Query, description = "Only events of this topic"),
        ("id" = Option<JobIdText>, Query, description = "Only events of the topic's job with this id; only with `topic`"),
        ("kind" = Option<EventKinds>, Query, description = "Only these kinds, separated by commas", style = Form, explode = false),
    ),
    responses(
        (status = 200, description = "The data of each event", body = JobEvent, content_type = "text/event-stream"),
        QueryProblems,
    ),
)]
pub(crate) async fn events(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(filter): Query<Filter>,
) -> Result<Response, ApiError> {
    let holder = caller.holder(peer);
    let standing = api.standing(&caller);
    let events = api.events.listen(Filter { caller: Some(caller), ..filter }, holder, standing).await?;
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    // Keeps proxies from buffering the stream.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((headers, unbuffered, Body::from_stream(events.into_body())).into_response())
}
