//! The dead jobs of a topic: page by page in order of death, and purging one or many.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::job::{Job, JobKey};
use ringback_core::store::{
    DeadFilter, DeadJob, DeadPlace, MAX_DEAD, Moved, NoCursor, Shard, Store, StoreError,
};
use ringback_core::wire::{DeadPageAnswer, JobAnswer, PurgeAnswer};
use tokio::time::Instant;

use super::jobs::unknown;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{DeadQuery, JobPath, PurgeQuery, TopicPath};
use crate::openapi::{DeadProblems, PurgeOneProblems, PurgeProblems};
use crate::state::Api;

/// A page that is not full by then is answered as it is.
const FILL_FOR: Duration = Duration::from_millis(500);
/// A purge that has more to do by then answers that.
const PURGE_FOR: Duration = Duration::from_millis(1000);

/// List dead jobs
///
/// In order of death, with why each is dead, its last failed attempt and when it died. A page
/// holds at most `limit`, and may hold fewer or none though it has a next one; `next` is null on
/// the last. A job that is dead from the first page to the last is on exactly one of them.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/dead", tag = "dead", operation_id = "list_dead",
    params(
        ("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("reason" = Option<String>, Query, description = "Dead for this reason only: exhausted, gone, lost, or what a consumer has given", max_length = 64),
        ("died_after" = Option<String>, Query, description = "That died at this time or later, by RFC 3339"),
        ("died_before" = Option<String>, Query, description = "That died before this time, by RFC 3339"),
        ("cursor" = Option<String>, Query, description = "The next of the page before; opaque"),
        ("limit" = Option<usize>, Query, description = "The most jobs of the page; 100 by default", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = DeadPageAnswer), DeadProblems),
)]
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    DeadQuery { filter, from, limit }: DeadQuery,
) -> Result<Json<DeadPageAnswer>, ApiError> {
    let filled = Deadline::from_now().bound(fill(&api.store, &filter, from, limit)).await;
    let (jobs, next) = filled.map_err(ApiError::too_late)??;
    let items = jobs.into_iter().map(Into::into).collect();
    Ok(Json(DeadPageAnswer { items, next: next.map(|place| place.to_string()) }))
}

/// Reads on until there are `limit` jobs, there are no more, or it has taken long.
async fn fill(
    store: &Store,
    filter: &DeadFilter,
    from: Option<DeadPlace>,
    limit: usize,
) -> Result<(Vec<DeadJob>, Option<DeadPlace>), StoreError> {
    let (until, mut at, mut items) = (Instant::now() + FILL_FOR, from, Vec::new());
    loop {
        let mut page = store.dead(filter, at, (limit - items.len()).min(MAX_DEAD)).await?;
        items.append(&mut page.items);
        if page.next.is_none() || items.len() >= limit || Instant::now() >= until {
            return Ok((items, page.next));
        }
        at = page.next;
    }
}

/// Purge dead jobs
///
/// Removes those that are dead as of this call; nothing is remembered of them. What is not done
/// within a second is left: then `next` is the `cursor` of the call that goes on, and null when all
/// are gone.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/dead", tag = "dead", operation_id = "purge_dead",
    params(
        ("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("reason" = Option<String>, Query, description = "Dead for this reason only", max_length = 64),
        ("died_after" = Option<String>, Query, description = "That died at this time or later, by RFC 3339"),
        ("died_before" = Option<String>, Query, description = "That died before this time, by RFC 3339"),
        ("cursor" = Option<String>, Query, description = "The next of the call before; opaque"),
    ),
    responses((status = 200, description = "How many, and whether there are more", body = PurgeAnswer), PurgeProblems),
)]
pub(crate) async fn purge_all(
    State(api): State<Arc<Api>>,
    PurgeQuery { filter, from }: PurgeQuery,
) -> Result<Json<PurgeAnswer>, ApiError> {
    let purged = Deadline::from_now().bound(purge_some(&api.store, filter, from)).await;
    let (purged, next) = purged.map_err(ApiError::too_late)??;
    Ok(Json(PurgeAnswer { purged, next: next.map(|place| place.to_string()) }))
}

/// Where a purge goes on: the shards are gone through one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgePlace {
    shard: u16,
    at: Option<DeadPlace>,
}

impl Display for PurgePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.shard)?;
        self.at.iter().try_for_each(|at| write!(f, ".{at}"))
    }
}

impl FromStr for PurgePlace {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (shard, at) = text.split_once('.').map_or((text, None), |(shard, at)| (shard, Some(at)));
        let shard = u16::from_str_radix(shard, 16).ok().filter(|_| !shard.starts_with('+'));
        Ok(Self { shard: shard.ok_or(NoCursor)?, at: at.map(str::parse).transpose()? })
    }
}

async fn purge_some(
    store: &Store,
    mut filter: DeadFilter,
    from: Option<PurgePlace>,
) -> Result<(u64, Option<PurgePlace>), StoreError> {
    let (until, mut purged, mut is_bounded) = (Instant::now() + PURGE_FOR, 0, false);
    let PurgePlace { shard: first, mut at } = from.unwrap_or(PurgePlace { shard: 0, at: None });
    let shards: Vec<Shard> = store.shards().filter(|shard| shard.number() >= first).collect();
    for shard in shards {
        loop {
            if Instant::now() >= until {
                return Ok((purged, Some(PurgePlace { shard: shard.number(), at })));
            }
            let page = store.dead_places(shard, &filter, at, MAX_DEAD).await?;
            if !std::mem::replace(&mut is_bounded, true) {
                // What dies while it goes on is none of its.
                let ends = page.now.plus(Duration::from_millis(1));
                filter.before = Some(filter.before.map_or(ends, |before| before.min(ends)));
            }
            purged += store.purge_many(shard, &page.items).await?;
            at = page.next;
            if at.is_none() {
                break;
            }
        }
    }
    Ok((purged, None))
}

/// Purge a dead job
///
/// Removes it; nothing is remembered of it. A job that is not dead is left as it is: 409.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/dead/{id}", tag = "dead", operation_id = "purge",
    params(
        ("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("id" = String, Path, description = "The job's id", pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$"),
    ),
    responses((status = 200, description = "The job as it was", body = JobAnswer), PurgeOneProblems),
)]
pub(crate) async fn purge(
    State(api): State<Arc<Api>>,
    JobPath(key): JobPath,
) -> Result<Json<JobAnswer>, ApiError> {
    purge_job(&api, key).await
}

/// Purge the dead job `revive`
///
/// As any other dead job by its id; this one has the name of a path.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/dead/revive", tag = "dead", operation_id = "purge_job_named_revive",
    params(("topic" = String, Path, description = "The job's topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    responses((status = 200, description = "The job as it was", body = JobAnswer), PurgeOneProblems),
)]
pub(crate) async fn purge_named_revive(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
) -> Result<Json<JobAnswer>, ApiError> {
    let id = "revive".parse().expect("the word lies within the alphabet of ids");
    purge_job(&api, JobKey { topic, id }).await
}

async fn purge_job(api: &Api, key: JobKey) -> Result<Json<JobAnswer>, ApiError> {
    let purged = Deadline::from_now().bound(api.store.purge(&key)).await;
    match purged.map_err(ApiError::too_late)?? {
        Moved::Applied(job) => Ok(Json(job.into())),
        Moved::Refused(Job { key, state, .. }) => {
            let detail = format!("the job {key} is {state}, not dead: only dead jobs can be purged");
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
        Moved::Unknown => Err(unknown(&key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_a_purge_survives_being_written_down() {
        let place: DeadPlace = "5-00000000000000000000000a".parse().unwrap();
        for place in [PurgePlace { shard: 3, at: None }, PurgePlace { shard: u16::MAX, at: Some(place) }] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in ["", "x", "+1", "10000", "1.", "1.x", "1.5-0a.7"] {
            assert_eq!(text.parse::<PurgePlace>(), Err(NoCursor), "{text}");
        }
    }
}
