//! What came of a job's last attempts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ringback_core::contract::{Note, PullOutcome, PullReceipt};
use ringback_core::job::Topic;
use ringback_core::wire::AttemptsAnswer;
use tokio::time::timeout;

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::JobPath;
use crate::openapi::GetProblems;
use crate::state::Api;

/// A consumer's word waits no longer for its note.
const NOTE_WITHIN: Duration = Duration::from_millis(400);

/// Look at a job's attempts
///
/// The last 20 that were logged, the newest last: by default those that failed, and the success
/// of a job that needed more than one. They are kept for `RINGBACK_KEEP_ATTEMPTS`, after the
/// job's end too. A job that has none has no items.
#[utoipa::path(
    get, path = "/v1/jobs/{topic}/{id}/attempts", tag = "jobs", operation_id = "attempts",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses((status = 200, description = "Its attempts", body = AttemptsAnswer), GetProblems),
)]
pub(crate) async fn attempts(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
) -> Result<Json<AttemptsAnswer>, ApiError> {
    let attempts =
        Deadline::from_now().bound(api.store.attempts(&key)).await.map_err(ApiError::too_late)??;
    let attempts = attempts.ok_or_else(|| super::jobs::unknown(&key))?;
    Ok(Json(AttemptsAnswer { items: attempts.into_iter().map(Into::into).collect() }))
}

/// Notes a consumer's failure, before it is settled. Where that fails it is only counted. The
/// topic is that of the job, where it is known already.
pub(super) async fn note(api: &Api, receipt: &PullReceipt, word: &PullOutcome, topic: Option<Topic>) {
    let error = match word {
        PullOutcome::Retry { error, .. } | PullOutcome::Bury { error, .. } => error.clone(),
        PullOutcome::Finish | PullOutcome::Release { .. } => return,
    };
    // Whose receipt this is, is asked for only where topics may differ.
    let topic = if topic.is_none() && api.policies.is_any_logging() {
        let held = timeout(NOTE_WITHIN, api.store.lease_info(receipt)).await;
        held.ok().and_then(Result::ok).flatten().and_then(|tries| tries.topic)
    } else {
        topic
    };
    let policy = topic.and_then(|topic| api.policies.get(&topic).ok()?);
    if api.store.logging(policy.as_deref()).notes_failure() {
        let notes = [Note::failed(receipt, error)];
        api.metrics.unnoted(api.store.note_within(receipt.shard(), &notes, NOTE_WITHIN).await);
    }
}
