//! Bulk operations: starting, reading and stopping them, and the calls of the carrier that works on one.

use std::time::Duration;

use ringback_core::job::JobKey;
use ringback_core::store_types::{
    Bulk, BulkAction, BulkId, BulkStart, BulkState, BulkStep, BulkTarget, DeadCursor, Filter, Shard,
    StoreError, TakenBulk, Token, WorkerId,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Starts a bulk operation that changes `rate` jobs a second. A carrier has to take it and work on it.
    /// [`BulkStart::TooMany`] if too many are running.
    /// Repeating with the same token shows whether it started.
    pub async fn start_bulk(
        &self,
        token: Token,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<BulkStart, StoreError> {
        let started = backend!(self.start_bulk(token.into(), target, rate).await)?;
        Ok(started.map_or(BulkStart::TooMany, BulkStart::Bulk))
    }

    /// The running bulk operations, and those that ended not long ago; the latest first.
    pub async fn bulks(&self) -> Result<Vec<Bulk>, StoreError> {
        let mut all = backend!(self.bulks(None).await)?;
        all.sort_unstable_by_key(|bulk| (std::cmp::Reverse(bulk.started), bulk.id));
        Ok(all)
    }

    /// A bulk operation and its progress; `None` if there is none with this id.
    pub async fn bulk(&self, id: BulkId) -> Result<Option<Bulk>, StoreError> {
        Ok(backend!(self.bulks(Some(id)).await)?.pop())
    }

    /// Stops a bulk operation, which changes no more jobs. One that has ended stays as it is. `None` for an unknown id.
    pub async fn stop_bulk(&self, id: BulkId) -> Result<Option<Bulk>, StoreError> {
        backend!(self.end_bulk(id, None, BulkState::Stopped).await)
    }

    /// Takes a running bulk operation that has no worker, for `ttl`.
    /// One that was taken without a reply is free again after `ttl`.
    pub async fn take_bulk(&self, worker: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        backend!(self.take_bulk(worker, ttl).await)
    }

    /// Keeps a taken bulk operation for another `ttl`; zero gives it back. Returns false if it has ended or
    /// belongs to another worker.
    pub async fn keep_bulk(&self, id: BulkId, worker: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        backend!(self.keep_bulk(id, worker, ttl).await)
    }

    /// Ends a bulk operation whose worker has changed all jobs. Changes nothing if it belongs to another worker.
    pub async fn finish_bulk(&self, id: BulkId, worker: WorkerId) -> Result<(), StoreError> {
        backend!(self.end_bulk(id, Some(worker), BulkState::Done).await).map(drop)
    }

    /// revive of many jobs of a shard, at most [`MAX_DEAD`](ringback_core::store_types::MAX_DEAD): dead → ready, if
    /// they have been dead since the cursor was read and this bulk operation has not revived them before.
    pub async fn revive_many(
        &self,
        shard: Shard,
        id: BulkId,
        cursors: &[DeadCursor],
    ) -> Result<BulkStep, StoreError> {
        backend!(self.revive_many(shard, id, cursors).await)
    }

    /// cancel, run, revive, reschedule or purge of many jobs of a shard, at most
    /// [`MAX_DEAD`](ringback_core::store_types::MAX_DEAD). Leaves out jobs that do not match the filter when they are
    /// changed, and those that this bulk operation has moved before.
    pub async fn change_many(
        &self,
        shard: Shard,
        id: BulkId,
        filter: &Filter,
        action: BulkAction,
        keys: &[JobKey],
    ) -> Result<BulkStep, StoreError> {
        let filter = &action.narrowed(filter.clone());
        backend!(self.change_many(shard, id, filter, action, keys).await)
    }
}
