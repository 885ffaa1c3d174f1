//! Dead letters in the embedded store: reading on through the table of them, from a snapshot
//! beside the writer, and purging many. A place is a time of death and a job's number.

use ringback_core::clock::Timestamp;
use ringback_core::contract::{DeadCursor, DeadFilter, DeadPage, DeadShardPage, Shard, StoreError};
use ringback_core::job::{Job, JobKey};
use tokio::time::timeout;

use super::tables::{self, Body, Record};
use super::{EmbeddedStore, edges, known};

/// So many entries are looked at in a call.
const LOOK: usize = 4000;

/// Which of a shard's dead jobs are read.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) shard: u16,
    /// The first that count: time and number.
    pub(crate) from: (u64, u64),
    /// Those that died at this time or later do not, in ms.
    pub(crate) before: u64,
    pub(crate) look: usize,
    pub(crate) limit: usize,
}

impl EmbeddedStore {
    pub async fn dead(
        &self,
        shards: Vec<Shard>,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<Vec<DeadShardPage<Job>>, StoreError> {
        self.read_dead(shards, filter, from, limit, |record, body| {
            let body: Body = body()?;
            let key = JobKey { topic: record.topic.parse().ok()?, id: body.id.parse().ok()? };
            Some(known(record, key))
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
        let stretches = self.read_dead(vec![shard], filter, from, limit, |_, _| Some(())).await?;
        let stretch = stretches.into_iter().next().ok_or(StoreError::Closed)?;
        let items = stretch.items.into_iter().map(|(place, ())| place).collect();
        Ok(DeadPage { items, next: stretch.next, now: stretch.now })
    }

    async fn read_dead<T: Send + 'static>(
        &self,
        shards: Vec<Shard>,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
        show: impl Fn(Record, &dyn Fn() -> Option<Body>) -> Option<T> + Send + 'static,
    ) -> Result<Vec<DeadShardPage<T>>, StoreError> {
        let writer = self.writer.get().ok_or(StoreError::Unprepared)?;
        let patience = self.options.call_timeout;
        // Of the writer, which never goes back; before the snapshot, which has all that died by then.
        let now = Timestamp::from_millis(self.call(Shard(0), 0, |txn| Ok(txn.now())).await?);
        let snapshot =
            timeout(patience, writer.snapshot()).await.map_err(|_elapsed| StoreError::Slow(patience))??;
        let begin = filter.after.map_or((0, 0), |after| (after.as_millis(), 0));
        let behind = from.map_or((0, 0), |from| (from.at, number(from).saturating_add(1)));
        let (filter, from) = (filter.clone(), begin.max(behind));
        let before = filter.before.map_or(u64::MAX, Timestamp::as_millis);
        let read = tokio::task::spawn_blocking(move || {
            let wanted = |record: &Record| is_wanted(&filter, record);
            let stretch = |shard: Shard| {
                let range = Range { shard: shard.0, from, before, look: LOOK, limit };
                let (found, next) = tables::read_dead(&snapshot, &range, wanted, &show)?;
                let items = found.into_iter().map(|(at, number, item)| (place(at, number), item)).collect();
                Ok(DeadPage { items, next: next.map(|(at, number)| place(at, number)), now })
            };
            shards.into_iter().map(stretch).collect()
        });
        read.await.map_err(|_| StoreError::Closed)?
    }

    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        let (jobs, bytes) = (named(places), places.len() * 256);
        self.call(shard, bytes, move |txn| edges::purge_many(txn, &jobs)).await
    }
}

/// Time of death and number of each.
pub(crate) fn named(places: &[DeadCursor]) -> Vec<(u64, u64)> {
    places.iter().map(|place| (place.at, number(*place))).collect()
}

fn is_wanted(filter: &DeadFilter, record: &Record) -> bool {
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
