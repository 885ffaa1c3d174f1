//! `/v1/check`: the consistency check of all jobs with their indexes and counts, the repair of what is wrong, and
//! accepting a loss of jobs or the machine's clock. A check has no time limit, so only one runs at a time. A client
//! that disconnects cancels it; the store logs what a repair has done by then.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::store_types::{AcceptClock, AcceptLoss, Check, Loss, Repair};
use ringback_wire::{AcceptLossRequest, CheckResponse, ClockResponse, JobLoss};
use serde_json::json;
use tokio::time::Instant;

use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{JsonBody, NoBody, Upload};
use crate::schema::{CreateProblems, EmptyRequest, NoBodyConflictProblems, NoBodyProblems, StoreProblems};
use crate::state::{Api, ApiState};

/// Check the store
///
/// Checks that every job is in the right indexes and that every count is right, while the service
/// runs. Changes nothing. The more jobs there are, the longer it takes; the server sets no time
/// limit. One at a time: while another one runs the answer is 503.
#[utoipa::path(
    get, path = "/v1/check", tag = "stats", operation_id = "check",
    responses((status = 200, description = "The findings", body = CheckResponse), StoreProblems),
)]
pub(crate) async fn check(State(api): ApiState) -> JsonResult<CheckResponse> {
    run(&api, Repair::No).await
}

/// Check and repair the store
///
/// Checks, adds missing index entries of jobs, and corrects counts if they can be known exactly. Accepted jobs
/// whose record is deleted although they have not ended are counted as missing. It never removes a job. It is safe to
/// repeat.
#[utoipa::path(
    post, path = "/v1/check/repair", tag = "stats", operation_id = "repair",
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The findings, and how many of them are repaired", body = CheckResponse),
        NoBodyProblems,
    ),
)]
pub(crate) async fn repair(State(api): ApiState, NoBody(_): NoBody) -> Audited<CheckResponse> {
    let Json(answer) = run(&api, Repair::Yes).await?;
    let change = Change::default().after(json!({"repaired": answer.repaired, "missing": answer.missing}));
    Ok((change, Json(answer)))
}

/// Accept a loss of jobs
///
/// The store came back without jobs that it had accepted, so submits are refused with 503. This accepts the
/// loss that the check shows, and submits are taken again: by this API process at once, by the others within a
/// second. It brings no job back. It is safe to repeat.
#[utoipa::path(
    post, path = "/v1/check/accept-loss", tag = "stats", operation_id = "accept_loss",
    request_body = AcceptLossRequest,
    responses((status = 200, description = "Accepted, now or before", body = JobLoss), CreateProblems),
)]
pub(crate) async fn accept_loss(
    State(api): ApiState,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Audited<JobLoss> {
    let AcceptLossRequest { run_id } = AcceptLossRequest::parse(&bytes)?;
    match deadline.bound(api.store.accept_loss(&run_id)).await?? {
        AcceptLoss::Accepted(loss) => {
            let answer = JobLoss::from(loss);
            Ok((Change::default().after(&answer), Json(answer)))
        }
        AcceptLoss::Unknown(waiting) => {
            let detail = match waiting {
                Some(Loss { run_id, jobs }) => format!(
                    "no loss has this run_id; the one that waits to be accepted has {run_id}, with at least {jobs} jobs"
                ),
                None => "no loss of jobs waits to be accepted".to_owned(),
            };
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// Accept the machine's clock
///
/// The embedded store once had a time that was far ahead of the machine's clock, and jobs were accepted, tried or
/// became due by it. This says that the clock is right. Retries and retentions that counted from the wrong time count
/// from now; jobs wait until the clock shows their due time, as they did before.
#[utoipa::path(
    post, path = "/v1/check/accept-clock", tag = "stats", operation_id = "accept_clock",
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Accepted", body = ClockResponse), NoBodyConflictProblems),
)]
pub(crate) async fn accept_clock(State(api): ApiState, NoBody(_): NoBody) -> Audited<ClockResponse> {
    let detail = match api.store.accept_clock().await? {
        AcceptClock::Accepted(gap) => {
            let answer = ClockResponse::from(gap);
            return Ok((Change::default().after(&answer), Json(answer)));
        }
        AcceptClock::Right => "the store's time is that of the machine's clock",
        AcceptClock::OfServer => {
            "the time of this store is that of Redis: set the clock of its machine; nothing has to be accepted"
        }
    };
    Err(ApiError::new(StatusCode::CONFLICT, detail))
}

async fn run(api: &Api, repair: Repair) -> JsonResult<CheckResponse> {
    let Ok(_turn) = api.checks.try_acquire() else {
        return Err(ApiError::retry_later("another check or repair is under way"));
    };
    let begun = Instant::now();
    let check = api.store.check(repair).await?;
    log(&check, begun.elapsed());
    Ok(Json(CheckResponse::new(check, begun.elapsed())))
}

/// Logs the result for the operator, who may not be the caller.
fn log(check: &Check, took: Duration) {
    let (checked, found, repaired, missing) = (check.checked, check.total(), check.repaired, check.missing);
    if found == 0 {
        tracing::info!(checked, missing, took_ms = took.as_millis(), "check found no inconsistencies");
    } else {
        let kinds = check.kinds();
        tracing::warn!(checked, found, repaired, missing, kinds, "check found inconsistencies");
    }
}
