//! `GET /v1/stats`: job counts, lateness and facts about the store.

use axum::Json;
use axum::extract::State;
use ringback_admission::Principal;
use ringback_core::contract::{MAX_TOPIC_PAGE, StateCounts};
use ringback_core::job::TenantScope;
use ringback_core::wire::StatsAnswer;
use ringback_service::http_server::Peer;

use crate::access::As;
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
    responses((status = 200, description = "The statistics", body = StatsAnswer), StoreProblems),
)]
pub(crate) async fn stats(State(api): ApiState, As(caller): As, peer: Peer) -> JsonResult<StatsAnswer> {
    let deadline = Deadline::from_now();
    if *caller.reach() == TenantScope::All {
        let answer = deadline.bound(api.stats.get(&api.store)).await?;
        return answer.map(Json).map_err(|error| ApiError::from(&*error));
    }
    let _turn = deadline.bound(api.scans.wait(caller.claimant(peer))).await?;
    deadline.bound(of_topics(&api, &caller)).await?.map(Json)
}

/// The statistics of the topics that a caller reaches, from their counts.
async fn of_topics(api: &Api, caller: &Principal) -> Result<StatsAnswer, ApiError> {
    let (mut states, mut topics, mut after) = (StateCounts::default(), 0, None);
    loop {
        let page = api.store.topics(caller.reach(), after.as_ref(), MAX_TOPIC_PAGE).await?;
        for (_, counts) in page.items.iter().filter(|(topic, _)| caller.reaches(topic)) {
            topics += 1;
            states.delayed += counts.delayed;
            states.ready += counts.ready;
            states.reserved += counts.reserved;
            states.dead += counts.dead;
            states.done += counts.done;
            states.cancelled += counts.cancelled;
        }
        after = page.next;
        if after.is_none() {
            return Ok(stats_cache::of_tenant(states, topics, &api.store));
        }
    }
}
