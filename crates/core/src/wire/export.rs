//! One line of an export: a job with its history, in the fields of a submit and a few more.
//! [`parse_import`](super::parse_import) makes the same job of it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer::LastAnswer;
use super::fields::entries::Entries;
use super::fields::object::depth;
use super::submit::body::DEFAULT_CONTENT_TYPE;
use crate::duration::format_duration;
use crate::job::{Body, ContentHash, Delivery, Job, MAX_DEPTH};
use crate::retry::{DEFAULT_JITTER, Max, RetryPolicy};

/// A pending or dead job on its way to another installation. Absent fields are left out.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportLine {
    /// Its topic.
    topic: String,
    /// Its id.
    id: String,
    /// `delayed`, `ready`, `reserved` or `dead`.
    state: String,
    /// When it is due; for a dead job when it was last due.
    at: String,
    /// The URL; absent for a pull job.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// A JSON body as it was sent, if it has no line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    body: Option<Box<RawValue>>,
    /// Any other body.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    /// The content type of a body in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Its own headers.
    #[serde(skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    headers: Entries,
    /// Its context.
    #[serde(skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    context: Entries,
    /// Its own retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Policy>,
    /// Its own deadline per attempt, as a friendly duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    /// Its own time to run, for a pull job, as a friendly duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttr: Option<String>,
    /// Its own URL for the dead-letter notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_dead: Option<String>,
    /// When it was accepted.
    created_at: String,
    /// How often a notifier or consumer reserved it.
    attempts: u32,
    /// How many of the attempts failed.
    failures: u32,
    /// The last failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastAnswer>,
    /// Why it is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The hash that recognises a repeated submit: 16 hexadecimal digits.
    content: String,
    /// The trace it belongs to (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

impl ExportLine {
    /// The line of a job; `content` is the hash of its submit.
    pub fn new(job: Job, delivery: Delivery, content: ContentHash) -> Self {
        let (body, body_base64, content_type) = written(delivery.body);
        let is_pull = delivery.callback.is_pull();
        let length = delivery.timeout.map(format_duration);
        let (timeout, ttr) = if is_pull { (None, length) } else { (length, None) };
        Self {
            topic: job.key.topic.to_string(),
            id: job.key.id.to_string(),
            state: job.state.to_string(),
            at: job.due.to_string(),
            url: (!is_pull).then(|| delivery.callback.to_string()),
            body,
            body_base64,
            content_type,
            headers: delivery.headers.entries().into(),
            context: delivery.context.entries().into(),
            retry: delivery.retry.as_ref().map(Policy::of),
            timeout,
            ttr,
            on_dead: delivery.on_dead.as_ref().map(ToString::to_string),
            created_at: job.created.to_string(),
            attempts: job.attempts,
            failures: job.failures,
            last: job.last.map(LastAnswer::from),
            reason: job.reason,
            content: content.to_string(),
            traceparent: delivery.trace.map(|trace| trace.to_string()),
        }
    }
}

impl fmt::Display for ExportLine {
    /// The JSON, which never contains a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// The fields `body`, `body_base64` and `content_type`.
fn written(body: Body) -> (Option<Box<RawValue>>, Option<String>, Option<String>) {
    if let Some(json) = one_line_of_json(&body) {
        return (Some(json), None, None);
    }
    let content_type = Some(body.content_type().to_owned()).filter(|name| name != DEFAULT_CONTENT_TYPE);
    let base64 = Some(body.bytes).filter(|bytes| !bytes.is_empty()).map(|bytes| STANDARD.encode(bytes));
    (None, base64, content_type)
}

/// The body if a line can contain it unchanged: JSON without line breaks, and without white space at its
/// ends, which would be lost.
fn one_line_of_json(body: &Body) -> Option<Box<RawValue>> {
    if body.content_type() != "application/json" || body.bytes.iter().any(|b| matches!(b, b'\n' | b'\r')) {
        return None;
    }
    let text = std::str::from_utf8(&body.bytes).ok()?;
    let json: &RawValue = serde_json::from_str(text).ok()?;
    let whole = json.get().len() == text.len() && depth(text) <= MAX_DEPTH;
    whole.then(|| json.to_owned())
}

/// A retry policy as a submit writes it.
#[derive(Debug, Serialize, ToSchema)]
struct Policy {
    /// The delays, as friendly durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    delays: Option<Vec<String>>,
    /// `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<&'static str>,
    /// After how many failures the job is dead; -1 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<i64>,
    /// Which share of a delay may be added at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<f32>,
}

impl Policy {
    fn of(policy: &RetryPolicy) -> Self {
        if policy.delays().is_empty() {
            return Self { delays: None, preset: Some("none"), max: None, jitter: None };
        }
        Self {
            delays: Some(policy.delays().iter().copied().map(format_duration).collect()),
            preset: None,
            max: match policy.max() {
                Max::Tiers => None,
                Max::Failures(max) => Some(max.into()),
                Max::Unlimited => Some(-1),
            },
            jitter: Some(policy.jitter()).filter(|jitter| *jitter != DEFAULT_JITTER),
        }
    }
}

#[cfg(test)]
mod tests;
