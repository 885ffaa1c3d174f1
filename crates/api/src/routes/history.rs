//! `/v1/history`: lists the ended jobs that the archive has kept, of all jobs or of one, and erases them. `replay`
//! submits them again.

mod replay;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use ringback_admission::Principal;
use ringback_archive::erasure::{Erased, Erasure};
use ringback_archive::history::{Cursor, HistoryPage, HistoryRequest, Order};
use ringback_core::job::{JobId, Topic};
use ringback_service::http_server::Peer;
use ringback_wire::{AuditLogTarget, ErasureResponse, HistoryFilter, HistoryResponse};
use serde_json::json;
use tokio::time::Instant;

pub(crate) use self::replay::*;
use crate::access::Authenticated;
use crate::audit_log::Change;
use crate::error::{ApiError, JsonResult};
use crate::extract::{EndedJobsQuery, ErasureQuery, HistoryQuery, IncludeOfEnds, JobPath, Query};
use crate::history::filter_of;
use crate::limits::Deadline;
use crate::schema::{
    ConflictProblems, DeadReason, HistoryPageParams, HistoryState, HostText, JobIdText, JobParams, TagText,
    Time, TopicName,
};
use crate::state::{Api, ApiState};
use crate::whole_jobs;

/// How long one call erases ended jobs.
const ERASE_FOR: Duration = Duration::from_secs(1);

/// List the history
///
/// Lists the ended jobs that the archive has kept, the newest first. A job that died and was done later has two. A page
/// holds at most `limit` of them; with `include` it is full at about 1 MiB. Ended jobs reach the archive within about a
/// second, and later if it was away. The answer is 409 if the API has no archive.
#[utoipa::path(
    get, path = "/v1/history", tag = "history", operation_id = "list_history",
    params(
        ("topic" = Option<TopicName>, Query, description = "Only ended jobs of this topic"),
        ("id" = Option<JobIdText>, Query, description = "Only ended jobs with this id"),
        ("tag" = Option<TagText>, Query, description = "Only ended jobs with this tag"),
        ("state" = Option<HistoryState>, Query, description = "Only ended jobs in this state"),
        ("reason" = Option<DeadReason>, Query, description = "Only ended jobs with this reason"),
        ("host" = Option<HostText>, Query, description = "Only ended jobs with a URL of this host"),
        ("finished_after" = Option<Time>, Query, description = "Only ended jobs at this time or later"),
        ("finished_before" = Option<Time>, Query, description = "Only ended jobs before this time"),
        HistoryPageParams,
    ),
    responses((status = 200, description = "A page", body = HistoryResponse), ConflictProblems),
)]
pub(crate) async fn list_history(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(HistoryQuery { filter, page }): Query<HistoryQuery>,
) -> JsonResult<HistoryResponse> {
    ends(&api, &caller, peer, &filter, page).await
}

/// Get the history of a job
///
/// Lists the ended jobs with this topic and id, the newest first: those of every generation of the id, one for each
/// time that the job ended. Empty if the archive has none.
#[utoipa::path(
    get, path = "/v1/history/{topic}/{id}", tag = "history", operation_id = "get_history",
    params(
        JobParams,
        HistoryPageParams,
    ),
    responses((status = 200, description = "A page", body = HistoryResponse), ConflictProblems),
)]
pub(crate) async fn get_history(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    JobPath(key): JobPath,
    Query(page): Query<EndedJobsQuery>,
) -> JsonResult<HistoryResponse> {
    let filter = HistoryFilter { topic: Some(key.topic), id: Some(key.id), ..HistoryFilter::default() };
    ends(&api, &caller, peer, &filter, page).await
}

async fn ends(
    api: &Api,
    caller: &Principal,
    peer: Peer,
    filter: &HistoryFilter,
    EndedJobsQuery { after, limit, include }: EndedJobsQuery,
) -> JsonResult<HistoryResponse> {
    api.history.check()?;
    let _turn = Deadline::from_now().bound(api.histories.wait(caller.holder(peer))).await?;
    // After the turn: those who wait for one hold no memory.
    let _permit = match include {
        IncludeOfEnds { request: false, attempts: false } => None,
        _ => Some(api.acquire_for_whole_jobs(whole_jobs::ONE_PAGE).await?),
    };
    let ask = HistoryRequest {
        filter: filter_of(caller, filter),
        order: Order::Newest,
        last_of: None,
        after,
        limit,
        with_attempts: include.attempts,
        with_requests: include.request,
    };
    let HistoryPage { rows, has_more } = api.history.page(ask).await?;
    let next = rows.last().filter(|_| has_more).map(|row| Cursor::from(row).to_string());
    let items = rows.into_iter().map(|row| row.answer(include.attempts, include.request)).collect();
    Ok(Json(HistoryResponse { items, next }))
}

/// Erase from the history
///
/// Removes the ended jobs with a tag, or with an id of a topic, from the archive: bodies and logged attempts too. Ended
/// jobs that still wait for the archive are erased when they come. What ends after this call stays. One call erases for
/// about a second; if some are left the answer is 202: call again. It is safe to repeat. What the store has of jobs is
/// not touched.
#[utoipa::path(
    delete, path = "/v1/history", tag = "history", operation_id = "erase_history",
    params(
        ("topic" = Option<TopicName>, Query, description = "The topic; with `tag` it may be left out for all topics"),
        ("id" = Option<JobIdText>, Query, description = "Erase the ended jobs with this id of the topic"),
        ("tag" = Option<TagText>, Query, description = "Erase the ended jobs with this tag"),
    ),
    responses(
        (status = 200, description = "All are erased", body = ErasureResponse),
        (status = 202, description = "Some are erased, and some are left", body = ErasureResponse),
        ConflictProblems,
    ),
)]
pub(crate) async fn erase_history(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(ErasureQuery { filter }): Query<ErasureQuery>,
) -> Result<Response, ApiError> {
    api.history.check()?;
    let _turn = Deadline::from_now().bound(api.histories.wait(caller.holder(peer))).await?;
    let named = |text: Option<&str>| text.map(str::to_owned);
    let target = AuditLogTarget {
        topic: named(filter.topic.as_ref().map(Topic::name)),
        id: named(filter.id.as_ref().map(JobId::as_str)),
        tag: filter.tag.clone(),
        ..AuditLogTarget::default()
    };
    let filter = filter_of(&caller, &filter);
    let what = match (filter.id, filter.tag) {
        (Some(id), _) => Erased::Id(id),
        (None, tag) => Erased::Tag(tag.unwrap_or_default()),
    };
    let at = i64::try_from(api.now().as_millis()).unwrap_or(i64::MAX);
    let erasure = Erasure { tenant: filter.tenant, topics: filter.topics, what, at };
    let (until, mut answer) = (Instant::now() + ERASE_FOR, ErasureResponse { erased: 0, complete: false });
    while !answer.complete && Instant::now() < until {
        let erased = api.history.erase(erasure.clone()).await?;
        answer.erased += erased;
        answer.complete = erased == 0;
    }
    let status = if answer.complete { StatusCode::OK } else { StatusCode::ACCEPTED };
    tracing::info!(
        erased = answer.erased,
        complete = answer.complete,
        "ended jobs are erased from the archive"
    );
    let change = Change::of(target).after(json!({"complete": answer.complete})).count(answer.erased);
    Ok((status, change, Json(answer)).into_response())
}
