//! Actions that change one job: reschedule, run now, revive.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::job::JobKey;
use ringback_core::state::State as JobState;
use ringback_core::store_types::MoveResult;
use ringback_wire::{JobResponse, RescheduleRequest, delay_note, parse_reschedule};
use serde_json::json;

use super::jobs::unknown;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, Unavailable};
use crate::extract::{JobPath, JsonBody, NoBody, Upload};
use crate::schema::{ChangeProblems, EmptyRequest, JobActionProblems, JobParams};
use crate::state::ApiState;

/// Reschedule a job
///
/// Sets another due time for a delayed job, also for one that waits for a retry. A time in the
/// past makes it ready. A job in any other state is left unchanged: 409.
#[utoipa::path(
    patch, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "reschedule",
    params(JobParams),
    request_body = RescheduleRequest,
    responses((status = 200, description = "The job as it is now", body = JobResponse), ChangeProblems),
)]
pub(crate) async fn reschedule(
    State(api): ApiState,
    JobPath(key): JobPath,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Audited<JobResponse> {
    let (due, token) = (parse_reschedule(&bytes, api.now())?, api.admission.token());
    let note = delay_note(&bytes, due);
    let moved = deadline.idempotent(is_applied, || api.store.reschedule(&key, due, token)).await;
    let change = Change::default().before(json!({"state": "delayed"}));
    let (change, Json(job)) = answer(moved, &key, change, cannot_reschedule)?;
    Ok((change, Json(JobResponse { note, ..job })))
}

/// Run a job now
///
/// Makes a delayed job due now. A job that is ready or being delivered is left unchanged, which
/// counts as success. One that is dead, done or cancelled is left unchanged too: 409.
#[utoipa::path(
    post, path = "/v1/jobs/{topic}/{id}/run", tag = "jobs", operation_id = "run",
    params(JobParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The job as it is now", body = JobResponse), JobActionProblems),
)]
pub(crate) async fn run(
    State(api): ApiState,
    JobPath(key): JobPath,
    NoBody(deadline): NoBody,
) -> Audited<JobResponse> {
    let token = api.admission.token();
    let moved = deadline.idempotent(is_applied, || api.store.run(&key, token)).await;
    answer(moved, &key, Change::default(), cannot_run)
}

/// Revive a dead job
///
/// Makes the job due now, with its failures counted from zero and without its reason. Its attempts keep
/// counting. A job that is not dead is left unchanged: 409.
#[utoipa::path(
    post, path = "/v1/jobs/{topic}/{id}/revive", tag = "jobs", operation_id = "revive",
    params(JobParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The job as it is now", body = JobResponse), JobActionProblems),
)]
pub(crate) async fn revive(
    State(api): ApiState,
    JobPath(key): JobPath,
    NoBody(deadline): NoBody,
) -> Audited<JobResponse> {
    let token = api.admission.token();
    let moved = deadline.idempotent(is_applied, || api.store.revive(&key, token)).await;
    answer(moved, &key, Change::default().before(json!({"state": "dead"})), cannot_revive)
}

fn is_applied(moved: &MoveResult) -> bool {
    matches!(moved, MoveResult::Applied(_))
}

/// The job after the action, with `change` and its state for the audit log. 409 if the job's state does not allow the
/// action (`advice` ends the message), 404 if the job is not known, 503 if the store failed.
fn answer(
    moved: Result<MoveResult, Unavailable>,
    key: &JobKey,
    change: Change,
    advice: fn(JobState) -> &'static str,
) -> Audited<JobResponse> {
    match moved.map_err(|error| ApiError::of_job_action(&error, key))? {
        MoveResult::Applied(job) => {
            let answer = JobResponse::from(job);
            let change = change.after(json!({"state": answer.state, "due_at": answer.due_at}));
            Ok((change, Json(answer)))
        }
        MoveResult::Refused(job) => {
            let detail = format!("the job {key} is {}{}", job.state, advice(job.state));
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
        MoveResult::Unknown => Err(unknown(key)),
    }
}

const ENDED: &str = ": submit another job, under another id";
const REVIVE: &str = ": revive it (POST to its path and /revive) to have it delivered again";

fn cannot_reschedule(state: JobState) -> &'static str {
    match state {
        JobState::Delayed | JobState::Ready => {
            ": it is due already and waits for delivery; only cancelling can stop that"
        }
        JobState::Reserved => {
            ": it is being delivered; if that fails it waits for a retry, and then it can be rescheduled"
        }
        JobState::Dead => REVIVE,
        JobState::Done | JobState::Cancelled => ENDED,
    }
}

fn cannot_run(state: JobState) -> &'static str {
    match state {
        JobState::Dead => REVIVE,
        JobState::Delayed | JobState::Ready | JobState::Reserved | JobState::Done | JobState::Cancelled => {
            ENDED
        }
    }
}

fn cannot_revive(state: JobState) -> &'static str {
    match state {
        JobState::Delayed => ", not dead: run it (POST to its path and /run) to make it due now",
        JobState::Ready => ", not dead: it waits for delivery",
        JobState::Reserved => ", not dead: it is being delivered",
        JobState::Dead | JobState::Done | JobState::Cancelled => ENDED,
    }
}
