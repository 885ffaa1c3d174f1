//! One destination: shows it, and sets and removes its limits. `destinations` lists all, and pauses and resumes one;
//! `destination_breakers` forces its breakers.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::destination::DestinationPause;
use ringback_core::flow::Limits;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{LimitState, LimitTarget, MAX_LIMITS, MAX_LIMITS_OF_TENANT, PauseLimit};
use ringback_wire::{DestinationRequest, DestinationResponse};
use serde_json::{Value, json};

use super::destinations::of_caller;
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{DestinationPath, JsonBody, Upload};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, DestinationParams, FindProblems, QueryProblems};
use crate::state::{Api, ApiState};

/// Get a destination
///
/// Returns a host, or one port of it, with the pauses that hold it, and with the limits that the caller has set for
/// exactly this host or port, and how much of them is used. A destination without jobs, pauses and limits is returned
/// too. With the key of a tenant, the limits are those of the tenant; those of the operator hold too but are not shown.
#[utoipa::path(
    get, path = "/v1/destinations/{host}", tag = "destinations", operation_id = "get_destination",
    params(DestinationParams),
    responses((status = 200, description = "The destination", body = DestinationResponse), QueryProblems),
)]
pub(crate) async fn get_destination(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
) -> JsonResult<DestinationResponse> {
    let (of, deadline) = (DestinationPause::new(caller.reach(), destination), Deadline::from_now());
    let limit = limit_of(&api, &of, deadline).await?;
    Ok(Json(answer(&api, &caller, &of, limit.as_ref(), deadline).await?))
}

/// Limit a destination
///
/// Sets how many callbacks may begin in a time, and how many may be in flight, to a host over all of its ports, or to
/// one port of it. It replaces the former limits of exactly this host or port. They hold from the answer on, exactly,
/// and over all notifiers together. Jobs that have to wait stay `ready`, and hold up no others. With the key of a
/// tenant the limits are for the jobs of that tenant, with the root key, or without one, for those of all; all limits
/// that apply to a callback hold. Jobs that consumers reserve are not limited.
#[utoipa::path(
    put, path = "/v1/destinations/{host}", tag = "destinations", operation_id = "put_limits",
    params(DestinationParams), request_body = DestinationRequest,
    responses(
        (status = 200, description = "Limited, in place of former limits", body = DestinationResponse),
        (status = 201, description = "Limited, without former limits", body = DestinationResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn put_limits(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<(StatusCode, Change, Json<DestinationResponse>), ApiError> {
    let DestinationRequest { limits } = DestinationRequest::parse(&bytes)?;
    let of = of_caller(&caller, destination, FOR_SOME_TOPICS)?;
    let before = limit_of(&api, &of, deadline).await?;
    deadline
        .bound(api.store.limit(&target(&of), &limits))
        .await??
        .map_err(|limit| too_many_limits(limit, "destinations"))?;
    let after = limit_of(&api, &of, deadline).await?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let answer = answer(&api, &caller, &of, after.as_ref(), deadline).await?;
    Ok((status, change(before.as_ref(), after.as_ref()), Json(answer)))
}

/// Remove the limits of a destination
///
/// Removes the limits that the caller has set for exactly this host or port. Limits of the host and of a single port
/// are removed each by itself; so are those of a tenant and of the operator.
#[utoipa::path(
    delete, path = "/v1/destinations/{host}", tag = "destinations", operation_id = "delete_limits",
    params(DestinationParams),
    responses((status = 200, description = "The destination, without limits", body = DestinationResponse), FindProblems),
)]
pub(crate) async fn delete_limits(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
) -> Audited<DestinationResponse> {
    let (of, deadline) = (of_caller(&caller, destination, FOR_SOME_TOPICS)?, Deadline::from_now());
    let before = limit_of(&api, &of, deadline).await?;
    // Also if there are none: a former call may have failed half-way.
    deadline
        .bound(api.store.limit(&target(&of), &Limits::default()))
        .await??
        .map_err(|limit| too_many_limits(limit, "destinations"))?;
    let before = before.ok_or_else(|| without_limits(&of, caller.reach()))?;
    let answer = answer(&api, &caller, &of, None, deadline).await?;
    Ok((change(Some(&before), None), Json(answer)))
}

/// Why a key for some topics may not limit a destination.
const FOR_SOME_TOPICS: &str = "the key is for some topics, and a limit of a destination is for all topics of a tenant; use a key without `topics`";

fn target(of: &DestinationPause) -> LimitTarget {
    LimitTarget::Destination(of.clone())
}

/// The limits with exactly this name.
pub(super) async fn limit_of(
    api: &Api,
    of: &DestinationPause,
    deadline: Deadline,
) -> Result<Option<LimitState>, ApiError> {
    Ok(deadline.bound(api.store.limits(&[target(of)])).await??.pop())
}

pub(super) async fn answer(
    api: &Api,
    caller: &Principal,
    of: &DestinationPause,
    limit: Option<&LimitState>,
    deadline: Deadline,
) -> Result<DestinationResponse, ApiError> {
    let pauses = deadline.bound(api.store.paused_destinations()).await??;
    let forced_closed = deadline.bound(api.store.forced_closed(caller.reach())).await??;
    Ok(DestinationResponse::new(&of.destination, &pauses, &forced_closed, limit, caller.reach()))
}

fn change(before: Option<&LimitState>, after: Option<&LimitState>) -> Change {
    Change::default().before(shown(before)).after(shown(after))
}

/// Limits as the audit log shows them: without how much of them is used.
fn shown(state: Option<&LimitState>) -> Value {
    let limits = state.map(|LimitState { limits: Limits { rate, burst, in_flight }, .. }| {
        json!({"rate": rate.map(|rate| rate.to_string()), "burst": burst, "in_flight": in_flight})
    });
    json!({ "limits": limits })
}

fn without_limits(of: &DestinationPause, scope: &TenantScope) -> ApiError {
    let whose = match scope {
        TenantScope::All => "for the jobs of all".to_owned(),
        TenantScope::One(None) => "for jobs without a tenant".to_owned(),
        TenantScope::One(Some(tenant)) => format!("for the jobs of tenant {tenant}"),
    };
    let detail = format!(
        "{} has no limits {whose}, so none were removed; a host and each of its ports are limited separately",
        of.destination
    );
    ApiError::new(StatusCode::NOT_FOUND, detail)
}

/// 409: there are as many limits as there may be. `of` says whose limits were to be set: `destinations` or `topics`.
pub(super) fn too_many_limits(limit: PauseLimit, of: &str) -> ApiError {
    let why = match limit {
        PauseLimit::Installation => format!(
            "there are {MAX_LIMITS} limits of destinations and topics, which is the most, and this would be one more"
        ),
        PauseLimit::Tenant => format!(
            "the tenant has limited as many {of} as it may: {MAX_LIMITS_OF_TENANT}, and at most half of what other tenants leave"
        ),
    };
    let detail = format!(
        "{why}; nothing was changed: first remove limits of others (DELETE /v1/destinations/{{host}}, or PATCH /v1/topics/{{topic}} with \"limits\":null)"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}
