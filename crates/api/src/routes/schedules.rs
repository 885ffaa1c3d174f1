//! `/v1/schedules`: puts, gets, lists and deletes schedules, pauses and resumes them, fires them now, and shows when
//! they fire. `change` makes the changes, `export` the export; the carriers fire schedules.

mod change;
mod export;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::schedule::{ScheduleKey, ScheduleState};
use ringback_core::store_types::ScheduleRow;
use ringback_wire::{
    AuditLogTarget, FiringDetails, NextFiringsResponse, ScheduleRequest, ScheduleResponse, SchedulesResponse,
};
use serde_json::{Value, json};

use self::change::{Put, change, put, run_now};
pub(crate) use self::export::*;
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{
    IdempotencyKey, JsonBody, NoBody, PutFrom, Query, SchedulePath, SchedulesQuery, UpcomingQuery, Upload,
    cursor_of,
};
use crate::limits::Deadline;
use crate::schema::{
    CreateProblems, EmptyRequest, FindProblems, IdempotencyKeyText, QueryProblems, RestoreSource,
    ResumeProblems, RunScheduleProblems, ScheduleCursor, ScheduleParams,
};
use crate::state::{Api, ApiState};
use crate::whole_jobs;

/// Put a schedule
///
/// A schedule submits a job again and again: at the times of a cron expression, or after a period. Each job has the id
/// of the schedule, a `~` and the time in UTC, such as `daily~20261127T070000Z`, so no time fires twice. Putting a
/// schedule in place of another keeps its counts; one that is the same changes nothing. Its topic stays.
#[utoipa::path(
    put, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "put_schedule",
    params(
        ScheduleParams,
        ("from" = Option<RestoreSource>, Query, description = "Take also URLs that no client can send to, as a restore does"),
    ),
    request_body = ScheduleRequest,
    responses(
        (status = 200, description = "Put in place of another, or unchanged", body = ScheduleResponse),
        (status = 201, description = "Put", body = ScheduleResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn put_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
    Query(from): Query<PutFrom>,
    JsonBody(Upload { bytes, deadline, .. }, turn): JsonBody,
) -> Result<Response, ApiError> {
    let put = deadline.bound(put(&api, &caller, &key, &bytes, from)).await;
    drop(turn);
    let Put { status, before, after } = put??;
    let answer = ScheduleResponse::new(&key.id, after);
    let before = before.map(|before| ScheduleResponse::new(&key.id, before));
    let change = change_of(&answer).before(before.as_ref().map(shown)).after(shown(&answer));
    Ok((status, change, Json(answer)).into_response())
}

/// Get a schedule
#[utoipa::path(
    get, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "get_schedule",
    params(ScheduleParams),
    responses((status = 200, description = "The schedule", body = ScheduleResponse), FindProblems),
)]
pub(crate) async fn get_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
) -> JsonResult<ScheduleResponse> {
    let (_, state) = Deadline::from_now().bound(find(&api, &caller, &key)).await??;
    Ok(Json(ScheduleResponse::new(&key.id, state)))
}

/// List schedules
///
/// Lists the schedules by id. A page ends after about 1 MiB. It may hold fewer than `limit`, and still have a next page;
/// `next` is null on the last page.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", operation_id = "list_schedules",
    params(
        ("cursor" = Option<ScheduleCursor>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most schedules of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = SchedulesResponse), QueryProblems),
)]
pub(crate) async fn list_schedules(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    Query(SchedulesQuery { after, limit }): Query<SchedulesQuery>,
) -> JsonResult<SchedulesResponse> {
    let _permit = api.acquire_for_whole_jobs(whole_jobs::ONE_PAGE).await?;
    let (mut items, mut next, mut bytes) = (Vec::new(), after, 0);
    let (deadline, is_for_all, mut last) = (Deadline::from_now(), caller.topics().is_empty(), None);
    loop {
        let are_small = !items.is_empty() && bytes <= SMALL * items.len();
        let most = if are_small { MANY } else { FEW }.min(limit - items.len());
        let (rows, behind) = deadline.bound(api.store.schedules(caller.own(), next, most)).await??;
        bytes += rows.iter().map(|row| row.packed.len()).sum::<usize>();
        let own: Vec<_> = rows.into_iter().filter(|row| caller.owns(&row.topic)).collect();
        let last_own = own.last().map(|row| (row.key.clone(), row.topic.clone()));
        items.extend(own.into_iter().filter_map(|row| {
            let tenant = caller.shown_tenant(row.key.tenant.as_ref());
            Some(ScheduleResponse { tenant, ..ScheduleResponse::new(&row.key.id, readable(&row)?) })
        }));
        last = last_own.or(last);
        next = behind;
        // The cursor of a key for some topics names none of the others, so a page without one of its own goes on.
        let may_end = is_for_all || last.is_some();
        if next.is_none() || items.len() >= limit || may_end && (bytes >= PAGE_BYTES || deadline.is_near()) {
            break;
        }
    }
    let next = if is_for_all || next.is_none() { next } else { last };
    let next = next.map(|(key, topic)| format!("{}~{}", key.id, cursor_of(&topic, &caller)));
    Ok(Json(SchedulesResponse { items, next }))
}

/// Delete a schedule
///
/// It fires no more. Jobs that it has submitted stay.
#[utoipa::path(
    delete, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "delete_schedule",
    params(ScheduleParams),
    responses((status = 200, description = "The schedule as it was", body = ScheduleResponse), FindProblems),
)]
pub(crate) async fn delete_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
) -> Audited<ScheduleResponse> {
    let delete = async {
        loop {
            let (row, state) = match found(&api, &caller, &key).await {
                // A put that ended early may have left its place.
                Err(error) if error.0.status == 404 => {
                    api.store.forget_schedule(&key).await?;
                    return Err(error);
                }
                found => found?,
            };
            // Otherwise it has fired meanwhile, or was changed.
            if api.store.remove_schedule(&row).await? {
                return Ok::<_, ApiError>(state);
            }
        }
    };
    let state = Deadline::from_now().bound(delete).await??;
    // One that cannot be read can be deleted, and not shown.
    let state = state.ok_or_else(unknown)?;
    let answer = ScheduleResponse::new(&key.id, state);
    Ok((change_of(&answer).before(shown(&answer)), Json(answer)))
}

/// Pause a schedule
///
/// It does not fire until it is resumed. What it would have fired meanwhile does not count as missed; what should
/// have fired before does.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/pause", tag = "schedules", operation_id = "pause_schedule",
    params(ScheduleParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The schedule, paused", body = ScheduleResponse), ResumeProblems),
)]
pub(crate) async fn pause_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
    NoBody(deadline): NoBody,
) -> Audited<ScheduleResponse> {
    let now = api.now();
    let pause = change(&api, &caller, &key, |state| state.pause(now));
    let (was_paused, state) = deadline.bound(pause).await??;
    let answer = ScheduleResponse::new(&key.id, state);
    let change = change_of(&answer).before(json!({"paused": was_paused})).after(json!({"paused": true}));
    Ok((change, Json(answer)))
}

/// Resume a schedule
///
/// It fires again, at its next time from now. Resuming one that is not paused changes nothing.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/resume", tag = "schedules", operation_id = "resume_schedule",
    params(ScheduleParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The schedule, not paused", body = ScheduleResponse), ResumeProblems),
)]
pub(crate) async fn resume_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
    NoBody(deadline): NoBody,
) -> Audited<ScheduleResponse> {
    let now = api.now();
    let resume = change(&api, &caller, &key, |state| state.resume(now));
    let (was_paused, state) = deadline.bound(resume).await??;
    let answer = ScheduleResponse::new(&key.id, state);
    let change = change_of(&answer).before(json!({"paused": was_paused})).after(json!({"paused": false}));
    Ok((change, Json(answer)))
}

/// Fire a schedule now
///
/// Submits its job now, also if it is paused or the last job has not ended. Its times stay. The answer has the id of
/// the job in `last`, such as `daily~run-20261127T081502.123Z`. With an `Idempotency-Key` the id is derived from that,
/// and the same call again changes nothing while the job or its tombstone is kept.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/run", tag = "schedules", operation_id = "run_schedule",
    params(ScheduleParams,
        ("Idempotency-Key" = Option<IdempotencyKeyText>, Header, description = "The same with each repetition")),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The schedule, which has fired", body = ScheduleResponse), RunScheduleProblems),
)]
pub(crate) async fn run_schedule(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    NoBody(deadline): NoBody,
) -> Audited<ScheduleResponse> {
    let allowed = api.take_quota(&caller, 1, deadline).await?;
    if allowed.jobs == 0 {
        return Err(allowed.refusal().into());
    }
    let state = match deadline.bound(run_now(&api, &caller, &key, idempotency_key.as_deref())).await? {
        Ok(state) => state,
        Err(error) => {
            api.admission.quotas.give_back(&caller, 1).await;
            return Err(error);
        }
    };
    let answer = ScheduleResponse::new(&key.id, state);
    Ok((change_of(&answer).after(json!({"last": answer.last})).count(1), Json(answer)))
}

/// Show when a schedule fires
///
/// Lists its next times, as if it were not paused.
#[utoipa::path(
    get, path = "/v1/schedules/{id}/next", tag = "schedules", operation_id = "next_firings",
    params(
        ScheduleParams,
        ("count" = Option<usize>, Query, description = "How many times; 5 by default", example = 5, minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The next times", body = NextFiringsResponse), FindProblems),
)]
pub(crate) async fn next_firings(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    SchedulePath(key): SchedulePath,
    Query(UpcomingQuery { count }): Query<UpcomingQuery>,
) -> JsonResult<NextFiringsResponse> {
    let (_, state) = Deadline::from_now().bound(find(&api, &caller, &key)).await??;
    let times = state.schedule.upcoming(api.now(), count);
    Ok(Json(NextFiringsResponse {
        items: times.into_iter().map(|time| FiringDetails::new(&key.id, time)).collect(),
    }))
}

/// How many schedules one call of a list reads: many if those before were small, which is this many bytes, else few.
const MANY: usize = 100;
const FEW: usize = 10;
const SMALL: usize = 4096;
/// After about how many bytes a page of a list ends.
const PAGE_BYTES: usize = 1024 * 1024;

/// A change of a schedule for the audit log, with the topic of its jobs.
fn change_of(schedule: &ScheduleResponse) -> Change {
    let topic = Some(schedule.fields.job.topic.clone());
    Change::of(AuditLogTarget { topic, ..AuditLogTarget::default() })
}

/// A schedule as the audit log has it: when it fires, and where its jobs go, without what is in them.
fn shown(schedule: &ScheduleResponse) -> Value {
    let mut fields = schedule.fields.clone();
    // Not every JSON text is a value: `1e400` is not, nor is half of a surrogate pair.
    fields.job.request.body = None;
    let mut shown = serde_json::to_value(&fields).expect("plain data always serialises");
    if let Some(job) = shown["job"].as_object_mut() {
        job.retain(|name, _| ["topic", "url", "method", "on_dead", "on_done"].contains(&name.as_str()));
    }
    shown
}

/// Returns a schedule as it is stored, and its state. The state is `None` if the stored schedule cannot be read. Fails
/// with 404 if the schedule does not exist, and with 403 if the caller may not use its topic.
async fn found(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
) -> Result<(ScheduleRow, Option<ScheduleState>), ApiError> {
    let row = api.store.schedule(key).await?.ok_or_else(unknown)?;
    caller.check_topic(&row.topic)?;
    let state = readable(&row);
    Ok((row, state))
}

async fn find(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
) -> Result<(ScheduleRow, ScheduleState), ApiError> {
    let (row, state) = found(api, caller, key).await?;
    let state = state.ok_or_else(|| {
        let detail =
            "the schedule cannot be read: a later version may have written it; put it again, or delete it";
        ApiError::new(StatusCode::NOT_FOUND, detail)
    })?;
    Ok((row, state))
}

fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no schedule with this id is known")
}

fn readable(row: &ScheduleRow) -> Option<ScheduleState> {
    let state =
        row.state().map_err(|error| tracing::error!(schedule = %row.key, %error, "a schedule is left out"));
    state.ok()
}
