//! `/v1/quotas`: lists, sets and deletes the quotas of tenants.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::access::{MAX_QUOTAS, Quota};
use ringback_wire::{QuotaRequest, QuotaResponse, QuotasResponse};

use super::policy_change::{entry_applied, wait_until_applied};
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{JsonBody, QuotaPath, Upload};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, QuotaParams, QuotaProblems, StoreProblems};
use crate::state::ApiState;

/// What a quota does at an API without a root key.
const WITHOUT_KEYS: &str = "the quota has no effect yet: it limits callers with a key of the tenant, and keys can only be created once RINGBACK_ROOT_KEY is set";

/// List quotas
///
/// Lists the quotas of tenants, that of all others first.
#[utoipa::path(
    get, path = "/v1/quotas", tag = "keys", operation_id = "list_quotas",
    responses((status = 200, description = "The quotas", body = QuotasResponse), StoreProblems),
)]
pub(crate) async fn list_quotas(State(api): ApiState) -> JsonResult<QuotasResponse> {
    let quotas = Deadline::from_now().bound(api.store.quotas()).await??;
    let items = quotas.iter().map(|(of, quota)| QuotaResponse::new(of, *quota)).collect();
    Ok(Json(QuotasResponse { items }))
}

/// Set a quota
///
/// Limits what a tenant may submit, in place of any other quota; `*` stands for every tenant that does not have a quota
/// of its own. It holds for callers with a key of the tenant, at all APIs together and within a second. Beyond it they
/// are answered 429. The operator has no quota, and neither have callers without a tenant. Keys can only be created
/// once a root key is set; until then the quota is stored without effect, and `note` says so.
#[utoipa::path(
    put, path = "/v1/quotas/{tenant}", tag = "keys", operation_id = "put_quota",
    params(QuotaParams), request_body = QuotaRequest,
    responses(
        (status = 200, description = "Set in place of another", body = QuotaResponse),
        (status = 201, description = "Set", body = QuotaResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn put_quota(
    State(api): ApiState,
    QuotaPath(of): QuotaPath,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<(StatusCode, Change, Json<QuotaResponse>), ApiError> {
    let quota = Quota::from(QuotaRequest::parse(&bytes)?);
    let known = api.policies.quotas()?;
    if known.len() >= MAX_QUOTAS && !known.contains_key(&of) {
        let detail =
            format!("there are {MAX_QUOTAS} quotas, which is the limit; delete one, or set that of *");
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    let outdated =
        || ApiError::new(StatusCode::CONFLICT, "others are changing this quota; retry later".to_owned());
    let put = deadline.bound(api.store.put_quota(&of, quota)).await??;
    let status = entry_applied(&api, put, outdated).await?;
    let (before, answer) =
        (known.get(&of).map(|quota| QuotaResponse::new(&of, *quota)), QuotaResponse::new(&of, quota));
    let change = Change::default().before(before).after(&answer);
    let note = api.root.is_none().then(|| WITHOUT_KEYS.to_owned());
    Ok((status, change, Json(QuotaResponse { note, ..answer })))
}

/// Delete a quota
///
/// The tenant then has the quota of `*`, or none.
#[utoipa::path(
    delete, path = "/v1/quotas/{tenant}", tag = "keys", operation_id = "delete_quota",
    params(QuotaParams),
    responses((status = 200, description = "The quotas that are left", body = QuotasResponse), QuotaProblems),
)]
pub(crate) async fn delete_quota(State(api): ApiState, QuotaPath(of): QuotaPath) -> Audited<QuotasResponse> {
    let before = api.policies.quotas()?.get(&of).map(|quota| QuotaResponse::new(&of, *quota));
    let deleted = Deadline::from_now().bound(api.store.delete_quota(&of)).await??;
    let unknown = || ApiError::new(StatusCode::NOT_FOUND, "the tenant has no quota of its own");
    wait_until_applied(&api, deleted.ok_or_else(unknown)?).await;
    Ok((Change::default().before(before), list_quotas(State(api)).await?))
}
