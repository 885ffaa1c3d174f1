//! `GET /v1/forecast`: how many jobs come due in each slot of time, with the firings of schedules.

use axum::Json;
use axum::extract::State;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{ForecastSlots, LaneSpan};
use ringback_service::http_server::Peer;
use ringback_wire::ForecastResponse;

use super::destinations::spans;
use crate::access::Authenticated;
use crate::error::JsonResult;
use crate::extract::{ForecastQuery, Query};
use crate::limits::Deadline;
use crate::schema::{FriendlyDuration, QueryProblems, TopicName};
use crate::state::ApiState;

/// Forecast due jobs
///
/// Returns how many jobs come due in each slot of time: those that have not failed yet, those that wait for a retry, and
/// the firings of schedules. Slots begin at multiples of their length since 1970. Where there is too much to count,
/// samples are taken, and `error` says how far a number can be off.
#[utoipa::path(
    get, path = "/v1/forecast", tag = "stats", operation_id = "forecast",
    params(
        ("topic" = Option<TopicName>, Query, description = "Only jobs of this topic"),
        ("by" = Option<FriendlyDuration>, Query, description = "How long a slot is, 1m to 1d; 10m by default"),
        ("until" = Option<FriendlyDuration>, Query, description = "How far ahead to look, up to 31d and 1,000 slots; 24h by default"),
    ),
    responses((status = 200, description = "The forecast", body = ForecastResponse), QueryProblems),
)]
pub(crate) async fn forecast(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(ForecastQuery { topic, by, until }): Query<ForecastQuery>,
) -> JsonResult<ForecastResponse> {
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    let spans = topic.as_ref().map_or_else(|| spans(&caller), |topic| vec![LaneSpan::Topic(topic.clone())]);
    let now = api.now();
    let slots = ForecastSlots::from(now.as_millis(), by, until);
    let is_wanted = |of: &_| caller.reaches(of) && topic.as_ref().is_none_or(|topic| topic == of);
    let read = async {
        let schedules = api.store.forecast_schedules(caller.reach(), is_wanted, now, &slots);
        tokio::try_join!(api.store.forecast(&spans, &slots), schedules)
    };
    let (jobs, firings) = deadline.bound(read).await??;
    let is_of_all = topic.is_none() && *caller.reach() == TenantScope::All;
    Ok(Json(ForecastResponse::new(&jobs, &slots, &firings.slots, firings.is_cut, is_of_all)))
}
