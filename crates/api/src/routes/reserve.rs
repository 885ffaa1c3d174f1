//! Jobs for pull: reserved by whoever asks for their topic.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ringback_core::wire::{PulledAnswer, ReserveAnswer, ReserveAsk};

use crate::error::ApiError;
use crate::extract::{MaybeJson, TopicPath};
use crate::openapi::{ReserveProblems, ReserveRequest};
use crate::state::Api;

/// Reserve jobs
///
/// Jobs of the topic that have no `url`, first come, first served. Where there are none the
/// request waits for as long as `wait` says, and is answered with the first that come.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/reserve", tag = "pull", operation_id = "reserve",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    request_body = ReserveRequest,
    responses(
        (status = 200, description = "The jobs, or none that came in time", body = ReserveAnswer),
        ReserveProblems,
    ),
)]
pub(crate) async fn reserve(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> Result<Json<ReserveAnswer>, ApiError> {
    let ask = ReserveAsk::parse(&json)?;
    let jobs = api.pulls.reserve(&topic, ask).await.map_err(|error| ApiError::of_reserve(&error))?;
    api.metrics.pulled(jobs.len());
    Ok(Json(ReserveAnswer { jobs: jobs.into_iter().map(PulledAnswer::from).collect() }))
}
