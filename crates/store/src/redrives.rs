//! Redrives: starting, reading and stopping them, and the calls of the carrier that works on one.

use std::time::Duration;

use futures_util::future::try_join_all;
use ringback_core::contract::{
    DeadCursor, DeadFilter, Redrive, RedriveId, RedriveStart, RedriveState, Redriven, Shard, StoreError,
    StoredRedrive, TakenRedrive, Token, WorkerId,
};

use crate::backend::{Backend, Store, dispatch};

impl Store {
    /// Starts to revive many jobs. A carrier has to take the redrive and work on it.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating with the same token shows whether it started.
    pub async fn start_redrive(
        &self,
        token: Token,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<RedriveStart, StoreError> {
        match dispatch!(self.start_redrive(token.into(), filter, rate))? {
            None => Ok(RedriveStart::TooMany),
            Some(stored) => self.counted(stored).await.map(RedriveStart::Redrive),
        }
    }

    /// The running redrives, and those that ended not long ago; the latest first.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn redrives(&self) -> Result<Vec<Redrive>, StoreError> {
        let stored = dispatch!(self.redrives(None))?;
        let mut all = try_join_all(stored.into_iter().map(|stored| self.counted(stored))).await?;
        all.sort_unstable_by_key(|redrive| (std::cmp::Reverse(redrive.started), redrive.id));
        Ok(all)
    }

    /// A redrive and its progress.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn redrive(&self, id: RedriveId) -> Result<Option<Redrive>, StoreError> {
        match dispatch!(self.redrives(Some(id)))?.pop() {
            None => Ok(None),
            Some(stored) => self.counted(stored).await.map(Some),
        }
    }

    /// Stops a redrive: it revives no more jobs. One that has ended stays as it is.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn stop_redrive(&self, id: RedriveId) -> Result<Option<Redrive>, StoreError> {
        self.end_redrive(id, None, RedriveState::Stopped).await
    }

    /// Takes a redrive without a worker, for `ttl`.
    ///
    /// # Errors
    /// Any [`StoreError`]. A redrive that was taken without a reply is free again after `ttl`.
    pub async fn take_redrive(&self, worker: WorkerId, ttl: Duration) -> Result<TakenRedrive, StoreError> {
        dispatch!(self.take_redrive(worker, ttl))
    }

    /// Keeps a taken redrive for another `ttl`; zero gives it back. Returns false if it has ended or
    /// belongs to another worker.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        dispatch!(self.keep_redrive(id, worker, ttl))
    }

    /// The worker has revived all jobs of its redrive.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn finish_redrive(&self, id: RedriveId, worker: WorkerId) -> Result<(), StoreError> {
        self.end_redrive(id, Some(worker), RedriveState::Done).await.map(drop)
    }

    /// revive of many jobs of a shard, at most [`MAX_DEAD`](ringback_core::contract::MAX_DEAD): dead →
    /// ready, if they have been dead since and this redrive has not revived them before.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        cursors: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        dispatch!(self.revive_many(shard, id, cursors))
    }

    /// Ends a redrive. On Redis it first ends the redrive itself, then closes it in the shards, and then
    /// stores the total. If it is done, no shard has more to revive, so the shards are closed first.
    async fn end_redrive(
        &self,
        id: RedriveId,
        worker: Option<WorkerId>,
        state: RedriveState,
    ) -> Result<Option<Redrive>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => {
                let end = |total| store.end_redrive(id, worker, state, total);
                let close = || async {
                    let closed = try_join_all(self.shards().map(|shard| store.close_redrive(shard, id)));
                    Ok::<u64, StoreError>(closed.await?.into_iter().sum())
                };
                if state == RedriveState::Done {
                    let sum = close().await?;
                    return Ok(end(Some(sum)).await?.map(with_total(sum)));
                }
                let Some((redrive, total)) = end(None).await? else { return Ok(None) };
                if total.is_some() || redrive.state == RedriveState::Running {
                    return self.counted((redrive, total)).await.map(Some);
                }
                let sum = close().await?;
                Ok(end(Some(sum)).await?.map(with_total(sum)))
            }
            Backend::Embedded(store) => {
                let stored = store.end_redrive(id, worker, state).await?;
                Ok(stored.map(|(redrive, _)| redrive))
            }
        }
    }

    /// A redrive with the number of jobs that it has revived so far.
    async fn counted(&self, (redrive, total): StoredRedrive) -> Result<Redrive, StoreError> {
        let revived = match (&self.backend, total) {
            (_, Some(total)) => total,
            (Backend::Redis(store), None) => {
                let counts = self.shards().map(|shard| store.redriven(shard, redrive.id));
                try_join_all(counts).await?.into_iter().sum()
            }
            (Backend::Embedded(_), None) => redrive.revived,
        };
        Ok(Redrive { revived, ..redrive })
    }
}

fn with_total(sum: u64) -> impl FnOnce(StoredRedrive) -> Redrive {
    move |(redrive, total)| Redrive { revived: total.unwrap_or(sum), ..redrive }
}
