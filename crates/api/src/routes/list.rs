//! Many jobs, page by page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ringback_core::contract::StoreError;
use ringback_core::wire::{JobAnswer, PageAnswer};

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{PageQuery, outdated_cursor};
use crate::openapi::{ListProblems, Listed};
use crate::paging;
use crate::state::Api;

/// List jobs
///
/// Pending and dead jobs, in no particular order. A page holds at most `limit`, and may hold fewer or
/// none though it has a next one; `next` is null on the last. A job that is there from the first
/// page to the last is on one of them at least, whatever moves meanwhile.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    params(
        ("topic" = Option<String>, Query, description = "Of this topic only", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("state" = Option<Listed>, Query, description = "In this state only"),
        ("cursor" = Option<String>, Query, description = "The next of the page before; opaque"),
        ("limit" = Option<usize>, Query, description = "The most jobs of the page; 100 by default", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = PageAnswer), ListProblems),
)]
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    PageQuery { filter, from, limit }: PageQuery,
) -> Result<Json<PageAnswer>, ApiError> {
    let begun = from.is_some();
    let filled = Deadline::from_now().bound(paging::fill(&api.store, &filter, from, limit)).await;
    let (jobs, next) = filled.map_err(ApiError::too_late)?.map_err(|error| match error {
        StoreError::Outdated if begun => outdated_cursor(),
        other => other.into(),
    })?;
    let items = jobs.into_iter().map(JobAnswer::from).collect();
    Ok(Json(PageAnswer { items, next: next.map(|place| place.to_string()) }))
}
