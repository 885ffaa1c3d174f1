//! `PUT /v1/topics/{topic}`: sets the policy of a topic, the defaults for its jobs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use ringback_core::contract::{PolicyPut, PolicyVersion, is_notice_topic};
use ringback_core::policy::MAX_POLICIES;
use ringback_core::wire::{PolicyAnswer, on_dead_of_notices, parse_policy};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::extract::{JsonBody, TopicPath, Upload};
use crate::schema::{CreateProblems, PolicyRequest, TopicParams};
use crate::state::{Api, ApiState};

/// How long a call waits until this process applies its change.
const APPLIED_WITHIN: Duration = Duration::from_secs(1);

/// Set topic defaults
///
/// Sets the policy of a topic: defaults for jobs that do not set these fields themselves. The whole
/// policy is replaced. It takes effect within a second, also for existing jobs, except `url`, which
/// only applies to jobs submitted later. This API process nearly always applies it before it answers.
#[utoipa::path(
    put, path = "/v1/topics/{topic}", tag = "topics", operation_id = "put_policy",
    params(TopicParams),
    request_body = PolicyRequest,
    responses(
        (status = 200, description = "The policy replaced another", body = PolicyAnswer),
        (status = 201, description = "The topic had no policy before", body = PolicyAnswer),
        CreateProblems,
    ),
)]
pub(crate) async fn put_policy(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
    JsonBody(Upload { bytes, deadline, .. }): JsonBody,
) -> Result<Response, ApiError> {
    let policy = parse_policy(&bytes)?;
    if policy.on_dead.is_some() && is_notice_topic(&topic) {
        return Err(on_dead_of_notices().into());
    }
    let (status, version) = match deadline.bound(api.store.put_policy(&topic, &policy)).await?? {
        PolicyPut::Created(version) => (StatusCode::CREATED, version),
        PolicyPut::Replaced(version) => (StatusCode::OK, version),
        PolicyPut::TooMany => {
            let detail = format!("{MAX_POLICIES} topics have a policy, which is the limit; delete one");
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
    };
    wait_until_applied(&api, version).await;
    Ok((status, Json(PolicyAnswer::new(&topic, Some(&policy)))).into_response())
}

/// Waits for a moment until this process applies a changed policy, so that the caller's next request
/// here nearly always finds it.
pub(super) async fn wait_until_applied(api: &Api, version: PolicyVersion) {
    if timeout(APPLIED_WITHIN, api.policies.reached(version)).await.is_err() {
        tracing::debug!("this process does not apply a changed policy yet");
    }
}
