//! The batch of outcomes that one store call settles, and logging its attempts before the call.

use std::time::Duration;

use ringback_core::contract::{Lateness, Lease, Note, Noted, Shard, StoreError};
use ringback_core::job::JobKey;
use ringback_core::outcome::Outcome;
use ringback_service::telemetry::with_causes;
use ringback_store::Store;
use tokio::time::timeout;
use tracing::debug;

/// The outcome of one attempt, to be settled.
pub(crate) struct Settlement {
    pub(crate) lease: Lease,
    pub(crate) outcome: Outcome,
    /// The time from due to sent.
    pub(crate) lateness: Duration,
    /// The entry for the attempt log, if the attempt is logged.
    pub(crate) note: Option<Box<Note>>,
}

/// The outcomes of one shard that one call settles.
#[derive(Default)]
pub(crate) struct SettleBatch {
    pub(crate) items: Vec<(Lease, Outcome)>,
    pub(crate) lateness: Lateness,
    /// Entries for the attempt log, written before the settle.
    pub(crate) notes: Vec<Note>,
}

/// The part of a batch that stays here while the call owns the leases.
pub(crate) struct SettleBatchMeta {
    pub(crate) jobs: Vec<JobKey>,
    pub(crate) lateness: Lateness,
    /// Attempts that may not be logged yet.
    pub(crate) notes: Vec<Note>,
    /// The number of attempts that were not logged because the store is nearly full.
    pub(crate) unlogged: usize,
}

impl FromIterator<Settlement> for SettleBatch {
    fn from_iter<I: IntoIterator<Item = Settlement>>(settlements: I) -> Self {
        let mut batch = Self::default();
        for Settlement { lease, outcome, lateness, note } in settlements {
            batch.lateness.record(lateness);
            batch.items.push((lease, outcome));
            batch.notes.extend(note.map(|note| *note));
        }
        batch
    }
}

impl SettleBatch {
    /// Logs the attempts, so that the log has them when the outcomes become visible. A failure is
    /// recorded in the result and does not prevent the settle.
    pub(crate) async fn log_attempts(
        &mut self,
        store: &Store,
        shard: Shard,
        within: Duration,
    ) -> SettleBatchMeta {
        let mut meta = SettleBatchMeta {
            jobs: self.items.iter().map(|(lease, _)| lease.key.clone()).collect(),
            lateness: self.lateness.clone(),
            notes: std::mem::take(&mut self.notes),
            unlogged: 0,
        };
        if meta.notes.is_empty() {
            return meta;
        }
        match timeout(within, store.note(shard, &meta.notes)).await {
            Ok(Ok(Noted::Kept)) => meta.notes.clear(),
            Ok(Ok(Noted::Full) | Err(StoreError::Full)) => {
                meta.unlogged = meta.notes.len();
                meta.notes.clear();
            }
            Ok(Err(error)) => {
                debug!(shard = shard.number(), error = with_causes(&error), "cannot log attempts");
            }
            Err(_elapsed) => debug!(shard = shard.number(), "logging attempts timed out"),
        }
        meta
    }
}
