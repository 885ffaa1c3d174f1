//! `GET /v1/audit-log`: pages of the calls that have changed something, as far as the caller may see them.

use axum::Json;
use axum::extract::State;
use ringback_admission::{Principal, invalid_field};
use ringback_core::job::Topic;
use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_ROWS};
use ringback_service::http_server::Peer;
use ringback_wire::{AuditLogEntry, AuditLogResponse};

use crate::access::Authenticated;
use crate::error::{ApiError, JsonResult};
use crate::extract::{AuditLogFilter, AuditLogQuery, Query, is_no};
use crate::limits::Deadline;
use crate::schema::{AuditLogCursor, AuditLogOperation, CallerText, QueryProblems, Time, TopicName};
use crate::state::{Api, ApiState};

/// How many entries a page looks at.
const MAX_LOOKED_AT: usize = 2_048;

/// List the audit log
///
/// Lists the calls that have changed something, the newest first: who, from where, what, and what it was before. The
/// operator sees all; a key sees those about its tenant, and one for some topics those about these. A page holds at
/// most `limit` entries. It may hold fewer or none and still have a next page; `next` is null on the last page. The
/// store keeps about the last 10,000 entries.
#[utoipa::path(
    get, path = "/v1/audit-log", tag = "audit log", operation_id = "list_audit_log",
    params(
        ("topic" = Option<TopicName>, Query, description = "Only calls about this topic"),
        ("operation" = Option<AuditLogOperation>, Query, description = "Only calls of this operation"),
        ("who" = Option<CallerText>, Query, description = "Only calls of this caller"),
        ("after" = Option<Time>, Query, description = "Only calls that were answered at this time or later"),
        ("before" = Option<Time>, Query, description = "Only calls that were answered before this time"),
        ("cursor" = Option<AuditLogCursor>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most entries of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = AuditLogResponse), QueryProblems),
)]
pub(crate) async fn list_audit_log(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(query): Query<AuditLogQuery>,
) -> JsonResult<AuditLogResponse> {
    check_operation(&api, &query.filter)?;
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    page(&api, &caller, query, deadline).await
}

fn check_operation(api: &Api, filter: &AuditLogFilter) -> Result<(), ApiError> {
    let Some(name) = &filter.operation else { return Ok(()) };
    let names = api.operations.audited();
    if names.contains(&name.as_str()) {
        return Ok(());
    }
    Err(invalid_field("operation", is_no("operation", name), names.join(", ")).into())
}

async fn page(
    api: &Api,
    caller: &Principal,
    AuditLogQuery { filter, from, limit }: AuditLogQuery,
    deadline: Deadline,
) -> JsonResult<AuditLogResponse> {
    let owner = AuditLogOwner::of_scope(caller.reach());
    let before = filter.before.map(AuditLogId::least_of);
    let mut place = match (from, before) {
        (Some(from), Some(before)) => Some(from.min(before)),
        (from, before) => from.or(before),
    };
    let least = filter.after.map(AuditLogId::least_of);
    let (mut items, mut looked_at) = (Vec::new(), 0);
    let next = 'pages: loop {
        let read = api.store.audit_log(owner.as_ref(), place.as_ref(), MAX_AUDIT_LOG_ROWS);
        let rows = deadline.bound(read).await??;
        let is_last = rows.len() < MAX_AUDIT_LOG_ROWS;
        for row in rows {
            if least.as_ref().is_some_and(|least| row.id < *least) {
                break 'pages None;
            }
            if items.len() == limit {
                break 'pages place;
            }
            items.extend(shown(&row, &filter, caller));
            place = Some(row.id);
            looked_at += 1;
        }
        if is_last {
            break None;
        }
        if looked_at >= MAX_LOOKED_AT || deadline.is_near() {
            break place;
        }
    };
    Ok(Json(AuditLogResponse { items, next: next.map(|id| id.to_string()) }))
}

/// An entry as a caller sees it: the address of a caller without a key is for operators alone. `None` if the filter or
/// the topics of the caller's key exclude it, or if it cannot be read, which is logged.
fn shown(row: &AuditLogRow, filter: &AuditLogFilter, caller: &Principal) -> Option<AuditLogEntry> {
    let mut entry: AuditLogEntry = match serde_json::from_str(&row.written) {
        Ok(entry) => entry,
        Err(error) => {
            tracing::error!(audit.id = %row.id, %error, "an entry of the audit log is left out");
            return None;
        }
    };
    let is_of = |topic: &Topic| {
        entry.target.topic.as_deref() == Some(topic.name())
            && row.owner == AuditLogOwner::Tenant(topic.tenant())
    };
    let is_for_caller = caller.topics().is_empty() || caller.topics().iter().any(is_of);
    let is_wanted = filter.topic.as_ref().is_none_or(is_of)
        && filter.operation.as_ref().is_none_or(|operation| entry.operation == *operation)
        && filter.who.as_ref().is_none_or(|who| entry.who == *who);
    if !is_for_caller || !is_wanted {
        return None;
    }
    if !caller.is_operator() && !entry.who.starts_with("key:") {
        entry.address = None;
    }
    Some(entry)
}
