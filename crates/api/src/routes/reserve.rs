//! `POST /v1/topics/{topic}/reserve`: reserves pull jobs for a consumer.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ringback_service::http_server::Peer;
use ringback_wire::{ReserveRequest, ReserveResponse, ReservedJob};
use tokio::time::{Instant, timeout_at};

use crate::access::Authenticated;
use crate::error::{ApiError, JsonResult};
use crate::extract::{MaybeJson, TopicPath};
use crate::limits::permit_to_wait;
use crate::schema::{BodyProblems, TopicParams};
use crate::state::ApiState;

/// How long a consumer that does not wait for jobs may wait for its turn to look for them.
const TURN_WITHIN: Duration = Duration::from_secs(2);

/// Reserve jobs
///
/// Reserves pull jobs of the topic, which are jobs without a `url`. If there are none, the request
/// waits up to `wait` and is answered with the first that become due. Requests that wait are served
/// first come, first served.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/reserve", tag = "pull", operation_id = "reserve",
    params(TopicParams),
    request_body(content = ReserveRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The jobs; empty if there were none in time", body = ReserveResponse),
        BodyProblems,
    ),
)]
pub(crate) async fn reserve(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReserveResponse> {
    let ask = ReserveRequest::parse(&json)?;
    // It may wait for long.
    drop(json);
    let _permit = if ask.wait.is_zero() { None } else { permit_to_wait(&api.consumers, &caller)? };
    let until = Instant::now() + ask.wait.max(TURN_WITHIN);
    let standing = api.standing(&caller);
    // A key that ends while it waits is given no jobs.
    let turn = standing.bound(timeout_at(until, api.looks.wait_for_others(caller.holder(peer)))).await?;
    let turn = turn
        .map_err(|_| ApiError::retry_later("too many consumers of your tenant are looking for jobs here"))?;
    let found = standing.bound(api.pulls.reserve(&topic, ask, turn)).await?;
    let jobs = found.map_err(ApiError::retry_later)?.take();
    api.metrics.pulled(jobs.len());
    Ok(Json(ReserveResponse { jobs: jobs.into_iter().map(ReservedJob::from).collect() }))
}
