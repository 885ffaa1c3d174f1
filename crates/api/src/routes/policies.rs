//! What is said of a topic as a whole: its policy, and the end of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use http::StatusCode;
use ringback_core::contract::{
    Cancelled, Cursor, Filter, MAX_PAGE, MoveResult, PolicyPut, PolicyVersion, StoreError, is_notice_topic,
};
use ringback_core::job::{Job, Topic};
use ringback_core::policy::MAX_POLICIES;
use ringback_core::state::State as JobState;
use ringback_core::wire::{PolicyAnswer, TopicDeleteAnswer, on_dead_of_notices, parse_policy};
use ringback_store::Store;
use tokio::time::{Instant, timeout};

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{ForceQuery, JsonBody, TopicPath, Upload, outdated_cursor};
use crate::openapi::{DeleteTopicProblems, PolicyRequest, PutPolicyProblems};
use crate::state::Api;

/// A change that this process does not work by within so long is answered all the same.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);
/// Jobs are removed for so long in one call.
const REMOVE_FOR: Duration = Duration::from_secs(1);
/// So many at once.
const AT_ONCE: usize = 64;

/// Give a topic a policy
///
/// What its jobs do not say themselves. The whole policy is replaced. It takes effect within a
/// second, also on jobs that are there already; but for `url`, which is for jobs submitted from
/// then on. This API process nearly always works by it when the answer comes.
#[utoipa::path(
    put, path = "/v1/topics/{topic}", tag = "topics", operation_id = "put_policy",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    request_body = PolicyRequest,
    responses(
        (status = 200, description = "The policy took the place of another", body = PolicyAnswer),
        (status = 201, description = "The topic had no policy before", body = PolicyAnswer),
        PutPolicyProblems,
    ),
)]
pub(crate) async fn put_policy(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    JsonBody(Upload { bytes, deadline, .. }): JsonBody,
) -> Result<Response, ApiError> {
    let policy = parse_policy(&bytes)?;
    if policy.on_dead.is_some() && is_notice_topic(&topic) {
        return Err(on_dead_of_notices().into());
    }
    let put = deadline.bound(api.store.put_policy(&topic, &policy)).await.map_err(ApiError::too_late)??;
    let (status, version) = match put {
        PolicyPut::Created(version) => (StatusCode::CREATED, version),
        PolicyPut::Replaced(version) => (StatusCode::OK, version),
        PolicyPut::TooMany => {
            let detail = format!("{MAX_POLICIES} topics have a policy already, and no more can; delete one");
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
    };
    reached(&api, version).await;
    Ok((status, Json(PolicyAnswer::new(&topic, Some(&policy)))).into_response())
}

/// Whoever changes a policy and goes on here finds the change.
async fn reached(api: &Api, version: PolicyVersion) {
    if timeout(KNOWN_WITHIN, api.policies.reached(version)).await.is_err() {
        tracing::debug!("a change of a policy is not known here yet");
    }
}

/// Delete a topic
///
/// Forgets its policy. While it has jobs that have not ended that is refused with 409. With
/// `force` they are removed first: waiting ones are cancelled, dead ones purged, and a cancel is
/// noted for those that are being handed over. One call removes for about a second; where some
/// are left the answer is 202: call again, with `cursor` as `next` says.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}", tag = "topics", operation_id = "delete_topic",
    params(
        ("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("force" = Option<bool>, Query, description = "Remove its jobs too"),
        ("cursor" = Option<String>, Query, description = "`next` of the call before; only with `force`"),
    ),
    responses(
        (status = 200, description = "The policy is forgotten, now or before, and no job is left", body = TopicDeleteAnswer),
        (status = 202, description = "Jobs were removed, and some may be left", body = TopicDeleteAnswer),
        DeleteTopicProblems,
    ),
)]
pub(crate) async fn delete_topic(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    force: ForceQuery,
) -> Result<Response, ApiError> {
    let deadline = Deadline::from_now();
    let deleted = deadline.bound(delete(&api, &topic, force)).await.map_err(ApiError::too_late)??;
    let status = if deleted.deleted { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(deleted)).into_response())
}

async fn delete(api: &Api, topic: &Topic, force: ForceQuery) -> Result<TopicDeleteAnswer, ApiError> {
    let mut answer = TopicDeleteAnswer { topic: topic.to_string(), ..TopicDeleteAnswer::default() };
    match force {
        ForceQuery::No if api.store.has_jobs(topic).await? => {
            let detail = format!(
                "the topic {topic} has jobs that have not ended; wait for them, or delete it with force=true, which removes them"
            );
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
        ForceQuery::No => {}
        ForceQuery::Yes(from) => {
            answer.next = remove(&api.store, topic, from, &mut answer).await?.map(|next| next.to_string());
            // Those being handed over end later, and others may have come.
            if answer.next.is_some() || api.store.has_jobs(topic).await? {
                return Ok(answer);
            }
        }
    }
    if let Some(version) = api.store.delete_policy(topic).await? {
        reached(api, version).await;
    }
    answer.deleted = true;
    Ok(answer)
}

/// Removes jobs of a topic from a place on; where to go on when the time is over.
async fn remove(
    store: &Store,
    topic: &Topic,
    mut from: Option<Cursor>,
    answer: &mut TopicDeleteAnswer,
) -> Result<Option<Cursor>, ApiError> {
    let (until, filter) = (Instant::now() + REMOVE_FOR, Filter { topic: Some(topic.clone()), state: None });
    let begun = from.is_some();
    loop {
        let page = match store.page(&filter, from, MAX_PAGE).await {
            Err(StoreError::Outdated) if begun => return Err(outdated_cursor()),
            page => page?,
        };
        for jobs in page.items.chunks(AT_ONCE) {
            for removed in join_all(jobs.iter().map(|job| remove_one(store, job))).await {
                match removed? {
                    Removed::Cancelled => answer.cancelled += 1,
                    Removed::Purged => answer.purged += 1,
                    Removed::Requested => answer.requested += 1,
                    Removed::Gone => {}
                }
            }
        }
        from = page.next;
        if from.is_none() || Instant::now() >= until {
            return Ok(from);
        }
    }
}

/// What became of a job.
enum Removed {
    Cancelled,
    Purged,
    /// It is being handed over.
    Requested,
    /// It has ended by itself.
    Gone,
}

async fn remove_one(store: &Store, job: &Job) -> Result<Removed, StoreError> {
    if job.state == JobState::Dead {
        match store.purge(&job.key).await? {
            MoveResult::Applied(_) => return Ok(Removed::Purged),
            MoveResult::Unknown => return Ok(Removed::Gone),
            // It was revived meanwhile.
            MoveResult::Refused(_) => {}
        }
    }
    Ok(match store.cancel(&job.key).await? {
        Cancelled::Cancelled { .. } => Removed::Cancelled,
        Cancelled::Requested { .. } => Removed::Requested,
        Cancelled::TooLate | Cancelled::Unknown => Removed::Gone,
    })
}
