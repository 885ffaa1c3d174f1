//! A job: what is asked for ([`NewJob`]) and what is known of it later ([`Job`]). The
//! values inside are newtypes whose constructors parse, so that a job that exists is valid.

mod callback;
mod key;
mod text;

use std::time::Duration;

use bytes::Bytes;

pub use callback::{Callback, Context, Headers, Refused};
pub use key::{JobId, JobKey, Locator, Topic};
pub use text::TextError;

use crate::clock::Timestamp;
use crate::outcome::LastAttempt;
use crate::retry::RetryPolicy;
use crate::state::State;

/// The largest body, in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The largest job as submitted, in bytes: a body in base64 and everything else.
pub const MAX_JOB: usize = 1024 * 1024;
/// How deep the JSON of a body may be nested.
pub const MAX_DEPTH: usize = 64;
/// How far ahead a job may be due: 10 years of 365 days.
pub const MAX_AHEAD: Duration = Duration::from_secs(10 * 365 * 86_400);
/// An attempt's total deadline where the job names none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest deadline a job may name.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest deadline a job may name.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a consumer has a job that it reserved, where neither says otherwise.
pub const DEFAULT_TTR: Duration = Duration::from_secs(30);
/// The shortest time to run.
pub const MIN_TTR: Duration = Duration::from_millis(100);
/// The longest time to run.
pub const MAX_TTR: Duration = Duration::from_secs(12 * 3600);

/// When a job is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// So long after the store accepts it, by the store's clock. Zero: at once.
    In(Duration),
    /// At this time; a time in the past means at once.
    At(Timestamp),
}

/// What is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The bytes, as they were sent.
    pub bytes: Bytes,
    /// Their content type; `None` is `application/json`.
    pub content_type: Option<String>,
}

impl Body {
    /// The content type to deliver with.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or("application/json")
    }
}

/// The caller's place in a distributed trace, as W3C Trace Context carries it: trace id,
/// parent id, flags. A `tracestate` is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trace {
    /// The trace's id.
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub parent_id: [u8; 8],
    /// The trace flags; bit 0 is `sampled`.
    pub flags: u8,
}

/// What a job brings along beside its key, time and body.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Where to.
    pub callback: Callback,
    /// What.
    pub body: Body,
    /// Its own headers.
    pub headers: Headers,
    /// Its context, kept through every retry.
    pub context: Context,
    /// Its own retry policy, if it brought one.
    pub retry: Option<RetryPolicy>,
    /// Its own deadline per attempt, or time to run where it is for pull, if it brought one.
    pub timeout: Option<Duration>,
    /// The trace it belongs to, if the submit was part of one.
    pub trace: Option<Trace>,
    /// Where its death is told, if it said so. Boxed, since few do and leases are many.
    pub on_dead: Option<Box<Callback>>,
}

/// A job as submitted: valid, not yet accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Its name.
    pub key: JobKey,
    /// When.
    pub due: Due,
    /// What, where to and how.
    pub delivery: Delivery,
    /// Of all fields as written; tells a replay from another job of the same name.
    pub content: ContentHash,
}

/// 64 bits of SHA-256 over a job's fields as written. Two submits are compared only
/// under the same name, so 64 bits are ample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 8]);

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub key: JobKey,
    /// Where it is in its life.
    pub state: State,
    /// When it is, or was last, due.
    pub due: Timestamp,
    /// When it was accepted.
    pub created: Timestamp,
    /// How often it was reserved; the number receivers see.
    pub attempts: u32,
    /// How many attempts failed since it was accepted or revived.
    pub failures: u32,
    /// The last failed attempt.
    pub last: Option<LastAttempt>,
    /// Why it is dead.
    pub reason: Option<String>,
}

/// What a job has behind it when it comes from elsewhere. [`History::default`] is that of a
/// job that is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Why it is dead; `None`: it is pending.
    pub dead: Option<String>,
    /// When it was first accepted; `None`: with the import.
    pub created: Option<Timestamp>,
    /// How often it was reserved.
    pub attempts: u32,
    /// How many attempts failed since it was accepted or revived.
    pub failures: u32,
    /// The last failed attempt.
    pub last: Option<LastAttempt>,
}

/// A job as imported: valid, not yet accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportJob {
    /// The job. Of a dead one `due` is when it was last due, to be kept as it is.
    pub job: NewJob,
    /// What it has behind it, unless that is nothing.
    pub history: Option<History>,
}
