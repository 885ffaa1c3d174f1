//! The dead jobs of a topic: lists them, and purges one or many. Reviving them is in `bulk` and `job_actions`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use ringback_core::job::{Delivery, Job, JobKey};
use ringback_core::store_types::{DeadCursor, DeadJob, MoveResult, StoreError};
use ringback_service::http_server::Peer;
use ringback_wire::{AuditLogTarget, DeadJobDetails, DeadJobsResponse, JobResponse, PurgeResponse};
use serde_json::json;
use tokio::time::Instant;

use super::jobs::unknown;
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::ApiError;
use crate::extract::{DeadPageQuery, Include, JobPath, PurgeQuery, Query, TopicPath};
use crate::limits::Deadline;
use crate::paging;
use crate::schema::{
    DeadCursorText, DeadReason, IncludedInJob, JobParams, PurgeCursorText, QueryProblems, RemoveProblems,
    Time, TopicParams,
};
use crate::state::{Api, ApiState};
use crate::whole_jobs;

/// After this time a purge returns a cursor for the rest.
const PURGE_FOR: Duration = Duration::from_secs(1);

/// List dead jobs
///
/// Lists the dead jobs of the topic in the order of their deaths, each with its reason, its last failed
/// attempt and its time of death. A page holds at most `limit` jobs. It may hold fewer or none and
/// still have a next page; `next` is null on the last page. A job that is dead from the first page to
/// the last is on exactly one of them. With `include=request` each job has `request` and `effective`,
/// and a page ends after about 1 MiB of requests.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/dead", tag = "dead", operation_id = "list_dead",
    params(
        TopicParams,
        ("reason" = Option<DeadReason>, Query, description = "Only jobs with this reason"),
        ("died_after" = Option<Time>, Query, description = "Only jobs that died at this time or later"),
        ("died_before" = Option<Time>, Query, description = "Only jobs that died before this time"),
        ("cursor" = Option<DeadCursorText>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most jobs of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
        ("include" = Option<IncludedInJob>, Query, description = "Add to each job its request and what applies to it"),
    ),
    responses((status = 200, description = "A page", body = DeadJobsResponse), QueryProblems),
)]
pub(crate) async fn list(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    TopicPath(topic): TopicPath,
    Query(DeadPageQuery { filter, from, limit, include }): Query<DeadPageQuery>,
) -> Result<Response, ApiError> {
    let (deadline, filter) = (Deadline::from_now(), filter.of(topic));
    match include {
        Include::Nothing => {
            let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
            let page = paging::list_dead(&api.store, &filter, from, limit);
            let (jobs, next) = deadline.bound(page).await??;
            let items = jobs.into_iter().map(|dead| DeadJobDetails::new(dead.job, dead.died, None));
            Ok(Json(page_answer(items, next)).into_response())
        }
        Include::Request => {
            let _permit = api.acquire_for_whole_jobs(whole_jobs::ONE_PAGE).await?;
            let policies = api.policies.all()?;
            let weigh = |delivery: &Delivery| whole_jobs::weight(&policies, &filter.topic, delivery);
            // After the memory, for which others may have to wait for long.
            let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
            let page = async {
                let (jobs, next) = paging::list_dead(&api.store, &filter, from, limit).await?;
                let wanted = jobs.len();
                let jobs = paging::with_deliveries(&api.store, jobs, weigh).await?;
                let cut = jobs.last().filter(|_| jobs.len() < wanted).map(|(dead, _)| dead.cursor);
                Ok::<_, StoreError>((jobs, cut.or(next)))
            };
            let (jobs, next) = deadline.bound(page).await??;
            let items = jobs.into_iter().map(|(DeadJob { job, died, .. }, delivery)| {
                let inspection = delivery.map(|delivery| api.inspection(&policies, &filter.topic, delivery));
                DeadJobDetails::new(job, died, inspection)
            });
            Ok(Json(page_answer(items, next)).into_response())
        }
    }
}

fn page_answer(items: impl Iterator<Item = DeadJobDetails>, next: Option<DeadCursor>) -> DeadJobsResponse {
    DeadJobsResponse { items: items.collect(), next: next.map(|cursor| cursor.to_string()) }
}

/// Purge dead jobs
///
/// Removes the jobs that are dead at the time of the first call; only their attempt logs are kept. A
/// call takes about a second. If jobs are left, `next` is the `cursor` for the next call; it is null
/// when all are removed.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/dead", tag = "dead", operation_id = "purge_dead",
    params(
        TopicParams,
        ("reason" = Option<DeadReason>, Query, description = "Only jobs with this reason"),
        ("died_after" = Option<Time>, Query, description = "Only jobs that died at this time or later"),
        ("died_before" = Option<Time>, Query, description = "Only jobs that died before this time"),
        ("cursor" = Option<PurgeCursorText>, Query, description = "`next` of the previous call; opaque"),
    ),
    responses((status = 200, description = "How many were removed, and where to continue", body = PurgeResponse), QueryProblems),
)]
pub(crate) async fn purge_all(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
    Query(PurgeQuery { filter, from }): Query<PurgeQuery>,
) -> Audited<PurgeResponse> {
    let change = Change::default().before(filter.shown());
    let purged = Deadline::from_now()
        .bound(paging::purge_dead(&api.store, filter.of(topic), from, Instant::now() + PURGE_FOR))
        .await;
    let (purged, next) = purged??;
    let answer = PurgeResponse { purged, next: next.map(|cursor| cursor.to_string()) };
    Ok((change.count(purged), Json(answer)))
}

/// Purge a dead job
///
/// Removes the job; only its attempt log is kept. A job that is not dead is left unchanged: 409.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/dead/{id}", tag = "dead", operation_id = "purge",
    params(JobParams),
    responses((status = 200, description = "The job as it was", body = JobResponse), RemoveProblems),
)]
pub(crate) async fn purge(State(api): ApiState, JobPath(key): JobPath) -> Audited<JobResponse> {
    purge_job(&api, key).await
}

/// Purges the dead job with the id `revive`, whose path has a POST of its own.
pub(crate) async fn purge_job_named_revive(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
) -> Audited<JobResponse> {
    let id = "revive".parse().expect("the text lies within the alphabet of ids");
    purge_job(&api, JobKey { topic, id }).await
}

async fn purge_job(api: &Api, key: JobKey) -> Audited<JobResponse> {
    let purged = Deadline::from_now().call(api.store.purge(&key)).await;
    match purged.map_err(|error| ApiError::of_repeatable(&error, &key))? {
        MoveResult::Applied(job) => {
            let target = AuditLogTarget { id: Some(key.id.to_string()), ..AuditLogTarget::default() };
            let answer = JobResponse::from(job);
            let before = json!({"state": answer.state, "reason": answer.reason});
            Ok((Change::of(target).before(before).count(1), Json(answer)))
        }
        MoveResult::Refused(Job { key, state, .. }) => {
            let detail = format!("the job {key} is {state}, not dead: only dead jobs can be purged");
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
        MoveResult::Unknown => Err(unknown(&key)),
    }
}
