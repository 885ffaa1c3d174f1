//! Bulk operations: cancel, run, revive, reschedule or purge the jobs that match a filter. Starts, lists, shows and
//! stops them; the carriers do the work. Counting the jobs beforehand is in `dry_run`.

mod dry_run;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ringback_admission::Principal;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{
    Bulk, BulkStart, BulkState, BulkTarget, BulkVerb, DeadFilter, Filter, MAX_BULKS,
};
use ringback_service::http_server::Peer;
use ringback_wire::{
    AuditLogTarget, BulkRequest, BulkRescheduleRequest, BulkResponse, BulksResponse, DryRunResponse, NewBulk,
    ReviveRequest,
};
use serde_json::json;

use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{BulkPath, MaybeJson, TopicPath, unknown_bulk};
use crate::limits::{Deadline, check_share};
use crate::schema::{BulkParams, CreateProblems, IdProblems, StoreProblems, TopicParams};
use crate::state::{Api, ApiState};

/// The input of a call that starts a bulk operation.
type Call = (ApiState, Authenticated, Peer, MaybeJson);

/// Cancel many jobs
///
/// Starts a bulk operation that cancels the jobs that fit `filter` and were created before this call; they are those
/// that a list with the same filter shows. A job that is being delivered is cancelled if its delivery fails. With
/// `dry_run` nothing changes, and the answer is 200 with the number of jobs. A carrier does the work; `Location` is
/// where to get the progress. While 16 bulk operations run the answer is 409.
#[utoipa::path(
    post, path = "/v1/jobs/cancel", tag = "bulk", operation_id = "cancel_jobs",
    request_body = BulkRequest,
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        (status = 200, description = "The result of a dry run", body = DryRunResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn cancel_jobs(call: Call) -> Result<Response, ApiError> {
    begin(call, BulkVerb::Cancel).await
}

/// Run many jobs now
///
/// Starts a bulk operation that makes the delayed jobs that fit `filter` due now. Otherwise like `cancel`.
#[utoipa::path(
    post, path = "/v1/jobs/run", tag = "bulk", operation_id = "run_jobs",
    request_body = BulkRequest,
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        (status = 200, description = "The result of a dry run", body = DryRunResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn run_jobs(call: Call) -> Result<Response, ApiError> {
    begin(call, BulkVerb::Run).await
}

/// Revive many dead jobs of any topic
///
/// Starts a bulk operation that makes the dead jobs that fit `filter` due now, with their failures counted from zero.
/// Otherwise like `cancel`.
#[utoipa::path(
    post, path = "/v1/jobs/revive", tag = "bulk", operation_id = "revive_jobs",
    request_body = BulkRequest,
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        (status = 200, description = "The result of a dry run", body = DryRunResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn revive_jobs(call: Call) -> Result<Response, ApiError> {
    begin(call, BulkVerb::Revive).await
}

/// Reschedule many jobs
///
/// Starts a bulk operation that gives the delayed jobs that fit `filter` another due time. A `delay` counts from when
/// a job is changed, so that a low `rate` spreads the due times. Otherwise like `cancel`.
#[utoipa::path(
    post, path = "/v1/jobs/reschedule", tag = "bulk", operation_id = "reschedule_jobs",
    request_body = BulkRescheduleRequest,
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        (status = 200, description = "The result of a dry run", body = DryRunResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn reschedule_jobs(call: Call) -> Result<Response, ApiError> {
    begin(call, BulkVerb::Reschedule).await
}

/// Purge many dead jobs of any topic
///
/// Starts a bulk operation that removes the dead jobs that fit `filter`. Nothing is kept of them. Otherwise like
/// `cancel`.
#[utoipa::path(
    post, path = "/v1/jobs/purge", tag = "bulk", operation_id = "purge_jobs",
    request_body = BulkRequest,
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        (status = 200, description = "The result of a dry run", body = DryRunResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn purge_jobs(call: Call) -> Result<Response, ApiError> {
    begin(call, BulkVerb::Purge).await
}

async fn begin(call: Call, verb: BulkVerb) -> Result<Response, ApiError> {
    let (State(api), Authenticated(caller), peer, MaybeJson(json)) = call;
    let NewBulk { filter, action, rate, is_dry_run } = NewBulk::parse(verb, &json, api.now())?;
    let filter = of_caller(&caller, filter)?;
    if is_dry_run {
        let counted = dry_run::count(&api, &caller, peer, action.narrowed(filter)).await;
        let answer = counted.map_err(ApiError::without_effect)?;
        return Ok((Change::nothing(), Json(answer)).into_response());
    }
    let bulk = start(&api, &caller, &BulkTarget::Jobs(filter.into(), action), rate).await?;
    Ok(accepted(&bulk))
}

/// Revive the dead jobs of a topic
///
/// The short form of `POST /v1/jobs/revive` for one topic: the jobs that are dead at the time of this call become due
/// now, with their failures counted from zero and their attempts kept. `died_after` and `died_before` choose by the
/// time of death. It is a bulk operation like the others; `Location` is where to get the progress.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/dead/revive", tag = "dead", operation_id = "revive_dead",
    params(TopicParams),
    request_body(content = ReviveRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 202, description = "Started", body = BulkResponse, headers(("Location" = String, description = "Its progress"))),
        CreateProblems,
    ),
)]
pub(crate) async fn revive_dead(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> Result<Response, ApiError> {
    let ReviveRequest { reason, died_after, died_before, rate } = ReviveRequest::parse(&json)?;
    let filter = DeadFilter { topic, reason, after: died_after, before: died_before };
    let target = BulkTarget::Dead(filter);
    Ok(accepted(&start(&api, &caller, &target, rate).await?))
}

/// The 202 for a bulk operation that has begun, with its location and its entry for the audit log.
fn accepted(bulk: &Bulk) -> Response {
    let location = HeaderValue::try_from(format!("/v1/bulk/{}", bulk.id)).expect("ids are visible ASCII");
    let answer = BulkResponse::from(bulk);
    let target = AuditLogTarget { bulk: Some(answer.id.clone()), ..AuditLogTarget::default() };
    let change = Change::of(target).after(&answer);
    (StatusCode::ACCEPTED, change, [(LOCATION, location)], Json(answer)).into_response()
}

/// Limits a filter to the caller's tenant and to the topics of its key; 403 if it names another topic.
fn of_caller(caller: &Principal, filter: Filter) -> Result<Filter, ApiError> {
    let topic = filter.topic.as_ref().map(|topic| topic.of_tenant(caller.tenant()));
    topic.as_ref().map_or(Ok(()), |topic| caller.check_topic(topic))?;
    Ok(Filter { scope: caller.own().clone(), among: caller.topics().to_vec(), topic, ..filter })
}

async fn start(api: &Api, caller: &Principal, target: &BulkTarget, rate: u32) -> Result<Bulk, ApiError> {
    let token = api.admission.token();
    let begin = || api.store.start_bulk(token, target, rate);
    let is_applied = |start: &BulkStart| matches!(start, BulkStart::Bulk(_));
    let deadline = Deadline::from_now();
    if caller.limited_tenant().is_some() {
        let running = deadline.bound(api.store.bulks()).await??;
        let running = running.iter().filter(|bulk| bulk.state == BulkState::Running);
        check_share(caller, "running bulk operations", MAX_BULKS, running.map(|bulk| bulk.target.tenant()))?;
    }
    let begun = deadline.idempotent(is_applied, begin).await;
    match begun.map_err(|error| ApiError::of_bulk(&error))? {
        BulkStart::Bulk(bulk) => Ok(bulk),
        BulkStart::TooMany => {
            let detail = format!(
                "{MAX_BULKS} bulk operations are already running: stop one, or wait until one is done"
            );
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// List bulk operations
///
/// The bulk operations that are running or ended within a day, newest first. With
/// the root key and without a tenant those of all tenants.
#[utoipa::path(
    get, path = "/v1/bulk", tag = "bulk", operation_id = "list_bulk_operations",
    responses((status = 200, description = "The bulk operations", body = BulksResponse), StoreProblems),
)]
pub(crate) async fn list_bulk_operations(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
) -> JsonResult<BulksResponse> {
    let all = Deadline::from_now().bound(api.store.bulks()).await??;
    let own = all.iter().filter(|bulk| is_shown(&caller, &bulk.target));
    let listed = |bulk: &Bulk| BulkResponse {
        tenant: caller.shown_tenant(bulk.target.tenant().as_ref()),
        ..BulkResponse::from(bulk)
    };
    Ok(Json(BulksResponse { items: own.map(listed).collect() }))
}

/// Get the progress of a bulk operation
///
/// While no carrier runs, the operation stays `running` and makes no progress.
#[utoipa::path(
    get, path = "/v1/bulk/{bulk}", tag = "bulk", operation_id = "get_bulk_operation",
    params(BulkParams),
    responses((status = 200, description = "As it is now", body = BulkResponse), IdProblems),
)]
pub(crate) async fn get_bulk_operation(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    BulkPath(id): BulkPath,
) -> JsonResult<BulkResponse> {
    shown(&caller, Deadline::from_now().bound(api.store.bulk(id)).await??)
}

/// Stop a bulk operation
///
/// After a 200 no more jobs are changed; jobs that were changed before stay so. An operation that has ended is returned
/// unchanged.
#[utoipa::path(
    delete, path = "/v1/bulk/{bulk}", tag = "bulk", operation_id = "stop_bulk_operation",
    params(BulkParams),
    responses((status = 200, description = "As it is now", body = BulkResponse), IdProblems),
)]
pub(crate) async fn stop_bulk_operation(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    BulkPath(id): BulkPath,
) -> Audited<BulkResponse> {
    let stopped = Deadline::from_now().bound(async {
        let Json(before) = shown(&caller, api.store.bulk(id).await?)?;
        let Json(answer) = shown(&caller, api.store.stop_bulk(id).await?)?;
        let change = Change::default().before(json!({"state": before.state}));
        let change = change.after(json!({"state": answer.state})).count(answer.changed);
        Ok((change, Json(answer)))
    });
    stopped.await?
}

fn shown(caller: &Principal, bulk: Option<Bulk>) -> JsonResult<BulkResponse> {
    let bulk = bulk.filter(|bulk| is_shown(caller, &bulk.target));
    bulk.map(|bulk| Json(BulkResponse::from(&bulk))).ok_or_else(unknown_bulk)
}

/// Whether a caller may see and stop an operation: all jobs that it can change are the caller's.
fn is_shown(caller: &Principal, target: &BulkTarget) -> bool {
    let filter = match target {
        BulkTarget::Dead(filter) => return caller.reaches(&filter.topic),
        BulkTarget::Jobs(filter, _) => filter,
    };
    if let Some(topic) = &filter.topic {
        return caller.reaches(topic);
    }
    let has_topics = caller.topics().is_empty()
        || !filter.among.is_empty() && filter.among.iter().all(|topic| caller.reaches(topic));
    let has_scope = match &filter.scope {
        TenantScope::All => *caller.reach() == TenantScope::All,
        TenantScope::One(tenant) => caller.reach().has_tenant(tenant.as_ref()),
    };
    has_topics && has_scope
}
