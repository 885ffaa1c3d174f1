//! Pages of dead jobs, in the order of their death. A cursor is a time of death and the number of a job.

use redb::ReadTransaction;
use ringback_core::clock::Timestamp;
use ringback_core::job::Job;
use ringback_core::store_types::{DeadCursor, DeadFilter, DeadPage, DeadShardPage, Shard, StoreError};

use crate::error::Result;
use crate::tables::{Record, Records};
use crate::{ANY_SHARD, EmbeddedStore, answers};

/// The most entries of a shard that one call reads.
const MAX_CHECKED: usize = 4000;

impl EmbeddedStore {
    pub async fn dead(
        &self,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<Vec<DeadShardPage<Job>>, StoreError> {
        self.read_dead(self.options.all_shards().collect(), filter, from, limit, |record, records| {
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
        let items = page.items.into_iter().map(|(cursor, ())| cursor).collect();
        Ok(DeadPage { items, next: page.next, now: page.now })
    }

    /// Reads a page of each shard: at most `limit` matching jobs of at most [`MAX_CHECKED`] entries, from `from` on.
    /// Leaves out jobs for which `show` returns `None`. The `next` of a page is `None` if no entries follow.
    async fn read_dead<T: Send + 'static>(
        &self,
        shards: Vec<Shard>,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
        show: impl Fn(Record, &Records<ReadTransaction>) -> Result<Option<T>> + Send + 'static,
    ) -> Result<Vec<DeadShardPage<T>>, StoreError> {
        // The time is read before the snapshot, so the snapshot has all jobs that died until then.
        let now = Timestamp::from_millis(self.call(ANY_SHARD, 0, |txn| Ok(txn.now())).await?);
        let snapshot = self.snapshot().await?;
        let begin = filter.after.map_or((0, 0), |after| (after.as_millis(), 0));
        let behind = from.map_or((0, 0), |from| (from.at, number(from).saturating_add(1)));
        let before = filter.before.map_or(u64::MAX, Timestamp::as_millis);
        let (filter, from) = (filter.clone(), begin.max(behind));
        self.read(snapshot, move |tables| {
            let page = |shard: Shard| {
                let (mut items, mut last) = (Vec::new(), None);
                for (checked, entry) in tables.dead.range(shard.0, from, before)?.enumerate() {
                    if checked == MAX_CHECKED || items.len() == limit {
                        return Ok(DeadPage { items, next: last, now });
                    }
                    let (at, number) = entry?;
                    last = Some(cursor(at, number));
                    let record = tables.records.get(number)?.filter(|record| matches(&filter, record));
                    if let Some(item) =
                        record.map(|record| show(record, &tables.records)).transpose()?.flatten()
                    {
                        items.push((cursor(at, number), item));
                    }
                }
                Ok(DeadPage { items, next: None, now })
            };
            shards.into_iter().map(page).collect()
        })
        .await
    }
}

/// Returns the time of death, in ms, and the number of each job.
pub(crate) fn numbers(cursors: &[DeadCursor]) -> Vec<(u64, u64)> {
    cursors.iter().map(|cursor| (cursor.at, number(*cursor))).collect()
}

fn matches(filter: &DeadFilter, record: &Record) -> bool {
    filter.topic.as_str() == &*record.topic
        && filter.reason.as_deref().is_none_or(|reason| record.reason() == Some(reason))
}

fn cursor(at: u64, number: u64) -> DeadCursor {
    let mut tie = [0; 12];
    tie[4..].copy_from_slice(&number.to_be_bytes());
    DeadCursor { at, tie }
}

fn number(cursor: DeadCursor) -> u64 {
    cursor.tie[4..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
