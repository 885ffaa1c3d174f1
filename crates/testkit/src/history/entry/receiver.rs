//! What receivers see. The two lines of a delivery have the same number `d`.

use serde::{Deserialize, Serialize};

use super::is_false;
use crate::history::digest::Digest;

/// The head of a delivery is complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrive<'a> {
    /// When the head was complete.
    pub t: u64,
    /// The number of the delivery.
    pub d: u64,
    /// `topic/id`, by `ringback-topic` and `ringback-job-id`.
    pub job: &'a str,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<&'a str>,
    /// `webhook-timestamp`, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<u64>,
    /// Whether `webhook-signature` was right; absent where nothing is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    pub url: &'a str,
    pub body: Digest,
    /// The digest of the job's own headers and context.
    pub headers: Digest,
}

/// A delivery has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// Just before the last byte of the answer was sent, or when the connection broke.
    pub t: u64,
    /// The number of the delivery.
    pub d: u64,
    /// The status that was answered; 0 if there was none.
    pub status: u16,
    /// Whether the answer was cut short or never sent, or the caller went away before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
    /// Whether it was a 2xx with another body than the topic expects, which is a failure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unexpected: bool,
    /// Its Retry-After, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}
