//! What is done with one job by its name: reschedule it, run it now, revive it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::contract::{MoveResult, StoreError};
use ringback_core::job::Job;
use ringback_core::state::State as JobState;
use ringback_core::wire::JobAnswer;

use super::jobs::unknown;
use crate::deadline::Deadline;
use crate::error::{ApiError, log};
use crate::extract::{JobPath, JsonBody, NoBody, Upload};
use crate::openapi::{MoveProblems, RescheduleProblems, RescheduleRequest};
use crate::state::Api;
use crate::submit::Unavailable;

/// Reschedule a job
///
/// Gives a delayed job another due time, also one that waits for a retry; a time that has come
/// makes it ready. A job in any other state is left as it is: 409.
#[utoipa::path(
    patch, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "reschedule",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    request_body = RescheduleRequest,
    responses((status = 200, description = "The job as it is now", body = JobAnswer), RescheduleProblems),
)]
pub(crate) async fn reschedule(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
    JsonBody(Upload { bytes, deadline, .. }): JsonBody,
) -> Result<Json<JobAnswer>, ApiError> {
    let (due, token) = (api.parse_reschedule(&bytes)?, api.token());
    match ask(deadline, || api.store.reschedule(&key, due, token)).await? {
        MoveResult::Applied(job) => Ok(Json(job.into())),
        MoveResult::Refused(job) => Err(refused(&job, rescheduled_from(&job))),
        MoveResult::Unknown => Err(unknown(&key)),
    }
}

/// Run a job now
///
/// Makes a delayed job due now. A job that is ready or being handed over is left as it is, and
/// that is a success. One that is dead, done or cancelled is left as it is too: 409.
#[utoipa::path(
    post, path = "/v1/jobs/{topic}/{id}/run", tag = "jobs", operation_id = "run",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses((status = 200, description = "The job as it is now", body = JobAnswer), MoveProblems),
)]
pub(crate) async fn run(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
    NoBody(deadline): NoBody,
) -> Result<Json<JobAnswer>, ApiError> {
    let token = api.token();
    match ask(deadline, || api.store.run(&key, token)).await? {
        MoveResult::Applied(job) => Ok(Json(job.into())),
        MoveResult::Refused(job) => Err(refused(&job, run_from(&job))),
        MoveResult::Unknown => Err(unknown(&key)),
    }
}

/// Revive a dead job
///
/// Makes it due now. Its failures are counted anew, its attempts go on, its reason goes away. A
/// job that is not dead is left as it is: 409.
#[utoipa::path(
    post, path = "/v1/jobs/{topic}/{id}/revive", tag = "jobs", operation_id = "revive",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses((status = 200, description = "The job as it is now", body = JobAnswer), MoveProblems),
)]
pub(crate) async fn revive(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
    NoBody(deadline): NoBody,
) -> Result<Json<JobAnswer>, ApiError> {
    let token = api.token();
    match ask(deadline, || api.store.revive(&key, token)).await? {
        MoveResult::Applied(job) => Ok(Json(job.into())),
        MoveResult::Refused(job) => Err(refused(&job, revived_from(&job))),
        MoveResult::Unknown => Err(unknown(&key)),
    }
}

/// Asks the store, and once more where the connection broke before the answer: the token makes
/// the second call tell what the first has done.
async fn ask<F: Future<Output = Result<MoveResult, StoreError>> + Send>(
    deadline: Deadline,
    call: impl Fn() -> F + Send,
) -> Result<MoveResult, ApiError> {
    let asked = deadline.bound(async {
        match call().await {
            Err(StoreError::Away(_)) => call().await,
            answer => answer,
        }
    });
    let answer = asked.await.map_err(|_elapsed| ApiError::of_move(&Unavailable::TooLate))?;
    answer.map_err(|error| {
        log(&error);
        ApiError::of_move(&Unavailable::Store(Arc::new(error)))
    })
}

/// What forbids it, and what to do instead.
fn refused(job: &Job, instead: &str) -> ApiError {
    let Job { key, state, .. } = job;
    ApiError::new(StatusCode::CONFLICT, format!("the job {key} is {state}{instead}"))
}

const OVER: &str = ": submit another job, under another id";
const REVIVE: &str = ": revive it (POST to its path and /revive) to have it handed over again";

fn rescheduled_from(job: &Job) -> &'static str {
    match job.state {
        JobState::Delayed | JobState::Ready => {
            ": it is due already and waits to be handed over; only cancelling can stop that"
        }
        JobState::Reserved => {
            ": it is being handed over; if that fails it waits for a retry, and then it can be rescheduled"
        }
        JobState::Dead => REVIVE,
        JobState::Done | JobState::Cancelled => OVER,
    }
}

fn run_from(job: &Job) -> &'static str {
    match job.state {
        JobState::Dead => REVIVE,
        JobState::Delayed | JobState::Ready | JobState::Reserved | JobState::Done | JobState::Cancelled => {
            OVER
        }
    }
}

fn revived_from(job: &Job) -> &'static str {
    match job.state {
        JobState::Delayed => ", not dead: run it (POST to its path and /run) to make it due now",
        JobState::Ready => ", not dead: it waits to be handed over",
        JobState::Reserved => ", not dead: it is being handed over",
        JobState::Dead | JobState::Done | JobState::Cancelled => OVER,
    }
}
