//! Jobs as they are submitted and imported, for the document only; `ringback_core::wire` reads it.
#![expect(dead_code, reason = "the fields are read by those who read the document")]

use std::collections::BTreeMap;

use ringback_core::wire::ExportLine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A job to be handed over: what, when, and where to, unless consumers ask for it.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "topic": "pay.notify", "id": "order-2026112000012345", "delay": "10m",
    "url": "https://merchant.example/notify", "body": {"status": "PAID"},
    "headers": {"x-merchant": "88231"}, "context": {"key": "value"},
    "retry": {"delays": ["15s", "3m", "10m"], "jitter": 0.1}, "timeout": "10s",
    "on_dead": "https://shop.example/dead",
}))]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRequest {
    /// What kind of job it is; neither `.` nor `..`.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$", example = "pay.notify")]
    topic: String,
    /// Which job of the topic; neither `.` nor `..`. Without it the server makes one.
    #[schema(pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$", example = "order-2026112000012345")]
    id: Option<String>,
    /// How long to wait, at most 10 years. With neither `delay` nor `at` the job is due at once.
    delay: Option<Duration>,
    /// When it is due, by RFC 3339, at most 10 years ahead; a time in the past means now. Not
    /// together with `delay`.
    #[schema(format = DateTime, example = "2026-11-20T09:30:00Z")]
    at: Option<String>,
    /// Where to: http or https, without credentials or fragment. Without it and without `ttr` the
    /// URL of the topic's policy is taken; where there is none the job is for pull: it waits for a
    /// consumer that reserves jobs of its topic.
    #[schema(format = "uri", max_length = 2048, example = "https://merchant.example/notify")]
    url: Option<String>,
    /// Any JSON, at most 256 KiB and 64 levels deep; delivered byte for byte as it was sent.
    body: Option<Value>,
    /// Other bodies, at most 256 KiB, as base64 with padding (RFC 4648). Not together with `body`.
    #[schema(content_encoding = "base64")]
    body_base64: Option<String>,
    /// The media type of `body_base64`.
    #[schema(max_length = 255, default = "application/octet-stream")]
    content_type: Option<String>,
    /// Headers to deliver with, at most 32 and 8 KiB together; not those that belong to the
    /// delivery itself.
    headers: Option<BTreeMap<String, String>>,
    /// Delivered as headers `ringback-context-<key>`, at most 16 entries and 4 KiB together.
    context: Option<BTreeMap<String, String>>,
    /// When to try again after a failure; without it as the topic's policy says, else the server's
    /// own tiers.
    retry: Option<Retry>,
    /// The total deadline of one attempt, from 100 ms to 10 min; without it that of the topic's
    /// policy, else 10 s.
    timeout: Option<Duration>,
    /// How long a consumer has the job where it does not say, from 100 ms to 12 h; without it
    /// that of the topic's policy, else 30 s. Only for jobs without a `url`.
    ttr: Option<Duration>,
    /// Where the job's death is told: a URL as `url`. If the job dies a job of the topic
    /// `ringback.on-dead`, the notice, is posted there, with a `NoticeBody`. Without it as the
    /// topic's policy says. Not for jobs of the topic `ringback.on-dead` itself.
    #[schema(format = "uri", max_length = 2048, example = "https://shop.example/dead")]
    on_dead: Option<String>,
}

/// When a delayed job is to be due instead: exactly one of `delay` and `at`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"delay": "10m"}))]
#[serde(deny_unknown_fields)]
pub(crate) struct RescheduleRequest {
    /// So long after this call, at most 10 years; 0 means now.
    delay: Option<Duration>,
    /// At this time, by RFC 3339, at most 10 years ahead; one in the past means now.
    #[schema(format = DateTime, example = "2026-11-20T09:30:00Z")]
    at: Option<String>,
}

/// Seconds as a number (2, 0.25), or a friendly duration ("250ms", "10s", "1h 30m", "7d").
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = "10m")]
#[serde(untagged)]
pub(super) enum Duration {
    Seconds(f64),
    Friendly(String),
}

/// A retry policy: exactly one of `delays` and `preset`.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    /// The wait after each failure, each 10 ms to 30 days.
    #[schema(min_items = 1, max_items = 50)]
    delays: Option<Vec<Duration>>,
    /// A list by its name.
    preset: Option<Preset>,
    /// How many failures bury the job; beyond the list its last wait repeats. -1: none ever.
    max: Option<i64>,
    /// How much of a wait may be added at random.
    #[schema(minimum = 0, maximum = 1, default = 0.1)]
    jitter: Option<f64>,
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Preset {
    Default,
    StandardWebhooks,
    None,
}

/// A line of an import: as an export wrote it, or a job as it is submitted. What an export says
/// beside the fields of a submit may be left out one by one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ImportLine {
    Exported(ExportLine),
    Submitted(JobRequest),
}

/// The states that can be listed.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum Listed {
    Delayed,
    Ready,
    Reserved,
    Dead,
}
