//! A job: as submitted ([`NewJob`]), imported ([`ImportJob`]) and read from a store ([`Job`]), with the limits and
//! defaults of its values. The modules below have the types of single values, whose constructors parse.

mod callback;
mod expires;
mod host;
mod if_exists;
mod key;
mod method;
mod secret_headers;
mod tags;
mod trace_and_hash_text;

use std::time::Duration;

use bytes::Bytes;

pub use callback::{
    Callback, Context, Headers, MAX_CONTEXT, MAX_CONTEXT_BYTES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL,
    RESERVED_HEADERS, RESERVED_PREFIXES, Refused, USER_AGENT,
};
pub use expires::Expires;
pub use host::without_root;
pub use if_exists::IfExists;
pub use key::{JobId, JobKey, Locator, NameError, OrderKey, Tenant, TenantScope, Topic};
pub use method::CallbackMethod;
pub use secret_headers::{MASK, is_masked, is_secret};
pub use tags::{MAX_TAG, MAX_TAGS, Tags};
pub use trace_and_hash_text::TextError;

use crate::clock::Timestamp;
use crate::outcome::LastAttempt;
use crate::retry::RetryPolicy;
use crate::state::State;

/// The largest body, in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The largest JSON of a submitted job, in bytes, with a body in base64.
pub const MAX_JOB: usize = 1024 * 1024;
/// The deepest nesting of a JSON body.
pub const MAX_DEPTH: usize = 64;
/// The furthest due time: 10 years of 365 days ahead.
pub const MAX_AHEAD: Duration = Duration::from_secs(10 * 365 * 86_400);
/// The deadline of an attempt if neither the job nor its topic has one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest deadline of an attempt.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest deadline of an attempt.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// The time to run if neither the consumer, the job nor its topic has one.
pub const DEFAULT_TTR: Duration = Duration::from_secs(30);
/// The shortest time to run.
pub const MIN_TTR: Duration = Duration::from_millis(100);
/// The longest time to run.
pub const MAX_TTR: Duration = Duration::from_secs(12 * 3600);

/// When a job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Due {
    /// This long after the store accepts it, by the store's clock. Zero: at once.
    In(Duration),
    /// At this time. A time in the past means at once.
    At(Timestamp),
}

/// The body of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The bytes, as they were sent.
    pub bytes: Bytes,
    /// The content type; `None` is `application/json`.
    pub content_type: Option<String>,
}

impl Body {
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or("application/json")
    }
}

/// The caller's place in a distributed trace, as W3C Trace Context carries it: trace id,
/// parent id, flags. A `tracestate` is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trace {
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub parent_id: [u8; 8],
    /// The trace flags; bit 0 is `sampled`.
    pub flags: u8,
}

/// Everything that a delivery needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The URL; empty for a pull job.
    pub callback: Callback,
    pub method: CallbackMethod,
    pub body: Body,
    /// The job's own headers.
    pub headers: Headers,
    /// The job's context, the same in every attempt.
    pub context: Context,
    /// The job's own retry policy, if it has one.
    pub retry: Option<RetryPolicy>,
    /// The job's own deadline per attempt, or time to run of a pull job, if it has one.
    pub timeout: Option<Duration>,
    /// When it expires, if it does.
    pub expires: Option<Expires>,
    /// Its tags. Its receiver does not see them.
    pub tags: Tags,
    /// The trace of the submit, if it was part of one.
    pub trace: Option<Trace>,
    /// The URL for the dead-letter notice, if the job has one. Boxed, because few jobs have one.
    pub on_dead: Option<Box<Callback>>,
    /// The URL for the notice of its success, if the job has one. Only of a job with a URL.
    pub on_done: Option<Box<Callback>>,
}

impl Delivery {
    /// A delivery without headers, context and settings of its own.
    pub fn new(callback: Callback, body: Body) -> Self {
        let (method, headers, context) = (CallbackMethod::Post, Headers::default(), Context::default());
        Self {
            callback,
            method,
            body,
            headers,
            context,
            retry: None,
            timeout: None,
            expires: None,
            tags: Tags::default(),
            trace: None,
            on_dead: None,
            on_done: None,
        }
    }
}

/// A submitted job: valid, but not accepted yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub key: JobKey,
    pub due: Due,
    /// What to deliver, and how.
    pub delivery: Delivery,
    /// The hash of all fields as written. Distinguishes a repeated submit from another job with the same key.
    pub content: ContentHash,
    /// What to do when the key is taken. Not part of the content.
    pub if_exists: IfExists,
    /// What the tenant may use, if the caller is one. The operator is not limited.
    pub limits: Option<TenantLimits>,
}

/// How many topics and lanes with jobs a tenant may have in a shard. Stores allow a tenant at most half of what the
/// others leave, even if this limit is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Topics that have jobs or are paused.
    pub topics: u32,
    pub lanes: u32,
}

/// No limit of the tenant's own.
impl Default for TenantLimits {
    fn default() -> Self {
        Self { topics: u32::MAX, lanes: u32::MAX }
    }
}

/// 64 bits of SHA-256 over a job's fields as written. That is enough, because only submits with the same
/// key are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 8]);

impl ContentHash {
    pub fn of(digest: [u8; 32]) -> Self {
        Self(*digest.first_chunk().expect("a digest has 32 bytes"))
    }
}

/// A job as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub key: JobKey,
    pub state: State,
    /// When it is due, or was last due.
    pub due: Timestamp,
    /// When it was accepted.
    pub created: Timestamp,
    /// How often it was reserved. Receivers see this number.
    pub attempts: u32,
    /// How many attempts have failed since it was accepted or revived.
    pub failures: u32,
    pub last: Option<LastAttempt>,
    /// Why it is dead.
    pub reason: Option<String>,
    /// Its tags; none once it is done or cancelled.
    pub tags: Tags,
}

/// The history of an imported job. [`History::default`] is that of a new job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The reason of a dead job; `None` for a pending one.
    pub dead: Option<String>,
    /// When it was first accepted; `None`: by the import.
    pub created: Option<Timestamp>,
    /// How often it was reserved.
    pub attempts: u32,
    /// How many attempts have failed since it was accepted or revived.
    pub failures: u32,
    pub last: Option<LastAttempt>,
}

/// An imported job: valid, but not accepted yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportJob {
    /// The job. For a dead one, `due` is when it was last due.
    pub job: NewJob,
    /// Its history, unless it is new.
    pub history: Option<History>,
}
