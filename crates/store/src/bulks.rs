//! Bulk operations: starting, reading and stopping them, and the calls of the carrier that works on one.

use std::time::Duration;

use futures_util::future::try_join_all;
use ringback_core::contract::{
    Bulk, BulkAction, BulkId, BulkStart, BulkState, BulkStep, BulkTarget, DeadCursor, Filter, Shard,
    StoreError, StoredBulk, TakenBulk, Token, WorkerId,
};
use ringback_core::job::JobKey;

use crate::backend::{Backend, Store, dispatch};

impl Store {
    /// Starts to change many jobs. A carrier has to take the bulk operation and work on it.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating with the same token shows whether it started.
    pub async fn start_bulk(
        &self,
        token: Token,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<BulkStart, StoreError> {
        match dispatch!(self.start_bulk(token.into(), target, rate))? {
            None => Ok(BulkStart::TooMany),
            Some(stored) => self.counted(stored).await.map(BulkStart::Bulk),
        }
    }

    /// The running bulk operations, and those that ended not long ago; the latest first.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn bulks(&self) -> Result<Vec<Bulk>, StoreError> {
        let stored = dispatch!(self.bulks(None))?;
        let mut all = try_join_all(stored.into_iter().map(|stored| self.counted(stored))).await?;
        all.sort_unstable_by_key(|bulk| (std::cmp::Reverse(bulk.started), bulk.id));
        Ok(all)
    }

    /// A bulk operation and its progress.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn bulk(&self, id: BulkId) -> Result<Option<Bulk>, StoreError> {
        match dispatch!(self.bulks(Some(id)))?.pop() {
            None => Ok(None),
            Some(stored) => self.counted(stored).await.map(Some),
        }
    }

    /// Stops a bulk operation: it changes no more jobs. One that has ended stays as it is.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn stop_bulk(&self, id: BulkId) -> Result<Option<Bulk>, StoreError> {
        self.end_bulk(id, None, BulkState::Stopped).await
    }

    /// Takes a bulk operation without a worker, for `ttl`.
    ///
    /// # Errors
    /// Any [`StoreError`]. A bulk operation that was taken without a reply is free again after `ttl`.
    pub async fn take_bulk(&self, worker: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        dispatch!(self.take_bulk(worker, ttl))
    }

    /// Keeps a taken bulk operation for another `ttl`; zero gives it back. Returns false if it has ended or
    /// belongs to another worker.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn keep_bulk(&self, id: BulkId, worker: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        dispatch!(self.keep_bulk(id, worker, ttl))
    }

    /// The worker has changed all jobs of its bulk operation.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn finish_bulk(&self, id: BulkId, worker: WorkerId) -> Result<(), StoreError> {
        self.end_bulk(id, Some(worker), BulkState::Done).await.map(drop)
    }

    /// revive of many jobs of a shard, at most [`MAX_DEAD`](ringback_core::contract::MAX_DEAD): dead →
    /// ready, if they have been dead since and this bulk operation has not revived them before.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn revive_many(
        &self,
        shard: Shard,
        id: BulkId,
        cursors: &[DeadCursor],
    ) -> Result<BulkStep, StoreError> {
        dispatch!(self.revive_many(shard, id, cursors))
    }

    /// cancel, run, revive, reschedule or purge of many jobs of a shard, at most
    /// [`MAX_DEAD`](ringback_core::contract::MAX_DEAD): of those that fit a filter when they are changed, and that this
    /// bulk operation has not moved before.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn change_many(
        &self,
        shard: Shard,
        id: BulkId,
        filter: &Filter,
        action: BulkAction,
        keys: &[JobKey],
    ) -> Result<BulkStep, StoreError> {
        let filter = &action.narrowed(filter.clone());
        dispatch!(self.change_many(shard, id, filter, action, keys))
    }

    /// Ends a bulk operation. On Redis it first ends the bulk operation itself, then closes it in the shards, and then
    /// stores the total. If it is done, no shard has more to change, so the shards are closed first.
    async fn end_bulk(
        &self,
        id: BulkId,
        worker: Option<WorkerId>,
        state: BulkState,
    ) -> Result<Option<Bulk>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => {
                let end = |total| store.end_bulk(id, worker, state, total);
                let close = || async {
                    let closed = try_join_all(self.shards().map(|shard| store.close_bulk(shard, id)));
                    Ok::<u64, StoreError>(closed.await?.into_iter().sum())
                };
                if state == BulkState::Done {
                    let sum = close().await?;
                    return Ok(end(Some(sum)).await?.map(with_total(sum)));
                }
                let Some((bulk, total)) = end(None).await? else { return Ok(None) };
                if total.is_some() || bulk.state == BulkState::Running {
                    return self.counted((bulk, total)).await.map(Some);
                }
                let sum = close().await?;
                Ok(end(Some(sum)).await?.map(with_total(sum)))
            }
            Backend::Embedded(store) => {
                let stored = store.end_bulk(id, worker, state).await?;
                Ok(stored.map(|(bulk, _)| bulk))
            }
        }
    }

    /// A bulk operation with the number of jobs that it has changed so far.
    async fn counted(&self, (bulk, total): StoredBulk) -> Result<Bulk, StoreError> {
        let changed = match (&self.backend, total) {
            (_, Some(total)) => total,
            (Backend::Redis(store), None) => {
                let counts = self.shards().map(|shard| store.changed_by(shard, bulk.id));
                try_join_all(counts).await?.into_iter().sum()
            }
            (Backend::Embedded(_), None) => bulk.changed,
        };
        Ok(Bulk { changed, ..bulk })
    }
}

fn with_total(sum: u64) -> impl FnOnce(StoredBulk) -> Bulk {
    move |(bulk, total)| Bulk { changed: total.unwrap_or(sum), ..bulk }
}
