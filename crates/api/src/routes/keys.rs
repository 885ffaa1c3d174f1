//! `/v1/keys`: makes, lists and deletes the keys of callers. A key is shown once, when it is made; the store has its
//! hash.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::access::{AccessKey, MAX_KEYS};
use ringback_core::store_types::PolicyPut;
use ringback_wire::{AuditLogTarget, CreatedKey, KeyDetails, KeysResponse, NewKeyRequest, parse_new_key};

use super::policy_change::wait_until_applied;
use crate::access::is_network;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{JsonBody, KeyPath, Upload, unknown_access_key};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, IdProblems, KeyIdText, StoreProblems};
use crate::state::ApiState;

/// Make a key
///
/// Makes a key for callers of a tenant, or of none, which holds within a second. The answer is the only one that shows
/// the key. Only the root key makes keys; without `RINGBACK_ROOT_KEY` the answer is 409.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", operation_id = "add_key",
    request_body = NewKeyRequest,
    responses((status = 201, description = "Made", body = CreatedKey), CreateProblems),
)]
pub(crate) async fn add_key(
    State(api): ApiState,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<(StatusCode, Change, Json<CreatedKey>), ApiError> {
    let now = api.now();
    let grant = parse_new_key(&bytes, now, is_network)?;
    if api.root.is_none() {
        let detail = "keys have no effect without RINGBACK_ROOT_KEY: set it for all APIs";
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    if api.policies.keys()?.len() >= MAX_KEYS {
        let detail = format!("there are {MAX_KEYS} keys, which is the limit; delete one");
        return Err(ApiError::new(StatusCode::CONFLICT, detail));
    }
    let (secret, id) = api.make_caller_key(now);
    let key = AccessKey { id, hash: secret.hash().0, grant, created: now, last_used: None };
    match deadline.bound(api.store.add_key(&key)).await?? {
        PolicyPut::Created(version) | PolicyPut::Replaced(version) => wait_until_applied(&api, version).await,
        PolicyPut::TooMany
        | PolicyPut::TooManyWithMetrics
        | PolicyPut::TooManyLimits(_)
        | PolicyPut::Outdated => {
            let detail = "there are as many policies and keys as there may be; delete some";
            return Err(ApiError::new(StatusCode::CONFLICT, detail));
        }
    }
    let about = KeyDetails::from(&key);
    let target = AuditLogTarget { key: Some(about.id.clone()), ..AuditLogTarget::default() };
    let change = Change::of(target).after(&about);
    let created = CreatedKey { key: secret.text().to_string(), about };
    Ok((StatusCode::CREATED, change, Json(created)))
}

/// List keys
///
/// Lists the keys of all tenants, the newest one first, without the keys themselves.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "list_keys",
    responses((status = 200, description = "The keys", body = KeysResponse), StoreProblems),
)]
pub(crate) async fn list_keys(State(api): ApiState) -> JsonResult<KeysResponse> {
    let mut keys = Deadline::from_now().bound(api.store.access_keys()).await??;
    keys.sort_by(|a, b| (b.created, &b.id).cmp(&(a.created, &a.id)));
    Ok(Json(KeysResponse { items: keys.iter().map(|key| KeyDetails::from(&**key)).collect() }))
}

/// Delete a key
///
/// Calls with the key are refused within a second, in all processes that reach the store.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", tag = "keys", operation_id = "delete_key",
    params(("key" = KeyIdText, Path, description = "The key's id")),
    responses((status = 200, description = "The keys that are left", body = KeysResponse), IdProblems),
)]
pub(crate) async fn delete_key(State(api): ApiState, KeyPath(id): KeyPath) -> Audited<KeysResponse> {
    let keys = api.policies.keys()?;
    let before = keys.values().find(|key| key.id == id).map(|key| KeyDetails::from(&**key));
    let deleted = Deadline::from_now().bound(api.store.delete_key(&id)).await??;
    wait_until_applied(&api, deleted.ok_or_else(unknown_access_key)?).await;
    Ok((Change::default().before(before), list_keys(State(api)).await?))
}
