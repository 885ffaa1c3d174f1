//! The attempt log: the last attempts of a job, for people who ask why it is late or dead. No transition
//! depends on it: if an entry is lost, nothing else changes. How a log is packed is in `attempt_log`.

use std::time::Duration;

use bytes::Bytes;

use super::lease::Lease;
use super::receipt::{LeaseId, Receipt};
use crate::clock::Timestamp;
use crate::job::Locator;

/// The most attempts in a job's log.
pub const MAX_ATTEMPTS: usize = 20;
/// How many bytes of a response are kept.
pub const MAX_ANSWER: usize = 1024;

/// `by` of a consumer's attempts.
const CONSUMER: &str = "consumer";

/// One logged attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// When it began, by the store's clock.
    pub at: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// The response's status, if there was a response.
    pub status: Option<u16>,
    /// The class of the error, or the text that a consumer gave; at most
    /// [`MAX_ERROR`](crate::limits::MAX_ERROR) bytes.
    pub error: Option<String>,
    /// The start of the response's body, at most [`MAX_ANSWER`] bytes.
    pub answer: Bytes,
    /// Who made the attempt; at most 64 bytes.
    pub by: String,
}

/// An attempt to be logged.
#[derive(Clone, Debug)]
pub struct AttemptLogEntry {
    /// The job's place in its shard.
    pub locator: Locator,
    /// Which job of this key it was.
    pub proof: Proof,
    pub attempt: Attempt,
}

/// Identifies the job that a logged attempt belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The job that was accepted at this time. A later job with the same key does not show the attempt.
    Created(Timestamp),
    /// The job under this current lease. The store fills in number, time and duration.
    Held(LeaseId),
    /// The job under this lease, which has run out. The store fills in number, time and duration.
    Expired(LeaseId),
}

impl AttemptLogEntry {
    /// The entry of an attempt under a lease, with the number that the lease gives it.
    pub fn of(lease: &Lease, attempt: Attempt) -> Self {
        let attempt = Attempt { number: lease.attempt, ..attempt };
        Self { locator: lease.locator(), proof: Proof::Created(lease.created), attempt }
    }

    /// The entry of a consumer's failed attempt. It has to be logged before the receipt is settled, since it counts
    /// only while the receipt is current.
    pub fn failed(receipt: &Receipt, error: Option<String>) -> Self {
        Self::by_consumer(receipt, Proof::Held(receipt.lease), error)
    }

    /// The entry of a consumer's attempt whose lease has run out.
    pub fn expired(receipt: &Receipt, error: &str) -> Self {
        Self::by_consumer(receipt, Proof::Expired(receipt.lease), Some(error.to_owned()))
    }

    fn by_consumer(receipt: &Receipt, proof: Proof, error: Option<String>) -> Self {
        let attempt = Attempt { error, by: CONSUMER.to_owned(), ..Attempt::default() };
        Self { locator: receipt.locator, proof, attempt }
    }
}

/// The result of logging attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogResult {
    /// The attempts are in the log.
    Kept,
    /// The store is nearly full, so the attempts were left out.
    Full,
}

/// The bounds of a shard's attempt logs.
#[derive(Clone, Copy, Debug)]
pub struct AttemptRetention {
    /// In ms.
    pub time: u64,
    /// The size of all logs.
    pub bytes: u64,
}
