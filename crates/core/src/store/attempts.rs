//! The log of a job's attempts: what came of the last of them, for whoever asks why a job is
//! late or dead. It is kept beside the jobs and no edge depends on it: a note that is lost
//! changes nothing else. How a log is packed and bounded is known to `log`.

mod log;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

pub(super) use self::log::{Log, pack, shown};
use super::lease::Receipt;
use super::{Backend, Lease, PullReceipt, Shard, Store, StoreError};
use crate::clock::Timestamp;
use crate::job::{JobKey, Locator};
use crate::policy::Policy;

/// The most attempts that a job's log has.
pub const MAX_ATTEMPTS: usize = 20;
/// The most bytes of an answer that are kept.
pub const MAX_ANSWER: usize = 1024;
/// The most bytes of the name of who made an attempt.
const MOST_BY: usize = 64;

/// What a consumer's attempts are noted under.
const CONSUMER: &str = "consumer";

/// Which attempts are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logging {
    /// Those that failed, and the success of a job that needed more than one.
    #[default]
    Failed,
    /// Every one.
    All,
    /// None.
    Off,
}

impl Logging {
    /// Whether a failed attempt is to be noted.
    pub const fn notes_failure(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a success is to be noted that came with this attempt.
    pub const fn notes_success(self, attempt: u32) -> bool {
        match self {
            Self::Failed => attempt > 1,
            Self::All => true,
            Self::Off => false,
        }
    }
}

impl FromStr for Logging {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "failed" => Ok(Self::Failed),
            "all" => Ok(Self::All),
            "off" => Ok(Self::Off),
            _ => Err("must be failed, all or off".to_owned()),
        }
    }
}

/// One attempt, as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Which hand-over it was, from 1.
    pub number: u32,
    /// When it began, by the store's clock.
    pub at: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// The answer's status, if there was an answer.
    pub status: Option<u16>,
    /// The class of the error, or a consumer's words; at most 128 bytes.
    pub error: Option<String>,
    /// The start of the answer, at most [`MAX_ANSWER`].
    pub answer: Bytes,
    /// Who made it; at most 64 bytes.
    pub by: String,
}

/// An attempt to be logged.
#[derive(Clone, Debug)]
pub struct Note {
    pub(super) locator: Locator,
    pub(super) proof: Proof,
    pub(super) attempt: Attempt,
}

/// Whose attempt it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Of the job that was accepted at a time: a later one of the same name does not show it.
    Created(Timestamp),
    /// Of the job that is reserved by a receipt. The store knows number, time and duration.
    Held(Receipt),
    /// The same, where the lease has run out.
    Lapsed(Receipt),
}

impl Note {
    /// An attempt under a lease, which gives it its number.
    pub fn of(lease: &Lease, attempt: Attempt) -> Self {
        let attempt = Attempt { number: lease.attempt, ..attempt };
        Self { locator: lease.locator, proof: Proof::Created(lease.created), attempt }
    }

    /// A consumer's attempt that failed. Counts as long as the receipt is current, so before
    /// it is settled; number, time and duration are those of the lease.
    pub fn failed(receipt: &PullReceipt, error: Option<String>) -> Self {
        Self::by_consumer(receipt, Proof::Held(receipt.lease), error)
    }

    /// The same of a lease that has run out.
    pub fn lapsed(receipt: &PullReceipt, error: &str) -> Self {
        Self::by_consumer(receipt, Proof::Lapsed(receipt.lease), Some(error.to_owned()))
    }

    fn by_consumer(receipt: &PullReceipt, proof: Proof, error: Option<String>) -> Self {
        let attempt = Attempt { error, by: CONSUMER.to_owned(), ..Attempt::default() };
        Self { locator: receipt.locator, proof, attempt }
    }
}

/// What a note came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The attempts are in the log.
    Kept,
    /// The store is so full that they were left out.
    Full,
}

/// How long and how much a shard keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAttempts {
    /// In ms.
    pub(super) time: u64,
    pub(super) bytes: u64,
}

impl Store {
    /// Which attempts of a topic are logged: as its policy says, else as this process is told; none where
    /// there is no room for them.
    pub fn logging(&self, policy: Option<&Policy>) -> Logging {
        match self.logging {
            Some(logging) => policy.and_then(|policy| policy.attempts).unwrap_or(logging),
            None => Logging::Off,
        }
    }

    /// note: attempts go into the logs of their jobs, all of one shard, at most
    /// [`MAX_BATCH`](super::MAX_BATCH). No edge: no job is touched. On Redis they are left out from 80 % of
    /// the memory limit on.
    ///
    /// # Errors
    /// Any [`StoreError`]; noting again does no harm.
    pub async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        if self.logging.is_none() || notes.is_empty() {
            return Ok(Noted::Kept);
        }
        match &self.backend {
            Backend::Redis(store) => store.note(shard, notes).await,
            Backend::Embedded(store) => store.note(shard, notes).await,
        }
    }

    /// [`Store::note`] before a settle that it must not hold up: waits for so long, and answers
    /// how many attempts may not be in the log.
    pub async fn note_within(&self, shard: Shard, notes: &[Note], within: Duration) -> usize {
        match timeout(within, self.note(shard, notes)).await {
            Ok(Ok(Noted::Kept)) => return 0,
            Ok(Ok(Noted::Full)) => {}
            Ok(Err(error)) => tracing::debug!(shard = shard.0, %error, "attempts not noted"),
            Err(_elapsed) => tracing::debug!(shard = shard.0, "attempts not noted in time"),
        }
        notes.len()
    }

    /// The log of a job: at most [`MAX_ATTEMPTS`], the newest last, and none that began
    /// longer ago than attempts are kept. `None` where neither the job nor a log is known.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn attempts(&self, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.attempts(self.shard_of(key), key).await,
            Backend::Embedded(store) => store.attempts(self.shard_of(key), key).await,
        }
    }
}
