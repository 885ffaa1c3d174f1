//! `POST /v1/topics/{topic}/reserve`: reserves pull jobs for a consumer.

use axum::Json;
use axum::extract::State;
use ringback_core::wire::{PulledAnswer, ReserveAnswer, ReserveAsk};

use crate::access::As;
use crate::error::{ApiError, JsonResult};
use crate::extract::{MaybeJson, TopicPath};
use crate::limits::place_to_wait;
use crate::schema::{BodyProblems, ReserveRequest, TopicParams};
use crate::state::ApiState;

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
        (status = 200, description = "The jobs; empty if there were none in time", body = ReserveAnswer),
        BodyProblems,
    ),
)]
pub(crate) async fn reserve(
    State(api): ApiState,
    As(caller): As,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> JsonResult<ReserveAnswer> {
    let ask = ReserveAsk::parse(&json)?;
    // It may wait for long.
    drop(json);
    let _place = if ask.wait.is_zero() { None } else { place_to_wait(&api.consumers, &caller)? };
    let jobs = api.pulls.reserve(&topic, ask).await.map_err(ApiError::retry_later)?;
    api.metrics.pulled(jobs.len());
    Ok(Json(ReserveAnswer { jobs: jobs.into_iter().map(PulledAnswer::from).collect() }))
}
