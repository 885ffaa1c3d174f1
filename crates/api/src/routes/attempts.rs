//! `GET /v1/jobs/{topic}/{id}/attempts`: the attempt log of a job.

use axum::Json;
use axum::extract::State;
use ringback_core::wire::AttemptsAnswer;

use super::jobs::unknown;
use crate::error::JsonResult;
use crate::extract::JobPath;
use crate::limits::Deadline;
use crate::schema::{FindProblems, JobParams};
use crate::state::ApiState;

/// Get the attempts of a job
///
/// The last 20 that were logged, the newest last. By default these are the failed ones, and the
/// success of a job that needed more than one. They are kept for `RINGBACK_KEEP_ATTEMPTS`, also after
/// the job has ended. A job without logged attempts has no items.
#[utoipa::path(
    get, path = "/v1/jobs/{topic}/{id}/attempts", tag = "jobs", operation_id = "attempts",
    params(JobParams),
    responses((status = 200, description = "Its attempts", body = AttemptsAnswer), FindProblems),
)]
pub(crate) async fn attempts(State(api): ApiState, JobPath(key): JobPath) -> JsonResult<AttemptsAnswer> {
    let attempts = Deadline::from_now().bound(api.store.attempts(&key)).await??;
    let attempts = attempts.ok_or_else(|| unknown(&key))?;
    Ok(Json(AttemptsAnswer { items: attempts.into_iter().map(Into::into).collect() }))
}
