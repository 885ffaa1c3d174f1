//! The dead jobs of a topic: page by page in order of death, and purging one or many.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{
    DeadCursor, DeadFilter, DeadJob, InvalidCursor, MAX_DEAD, MoveResult, Shard, StoreError,
};
use ringback_core::job::{Job, JobKey};
use ringback_core::wire::{DeadPageAnswer, JobAnswer, PurgeAnswer};
use ringback_store::Store;
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
    from: Option<DeadCursor>,
    limit: usize,
) -> Result<(Vec<DeadJob>, Option<DeadCursor>), StoreError> {
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
/// Removes those that are dead as of the first call; only their logs of attempts are left. What is not done
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
    let until = Instant::now() + PURGE_FOR;
    let purged = Deadline::from_now().bound(purge_some(&api.store, filter, from, until)).await;
    let (purged, next) = purged.map_err(ApiError::too_late)??;
    Ok(Json(PurgeAnswer { purged, next: next.map(|place| place.to_string()) }))
}

/// Where a purge goes on: the shards are gone through one after the other. What died at `ends` or later,
/// after the first call, is none of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgePlace {
    shard: u16,
    ends: Timestamp,
    at: Option<DeadCursor>,
}

impl Display for PurgePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.shard, self.ends.as_millis())?;
        self.at.iter().try_for_each(|at| write!(f, ".{at}"))
    }
}

impl FromStr for PurgePlace {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (head, at) = text.split_once('.').map_or((text, None), |(head, at)| (head, Some(at)));
        let (shard, ends) = head.split_once('-').ok_or(InvalidCursor)?;
        let is_hex = |text: &str, most| text.len() <= most && text.bytes().all(|b| b.is_ascii_hexdigit());
        // A time takes six bytes in every store.
        if !is_hex(shard, 4) || !is_hex(ends, 12) {
            return Err(InvalidCursor);
        }
        let shard = u16::from_str_radix(shard, 16).map_err(|_| InvalidCursor)?;
        let ends = u64::from_str_radix(ends, 16).map_err(|_| InvalidCursor)?;
        Ok(Self { shard, ends: Timestamp::from_millis(ends), at: at.map(str::parse).transpose()? })
    }
}

async fn purge_some(
    store: &Store,
    mut filter: DeadFilter,
    from: Option<PurgePlace>,
    until: Instant,
) -> Result<(u64, Option<PurgePlace>), StoreError> {
    let (first, mut at) = from.map_or((0, None), |from| (from.shard, from.at));
    let (mut purged, mut ends) = (0, from.map(|from| from.ends));
    filter.before = filter.before.into_iter().chain(ends).min();
    let shards: Vec<Shard> = store.shards().filter(|shard| shard.number() >= first).collect();
    for shard in shards {
        loop {
            if let Some(ends) = ends
                && Instant::now() >= until
            {
                return Ok((purged, Some(PurgePlace { shard: shard.number(), ends, at })));
            }
            let page = store.dead_cursors(shard, &filter, at, MAX_DEAD).await?;
            if ends.is_none() {
                // What dies while it goes on is none of its.
                ends = Some(page.now.plus(Duration::from_millis(1)));
                filter.before = filter.before.into_iter().chain(ends).min();
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
/// Removes it; only its log of attempts is left. A job that is not dead is left as it is: 409.
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
        MoveResult::Applied(job) => Ok(Json(job.into())),
        MoveResult::Refused(Job { key, state, .. }) => {
            let detail = format!("the job {key} is {state}, not dead: only dead jobs can be purged");
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
        MoveResult::Unknown => Err(unknown(&key)),
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::clock::{Clock as _, ManualClock};
    use ringback_core::contract::Options;
    use ringback_core::wire::{Defaults, parse_import};
    use ringback_store::{Memory, settings};

    use super::*;

    #[test]
    fn a_place_of_a_purge_survives_being_written_down() {
        let place: DeadCursor = "5-00000000000000000000000a".parse().unwrap();
        let ends = Timestamp::from_millis(1_763_600_000_000);
        for (shard, at) in [(3, None), (u16::MAX, Some(place))] {
            let place = PurgePlace { shard, ends, at };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        let (head, place) = ("1-19a8e4a1c3b", "5-00000000000000000000000a");
        assert!(format!("{head}.{place}").parse::<PurgePlace>().is_ok());
        for text in ["", "x", "1", "+1-5", "10000-5", "1-", "-5", "1-+5", "1-1234567890abc", "1-5-5"] {
            assert_eq!(text.parse::<PurgePlace>(), Err(InvalidCursor), "{text}");
        }
        for rest in ["", "x", "5-0a.7"] {
            assert_eq!(format!("{head}.{rest}").parse::<PurgePlace>(), Err(InvalidCursor), "{rest}");
        }
    }

    /// A dead job more in each shard, at a time of their own.
    async fn with_dead(clock: &ManualClock, id: &str, store: &Store) -> Vec<JobKey> {
        clock.advance(Duration::from_millis(10));
        let mut keys = Vec::new();
        for shard in store.shards() {
            let mut ids = (0..).map(|n| format!("{id}-{n}"));
            let job = ids.find_map(|id| {
                let line = format!(
                    r#"{{"topic":"t","id":"{id}","url":"http://h/","state":"dead","reason":"lost","attempts":1,"failures":1}}"#
                );
                let mut make_id = || panic!("it has an id");
                let defaults = Defaults { now: clock.now(), make_id: &mut make_id, trace: None };
                let job = parse_import(line.as_bytes(), defaults).unwrap();
                Some(job).filter(|job| store.shard_of(&job.job.key) == shard)
            });
            let job = job.unwrap();
            store.import(shard, std::slice::from_ref(&job)).await.unwrap();
            keys.push(job.job.key);
        }
        keys
    }

    #[tokio::test]
    async fn what_dies_between_two_calls_of_a_purge_stays() {
        let clock = ManualClock::at(Timestamp::from_millis(1_763_600_000_000));
        let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
        let store = Store::in_memory(&Memory::new(clock.clone()), options);
        store.prepare().await.unwrap();
        let before = with_dead(&clock, "before", &store).await;
        let filter = DeadFilter { topic: "t".parse().unwrap(), reason: None, after: None, before: None };
        let (purged, place) = purge_some(&store, filter.clone(), None, Instant::now()).await.unwrap();
        let place = place.unwrap().to_string().parse().unwrap();
        assert_eq!(purged, 1);

        let after = with_dead(&clock, "after", &store).await;
        let until = Instant::now() + Duration::from_secs(60);
        assert_eq!(purge_some(&store, filter.clone(), Some(place), until).await.unwrap(), (1, None));
        for (keys, is_there) in [(before, false), (after, true)] {
            for key in keys {
                assert_eq!(store.get(&key).await.unwrap().is_some(), is_there, "{key}");
            }
        }
        assert_eq!(purge_some(&store, filter, None, until).await.unwrap(), (2, None));
    }
}
