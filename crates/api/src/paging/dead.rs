//! Pages of dead jobs in the order of their deaths, and purges of many dead jobs.

use std::fmt::{self, Display};
use std::pin::pin;
use std::str::FromStr;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ringback_core::clock::Timestamp;
use ringback_core::job::Delivery;
use ringback_core::store_types::{
    DeadCursor, DeadFilter, DeadJob, FoundJob, InvalidCursor, MAX_DEAD, Shard, StoreError,
};
use ringback_store::Store;
use tokio::time::Instant;

use super::MAX_PAGE_BYTES;

/// After this time a page is returned though it is not full.
const FILL_FOR: Duration = Duration::from_millis(500);
/// How many whole jobs are read at once.
const AT_ONCE: usize = 8;

/// Reads dead jobs until there are `limit`, there are no more, or 500 ms are over. Also returns where the
/// next page begins; `None` if there are no more.
pub(crate) async fn list_dead(
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

/// Reads the deliveries of dead jobs, in order, until they weigh [`MAX_PAGE_BYTES`] or 500 ms are over; the other
/// jobs are left out. The delivery is `None` if the job has ended meanwhile, or is another one by now. Up to
/// [`AT_ONCE`] jobs are read beyond the last one that is returned.
pub(crate) async fn with_deliveries(
    store: &Store,
    jobs: Vec<DeadJob>,
    weigh: impl Fn(&Delivery) -> usize,
) -> Result<Vec<(DeadJob, Option<Delivery>)>, StoreError> {
    let (until, mut bytes, mut found) = (Instant::now() + FILL_FOR, 0, Vec::new());
    let reads = stream::iter(jobs).map(|dead| async move {
        let delivery = match store.get_stored(&dead.job.key).await? {
            Some(FoundJob::Stored(stored)) if stored.job.created == dead.job.created => Some(stored.delivery),
            Some(FoundJob::Stored(_) | FoundJob::Ended(_)) | None => None,
        };
        Ok::<_, StoreError>((dead, delivery))
    });
    let mut reads = pin!(reads.buffered(AT_ONCE));
    while let Some(read) = reads.next().await {
        let (dead, delivery) = read?;
        bytes += delivery.as_ref().map_or(0, &weigh);
        found.push((dead, delivery));
        if bytes >= MAX_PAGE_BYTES || Instant::now() >= until {
            break;
        }
    }
    Ok(found)
}

/// Where a purge continues. It purges shard after shard. Jobs that died at `ends` or later, after
/// its first call, are not purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgeCursor {
    shard: u16,
    ends: Timestamp,
    at: Option<DeadCursor>,
}

impl Display for PurgeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.shard, self.ends.as_millis())?;
        self.at.iter().try_for_each(|at| write!(f, ".{at}"))
    }
}

impl FromStr for PurgeCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (head, at) = text.split_once('.').map_or((text, None), |(head, at)| (head, Some(at)));
        let (shard, ends) = head.split_once('-').ok_or(InvalidCursor)?;
        let is_hex = |text: &str, most| text.len() <= most && text.bytes().all(|b| b.is_ascii_hexdigit());
        // Every store keeps times in six bytes.
        if !is_hex(shard, 4) || !is_hex(ends, 12) {
            return Err(InvalidCursor);
        }
        let shard = u16::from_str_radix(shard, 16).map_err(|_| InvalidCursor)?;
        let ends = u64::from_str_radix(ends, 16).map_err(|_| InvalidCursor)?;
        Ok(Self { shard, ends: Timestamp::from_millis(ends), at: at.map(str::parse).transpose()? })
    }
}

/// Purges dead jobs from `from` until all are purged or the time is `until`; a purge that begins purges at least one
/// page. Returns how many were purged, and where to continue; `None` if all were. Jobs that die during it are left.
pub(crate) async fn purge_dead(
    store: &Store,
    mut filter: DeadFilter,
    from: Option<PurgeCursor>,
    until: Instant,
) -> Result<(u64, Option<PurgeCursor>), StoreError> {
    let (first, mut at) = from.map_or((0, None), |from| (from.shard, from.at));
    let (mut purged, mut ends) = (0, from.map(|from| from.ends));
    filter.before = filter.before.into_iter().chain(ends).min();
    let shards: Vec<Shard> = store.shards().filter(|shard| shard.number() >= first).collect();
    for shard in shards {
        loop {
            if let Some(ends) = ends
                && Instant::now() >= until
            {
                return Ok((purged, Some(PurgeCursor { shard: shard.number(), ends, at })));
            }
            let page = store.dead_cursors(shard, &filter, at, MAX_DEAD).await?;
            if ends.is_none() {
                // Jobs that die during the purge are not purged.
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

#[cfg(test)]
mod tests {
    use ringback_core::clock::{Clock as _, ManualClock};
    use ringback_core::job::JobKey;
    use ringback_core::store_types::Options;
    use ringback_store::{Memory, settings};
    use ringback_wire::{Defaults, parse_import};

    use super::*;

    #[test]
    fn the_cursor_of_a_purge_can_be_written_and_parsed() {
        let place: DeadCursor = "5-00000000000000000000000a".parse().unwrap();
        let ends = Timestamp::from_millis(1_763_600_000_000);
        for (shard, at) in [(3, None), (u16::MAX, Some(place))] {
            let place = PurgeCursor { shard, ends, at };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        let (head, place) = ("1-19a8e4a1c3b", "5-00000000000000000000000a");
        assert!(format!("{head}.{place}").parse::<PurgeCursor>().is_ok());
        for text in ["", "x", "1", "+1-5", "10000-5", "1-", "-5", "1-+5", "1-1234567890abc", "1-5-5"] {
            assert_eq!(text.parse::<PurgeCursor>(), Err(InvalidCursor), "{text}");
        }
        for rest in ["", "x", "5-0a.7"] {
            assert_eq!(format!("{head}.{rest}").parse::<PurgeCursor>(), Err(InvalidCursor), "{rest}");
        }
    }

    /// Advances the clock by 10 ms, and adds a dead job to each shard. Returns their keys.
    async fn with_dead(clock: &ManualClock, id: &str, store: &Store) -> Vec<JobKey> {
        clock.advance(Duration::from_millis(10));
        let mut keys = Vec::new();
        for shard in store.shards() {
            let mut ids = (0..).map(|n| format!("{id}-{n}"));
            let job = ids.find_map(|id| {
                let line = format!(
                    r#"{{"topic":"t","id":"{id}","url":"http://h/","state":"dead","reason":"lost","attempts":1,"failures":1}}"#
                );
                let make_id = &mut |_: &_| panic!("it has an id");
                let make_token = &mut || panic!("it changes no job");
                let defaults = Defaults { now: clock.now(), make_id, make_token, trace: None, tenant: None };
                let job = parse_import(line.as_bytes(), defaults, &ringback_core::job::TenantScope::All).unwrap();
                Some(job).filter(|job| store.shard_of(&job.job.key) == shard)
            });
            let job = job.unwrap();
            store.import(shard, std::slice::from_ref(&job)).await.unwrap();
            keys.push(job.job.key);
        }
        keys
    }

    #[tokio::test]
    async fn jobs_that_die_between_two_calls_of_a_purge_stay() {
        let clock = ManualClock::at(Timestamp::from_millis(1_763_600_000_000));
        let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
        let store = Store::in_memory(&Memory::new(clock.clone()), options);
        store.prepare().await.unwrap();
        let before = with_dead(&clock, "before", &store).await;
        let filter = DeadFilter { topic: "t".parse().unwrap(), reason: None, after: None, before: None };
        let (purged, place) = purge_dead(&store, filter.clone(), None, Instant::now()).await.unwrap();
        let place = place.unwrap().to_string().parse().unwrap();
        assert_eq!(purged, 1);

        let after = with_dead(&clock, "after", &store).await;
        let until = Instant::now() + Duration::from_secs(60);
        assert_eq!(purge_dead(&store, filter.clone(), Some(place), until).await.unwrap(), (1, None));
        for (keys, is_there) in [(before, false), (after, true)] {
            for key in keys {
                assert_eq!(store.get(&key).await.unwrap().is_some(), is_there, "{key}");
            }
        }
        assert_eq!(purge_dead(&store, filter, None, until).await.unwrap(), (2, None));
    }

    #[test]
    fn random_texts_are_no_purge_cursors_or_are_read_as_they_are_written() {
        let samples = ["2-19aa0c2f800", "2-19aa0c2f800.19aa0c2f7ff-000102030405060708090a0b"];
        ringback_fuzz::run_texts(&samples, |text| {
            if let Ok(cursor) = text.parse::<PurgeCursor>() {
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        });
    }
}
