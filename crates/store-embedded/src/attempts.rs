//! The log of attempts: what the writer is told, and what it answers.

use ringback_core::contract::attempt_log::shown;
use ringback_core::contract::{Attempt, Note, Noted, Shard, StoreError};
use ringback_core::job::JobKey;

use super::EmbeddedStore;
use super::edges::{self, Tried};

/// About what one note writes.
const NOTE: usize = 2048;

impl EmbeddedStore {
    pub async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        let (notes, keep) = (notes.to_vec(), self.options.attempt_retention());
        let bytes = notes.len() * NOTE;
        self.call(shard, bytes, move |txn| edges::note(txn, &notes, keep)).await?;
        Ok(Noted::Kept)
    }

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep());
        let found = self.call(shard, 0, move |txn| edges::attempts(txn, locator, keep)).await?;
        let Tried { created, log, now } = found;
        Ok(shown(log.map(Into::into), created, now, self.options.attempt_retention().time))
    }
}
