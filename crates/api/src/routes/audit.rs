//! The books: whether every job is where it would be looked for, and every count is right. It
//! takes as long as it takes; one at a time, so that nobody can load the store with it. A caller
//! that hangs up ends it: its future is dropped, and the store tells the log what a repair has put
//! right by then.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ringback_core::contract::{Audit, Repair};
use ringback_core::wire::AuditAnswer;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::extract::NoBody;
use crate::openapi::{AuditProblems, RepairProblems};
use crate::state::Api;

/// Audit
///
/// Compares all that is kept with all that is counted, while everything goes on; changes nothing.
/// The answer comes when it is over, which takes the longer the more jobs there are: no time limit
/// of the server ends it. One at a time: while another one is under way the answer is 503.
#[utoipa::path(
    get, path = "/v1/audit", tag = "stats", operation_id = "audit",
    responses((status = 200, description = "What was found", body = AuditAnswer), AuditProblems),
)]
pub(crate) async fn audit(State(api): State<Arc<Api>>) -> Result<Json<AuditAnswer>, ApiError> {
    run(&api, Repair::No).await
}

/// Audit and repair
///
/// An audit that leads to jobs again that nothing led to, and puts counts right where that is
/// exact. It never removes a job. To repeat it does no harm.
#[utoipa::path(
    post, path = "/v1/audit/repair", tag = "stats", operation_id = "repair",
    responses(
        (status = 200, description = "What was found, and what of it is put right", body = AuditAnswer),
        RepairProblems,
    ),
)]
pub(crate) async fn repair(
    State(api): State<Arc<Api>>,
    NoBody(_): NoBody,
) -> Result<Json<AuditAnswer>, ApiError> {
    run(&api, Repair::Yes).await
}

async fn run(api: &Api, repair: Repair) -> Result<Json<AuditAnswer>, ApiError> {
    let Ok(_turn) = api.audits.try_acquire() else {
        return Err(ApiError::too_many("another audit or repair is under way"));
    };
    let begun = Instant::now();
    let audit = api.store.audit(repair).await?;
    tell(&audit, begun.elapsed());
    Ok(Json(AuditAnswer::new(audit, begun.elapsed())))
}

/// What is wrong is worth a word in the log, whoever asked.
fn tell(audit: &Audit, took: Duration) {
    let (checked, found, repaired) = (audit.checked, audit.total(), audit.repaired);
    if found == 0 {
        tracing::info!(checked, took_ms = took.as_millis(), "an audit has found nothing");
    } else {
        let kinds = audit.kinds();
        tracing::warn!(checked, found, repaired, kinds, "an audit has found that the books are not right");
    }
}
