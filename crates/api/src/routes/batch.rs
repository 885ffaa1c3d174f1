//! `POST /v1/jobs/batch`: submits many jobs and returns a result for each, in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::store_types::Submitted;
use ringback_wire::{BatchRequest, BatchResponse, BatchResult, JobRequest, JobResponse, Problem, delay_note};

use super::bulk_submit::{BulkResults, submit_items};
use super::jobs::submit_result;
use crate::access::Authenticated;
use crate::error::{ApiError, JsonResult};
use crate::extract::{BatchBody, NoIdempotencyKey, RequestTrace};
use crate::schema::BatchProblems;
use crate::state::ApiState;
use crate::submit_queues::ItemFailure;

/// Submit many jobs
///
/// Takes a JSON array, or one job per line as NDJSON; at most 10,000 items and 16 MiB. The answer has
/// one result per item, in order; an invalid item does not affect the others. An id twice in one batch
/// counts as submitted twice. The status is 200 even if all items are refused. If all are valid and the
/// store accepted none of them it is 503.
#[utoipa::path(
    post, path = "/v1/jobs/batch", tag = "jobs", operation_id = "submit_batch",
    request_body(
        content((BatchRequest = "application/json"), (JobRequest = "application/x-ndjson")),
        description = "A list of jobs, or a job per line: at most 10,000 and 16 MiB",
    ),
    responses(
        (status = 200, description = "A result per item, also if all are refused", body = BatchResponse),
        BatchProblems,
    ),
)]
pub(crate) async fn submit_batch(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    RequestTrace(trace): RequestTrace,
    _: NoIdempotencyKey,
    BatchBody(items): BatchBody,
) -> JsonResult<BatchResponse> {
    let notes = Mutex::new(BTreeMap::new());
    let parse = |number: usize, item: &[u8]| {
        let job = api.admission.parse_job(item, trace, &mut None, &caller)?;
        if let Some(note) = delay_note(item, job.due) {
            notes.lock().unwrap_or_else(PoisonError::into_inner).insert(number, note);
        }
        Ok(job)
    };
    let BulkResults { invalid, submitted } = submit_items(&api, &caller, &api.submits, items, parse).await?;
    let mut results: Vec<_> = invalid.into_iter().map(|(n, problem)| (n, refused(problem))).collect();
    let mut notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.extend(submitted.into_iter().map(|(number, result)| {
        let BatchResult { status, job, problem } = item_result(result);
        let job = job.map(|job| JobResponse { note: notes.remove(&number), ..job });
        (number, BatchResult { status, job, problem })
    }));
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(Json(results.into_iter().map(|(_, result)| result).collect::<Vec<_>>().into()))
}

fn item_result(result: Result<Submitted, ItemFailure>) -> BatchResult {
    match result {
        Ok(submitted) => submit_result(submitted).map_or_else(refused, accepted),
        Err(failure) => refused(ApiError::of_item(&failure).0),
    }
}

fn accepted((status, job): (StatusCode, JobResponse)) -> BatchResult {
    BatchResult { status: status.as_u16(), job: Some(job), problem: None }
}

fn refused(problem: Problem) -> BatchResult {
    BatchResult { status: problem.status, job: None, problem: Some(problem) }
}
