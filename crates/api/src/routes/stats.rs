//! `GET /v1/stats`: job counts, lateness and facts about the store.

use axum::Json;
use axum::extract::State;
use ringback_admission::Principal;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{StateCounts, TopicCounts, TopicTotals};
use ringback_service::http_server::Peer;
use ringback_wire::StatsResponse;

use crate::access::Authenticated;
use crate::error::{ApiError, JsonResult};
use crate::limits::{Deadline, stats_cache};
use crate::schema::StoreProblems;
use crate::state::{Api, ApiState};

/// Get statistics
///
/// Returns the number of jobs in each state, and how late deliveries were over the last five minutes.
/// The answer is up to a second old. Those of a tenant are the sums of its topics; what is only counted for all topics
/// together is 0 or null there.
#[utoipa::path(
    get, path = "/v1/stats", tag = "stats", operation_id = "stats",
    responses((status = 200, description = "The statistics", body = StatsResponse), StoreProblems),
)]
pub(crate) async fn stats(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
) -> JsonResult<StatsResponse> {
    let deadline = Deadline::from_now();
    if *caller.reach() == TenantScope::All {
        let answer = deadline.bound(api.stats.get(&api.store)).await?;
        return answer.map(Json).map_err(|error| ApiError::from(&*error));
    }
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    deadline.bound(of_topics(&api, &caller)).await?.map(Json)
}

/// The statistics of the topics that a caller reaches, from their counts. The topics of a key for some topics are few,
/// and read one by one.
async fn of_topics(api: &Api, caller: &Principal) -> Result<StatsResponse, ApiError> {
    let TopicTotals { topics, counts } = if caller.topics().is_empty() {
        api.store.totals(caller.reach()).await?
    } else {
        let mut totals = TopicTotals::default();
        for topic in caller.topics() {
            if let Some(counts) = api.store.topic(topic).await? {
                totals.add(TopicTotals { topics: [topic.clone()].into(), counts });
            }
        }
        totals
    };
    let TopicCounts { delayed, ready, reserved, dead, done, cancelled, .. } = counts;
    let states = StateCounts { delayed, ready, reserved, dead, done, cancelled, ..StateCounts::default() };
    Ok(stats_cache::of_tenant(states, topics.len() as u64, &api.store))
}
