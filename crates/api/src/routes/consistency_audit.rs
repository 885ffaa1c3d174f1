//! The consistency audit of the store: whether every job is in the right indexes and every count is
//! right, and the repair of what is not. An audit has no time limit, so only one runs at a time. A
//! client that disconnects cancels it; the store logs what a repair has done by then.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ringback_core::contract::{Audit, Repair};
use ringback_core::wire::AuditAnswer;
use tokio::time::Instant;

use crate::error::{ApiError, JsonResult};
use crate::extract::NoBody;
use crate::schema::{EmptyRequest, NoBodyProblems, StoreProblems};
use crate::state::{Api, ApiState};

/// Audit the store
///
/// Checks that every job is in the right indexes and that every count is right, while the service
/// runs. Changes nothing. The more jobs there are, the longer it takes; the server sets no time
/// limit. One at a time: while another one runs the answer is 503.
#[utoipa::path(
    get, path = "/v1/audit", tag = "stats", operation_id = "audit",
    responses((status = 200, description = "The findings", body = AuditAnswer), StoreProblems),
)]
pub(crate) async fn audit(State(api): ApiState) -> JsonResult<AuditAnswer> {
    run(&api, Repair::No).await
}

/// Audit and repair the store
///
/// Audits, adds missing index entries of jobs, and corrects counts if they can be known exactly. It
/// never removes a job. It is safe to repeat.
#[utoipa::path(
    post, path = "/v1/audit/repair", tag = "stats", operation_id = "repair",
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The findings, and how many of them are repaired", body = AuditAnswer),
        NoBodyProblems,
    ),
)]
pub(crate) async fn repair(State(api): ApiState, NoBody(_): NoBody) -> JsonResult<AuditAnswer> {
    run(&api, Repair::Yes).await
}

async fn run(api: &Api, repair: Repair) -> JsonResult<AuditAnswer> {
    let Ok(_turn) = api.audits.try_acquire() else {
        return Err(ApiError::retry_later("another audit or repair is under way"));
    };
    let begun = Instant::now();
    let audit = api.store.audit(repair).await?;
    log(&audit, begun.elapsed());
    Ok(Json(AuditAnswer::new(audit, begun.elapsed())))
}

/// Logs the result for the operator, who may not be the caller.
fn log(audit: &Audit, took: Duration) {
    let (checked, found, repaired) = (audit.checked, audit.total(), audit.repaired);
    if found == 0 {
        tracing::info!(checked, took_ms = took.as_millis(), "audit found no inconsistencies");
    } else {
        let kinds = audit.kinds();
        tracing::warn!(checked, found, repaired, kinds, "audit found inconsistencies");
    }
}
