//! `GET /v1/stats`: job counts, lateness and facts about the store.

use axum::Json;
use axum::extract::State;
use ringback_core::wire::StatsAnswer;

use crate::error::{ApiError, JsonResult};
use crate::limits::Deadline;
use crate::schema::StoreProblems;
use crate::state::ApiState;

/// Get statistics
///
/// Returns the number of jobs in each state, and how late deliveries were over the last five minutes.
/// The answer is up to a second old.
#[utoipa::path(
    get, path = "/v1/stats", tag = "stats", operation_id = "stats",
    responses((status = 200, description = "The statistics", body = StatsAnswer), StoreProblems),
)]
pub(crate) async fn stats(State(api): ApiState) -> JsonResult<StatsAnswer> {
    let answer = Deadline::from_now().bound(api.stats.get(&api.store)).await?;
    answer.map(Json).map_err(|error| ApiError::from(&*error))
}
