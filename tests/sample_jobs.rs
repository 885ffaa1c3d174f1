//! Jobs as most tests submit them, and small helpers for their times.

use std::time::Duration;

use jiff::Timestamp;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_testkit::{Sink, Stack};
use serde_json::{Value, json};

/// The topic of every job that needs no particular one.
pub(crate) const TOPIC: &str = "e2e";

/// What happens at once happens within this on a busy machine too.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A job that is due now and goes to `/hook` of a receiver.
pub(crate) fn job(sink: &Sink, id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": sink.url("/hook"), "body": {"id": id}})
}

/// The same job with one more field, or another value for one that it has.
pub(crate) fn with(mut job: Value, field: &str, value: impl Into<Value>) -> Value {
    job[field] = value.into();
    job
}

/// The same job with more fields, or other values for those that it has.
pub(crate) fn with_all(job: Value, fields: &Value) -> Value {
    let fields = fields.as_object().expect("fields");
    fields.iter().fold(job, |job, (field, value)| with(job, field, value.clone()))
}

/// The same job without a field.
pub(crate) fn without(mut job: Value, field: &str) -> Value {
    job.as_object_mut().expect("a job").remove(field);
    job
}

/// Submits a job that is due a little later than now and waits for it: what should have arrived by now has.
pub(crate) async fn sentinel(stack: &Stack, sink: &Sink, id: &str) {
    stack.accept(&with(job(sink, id), "delay", "200ms")).await;
    sink.wait_for_job(id, 1, SOON).await;
}

/// The time of the machine.
pub(crate) fn now() -> Timestamp {
    SystemClock.now().to_string().parse().expect("a time")
}

/// A time of an answer, which must be RFC 3339 in UTC with milliseconds.
pub(crate) fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is not a time"));
    assert!(
        text.len() == 24 && text.ends_with('Z') && &text[19..20] == ".",
        "{text} has no milliseconds or is not UTC"
    );
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// From one time to a later one, zero when it is not later.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}
