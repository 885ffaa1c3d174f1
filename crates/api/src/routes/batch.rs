//! Many jobs in one request: a result for each item, in order.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::contract::Submitted;
use ringback_core::wire::{BatchAnswer, BatchResult, JobAnswer, Problem};

use super::jobs::judge;
use super::many::{Judged, judged};
use crate::error::ApiError;
use crate::extract::{BatchBody, Caller, NoIdempotencyKey};
use crate::openapi::{BatchProblems, JobRequest};
use crate::state::Api;
use crate::submit::Unavailable;

/// Submit many jobs
///
/// A JSON array, or one job per line as NDJSON; at most 10,000 items and 16 MiB. One result per
/// item, in order; a bad item does not spoil the others. An id twice in one batch is treated as
/// submitted twice. When the store took none of the items the whole is answered with 503.
#[utoipa::path(
    post, path = "/v1/jobs/batch", tag = "jobs", operation_id = "submit_batch",
    request_body(content((Vec<JobRequest> = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "A result per item", body = BatchAnswer),
        BatchProblems,
    ),
)]
pub(crate) async fn submit_batch(
    State(api): State<Arc<Api>>,
    Caller(trace): Caller,
    _: NoIdempotencyKey,
    BatchBody(pieces): BatchBody,
) -> Result<Json<BatchAnswer>, ApiError> {
    let Judged { wrong, answers } =
        judged(&api.submits, &api.metrics, pieces, |item| api.parse(item, trace, None)).await?;
    let mut results: Vec<_> = wrong.into_iter().map(|(number, problem)| (number, refused(problem))).collect();
    results.extend(answers.into_iter().map(|(number, answer)| (number, result(answer))));
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(Json(results.into_iter().map(|(_, result)| result).collect::<Vec<_>>().into()))
}

fn result(answer: Result<Submitted, Unavailable>) -> BatchResult {
    match answer {
        Ok(submitted) => judge(submitted).map_or_else(refused, accepted),
        Err(error) => refused(ApiError::from(error).0),
    }
}

fn accepted((status, job): (StatusCode, JobAnswer)) -> BatchResult {
    BatchResult { status: status.as_u16(), job: Some(job), problem: None }
}

fn refused(problem: Problem) -> BatchResult {
    BatchResult { status: problem.status, job: None, problem: Some(problem) }
}
