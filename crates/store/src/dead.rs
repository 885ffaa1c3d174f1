//! Dead jobs: pages over all shards in the order of death, purging many, and the outbox of a shard with
//! their pending dead-letter notices.

use ringback_core::store_types::{
    AckResult, DeadCursor, DeadFilter, DeadJob, DeadPage, DeadShardPage, Epoch, MAX_DEAD, MAX_NOTICES,
    Outbox, OutboxAck, Shard, StoreError,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// A page of a topic's dead jobs in the order of death, from the first without a cursor. Returns at
    /// most `limit` jobs and reads a bounded number in each shard. A job that is dead from the first page
    /// to the last is on exactly one of them, unless it was revived and died again.
    pub async fn dead(
        &self,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadPage<DeadJob>, StoreError> {
        let limit = limit.clamp(1, MAX_DEAD);
        let share = share(limit, usize::from(self.shards));
        let pages = backend!(self.dead(filter, from, share).await)?;
        let page = merged(pages, limit);
        let items = page.items.into_iter().map(|(cursor, job)| DeadJob { job, died: cursor.died(), cursor });
        Ok(DeadPage { items: items.collect(), next: page.next, now: page.now })
    }

    /// A page of at most `limit` dead jobs of one shard, only their cursors, for [`Store::purge_many`].
    pub async fn dead_cursors(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadPage<DeadCursor>, StoreError> {
        backend!(self.dead_cursors(shard, filter, from, limit.clamp(1, MAX_DEAD)).await)
    }

    /// purge of many jobs of a shard, at most [`MAX_DEAD`]: dead → gone. Leaves out jobs that have not been dead since
    /// their cursor was read. Returns how many were purged.
    pub async fn purge_many(&self, shard: Shard, cursors: &[DeadCursor]) -> Result<u64, StoreError> {
        backend!(self.purge_many(shard, cursors).await)
    }

    /// The first outbox entries of a shard that are due now, at most `limit` and at most [`MAX_NOTICES`].
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        backend!(self.outbox(shard, limit.min(MAX_NOTICES)).await)
    }

    /// acknowledge: removes the entries in `done` and postpones those in `later`, at most [`MAX_NOTICES`] together.
    /// Does nothing if another carrier owns the shard.
    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        ack: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        backend!(self.acknowledge(shard, epoch, ack).await)
    }
}

/// How many jobs to ask each shard for: more than an even share, since the shards differ.
fn share(limit: usize, shards: usize) -> usize {
    (limit.div_ceil(shards) + limit / 4 + 1).min(limit)
}

/// Merges the pages of the shards into one. It ends where the first shard has stopped reading, so none is skipped.
fn merged<T>(pages: Vec<DeadShardPage<T>>, limit: usize) -> DeadShardPage<T> {
    let end = pages.iter().filter_map(|page| page.next).min();
    let now = pages.iter().map(|page| page.now).min().unwrap_or_default();
    let mut items: Vec<_> = pages.into_iter().flat_map(|page| page.items).collect();
    items.retain(|(cursor, _)| end.is_none_or(|end| *cursor <= end));
    items.sort_unstable_by_key(|(cursor, _)| *cursor);
    if items.len() <= limit {
        return DeadPage { items, next: end, now };
    }
    items.truncate(limit);
    let next = items.last().map(|(cursor, _)| *cursor);
    DeadPage { items, next, now }
}

#[cfg(test)]
mod tests {
    use ringback_core::clock::Timestamp;

    use super::*;

    const fn cursor(at: u64, tie: u8) -> DeadCursor {
        DeadCursor { at, tie: [tie; 12] }
    }

    fn page(cursors: &[DeadCursor], next: Option<DeadCursor>) -> DeadShardPage<()> {
        let items = cursors.iter().map(|cursor| (*cursor, ())).collect();
        DeadPage { items, next, now: Timestamp::from_millis(9) }
    }

    fn times(page: &DeadShardPage<()>) -> Vec<u64> {
        page.items.iter().map(|(cursor, ())| cursor.at).collect()
    }

    #[test]
    fn a_page_ends_where_the_first_shard_has_stopped_reading() {
        let early = page(&[cursor(1, 0), cursor(3, 0)], Some(cursor(3, 0)));
        let late = page(&[cursor(2, 0), cursor(4, 0)], None);
        let page = merged(vec![early, late], 10);
        assert_eq!((times(&page), page.next), (vec![1, 2, 3], Some(cursor(3, 0))));
    }

    #[test]
    fn jobs_beyond_the_limit_are_left_for_the_next_page() {
        let merge = |pages, limit| {
            let page = merged(pages, limit);
            (times(&page), page.next)
        };
        let three = page(&[cursor(1, 0), cursor(2, 0), cursor(3, 0)], None);
        assert_eq!(merge(vec![three], 2), (vec![1, 2], Some(cursor(2, 0))));
        assert_eq!(merge(vec![page(&[cursor(1, 0)], None), page(&[], None)], 1), (vec![1], None));
        let stopped = page(&[], Some(cursor(5, 5)));
        let later = page(&[cursor(7, 0)], None);
        assert_eq!(merge(vec![stopped, later], 1), (vec![], Some(cursor(5, 5))));
    }

    #[test]
    fn shards_are_asked_for_no_more_than_the_page_has_room_for() {
        assert_eq!((share(100, 1), share(100, 4), share(1, 64), share(500, 4)), (100, 51, 1, 251));
    }
}
