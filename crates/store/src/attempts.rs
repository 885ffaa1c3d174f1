//! The attempt log: which attempts are logged, writing and reading them.

use std::time::Duration;

use ringback_core::job::JobKey;
use ringback_core::store_types::{Attempt, AttemptLogEntry, LogResult, Shard, StoreError};
use ringback_core::topic_policy::{Logging, Policy};
use tokio::time::timeout;

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Which attempts of jobs with this policy are logged: what the policy says, otherwise what the settings say.
    /// [`Logging::Off`] if the store keeps no attempt log.
    pub fn logging(&self, policy: Option<&Policy>) -> Logging {
        match self.logging {
            Some(logging) => policy.and_then(|policy| policy.attempts).unwrap_or(logging),
            None => Logging::Off,
        }
    }

    /// Adds attempts to the logs of their jobs, all of one shard, at most
    /// [`MAX_BATCH`](ringback_core::limits::MAX_BATCH). No transition: the jobs do not change. Writes nothing, and
    /// returns [`LogResult::Full`], while the store is [nearly full](Store::shortage). `None` if it failed or took
    /// longer than [`Store::log_attempts_timeout`]: then the attempts may be in the log or not.
    pub async fn log_attempts(&self, shard: Shard, entries: &[AttemptLogEntry]) -> Option<LogResult> {
        if self.logging.is_none() || entries.is_empty() {
            return Some(LogResult::Kept);
        }
        let log = async {
            match self.shortage().await {
                Some(_) => Ok(LogResult::Full),
                None => backend!(self.log_attempts(shard, entries).await),
            }
        };
        match timeout(self.log_attempts_timeout, log).await {
            Ok(Ok(logged)) => return Some(logged),
            Ok(Err(StoreError::Full)) => return Some(LogResult::Full),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(shard = shard.0, error, "attempts not logged");
            }
            Err(_elapsed) => tracing::debug!(shard = shard.0, "attempts not logged in time"),
        }
        None
    }

    /// How long logging attempts may delay the settle that follows.
    pub fn log_attempts_timeout(&self) -> Duration {
        self.log_attempts_timeout
    }

    /// [`Store::log_attempts`] for callers that do not try again. Returns how many attempts may be missing in the log:
    /// none or all of them.
    pub async fn log_attempts_once(&self, shard: Shard, entries: &[AttemptLogEntry]) -> usize {
        match self.log_attempts(shard, entries).await {
            Some(LogResult::Kept) => 0,
            Some(LogResult::Full) | None => entries.len(),
        }
    }

    /// The log of a job: at most [`MAX_ATTEMPTS`](ringback_core::store_types::MAX_ATTEMPTS), the newest last,
    /// without those whose retention has ended. `None` if neither the job nor a log is known.
    pub async fn attempts(&self, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        backend!(self.attempts(self.shard_of(key), key).await)
    }
}
