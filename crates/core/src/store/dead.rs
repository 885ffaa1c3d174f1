//! Dead letters: which ones, a page of them in order of death, and purging many.
//!
//! They are found by their time of death. What is of another topic is passed over, so each call
//! looks at a bounded number of entries, and may find nothing though there is more.

use std::fmt::{self, Display};
use std::str::FromStr;

use futures_util::future::try_join_all;

use super::{Backend, NoCursor, Shard, Store, StoreError};
use crate::clock::Timestamp;
use crate::job::{Job, Topic};

/// The most jobs that one call finds in a shard, revives or purges.
pub const MAX_DEAD: usize = 500;

/// Which dead jobs are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadFilter {
    /// Of this topic.
    pub topic: Topic,
    /// Dead for this reason only.
    pub reason: Option<String>,
    /// That died at this time or later.
    pub after: Option<Timestamp>,
    /// That died before this time.
    pub before: Option<Timestamp>,
}

/// A place among the dead jobs, in order of death: that of a job, and how a call that is about
/// many names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadPlace {
    /// When the job died, in ms.
    pub(super) at: u64,
    /// Tells those of one millisecond apart, as the backend finds them.
    pub(super) tie: [u8; 12],
}

impl DeadPlace {
    /// When the job died.
    pub const fn died(self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}

impl Display for DeadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-", self.at)?;
        self.tie.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for DeadPlace {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (at, tie) = text.split_once('-').ok_or(NoCursor)?;
        let is_hex = |text: &str, most| text.len() <= most && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex(at, 12) || !is_hex(tie, 24) || tie.len() < 24 {
            return Err(NoCursor);
        }
        let at = u64::from_str_radix(at, 16).map_err(|_| NoCursor)?;
        let number = u128::from_str_radix(tie, 16).map_err(|_| NoCursor)?.to_be_bytes();
        Ok(Self { at, tie: number[4..].try_into().map_err(|_| NoCursor)? })
    }
}

/// A dead job, and when it died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadJob {
    /// What is known of it.
    pub job: Job,
    /// When it died, by the store's clock.
    pub died: Timestamp,
}

/// What was found, in order of death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadPage<T> {
    /// None where none of those looked at is wanted.
    pub items: Vec<T>,
    /// Where to go on; `None`: there are no more.
    pub next: Option<DeadPlace>,
    /// The store's time when it looked.
    pub now: Timestamp,
}

/// What a shard tells: each with its place.
pub(super) type Stretch<T> = DeadPage<(DeadPlace, T)>;

impl Store {
    /// Reads on through the dead jobs of a topic, in order of death, from the first without a
    /// place. At most `limit` jobs; of each shard a bounded number is looked at. A job that is
    /// dead from the first page to the last is on exactly one of them, unless it was revived and
    /// died again.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn dead(
        &self,
        filter: &DeadFilter,
        from: Option<DeadPlace>,
        limit: usize,
    ) -> Result<DeadPage<DeadJob>, StoreError> {
        let limit = limit.clamp(1, MAX_DEAD);
        let share = share(limit, usize::from(self.shards));
        let stretches = match &self.backend {
            Backend::Redis(store) => {
                try_join_all(self.shards().map(|shard| store.dead(shard, filter, from, share))).await?
            }
            Backend::Embedded(store) => store.dead(self.shards().collect(), filter, from, share).await?,
        };
        let page = merged(stretches, limit);
        let items = page.items.into_iter().map(|(place, job)| DeadJob { job, died: place.died() });
        Ok(DeadPage { items: items.collect(), next: page.next, now: page.now })
    }

    /// The same for one shard, by their places alone: what [`Store::purge_many`] takes.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn dead_places(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadPlace>,
        limit: usize,
    ) -> Result<DeadPage<DeadPlace>, StoreError> {
        let limit = limit.clamp(1, MAX_DEAD);
        match &self.backend {
            Backend::Redis(store) => store.dead_places(shard, filter, from, limit).await,
            Backend::Embedded(store) => store.dead_places(shard, filter, from, limit).await,
        }
    }

    /// purge, many at a time: dead → gone, where they are dead since then still. At most
    /// [`MAX_DEAD`] of a shard; how many they were.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn purge_many(&self, shard: Shard, places: &[DeadPlace]) -> Result<u64, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.purge_many(shard, places).await,
            Backend::Embedded(store) => store.purge_many(shard, places).await,
        }
    }
}

/// How many each shard is asked for: more than its share, since they are not even.
fn share(limit: usize, shards: usize) -> usize {
    (limit.div_ceil(shards) + limit / 4 + 1).min(limit)
}

/// What shards tell, as one: up to where all of them have looked.
fn merged<T>(stretches: Vec<Stretch<T>>, limit: usize) -> Stretch<T> {
    let end = stretches.iter().filter_map(|stretch| stretch.next).min();
    let now = stretches.iter().map(|stretch| stretch.now).min().unwrap_or_default();
    let mut items: Vec<_> = stretches.into_iter().flat_map(|stretch| stretch.items).collect();
    items.retain(|(place, _)| end.is_none_or(|end| *place <= end));
    items.sort_unstable_by_key(|(place, _)| *place);
    if items.len() <= limit {
        return DeadPage { items, next: end, now };
    }
    items.truncate(limit);
    let next = items.last().map(|(place, _)| *place);
    DeadPage { items, next, now }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn place(at: u64, tie: u8) -> DeadPlace {
        DeadPlace { at, tie: [tie; 12] }
    }

    fn stretch(places: &[DeadPlace], next: Option<DeadPlace>) -> Stretch<()> {
        DeadPage {
            items: places.iter().map(|place| (*place, ())).collect(),
            next,
            now: Timestamp::from_millis(9),
        }
    }

    fn of(page: &Stretch<()>) -> Vec<u64> {
        page.items.iter().map(|(place, ())| place.at).collect()
    }

    #[test]
    fn a_place_survives_being_written_down() {
        for place in [place(0, 0), place((1 << 48) - 1, 0xff), place(1_763_600_000_123, 0x0a)] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        let good = place(1, 1).to_string();
        let long = format!("{good}0");
        for text in ["", "-", "1", "x-0", &good[..good.len() - 1], &long, "+1-000000000000000000000000"] {
            assert_eq!(text.parse::<DeadPlace>(), Err(NoCursor), "{text}");
        }
    }

    #[test]
    fn nothing_is_told_from_behind_where_a_shard_has_looked() {
        let early = stretch(&[place(1, 0), place(3, 0)], Some(place(3, 0)));
        let late = stretch(&[place(2, 0), place(4, 0)], None);
        let page = merged(vec![early, late], 10);
        assert_eq!((of(&page), page.next), (vec![1, 2, 3], Some(place(3, 0))));
    }

    #[test]
    fn what_has_no_room_is_left_for_the_next_page() {
        let page = merged(vec![stretch(&[place(1, 0), place(2, 0), place(3, 0)], None)], 2);
        assert_eq!((of(&page), page.next), (vec![1, 2], Some(place(2, 0))));
        let page = merged(vec![stretch(&[place(1, 0)], None), stretch(&[], None)], 1);
        assert_eq!((of(&page), page.next), (vec![1], None));
        let page = merged(vec![stretch(&[], Some(place(5, 5))), stretch(&[place(7, 0)], None)], 1);
        assert_eq!((of(&page), page.next), (vec![], Some(place(5, 5))));
    }

    #[test]
    fn shards_are_asked_for_no_more_than_the_page_has_room_for() {
        assert_eq!((share(100, 1), share(100, 4), share(1, 64), share(500, 4)), (100, 51, 1, 251));
    }
}
