//! Many jobs in one request: each item is judged by itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::job::{NewJob, Trace};
use ringback_core::wire::{BatchAnswer, BatchResult, JobAnswer, Problem};

use super::jobs::judge;
use crate::error::ApiError;
use crate::extract::{BatchBody, Caller};
use crate::metrics::Outcome;
use crate::openapi::{BatchProblems, JobRequest};
use crate::state::Api;
use crate::submit::Unavailable;

/// After so many bytes of items others get their turn.
const STRETCH: usize = 64 * 1024;

/// Submit many jobs
///
/// A JSON array, or one job per line as NDJSON; at most 10,000 items and 16 MiB. One result per
/// item, in order; a bad item does not spoil the others. An id twice in one batch is treated as
/// submitted twice.
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
    body: BatchBody,
) -> Result<Json<BatchAnswer>, ApiError> {
    let Sorted { jobs, mut results } = sort(&api, &body, trace).await?;
    // The bytes are in the jobs now; the permit stays until all is done.
    let _permit = body.into_permit();
    api.metrics.submitted(Outcome::Invalid, results.len() - jobs.len());

    let (mut failed, mut failure) = (0, None);
    for (number, answer) in api.lines.submit_all(jobs).await {
        results[number] = match answer {
            Ok(submitted) => {
                api.metrics.submitted(submitted.answer.into(), 1);
                judge(submitted).map_or_else(refused, accepted)
            }
            Err(error) => {
                failed += 1;
                let ApiError(problem) = error.clone().into();
                // What is not known of one item is not known of the batch.
                if failure.as_ref().is_none_or(|known: &Unavailable| !known.outcome_is_unknown()) {
                    failure = Some(error);
                }
                refused(problem)
            }
        };
    }
    api.metrics.submitted(Outcome::Unavailable, failed);
    match failure {
        Some(error) if failed == results.len() => Err(error.into()),
        Some(_) | None => Ok(Json(results.into())),
    }
}

/// The items that are jobs, each with its place, and a result for every item: final for those
/// that are no jobs.
struct Sorted {
    jobs: Vec<(usize, NewJob)>,
    results: Vec<BatchResult>,
}

async fn sort(api: &Api, body: &BatchBody, trace: Option<Trace>) -> Result<Sorted, Problem> {
    let items = body.items()?;
    let mut sorted =
        Sorted { jobs: Vec::with_capacity(items.len()), results: Vec::with_capacity(items.len()) };
    let mut stretch = 0;
    for (number, item) in items.into_iter().enumerate() {
        match api.parse(item, trace) {
            Ok(job) => {
                sorted.jobs.push((number, job));
                sorted.results.push(BatchResult { status: 0, job: None, problem: None });
            }
            Err(problem) => sorted.results.push(refused(problem)),
        }
        stretch += item.len();
        if stretch >= STRETCH {
            stretch = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(sorted)
}

fn accepted((status, job): (StatusCode, JobAnswer)) -> BatchResult {
    BatchResult { status: status.as_u16(), job: Some(job), problem: None }
}

fn refused(problem: Problem) -> BatchResult {
    BatchResult { status: problem.status, job: None, problem: Some(problem) }
}
