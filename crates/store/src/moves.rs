//! The transitions that move one job by its key: reschedule, run, revive and purge. Repeating one
//! with the same token shows whether it took effect.

use ringback_core::contract::{Move, MoveResult, StoreError, Token};
use ringback_core::job::{Due, JobKey};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// reschedule: delayed → delayed at another time, or ready if that has come.
    pub async fn reschedule(&self, key: &JobKey, due: Due, token: Token) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Reschedule(due, token)).await
    }

    /// run: delayed → ready, due now. A ready or reserved job stays as it is, which counts as success.
    pub async fn run(&self, key: &JobKey, token: Token) -> Result<MoveResult, StoreError> {
        self.move_job(key, Move::Run(token)).await
    }

    /// revive: dead → ready, due now. Failures start again from zero, attempts go on.
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
}
