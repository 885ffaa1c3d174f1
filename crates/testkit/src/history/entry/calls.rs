//! Calls of clients and what became of them. A call and its outcome have the same number `n`.

use serde::{Deserialize, Serialize};

use super::account::JobState;
use super::{is_false, is_zero};
use crate::history::digest::Digest;

/// A client asks to submit a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submit<'a> {
    /// When it was sent.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
    /// `topic/id`, or `topic/` if the server chooses the id.
    pub job: &'a str,
    /// Where to deliver it, as the receiver writes it; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    pub body: Digest,
    /// The digest of the job's own headers and context.
    pub headers: Digest,
    /// The due time that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The delay that it asks for, in milliseconds; without both it is due at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// The number of its retry policy; without it, that of the start line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<u32>,
    /// The deadline of an attempt in milliseconds; without it, that of the start line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    /// Whether it may take the place of another job: `if_exists` is `replace` or `postpone`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,
    /// The store whose clock counts for it, if there are several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub store: u8,
}

/// A call about one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call<'a> {
    /// When it was sent.
    pub t: u64,
    pub n: u64,
    /// `topic/id`.
    pub job: &'a str,
}

/// How a job is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveKind {
    /// It gets another due time.
    Reschedule,
    /// It is due now.
    Run,
    /// It was dead and is due now.
    Revive,
    /// It was dead and is removed.
    Purge,
}

/// A client asks to move a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveCall<'a> {
    /// When it was sent.
    pub t: u64,
    pub n: u64,
    /// `topic/id`.
    pub job: &'a str,
    pub kind: MoveKind,
    /// The due time that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The delay that it asks for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
}

/// A consumer asks for jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// When it was sent.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
}

/// What a consumer does with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SettleKind {
    /// The job is done.
    Finish,
    /// The attempt failed.
    Retry,
    /// The job is given up.
    Bury,
    /// The attempt does not count.
    Release,
    /// The lease gets a later deadline.
    Renew,
}

/// A consumer settles or renews.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle<'a> {
    /// When it was sent.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
    /// The receipt of the lease.
    pub token: &'a str,
    pub kind: SettleKind,
}

/// A call succeeded: it was answered with a 2xx.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered<'a> {
    /// When the answer was complete.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `topic/id` by the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<&'a str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Whether the answer to a cancel says that an earlier attempt may still be in flight.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_flight_unknown: bool,
}

/// A call was refused and changed nothing: a 4xx.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejected {
    /// When the answer was complete.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
    pub status: u16,
}

/// The outcome of a call is unknown: a 5xx, a timeout or a broken connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotAnswered {
    /// When the client gave up.
    pub t: u64,
    /// The number of the call.
    pub n: u64,
}

/// A reserve was answered with this job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease<'a> {
    /// When the answer was complete.
    pub t: u64,
    /// The number of the reserve.
    pub n: u64,
    /// `topic/id`.
    pub job: &'a str,
    pub token: &'a str,
    pub attempt: u32,
    /// Until when it holds.
    pub deadline: u64,
    pub body: Digest,
}
