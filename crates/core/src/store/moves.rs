//! The edges by which somebody moves one job by its name: reschedule, run, revive and purge.
//! (Cancel, which ends a job, is with the other edges.)

use super::{Backend, Moved, Store, StoreError};
use crate::job::{Due, JobKey};

/// Names one request, and is kept over its repetitions: so the second one of a call whose
/// answer was lost is known, and gets the same answer. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub [u8; 8]);

/// What is to be done with a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    Reschedule(Due, Token),
    Run(Token),
    Revive(Token),
    Purge,
}

impl Store {
    /// reschedule: delayed → delayed at another time, or ready where that has come.
    ///
    /// # Errors
    /// Any [`StoreError`]; asking again with the same token tells whether it took effect.
    pub async fn reschedule(&self, key: &JobKey, due: Due, token: Token) -> Result<Moved, StoreError> {
        self.move_job(key, Move::Reschedule(due, token)).await
    }

    /// run: delayed → ready, due now. A job that is ready or reserved stays as it is, and
    /// that is a success.
    ///
    /// # Errors
    /// Those of [`Store::reschedule`].
    pub async fn run(&self, key: &JobKey, token: Token) -> Result<Moved, StoreError> {
        self.move_job(key, Move::Run(token)).await
    }

    /// revive: dead → ready, due now. Failures are counted anew, attempts go on.
    ///
    /// # Errors
    /// Those of [`Store::reschedule`].
    pub async fn revive(&self, key: &JobKey, token: Token) -> Result<Moved, StoreError> {
        self.move_job(key, Move::Revive(token)).await
    }

    /// purge: dead → gone. The answer has the job as it was; nothing is remembered of it, so
    /// a repetition finds it unknown.
    ///
    /// # Errors
    /// Any [`StoreError`]; asking again tells whether the job is gone.
    pub async fn purge(&self, key: &JobKey) -> Result<Moved, StoreError> {
        self.move_job(key, Move::Purge).await
    }

    async fn move_job(&self, key: &JobKey, what: Move) -> Result<Moved, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.move_job(self.shard_of(key), key, what).await,
            Backend::Embedded(store) => store.move_job(self.shard_of(key), key, what).await,
        }
    }
}
