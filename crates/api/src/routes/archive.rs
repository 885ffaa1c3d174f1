//! `/v1/archive`: how many ended jobs wait in the store for the archive, and detaching it. Archivers attach it; queries
//! of the archive are in `history`.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_wire::{ArchiveDetachedResponse, ArchiveResponse};
use serde_json::json;

use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{DetachQuery, Query};
use crate::limits::Deadline;
use crate::schema::{DetachProblems, StoreProblems};
use crate::state::ApiState;

/// Get the archive's outbox
///
/// Shows how many ended jobs wait in the store for the database of the archive. Archivers attach the archive, take
/// ended jobs from its outbox and remove them once the database has them.
#[utoipa::path(
    get, path = "/v1/archive", tag = "stats", operation_id = "archive",
    responses((status = 200, description = "The outbox", body = ArchiveResponse), StoreProblems),
)]
pub(crate) async fn archive(State(api): ApiState) -> JsonResult<ArchiveResponse> {
    let status = Deadline::from_now().bound(api.store.archive_status()).await??;
    Ok(Json(ArchiveResponse::of(&status).unwrap_or_default()))
}

/// Detach the archive
///
/// Ended jobs are not kept for an archive any more. For an installation that gives its archive up: stop its archivers
/// first, since each attaches it again. Ended jobs that wait are dropped with `drop=true`; else the answer is 409 if
/// there are any. It is safe to repeat.
#[utoipa::path(
    delete, path = "/v1/archive", tag = "stats", operation_id = "detach_archive",
    params(("drop" = Option<bool>, Query, description = "Drop the ended jobs that wait")),
    responses((status = 200, description = "Detached", body = ArchiveDetachedResponse), DetachProblems),
)]
pub(crate) async fn detach_archive(
    State(api): ApiState,
    Query(DetachQuery { drops }): Query<DetachQuery>,
) -> Audited<ArchiveDetachedResponse> {
    let detach = async {
        let before = api.store.archive_status().await?;
        let was_attached = before.settings.is_some();
        if before.pending > 0 && !drops {
            return Err(waiting(before.pending));
        }
        api.store.attach_archive(None).await?;
        if drops {
            return Ok((was_attached, api.store.drop_ended().await?));
        }
        match api.store.archive_status().await?.pending {
            0 => Ok((was_attached, 0)),
            // Jobs have ended meanwhile.
            pending => {
                api.store.attach_archive(before.settings).await?;
                Err(waiting(pending))
            }
        }
    };
    let (was_attached, dropped) = Deadline::from_now().bound(detach).await??;
    tracing::info!(dropped, "the archive is detached");
    let change =
        Change::default().before(json!({"attached": was_attached})).after(json!({"attached": false}));
    Ok((change.count(dropped), Json(ArchiveDetachedResponse { dropped })))
}

fn waiting(pending: u64) -> ApiError {
    let detail = format!(
        "{pending} ended jobs wait for the archive: let an archiver take them, or drop them with drop=true"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}
