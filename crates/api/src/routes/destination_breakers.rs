//! The breakers of one destination, forced open, forced closed, or left to themselves.

use axum::Json;
use axum::extract::State;
use ringback_core::destination::DestinationPause;
use ringback_wire::{BreakerRequest, BreakerSetting, DestinationResponse};
use serde_json::{Value, json};

use super::destination_limits::{answer, limit_of};
use super::destinations::{of_caller, too_many};
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::ApiError;
use crate::extract::{DestinationPath, JsonBody, Upload};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, DestinationParams};
use crate::state::{Api, ApiState};

/// Force the breakers of a destination
///
/// `closed` closes the breakers of a host, or of one port of it, and they open no more: callbacks go there whatever it
/// answers, as fast as ever. `open` pauses the destination. `auto` resets them: it ends both, and they are closed until
/// they open by themselves. `closed` and `auto` end a pause that the caller has made of exactly this host or port.
/// With the key of a tenant this is for the jobs of that tenant, with the root key, or without one, for those of all.
#[utoipa::path(
    post, path = "/v1/destinations/{host}/breaker", tag = "destinations", operation_id = "force_breaker",
    params(DestinationParams), request_body = BreakerRequest,
    responses((status = 200, description = "The destination", body = DestinationResponse), CreateProblems),
)]
pub(crate) async fn force_breaker(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Audited<DestinationResponse> {
    let BreakerRequest { state } = BreakerRequest::parse(&bytes)?;
    let of = of_caller(&caller, destination, FOR_SOME_TOPICS)?;
    let limit = limit_of(&api, &of, deadline).await?;
    let before = answer(&api, &caller, &of, limit.as_ref(), deadline).await?;
    match state {
        BreakerSetting::Open => {
            deadline
                .bound(api.store.pause_destination(&of))
                .await??
                .map_err(|limit| too_many(limit, "paused"))?;
            deadline.bound(api.store.reset_breakers(&of)).await??;
        }
        BreakerSetting::Closed => {
            deadline
                .bound(api.store.force_breakers_closed(&of))
                .await??
                .map_err(|limit| too_many(limit, "forced closed"))?;
            resume(&api, &of, deadline).await?;
        }
        BreakerSetting::Auto => {
            deadline.bound(api.store.reset_breakers(&of)).await??;
            resume(&api, &of, deadline).await?;
        }
    }
    let after = answer(&api, &caller, &of, limit.as_ref(), deadline).await?;
    Ok((Change::default().before(shown(&before)).after(shown(&after)), Json(after)))
}

/// Why a key for some topics may not force breakers.
const FOR_SOME_TOPICS: &str =
    "the key is for some topics, and a breaker is for all topics of a tenant; use a key without `topics`";

async fn resume(api: &Api, of: &DestinationPause, deadline: Deadline) -> Result<(), ApiError> {
    deadline.bound(api.store.resume_destination(of)).await??;
    Ok(())
}

/// The setting as the audit log shows it.
fn shown(destination: &DestinationResponse) -> Value {
    json!({"breaker": destination.breaker, "pauses": destination.pauses})
}
