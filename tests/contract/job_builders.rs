//! Sample jobs, outcomes and durations for the cases.

use ringback_core::clock::Timestamp;
use ringback_core::job::{
    Body, Callback, ContentHash, Context, Delivery, Due, Headers, IfExists, JobKey, NewJob, Tags,
    TenantLimits, Topic,
};
use ringback_core::outcome::{LastAttempt, Reason};

use crate::prelude::*;

/// The topic of every job that needs no particular one.
pub(crate) const TOPIC: &str = "store";
/// The origin of every job that needs no particular one.
pub(crate) const ORIGIN: &str = "http://receiver.example";
/// Longer than any case lasts.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The shortest timeout: such a lease runs out while a case waits for it.
pub(crate) const BRIEF: Duration = Duration::from_millis(100);
/// Timeouts of leases that run out again and again in random runs: two, so that one reserve gives leases with two
/// deadlines.
pub(crate) const BRIEFEST: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(30)];

/// Every state; ready is the last, since the next reserve takes such a job.
pub(crate) const STATES: [State; 6] =
    [State::Delayed, State::Reserved, State::Done, State::Dead, State::Cancelled, State::Ready];

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn topic(text: &str) -> Topic {
    Topic::from_stored(text).expect("a topic")
}

/// The tags of a sample job: by its id, every other job has some.
pub(crate) fn tags(key: &JobKey) -> Tags {
    let is_tagged = key.id.as_str().bytes().fold(0, |sum, byte| sum ^ byte) % 2 == 0;
    Tags::from_stored(if is_tagged { "customer:42 order:7" } else { "" }).expect("tags")
}

/// A push job with the key that is due now, with a method, an expiry and tags.
pub(crate) fn new_job(key: JobKey) -> NewJob {
    let limits = key.topic.tenant().map(|_| TenantLimits::default());
    let delivery = Delivery {
        method: ringback_core::job::CallbackMethod::Patch,
        expires: Some(ringback_core::job::Expires::After(std::time::Duration::from_secs(86_400))),
        tags: tags(&key),
        callback: Callback::parse(&format!("{ORIGIN}/hook")).expect("a URL"),
        body: Body { bytes: r#"{"status":"PAID"}"#.into(), content_type: None },
        headers: Headers::default(),
        context: Context::default(),
        retry: None,
        timeout: None,
        trace: None,
        on_dead: None,
        on_done: None,
    };
    NewJob {
        key,
        due: Due::In(Duration::ZERO),
        delivery,
        content: ContentHash([1; 8]),
        if_exists: IfExists::Refuse,
        limits,
    }
}

/// Methods that set a field of a new job.
pub(crate) trait With: Sized {
    /// Makes the job due this long after it is accepted.
    fn after(self, delay: Duration) -> Self;
    fn at(self, time: Timestamp) -> Self;
    /// Sets the URL to `/hook` of another origin.
    fn to(self, origin: &str) -> Self;
    /// Sets the timeout.
    fn timeout(self, timeout: Duration) -> Self;
    fn body(self, bytes: Vec<u8>) -> Self;
    /// Sets the hash of the content.
    fn content(self, hash: u8) -> Self;
    /// Sets the tags, which are separated by spaces.
    fn tags(self, tags: &str) -> Self;
}

impl With for NewJob {
    fn after(self, delay: Duration) -> Self {
        Self { due: Due::In(delay), ..self }
    }

    fn at(self, time: Timestamp) -> Self {
        Self { due: Due::At(time), ..self }
    }

    fn to(mut self, origin: &str) -> Self {
        self.delivery.callback = Callback::parse(&format!("{origin}/hook")).expect("a URL");
        self
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.delivery.timeout = Some(timeout);
        self
    }

    fn body(mut self, bytes: Vec<u8>) -> Self {
        self.delivery.body.bytes = bytes.into();
        self
    }

    fn content(self, hash: u8) -> Self {
        Self { content: ContentHash([hash; 8]), ..self }
    }

    fn tags(mut self, tags: &str) -> Self {
        self.delivery.tags = Tags::from_stored(tags).expect("tags");
        self
    }
}

/// The last failed attempt of sample jobs: a 503.
pub(crate) fn seen() -> LastAttempt {
    LastAttempt {
        at: Timestamp::from_millis(1_700_000_000_123),
        status: Some(503),
        error: None,
        duration: ms(17),
    }
}

/// The outcome of a failed attempt that is retried after a while.
pub(crate) fn retry(after: Duration) -> Outcome {
    Outcome::Retry { after, last: seen() }
}

/// The outcome of a failed attempt after the last tier.
pub(crate) fn bury() -> Outcome {
    Outcome::Bury { reason: Reason::Exhausted, last: seen() }
}

/// The outcome of a job that was not tried.
pub(crate) fn release(after: Duration) -> Outcome {
    Outcome::Release { after }
}
