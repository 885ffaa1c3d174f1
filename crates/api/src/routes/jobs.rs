//! One job: submit it, look at it, cancel it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use ringback_core::contract::{Cancelled, Limit, MAX_LANES, MAX_TOPICS, SubmitResult, Submitted};
use ringback_core::job::JobKey;
use ringback_core::state::State as JobState;
use ringback_core::wire::{CancelAnswer, FieldError, InFlight, JobAnswer, Problem};

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{Caller, IdempotencyKey, JobPath, JsonBody, Upload};
use crate::metrics::Outcome;
use crate::openapi::{CancelProblems, GetProblems, JobRequest, SubmitProblems};
use crate::state::Api;

/// Submit a job
///
/// The same topic and id with the same content again is answered with 200 and the job's
/// current state; with other content with 409. A caller without an id can send an
/// `Idempotency-Key`, of which the id is made.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", operation_id = "submit",
    params(("Idempotency-Key" = Option<String>, Header,
        description = "In place of an id: 1 to 255 visible ASCII characters, the same with each repetition")),
    request_body = JobRequest,
    responses(
        (status = 201, description = "Accepted", body = JobAnswer,
            headers(("Location" = String, description = "Where the job can be looked at"))),
        (status = 200, description = "Accepted before", body = JobAnswer,
            headers(("Location" = String, description = "Where the job can be looked at"))),
        SubmitProblems,
    ),
)]
pub(crate) async fn submit(
    State(api): State<Arc<Api>>,
    Caller(trace): Caller,
    IdempotencyKey(id): IdempotencyKey,
    JsonBody(Upload { bytes, share, deadline }): JsonBody,
) -> Result<Response, ApiError> {
    let job = api.parse(&bytes, trace, id).inspect_err(|_| api.metrics.submitted(Outcome::Invalid, 1))?;
    drop(bytes);
    let submitted = api.submits.submit(job, share, deadline).await;
    let submitted = submitted.inspect_err(|_| api.metrics.submitted(Outcome::Unavailable, 1))?;
    api.metrics.submitted(submitted.answer.into(), 1);
    let location = location(&submitted.job.key);
    let (status, job) = judge(submitted)?;
    Ok((status, [(header::LOCATION, location)], Json(job)).into_response())
}

/// The status of a submit and the job; a conflict is a problem.
pub(crate) fn judge(submitted: Submitted) -> Result<(StatusCode, JobAnswer), Problem> {
    match submitted.answer {
        SubmitResult::Created => Ok((StatusCode::CREATED, submitted.job.into())),
        SubmitResult::Repeated => Ok((StatusCode::OK, submitted.job.into())),
        SubmitResult::Conflict => Err(Problem::new(
            StatusCode::CONFLICT,
            format!(
                "another job has this topic and id, with other content; it is {}: look at it, or choose another id",
                submitted.job.state
            ),
        )),
        SubmitResult::Full(limit) => Err(full(limit)),
    }
}

/// There is no room for a new job of this topic, or for this origin.
pub(super) fn full(limit: Limit) -> Problem {
    let (field, detail, allowed) = match limit {
        Limit::Topics => (
            "topic",
            format!(
                "the job's shard of the store has {MAX_TOPICS} topics with jobs, the most there can be, and this would be one more"
            ),
            "a topic that has jobs; use fewer topics, and tell jobs apart by their ids, headers or bodies",
        ),
        Limit::Lanes => (
            "url",
            format!(
                "the job's shard of the store has jobs for {MAX_LANES} pairs of a topic and an origin, the most there can be, and this would be one more"
            ),
            "an origin that the topic has jobs for; use fewer origins or topics, or come again when jobs have ended",
        ),
    };
    let allowed = allowed.to_owned();
    Problem::fields(vec![FieldError { field: field.to_owned(), detail, allowed }])
}

fn location(key: &JobKey) -> HeaderValue {
    HeaderValue::try_from(format!("/v1/jobs/{key}")).expect("topics and ids are visible ASCII")
}

/// Look at a job
///
/// A job that is done or cancelled is remembered for `RINGBACK_KEEP_DONE`.
#[utoipa::path(
    get, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "get_job",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses((status = 200, description = "The job", body = JobAnswer), GetProblems),
)]
pub(crate) async fn get_job(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
) -> Result<Json<JobAnswer>, ApiError> {
    let job = Deadline::from_now().bound(api.store.get(&key)).await.map_err(ApiError::too_late)??;
    Ok(Json(job.ok_or_else(|| unknown(&key))?.into()))
}

/// Cancel a job
///
/// Answered with 200 the job will never be handed over. While it is being handed over the answer
/// is 202: if that succeeds the job ends as done, otherwise as cancelled.
#[utoipa::path(
    delete, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "cancel",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses(
        (status = 200, description = "Cancelled, now or before", body = CancelAnswer),
        (status = 202, description = "Being handed over; the cancel is noted", body = CancelAnswer),
        CancelProblems,
    ),
)]
pub(crate) async fn cancel(State(api): State<Arc<Api>>, JobPath(key): JobPath) -> Result<Response, ApiError> {
    let cancelled =
        Deadline::from_now().bound(api.store.cancel(&key)).await.map_err(ApiError::too_late)??;
    let (status, state, in_flight) = match cancelled {
        Cancelled::Cancelled { in_flight_unknown } => {
            (StatusCode::OK, JobState::Cancelled, in_flight_unknown.then(not_known))
        }
        Cancelled::Requested { in_flight_unknown } => {
            let in_flight = if in_flight_unknown { not_known() } else { InFlight::Yes(true) };
            (StatusCode::ACCEPTED, JobState::Reserved, Some(in_flight))
        }
        Cancelled::TooLate => {
            return Err(ApiError::new(StatusCode::CONFLICT, format!("the job {key} is done")));
        }
        Cancelled::Unknown => return Err(unknown(&key)),
    };
    let answer = CancelAnswer {
        topic: key.topic.to_string(),
        id: key.id.to_string(),
        state: state.to_string(),
        in_flight,
    };
    Ok((status, Json(answer)).into_response())
}

fn not_known() -> InFlight {
    InFlight::Unknown("unknown".to_owned())
}

pub(super) fn unknown(key: &JobKey) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, format!("no job {key} is known, or it ended too long ago"))
}
