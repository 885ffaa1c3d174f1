//! The attempt log: which attempts are logged, writing and reading them.

use std::time::Duration;

use ringback_core::contract::{Attempt, Note, Noted, Shard, StoreError};
use ringback_core::job::JobKey;
use ringback_core::policy::{Logging, Policy};
use tokio::time::timeout;

use crate::backend::{Store, dispatch};

/// How long logging attempts may hold up the settle that follows. Notifiers use a fraction of their call
/// timeout instead, because it depends on how long their leases are.
pub const NOTE_TIMEOUT: Duration = Duration::from_millis(400);

impl Store {
    /// Which attempts of a topic are logged: as its policy says, otherwise as the settings say. None if
    /// there is no room for them.
    pub fn logging(&self, policy: Option<&Policy>) -> Logging {
        match self.logging {
            Some(logging) => policy.and_then(|policy| policy.attempts).unwrap_or(logging),
            None => Logging::Off,
        }
    }

    /// note: adds attempts to the logs of their jobs, all of one shard, at most
    /// [`MAX_BATCH`](ringback_core::limits::MAX_BATCH). No edge: the jobs do not change. Skipped while
    /// the store is [nearly full](Store::is_nearly_full), so that attempts never take a job's place.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        if self.logging.is_none() || notes.is_empty() {
            return Ok(Noted::Kept);
        }
        if self.is_nearly_full().await {
            return Ok(Noted::Full);
        }
        dispatch!(self.note(shard, notes))
    }

    /// [`Store::note`] within [`NOTE_TIMEOUT`]. Returns how many attempts may be missing in the log.
    pub async fn note_in_time(&self, shard: Shard, notes: &[Note]) -> usize {
        match timeout(NOTE_TIMEOUT, self.note(shard, notes)).await {
            Ok(Ok(Noted::Kept)) => return 0,
            Ok(Ok(Noted::Full)) => {}
            Ok(Err(error)) => tracing::debug!(shard = shard.0, %error, "attempts not logged"),
            Err(_elapsed) => tracing::debug!(shard = shard.0, "attempts not logged in time"),
        }
        notes.len()
    }

    /// The log of a job: at most [`MAX_ATTEMPTS`](ringback_core::contract::MAX_ATTEMPTS), the newest last,
    /// without those whose retention has ended. `None` if neither the job nor a log is known.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn attempts(&self, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        dispatch!(self.attempts(self.shard_of(key), key))
    }
}
