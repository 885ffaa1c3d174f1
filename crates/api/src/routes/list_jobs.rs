//! `GET /v1/jobs`: lists jobs, page by page.

use axum::Json;
use axum::extract::State;
use ringback_core::contract::StoreError;
use ringback_core::wire::{JobAnswer, PageAnswer};

use crate::error::JsonResult;
use crate::extract::{PageQuery, Query, outdated_cursor};
use crate::limits::Deadline;
use crate::paging;
use crate::schema::{ListedState, QueryProblems};
use crate::state::ApiState;

/// List jobs
///
/// Pending and dead jobs, in no particular order. A page holds at most `limit` jobs. It may hold
/// fewer or none and still have a next page; `next` is null on the last page. A job that exists from
/// the first page to the last is on at least one of them, even if it changes meanwhile.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    params(
        ("topic" = Option<String>, Query, description = "Only jobs of this topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("state" = Option<ListedState>, Query, description = "Only jobs in this state"),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most jobs of the page; 100 by default", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = PageAnswer), QueryProblems),
)]
pub(crate) async fn list(
    State(api): ApiState,
    Query(PageQuery { filter, from, limit }): Query<PageQuery>,
) -> JsonResult<PageAnswer> {
    let has_cursor = from.is_some();
    let page = Deadline::from_now().bound(paging::list_jobs(&api.store, &filter, from, limit)).await?;
    let (jobs, next) = page.map_err(|error| match error {
        StoreError::Outdated if has_cursor => outdated_cursor(),
        other => other.into(),
    })?;
    let items = jobs.into_iter().map(JobAnswer::from).collect();
    Ok(Json(PageAnswer { items, next: next.map(|cursor| cursor.to_string()) }))
}
