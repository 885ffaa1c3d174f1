//! The request of a job, in the fields of a submit: as `include=request` shows it, with secret header
//! values masked, and as a part of an exported line.

use std::borrow::Cow;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use ringback_core::duration::format_duration;
use ringback_core::job::{Body, CallbackMethod, Delivery, MAX_DEPTH};
use ringback_core::retry::{DEFAULT_JITTER, Max, RetryPolicy};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::field_parsers::entries::Entries;
use super::field_parsers::object::depth;
use super::submit::body::{DEFAULT_CONTENT_TYPE, JSON, as_json};

/// The request of a job, without its due time. Fields that were left out are absent, but a `url` that
/// came from the topic's policy is present.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RequestDetails {
    /// The URL; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method; absent if it is `POST`, and for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A JSON body as it was sent, if it has no line breaks.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub body: Option<Box<RawValue>>,
    /// Any other body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// The content type of a body in base64; without one it is `application/octet-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Its own headers. The value of a secret header is `[masked by ringback]`.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub headers: Entries,
    /// Its context.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub context: Entries,
    /// Its own retry policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::schema::RetryPolicy>)]
    pub retry: Option<RetryDetails>,
    /// Its own deadline per attempt, as a friendly duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Its own time to run, for a pull job, as a friendly duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<String>,
    /// When it expires: a friendly duration after it was first due, or a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its own URL for the dead-letter notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_dead: Option<String>,
    /// Its own URL for the notice of its success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_done: Option<String>,
    /// The trace it belongs to (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RequestDetails {
    /// The request as it is shown: secret header values are masked.
    pub fn masked(mut delivery: Delivery) -> Self {
        delivery.headers = delivery.headers.masked();
        Self::whole(delivery)
    }

    /// The request with all header values.
    pub(super) fn whole(delivery: Delivery) -> Self {
        let (body, body_base64, content_type) = written(delivery.body);
        let is_pull = delivery.callback.is_pull();
        let length = delivery.timeout.map(format_duration);
        let (timeout, ttr) = if is_pull { (None, length) } else { (length, None) };
        Self {
            url: (!is_pull).then(|| delivery.callback.to_string()),
            method: (delivery.method != CallbackMethod::Post).then(|| delivery.method.to_string()),
            body,
            body_base64,
            content_type,
            headers: delivery.headers.entries().into(),
            context: delivery.context.entries().into(),
            retry: delivery.retry.as_ref().map(RetryDetails::of),
            timeout,
            ttr,
            expires: delivery.expires.map(|expires| expires.to_string()),
            tags: delivery.tags.to_vec(),
            on_dead: delivery.on_dead.as_ref().map(ToString::to_string),
            on_done: delivery.on_done.as_ref().map(ToString::to_string),
            traceparent: delivery.trace.map(|trace| trace.to_string()),
        }
    }

    /// Sets the fields `body`, `body_base64` and `content_type` to those of a body.
    pub fn show_body(&mut self, body: Body) {
        (self.body, self.body_base64, self.content_type) = written(body);
    }

    /// The bytes of the body, and the content type that it is delivered with. No bytes if there is no body.
    ///
    /// # Errors
    /// If `body_base64` is not base64.
    pub fn delivered_body(&self) -> Result<(Cow<'_, [u8]>, &str), DecodeError> {
        if let Some(json) = &self.body {
            return Ok((Cow::Borrowed(json.get().as_bytes()), JSON));
        }
        let bytes = self.body_base64.as_ref().map_or(Ok(Vec::new()), |text| STANDARD.decode(text))?;
        Ok((Cow::Owned(bytes), self.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE)))
    }
}

/// Reads a field that is there, also `null`, which is a body.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// A body as the fields `body`, `body_base64` and `content_type`, each `None` if it is to be left out.
fn written(body: Body) -> (Option<Box<RawValue>>, Option<String>, Option<String>) {
    if let Some(json) = one_line_of_json(&body) {
        return (Some(json), None, None);
    }
    let content_type = Some(body.content_type().to_owned()).filter(|name| name != DEFAULT_CONTENT_TYPE);
    let base64 = Some(body.bytes).filter(|bytes| !bytes.is_empty()).map(|bytes| STANDARD.encode(bytes));
    (None, base64, content_type)
}

/// A JSON body that a line can contain unchanged and a submit would accept; `None` for other bodies.
fn one_line_of_json(body: &Body) -> Option<Box<RawValue>> {
    let json = as_json(body)?;
    let is_line = !json.get().contains(['\n', '\r']);
    (is_line && depth(json.get()) <= MAX_DEPTH).then(|| json.to_owned())
}

/// A retry policy as a submit writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryDetails {
    /// The delays, as friendly durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Vec<String>>,
    /// `none`, if there are no retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// After how many failures the job is dead; -1 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Which share of a delay may be added at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f32>,
}

impl RetryDetails {
    fn of(policy: &RetryPolicy) -> Self {
        if policy.delays().is_empty() {
            return Self { delays: None, preset: Some("none".to_owned()), max: None, jitter: None };
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
mod tests {
    use bytes::Bytes;

    use super::*;
    use ringback_core::job::{Callback, Headers};

    fn shown(body: Body) -> RequestDetails {
        let callback = Callback::parse("https://m.example/notify").unwrap();
        let secret = vec![("X-Api-Key".to_owned(), "hunter2".to_owned()), ("x-a".to_owned(), "1".to_owned())];
        let headers = Headers::parse(secret).unwrap();
        let answer = RequestDetails::masked(Delivery { headers, ..Delivery::new(callback, body) });
        let text = serde_json::to_string(&answer).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains(r#""headers":{"x-api-key":"[masked by ringback]","x-a":"1"}"#), "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_body_can_be_read_back_as_it_is_delivered() {
        for (bytes, content_type) in [
            (&b"null"[..], None),
            (b"{\"a\": 1.0e5}", None),
            (b"[1,\n2]", None),
            (b"\x00\xff'\"", Some("image/png")),
            (b"", Some("application/octet-stream")),
        ] {
            let body =
                Body { bytes: Bytes::from_static(bytes), content_type: content_type.map(str::to_owned) };
            let answer = shown(body.clone());
            let (read, read_type) = answer.delivered_body().unwrap();
            assert_eq!((&*read, read_type), (bytes, body.content_type()));
        }
    }
}
