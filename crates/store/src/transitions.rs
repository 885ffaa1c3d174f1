//! The transitions of push jobs: submit, import, promote, recover, evict, reserve, renew and settle of many, and
//! cancel, reschedule, run, revive and purge of one. Also which carriers live and own a shard. Pull jobs are in `pull`.

use std::time::Duration;

use ringback_core::job::{Due, ImportJob, JobKey, NewJob};
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{
    Cancelled, Epoch, Lease, LiveCarriers, Move, MoveResult, Pass, PassLimits, Recovered, Renewed, Reserve,
    Reserved, SettleResult, Shard, StoreError, Submitted, Token, Unsettled,
};
use tokio::time::Instant;

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// submit: nothing → delayed, or ready if already due. All jobs must belong to the shard, at most
    /// [`MAX_BATCH`](ringback_core::limits::MAX_BATCH) and about
    /// [`MAX_BATCH_BYTES`](ringback_core::limits::MAX_BATCH_BYTES). Returns a result per job, in order.
    /// Jobs with the same key are treated as if submitted one after the other.
    ///
    /// # Errors
    /// Any [`StoreError`]. No job is accepted, unless the error is [`StoreError::Away`], [`StoreError::Slow`] or
    /// [`StoreError::Unreplicated`]: then repeating the call shows whether they were.
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        self.track_archive_backlog(shard, backend!(self.submit(shard, jobs).await))
    }

    /// import: nothing → delayed, ready or dead, for jobs with a history. Otherwise like
    /// [`Store::submit`]: a submit and an import of the same content count as repetitions of each other.
    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        self.track_archive_backlog(shard, backend!(self.import(shard, jobs).await))
    }

    /// cancel: delayed, ready, dead → cancelled. For a reserved job, it requests the cancel.
    /// Repeating the call shows whether it took effect.
    pub async fn cancel(&self, key: &JobKey) -> Result<Cancelled, StoreError> {
        backend!(self.cancel(self.shard_of(key), key).await)
    }

    /// reschedule: delayed → delayed at another time, or ready if that has come. Repeating with the same token shows
    /// whether it took effect; so it does with [`Self::run`] and [`Self::revive`].
    pub async fn reschedule(&self, key: &JobKey, due: Due, token: Token) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Reschedule(due, token)).await
    }

    /// run: delayed → ready, due now. A ready or reserved job stays as it is, which counts as success.
    pub async fn run(&self, key: &JobKey, token: Token) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Run(token)).await
    }

    /// revive: dead → ready, due now. Failures start again from zero, attempt numbers go on.
    pub async fn revive(&self, key: &JobKey, token: Token) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Revive(token)).await
    }

    /// purge: dead → gone. Returns the job as it was. It leaves no tombstone, so a repeated call
    /// returns [`MoveResult::Unknown`].
    pub async fn purge(&self, key: &JobKey) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Purge).await
    }

    async fn move_job(&self, key: &JobKey, what: Move) -> Result<MoveResult, StoreError> {
        backend!(self.move_job(self.shard_of(key), key, what).await)
    }

    /// A carrier's heartbeat: it counts as alive for `ttl`, and no longer if that is zero. Returns the live carriers.
    pub async fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        backend!(self.heartbeat(carrier, ttl).await)
    }

    /// Makes a carrier the owner of a shard and returns its epoch. The store refuses later calls of the previous owner.
    pub async fn take_shard(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        backend!(self.take_shard(shard, carrier).await)
    }

    /// Gives up a shard, if the epoch is still that of its owner.
    pub async fn release_shard(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        backend!(self.release_shard(shard, epoch).await)
    }

    /// promote: delayed and due → ready, at most as many as `limits` allow. Does nothing if the epoch is no longer the
    /// shard's.
    pub async fn promote(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        backend!(self.promote(shard, epoch, limits).await)
    }

    /// recover: jobs whose lease has run out, at most as many as `limits` allow → ready; dead after
    /// [`MAX_LOST`](ringback_core::limits::MAX_LOST) in a row; cancelled if that was requested. Expired pull jobs are
    /// returned instead, for the caller to settle.
    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
    ) -> Result<Recovered, StoreError> {
        backend!(self.recover(shard, epoch, limits).await)
    }

    /// evict: dead jobs whose retention has ended → gone, at most as many as `limits` allow.
    pub async fn evict(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        backend!(self.evict(shard, epoch, limits).await)
    }

    /// reserve: ready → reserved.
    /// Repeating with the same sequence returns the same leases.
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        backend!(self.reserve(shard, ask).await)
    }

    /// Whether a reserve of a shard may find jobs although no wake-up announces them: it has ready jobs, or no notifier waits
    /// for its due jobs. A cheap look, which may be wrong.
    pub async fn may_give(&self, shard: Shard) -> Result<bool, StoreError> {
        backend!(self.may_give(shard).await)
    }

    /// renew: the lease lasts for `by` from now, or as long as before if that is longer.
    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        let asked = Instant::now();
        let Some(_deadline) = backend!(self.renew(&lease.grant.receipt, by, None).await)? else {
            return Ok(Renewed::Stale);
        };
        lease.renewed(asked, by);
        Ok(Renewed::Extended)
    }

    /// settle: records the outcome of each lease, all of one shard. Returns a result per lease, in order. An error
    /// returns the leases.
    pub async fn settle(
        &self,
        shard: Shard,
        items: Vec<(Lease, Outcome)>,
    ) -> Result<Vec<SettleResult>, Unsettled> {
        let settled = backend!(self.settle(shard, &items).await);
        settled.map_err(|error| Unsettled { error, items })
    }

    /// exchange: [`Store::settle`] and then [`Store::reserve`] of the same shard, in one call. The reserve
    /// can return jobs that the settle released.
    /// An error returns the leases: settle them again and reserve with the same sequence, together or one by one.
    pub async fn exchange(
        &self,
        shard: Shard,
        items: Vec<(Lease, Outcome)>,
        ask: &Reserve<'_>,
    ) -> Result<(Vec<SettleResult>, Reserved), Unsettled> {
        let exchanged = backend!(self.exchange(shard, &items, ask).await);
        exchanged.map_err(|error| Unsettled { error, items })
    }
}
