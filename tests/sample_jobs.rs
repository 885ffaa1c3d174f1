//! Jobs as most tests submit them, and helpers for their times.

use std::time::Duration;

use jiff::Timestamp;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_testkit::{Sink, Stack};
use serde_json::{Value, json};

/// The topic of every job that needs no particular one.
pub(crate) const TOPIC: &str = "e2e";

/// The limit for what happens at once; generous, for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A job without a delay whose callback goes to `/hook` of a receiver.
pub(crate) fn job(sink: &Sink, id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": sink.url("/hook"), "body": {"id": id}})
}

/// The job with a field added or replaced.
pub(crate) fn with(mut job: Value, field: &str, value: impl Into<Value>) -> Value {
    job[field] = value.into();
    job
}

/// The job with all of these fields added or replaced.
pub(crate) fn with_all(job: Value, fields: &Value) -> Value {
    let fields = fields.as_object().expect("fields");
    fields.iter().fold(job, |job, (field, value)| with(job, field, value.clone()))
}

/// The job without a field.
pub(crate) fn without(mut job: Value, field: &str) -> Value {
    job.as_object_mut().expect("a job").remove(field);
    job
}

/// A text that no compression makes much shorter. It needs no escapes in JSON.
pub(crate) fn noise(seed: u8, size: usize) -> String {
    let mut state = u32::from(seed);
    let characters = (0..size).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match b'#' + (state >> 24) as u8 % 91 {
            b'\\' => '~',
            byte => char::from(byte),
        }
    });
    characters.collect()
}

/// A text of which compression leaves half, so that it is stored compressed.
pub(crate) fn half_noise(seed: u8, size: usize) -> String {
    noise(seed, size / 2) + &"x".repeat(size.div_ceil(2))
}

/// Submits a job with a delay of 200 ms and waits for its delivery, by when earlier deliveries must have arrived.
pub(crate) async fn sentinel(stack: &Stack, sink: &Sink, id: &str) {
    stack.accept(&with(job(sink, id), "delay", "200ms")).await;
    sink.wait_for_job(id, 1, SOON).await;
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now().to_string().parse().expect("a time")
}

/// Parses a time of an answer. Panics unless it is RFC 3339 in UTC with milliseconds.
pub(crate) fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is not a time"));
    assert!(
        text.len() == 24 && text.ends_with('Z') && &text[19..20] == ".",
        "{text} has no milliseconds or is not UTC"
    );
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The time from `earlier` to `later`; zero when `later` is not later.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}
