//! One line of an export: a job with its history, in the fields of a submit and a few more.
//! [`parse_import`](super::parse_import) makes the same job of it.

use std::fmt;

use ringback_core::job::{ContentHash, Delivery, Job};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::field_parsers::entries::Entries;
use super::job_answers::LastAttemptDetails;
use super::request_details::{RequestDetails, RetryDetails};

/// A pending or dead job on its way to another installation. Absent fields are left out.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportLine {
    /// The tenant whose job it is; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// Its topic.
    topic: String,
    /// Its id.
    id: String,
    /// `delayed`, `ready`, `reserved` or `dead`.
    #[schema(value_type = crate::schema::PendingState)]
    state: String,
    /// When it is due; for a dead job when it was last due.
    #[schema(format = DateTime)]
    at: String,
    /// The URL; absent for a pull job.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The method; absent if it is `POST`, and for a pull job.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
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
    /// Its own headers, with the values of secret ones.
    #[serde(skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    headers: Entries,
    /// Its context.
    #[serde(skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    context: Entries,
    /// Its own retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::schema::RetryPolicy>)]
    retry: Option<RetryDetails>,
    /// Its own deadline per attempt, as a friendly duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    /// Its own time to run, for a pull job, as a friendly duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttr: Option<String>,
    /// When it expires: a friendly duration after it was first due, or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// Its tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// Its own URL for the dead-letter notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_dead: Option<String>,
    /// Its own URL for the notice of its success.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_done: Option<String>,
    /// When it was accepted.
    #[schema(format = DateTime)]
    created_at: String,
    /// How often a notifier or consumer reserved it.
    attempts: u32,
    /// How many of the attempts failed.
    failures: u32,
    /// The last failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastAttemptDetails>,
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
        let request = RequestDetails::whole(delivery);
        let RequestDetails { url, method, body, body_base64, content_type, headers, context, .. } = request;
        let RequestDetails { retry, timeout, ttr, expires, tags, on_dead, on_done, traceparent, .. } =
            request;
        Self {
            tenant: job.key.topic.tenant().map(|tenant| tenant.to_string()),
            topic: job.key.topic.to_string(),
            id: job.key.id.to_string(),
            state: job.state.to_string(),
            at: job.due.to_string(),
            url,
            method,
            body,
            body_base64,
            content_type,
            headers,
            context,
            retry,
            timeout,
            ttr,
            expires,
            tags,
            on_dead,
            on_done,
            created_at: job.created.to_string(),
            attempts: job.attempts,
            failures: job.failures,
            last: job.last.map(LastAttemptDetails::from),
            reason: job.reason,
            content: content.to_string(),
            traceparent,
        }
    }
}

impl fmt::Display for ExportLine {
    /// The JSON, which never contains a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests;
