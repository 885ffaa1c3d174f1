//! Jobs: submits, gets and cancels one, gets its attempts, and lists them. Other changes of one job are in
//! `job_actions`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use ringback_admission::limit_reached;
use ringback_core::crash_point;
use ringback_core::job::{Job, JobKey};
use ringback_core::state::State as JobState;
use ringback_core::store_types::{
    Cancelled, FoundJob, JobPauses, StoreError, StoredJob, SubmitResult, Submitted,
};
use ringback_core::topic_policy::Policies;
use ringback_service::http_server::Peer;
use ringback_wire::{
    AttemptsResponse, CancelResponse, InFlight, InspectedJob, Inspection, JobRequest, JobResponse,
    JobsResponse, Problem, WaitDetails, delay_note, host_of,
};
use serde_json::json;

use crate::access::Authenticated;
use crate::audit_log::Change;
use crate::error::{ApiError, JsonResult, Unavailable};
use crate::extract::{
    IdempotencyKey, Include, JobPath, JsonBody, PageQuery, Query, RequestTrace, Upload, key_and_id,
    outdated_cursor,
};
use crate::limits::Deadline;
use crate::metrics::SubmitOutcome;
use crate::paging::{self, ListCursor, PageLimits};
use crate::schema::{
    FilterFields, FindProblems, IdempotencyKeyText, IncludedInJob, JobCursor, JobParams, QueryProblems,
    RemoveProblems, SubmitProblems,
};
use crate::state::{Api, ApiState};
use crate::whole_jobs;

/// Submit a job
///
/// Submitting the same topic and id with the same content again returns 200 and the job's current
/// state; with other content, or after a cancel, 409. `if_exists` replaces or postpones the job instead. A
/// caller without an id can send an `Idempotency-Key`, from which the id is derived.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", operation_id = "submit",
    params(("Idempotency-Key" = Option<IdempotencyKeyText>, Header,
        description = "Instead of an id, or beside it if `if_exists` is `replace` or `postpone`: the same with each repetition")),
    request_body = JobRequest,
    responses(
        (status = 201, description = "Accepted", body = JobResponse,
            headers(("Location" = String, description = "The path of the job"))),
        (status = 200, description = "Accepted before, or now in place of the job that existed", body = JobResponse,
            headers(("Location" = String, description = "The path of the job"))),
        SubmitProblems,
    ),
)]
pub(crate) async fn submit(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    RequestTrace(trace): RequestTrace,
    IdempotencyKey(mut key): IdempotencyKey,
    JsonBody(Upload { bytes, permit, deadline }, turn): JsonBody,
) -> Result<Response, ApiError> {
    let job = api.admission.parse_job(&bytes, trace, &mut key, &caller);
    drop(turn);
    // A key that was not used is refused.
    let job = if key.is_some() { job.and(Err(key_and_id())) } else { job };
    let job = job.inspect_err(|_| api.metrics.submitted(SubmitOutcome::Invalid, 1))?;
    let note = delay_note(&bytes, job.due);
    drop(bytes);
    let allowed = api.take_quota(&caller, 1, deadline).await?;
    if allowed.jobs == 0 {
        api.metrics.submitted(SubmitOutcome::OverQuota, 1);
        return Err(allowed.refusal().into());
    }
    let key = job.key.clone();
    let submitted = api.submits.submit(vec![job], permit, deadline).await;
    let submitted = submitted.and_then(|mut all| all.pop().ok_or(Unavailable::GivenUp));
    let submitted = submitted.inspect_err(|_| api.metrics.submitted(SubmitOutcome::Unavailable, 1));
    let submitted = submitted.map_err(|error| ApiError::of_submit(&error, &key))?;
    api.metrics.submitted(submitted.answer.into(), 1);
    crash_point!("api.before_answer");
    let location = HeaderValue::try_from(format!("/v1/jobs/{}", submitted.job.key));
    let location = location.expect("topics and ids are visible ASCII");
    // When to submit again for a job that is being delivered.
    let retry_after = if let SubmitResult::Reserved { retry_after } = submitted.answer {
        Some(seconds_up(retry_after))
    } else {
        None
    };
    Ok(match submit_result(submitted) {
        Ok((status, job)) => {
            (status, [(header::LOCATION, location)], Json(JobResponse { note, ..job })).into_response()
        }
        Err(problem) => {
            let mut response = ApiError::from(problem).into_response();
            response.headers_mut().extend(retry_after.map(|s| (header::RETRY_AFTER, HeaderValue::from(s))));
            response
        }
    })
}

/// Whole seconds, rounded up, and at least one.
fn seconds_up(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

/// The status and the job of a submit. A conflict, or a limit of topics or lanes that is reached, is a problem.
pub(super) fn submit_result(submitted: Submitted) -> Result<(StatusCode, JobResponse), Problem> {
    let conflict = |detail: String| Err(Problem::new(StatusCode::CONFLICT, detail));
    match submitted.answer {
        SubmitResult::Created => Ok((StatusCode::CREATED, submitted.job.into())),
        SubmitResult::Repeated | SubmitResult::Replaced | SubmitResult::Postponed => {
            Ok((StatusCode::OK, submitted.job.into()))
        }
        SubmitResult::Conflict => conflict(format!(
            "another job has this topic and id, with other content; it is {}: look at it, choose another id, or submit with if_exists \"replace\" or \"postpone\"",
            submitted.job.state
        )),
        SubmitResult::Cancelled => conflict(
            "the job with this topic, id and content was cancelled and is not sent: choose another id, or submit with if_exists \"replace\" or \"postpone\" to begin again"
                .to_owned(),
        ),
        SubmitResult::Reserved { retry_after } => conflict(format!(
            "the job with this topic and id is being delivered and cannot be changed meanwhile: submit again when it is settled, in {} s at the latest",
            seconds_up(retry_after)
        )),
        SubmitResult::Full(limit) => Err(limit_reached(limit)),
    }
}

/// Get a job
///
/// Returns the job. A job that is done or cancelled is kept for `RINGBACK_KEEP_DONE`. One that is delayed or ready has
/// `paused_by` if its topic or its destination is paused. One that is ready, or waits for its retry, has `waiting`:
/// what it waits for, since when, and how many jobs come before it. With `include=request` a job that has not ended has
/// `request`, what was submitted, and `effective`, the settings that apply to it.
#[utoipa::path(
    get, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "get_job",
    params(
        JobParams,
        ("include" = Option<IncludedInJob>, Query, description = "Add the request and what applies to the job"),
    ),
    responses((status = 200, description = "The job", body = InspectedJob), FindProblems),
)]
pub(crate) async fn get_job(
    State(api): ApiState,
    JobPath(key): JobPath,
    Query(include): Query<Include>,
) -> Result<Response, ApiError> {
    let deadline = Deadline::from_now();
    let (job, inspection) = match include {
        Include::Nothing => (deadline.bound(api.store.get(&key)).await??.ok_or_else(|| unknown(&key))?, None),
        Include::Request => {
            let _permit = api.acquire_for_whole_jobs(whole_jobs::ONE_JOB).await?;
            let policies = api.policies.all()?;
            let found = deadline.bound(api.store.get_stored(&key)).await??.ok_or_else(|| unknown(&key))?;
            match found {
                FoundJob::Stored(stored) => inspected(&api, &policies, *stored),
                FoundJob::Ended(job) => (job, None),
            }
        }
    };
    let (pauses, waiting) = deadline.bound(wait_of(&api, &job)).await??;
    let shown = InspectedJob::new(job, inspection);
    Ok(Json(InspectedJob { job: shown.job.with_wait(pauses, waiting), ..shown }).into_response())
}

/// The pauses that hold a job, and what it waits for.
async fn wait_of(api: &Api, job: &Job) -> Result<(JobPauses, Option<WaitDetails>), StoreError> {
    if !matches!(job.state, JobState::Delayed | JobState::Ready) {
        return Ok((JobPauses::default(), None));
    }
    let wait = api.store.waits(&job.key).await?;
    let has_limits = job.state == JobState::Ready && !wait.limits.is_empty();
    let limits = if has_limits { api.store.limits(&wait.limits).await? } else { Vec::new() };
    Ok((wait.pauses, WaitDetails::new(job, &wait, &limits, api.now())))
}

/// A job, and its request with the settings that apply to it.
fn inspected(api: &Api, policies: &Policies, stored: StoredJob) -> (Job, Option<Inspection>) {
    let StoredJob { job, delivery, .. } = stored;
    let inspection = api.inspection(policies, &job.key.topic, delivery);
    (job, Some(inspection))
}

/// List jobs
///
/// Lists the pending and dead jobs that fit the filter, in no particular order. A page holds at most `limit` jobs. It
/// may hold fewer or none and still have a next page; `next` is null on the last page. A job that exists from the first
/// page to the last is on at least one of them, even if it changes meanwhile. With `include=request` each job has
/// `request` and `effective`, and a page ends after about 1 MiB of requests.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    params(
        FilterFields,
        ("cursor" = Option<JobCursor>, Query, description = "`next` of the previous page with the same filter; opaque"),
        ("limit" = Option<usize>, Query, description = "The most jobs of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
        ("include" = Option<IncludedInJob>, Query, description = "Add to each job its request and what applies to it"),
    ),
    responses((status = 200, description = "A page", body = JobsResponse), QueryProblems),
)]
pub(crate) async fn list(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(PageQuery { filter, from, limit, include }): Query<PageQuery>,
) -> Result<Response, ApiError> {
    let (deadline, has_cursor) = (Deadline::from_now(), from.is_some());
    let failed = |error| match error {
        StoreError::Outdated if has_cursor => outdated_cursor(),
        other => other.into(),
    };
    match include {
        Include::Nothing => {
            let limits = PageLimits::of_jobs(limit);
            let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
            let read = |at, scan| api.store.page_listed(&filter, at, scan);
            let page = paging::list_jobs(read, from, limits);
            let (jobs, next) = deadline.bound(page).await?.map_err(failed)?;
            let items = jobs.into_iter().map(|listed| {
                let tenant = caller.shown_tenant(listed.job.key.topic.tenant().as_ref());
                InspectedJob { tenant, ..InspectedJob::from(listed) }
            });
            Ok(Json(page_answer(items, next)).into_response())
        }
        Include::Request => {
            let _permit = api.acquire_for_whole_jobs(whole_jobs::ONE_PAGE).await?;
            let policies = api.policies.all()?;
            let weigh = |job: &StoredJob| whole_jobs::weight(&policies, &job.job.key.topic, &job.delivery);
            let limits = PageLimits::of_whole_jobs(limit, weigh);
            // After the memory, for which others may have to wait for long.
            let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
            let read = |at, scan| api.store.page_stored(&filter, at, scan);
            let page = paging::list_jobs(read, from, limits);
            let (jobs, next) = deadline.bound(page).await?.map_err(failed)?;
            let items = jobs.into_iter().map(|stored| {
                let tenant = caller.shown_tenant(stored.job.key.topic.tenant().as_ref());
                let host = host_of(stored.delivery.callback.origin());
                let (job, inspection) = inspected(&api, &policies, stored);
                InspectedJob { tenant, host, ..InspectedJob::new(job, inspection) }
            });
            Ok(Json(page_answer(items, next)).into_response())
        }
    }
}

fn page_answer(items: impl Iterator<Item = InspectedJob>, next: Option<ListCursor>) -> JobsResponse {
    JobsResponse { items: items.collect(), next: next.map(|cursor| cursor.to_string()) }
}

/// Get the attempts of a job
///
/// Returns the last 20 attempts that were logged, the newest last. By default failed attempts are
/// logged, and the success of a job that needed more than one attempt. The log is kept for
/// `RINGBACK_KEEP_ATTEMPTS`, also after the job has ended. It may be empty.
#[utoipa::path(
    get, path = "/v1/jobs/{topic}/{id}/attempts", tag = "jobs", operation_id = "attempts",
    params(JobParams),
    responses((status = 200, description = "Its attempts", body = AttemptsResponse), FindProblems),
)]
pub(crate) async fn attempts(State(api): ApiState, JobPath(key): JobPath) -> JsonResult<AttemptsResponse> {
    let attempts = Deadline::from_now().bound(api.store.attempts(&key)).await??;
    let attempts = attempts.ok_or_else(|| unknown(&key))?;
    Ok(Json(AttemptsResponse { items: attempts.into_iter().map(Into::into).collect() }))
}

/// Cancel a job
///
/// After a 200 no delivery begins. With `"in_flight":"unknown"` one that began before may still arrive. While the job is
/// being delivered the answer is 202: if the delivery succeeds the job ends as done, otherwise as cancelled.
#[utoipa::path(
    delete, path = "/v1/jobs/{topic}/{id}", tag = "jobs", operation_id = "cancel",
    params(JobParams),
    responses(
        (status = 200, description = "Cancelled, now or before", body = CancelResponse),
        (status = 202, description = "Being delivered; cancelled if the delivery fails", body = CancelResponse),
        RemoveProblems,
    ),
)]
pub(crate) async fn cancel(State(api): ApiState, JobPath(key): JobPath) -> Result<Response, ApiError> {
    let cancelled = Deadline::from_now().call(api.store.cancel(&key)).await;
    let cancelled = cancelled.map_err(|error| ApiError::of_repeatable(&error, &key))?;
    let (status, state, in_flight) = match cancelled {
        Cancelled::Cancelled { in_flight_unknown } => {
            (StatusCode::OK, JobState::Cancelled, in_flight_unknown.then(maybe_in_flight))
        }
        Cancelled::Requested { in_flight_unknown } => {
            let in_flight = if in_flight_unknown { maybe_in_flight() } else { InFlight::Yes(true) };
            (StatusCode::ACCEPTED, JobState::Reserved, Some(in_flight))
        }
        Cancelled::TooLate => {
            return Err(ApiError::new(StatusCode::CONFLICT, format!("the job {key} is done")));
        }
        Cancelled::Unknown => return Err(unknown(&key)),
    };
    let change = Change::default().after(json!({"state": state, "in_flight": in_flight}));
    let answer = CancelResponse {
        topic: key.topic.to_string(),
        id: key.id.to_string(),
        state: state.to_string(),
        in_flight,
    };
    Ok((status, change, Json(answer)).into_response())
}

fn maybe_in_flight() -> InFlight {
    InFlight::Unknown("unknown".to_owned())
}

pub(super) fn unknown(key: &JobKey) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, format!("no job {key} is known, or it ended too long ago"))
}
