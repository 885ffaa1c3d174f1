//! `DELETE /v1/topics/{topic}`: deletes the policy of a topic, and with `force` its jobs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use http::StatusCode;
use ringback_core::job::{Job, Topic};
use ringback_core::state::State as JobState;
use ringback_core::store_types::{Cancelled, Cursor, Filter, MAX_PAGE, MoveResult, StoreError};
use ringback_store::Store;
use ringback_wire::TopicDeleteResponse;
use serde_json::json;
use tokio::time::Instant;

use super::policy_change::{shown_policy, wait_until_applied};
use crate::audit_log::Change;
use crate::error::ApiError;
use crate::extract::{ForceQuery, Query, TopicPath, outdated_cursor};
use crate::limits::Deadline;
use crate::schema::{ConflictProblems, DeletionCursor, TopicParams};
use crate::state::{Api, ApiState};

/// How long one call removes jobs.
const REMOVE_FOR: Duration = Duration::from_secs(1);
/// The most jobs that are removed at once.
const MAX_PARALLEL: usize = 64;

/// Delete a topic
///
/// Deletes the policy of the topic, and its signing secrets with it. While the topic has jobs that have not ended the
/// answer is 409.
/// With `force` they are removed first: waiting jobs are cancelled, dead jobs are purged, and jobs that
/// are being delivered are cancelled if the delivery fails. One call removes jobs for about a second.
/// If some are left the answer is 202: call again, with `next` as `cursor`.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}", tag = "topics", operation_id = "delete_topic",
    params(
        TopicParams,
        ("force" = Option<bool>, Query, description = "Remove its jobs too"),
        ("cursor" = Option<DeletionCursor>, Query, description = "`next` of the previous call; only with `force`"),
    ),
    responses(
        (status = 200, description = "The policy is deleted, now or before, and no job is left", body = TopicDeleteResponse),
        (status = 202, description = "Jobs were removed, and some may be left", body = TopicDeleteResponse),
        ConflictProblems,
    ),
)]
pub(crate) async fn delete_topic(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
    Query(force): Query<ForceQuery>,
) -> Result<Response, ApiError> {
    let (deleted, change) = Deadline::from_now().bound(delete(&api, &topic, force)).await??;
    let status = if deleted.deleted { StatusCode::OK } else { StatusCode::ACCEPTED };
    let TopicDeleteResponse { deleted: is_gone, cancelled, purged, requested, .. } = &deleted;
    let counts =
        json!({"deleted": is_gone, "cancelled": cancelled, "purged": purged, "requested": requested});
    let change = change.after(counts).count(cancelled + purged + requested);
    Ok((status, change, Json(deleted)).into_response())
}

async fn delete(
    api: &Api,
    topic: &Topic,
    force: ForceQuery,
) -> Result<(TopicDeleteResponse, Change), ApiError> {
    let mut answer = TopicDeleteResponse { topic: topic.to_string(), ..TopicDeleteResponse::default() };
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
            // Jobs that are being delivered end later, and others may have been submitted.
            if answer.next.is_some() || api.store.has_jobs(topic).await? {
                return Ok((answer, Change::default()));
            }
        }
    }
    let change = Change::default().before(shown_policy(topic, api.store.policy(topic).await?.as_ref()));
    if let Some(version) = api.store.delete_policy(topic).await? {
        wait_until_applied(api, version).await;
    }
    answer.deleted = true;
    Ok((answer, change))
}

/// Removes jobs of a topic until none is left or a second is over, and counts them in `answer`. Returns where to
/// continue; `None` if all were visited. 422 if `from` was issued before the store was restarted.
async fn remove(
    store: &Store,
    topic: &Topic,
    mut from: Option<Cursor>,
    answer: &mut TopicDeleteResponse,
) -> Result<Option<Cursor>, ApiError> {
    let (until, filter) =
        (Instant::now() + REMOVE_FOR, Filter { topic: Some(topic.clone()), ..Filter::default() });
    let has_cursor = from.is_some();
    loop {
        let page = match store.page(&filter, from, MAX_PAGE).await {
            Err(StoreError::Outdated) if has_cursor => return Err(outdated_cursor()),
            page => page?,
        };
        for jobs in page.items.chunks(MAX_PARALLEL) {
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

enum Removed {
    Cancelled,
    Purged,
    /// It is being delivered, and its cancel is recorded.
    Requested,
    /// It ended by itself.
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
