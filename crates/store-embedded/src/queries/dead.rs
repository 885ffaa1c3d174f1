//! Pages of dead jobs, in the order of their death. A place among them is a time of death and the
//! number of a job.

use redb::ReadTransaction;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{DeadCursor, DeadFilter, DeadPage, DeadShardPage, Shard, StoreError};
use ringback_core::job::Job;

use crate::error::Result;
use crate::tables::{Record, Records, Tables};
use crate::{EmbeddedStore, answers, read};

/// The most entries that one call looks at.
const MAX_CHECKED: usize = 4000;

/// The part of a shard's dead jobs that is read.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// The first time and number.
    from: (u64, u64),
    /// Jobs that died at this time or later are left out, in ms.
    before: u64,
    /// The most jobs.
    limit: usize,
}

impl EmbeddedStore {
    pub async fn dead(
        &self,
        shards: Vec<Shard>,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<Vec<DeadShardPage<Job>>, StoreError> {
        self.read_dead(shards, filter, from, limit, |record, records| {
            let Some(body) = records.body(record.number)? else { return Ok(None) };
            Ok(answers::key(&record, &body).map(|key| answers::job(record, key)))
        })
        .await
    }

    pub async fn dead_cursors(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadPage<DeadCursor>, StoreError> {
        let pages = self.read_dead(vec![shard], filter, from, limit, |_, _| Ok(Some(()))).await?;
        let page = pages.into_iter().next().ok_or(StoreError::Closed)?;
        let items = page.items.into_iter().map(|(place, ())| place).collect();
        Ok(DeadPage { items, next: page.next, now: page.now })
    }

    /// Jobs for which `show` returns `None` are left out.
    async fn read_dead<T: Send + 'static>(
        &self,
        shards: Vec<Shard>,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
        show: impl Fn(Record, &Records<ReadTransaction>) -> Result<Option<T>> + Send + 'static,
    ) -> Result<Vec<DeadShardPage<T>>, StoreError> {
        // The writer's time never goes back. It is read before the snapshot, which so has all jobs
        // that died until then.
        let now = Timestamp::from_millis(self.call(Shard(0), 0, |txn| Ok(txn.now())).await?);
        let snapshot = self.snapshot().await?;
        let begin = filter.after.map_or((0, 0), |after| (after.as_millis(), 0));
        let behind = from.map_or((0, 0), |from| (from.at, number(from).saturating_add(1)));
        let before = filter.before.map_or(u64::MAX, Timestamp::as_millis);
        let (filter, range) = (filter.clone(), Range { from: begin.max(behind), before, limit });
        read(snapshot, move |tables| {
            let page = |shard: Shard| {
                let (items, next) = read_range(tables, shard.0, range, &filter, &show)?;
                Ok(DeadPage { items, next, now })
            };
            shards.into_iter().map(page).collect()
        })
        .await
    }
}

/// Jobs, and the last place that was read unless all were.
type Found<T> = (Vec<(DeadCursor, T)>, Option<DeadCursor>);

fn read_range<T>(
    tables: &Tables<ReadTransaction>,
    shard: u16,
    range: Range,
    filter: &DeadFilter,
    show: impl Fn(Record, &Records<ReadTransaction>) -> Result<Option<T>>,
) -> Result<Found<T>> {
    let (mut found, mut last) = (Vec::new(), None);
    for (checked, entry) in tables.dead.range(shard, range.from, range.before)?.enumerate() {
        if checked == MAX_CHECKED || found.len() == range.limit {
            return Ok((found, last));
        }
        let (at, number) = entry?;
        last = Some(place(at, number));
        if let Some(record) = tables.records.get(number)?.filter(|record| matches(filter, record)) {
            found.extend(show(record, &tables.records)?.map(|item| (place(at, number), item)));
        }
    }
    Ok((found, None))
}

/// The time of death and the number of each.
pub(crate) fn numbers(places: &[DeadCursor]) -> Vec<(u64, u64)> {
    places.iter().map(|place| (place.at, number(*place))).collect()
}

fn matches(filter: &DeadFilter, record: &Record) -> bool {
    filter.topic.as_str() == &*record.topic
        && filter.reason.as_deref().is_none_or(|reason| record.reason() == Some(reason))
}

fn place(at: u64, number: u64) -> DeadCursor {
    let mut tie = [0; 12];
    tie[4..].copy_from_slice(&number.to_be_bytes());
    DeadCursor { at, tie }
}

fn number(place: DeadCursor) -> u64 {
    place.tie[4..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
