//! OpenAPI schemas of the request bodies: jobs, topic policies, redrives, and the requests of consumers.
//! The parsers are in `ringback_core::wire`.
#![expect(dead_code, reason = "the fields are only read by the schema macro")]

use std::collections::BTreeMap;

use ringback_core::wire::ExportLine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A job: its content, its due time, and its callback URL unless it is a pull job.
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
    /// The topic that groups jobs of one kind; neither `.` nor `..`.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$", example = "pay.notify")]
    topic: String,
    /// The id within the topic; neither `.` nor `..`. By default the server makes one.
    #[schema(pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$", example = "order-2026112000012345")]
    id: Option<String>,
    /// How long until it is due, at most 10 years. With neither `delay` nor `at` it is due at once.
    delay: Option<Duration>,
    /// When it is due, at most 10 years ahead: a time by RFC 3339, optionally with annotations by RFC
    /// 9557 such as `[Europe/Berlin]`, or a local time together with `time_zone`. A time in the past
    /// means now. Not together with `delay`.
    #[schema(
        pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}",
        example = "2026-11-20T09:30:00Z"
    )]
    at: Option<String>,
    /// The time zone of `at`, a name of the IANA time zone database in any case. If `at` has an offset or
    /// an annotation too, they must agree. Only together with `at`.
    #[schema(min_length = 1, max_length = 64, example = "Europe/Berlin")]
    time_zone: Option<String>,
    /// The callback URL: http or https, without credentials or fragment. With neither `url` nor `ttr`
    /// the URL of the topic's policy is used. A job without any URL is a pull job: it waits for a
    /// consumer that reserves jobs of its topic.
    #[schema(format = "uri", max_length = 2048, example = "https://merchant.example/notify")]
    url: Option<String>,
    /// Any JSON, at most 256 KiB and 64 levels deep. It is delivered byte for byte as sent.
    body: Option<Value>,
    /// A body that is not JSON, at most 256 KiB, as base64 with padding (RFC 4648). Not together with
    /// `body`.
    #[schema(content_encoding = "base64")]
    body_base64: Option<String>,
    /// The media type of `body_base64`.
    #[schema(max_length = 255, default = "application/octet-stream")]
    content_type: Option<String>,
    /// Headers of the delivery, at most 32 and 8 KiB together, without those that the delivery sets
    /// itself. The value of a secret one cannot be `[masked by ringback]`.
    headers: Option<BTreeMap<String, String>>,
    /// Delivered as headers `ringback-context-<key>`, at most 16 entries and 4 KiB together.
    context: Option<BTreeMap<String, String>>,
    /// When to retry after a failure. By default the retry policy of the topic, else that of the server.
    retry: Option<Retry>,
    /// The total deadline of one attempt, 100 ms to 10 min. By default that of the topic's policy, else
    /// 10 s.
    timeout: Option<Duration>,
    /// The lease if the consumer asks for no other, 100 ms to 12 h. By default that of the topic's
    /// policy, else 30 s. Only for jobs without a `url`.
    ttr: Option<Duration>,
    /// The URL for a dead-letter notice, with the rules of `url`. If the job dies, a job of the topic
    /// `ringback.on-dead`, the notice, is posted there with a `NoticeBody`. By default the URL of the
    /// topic's policy. Not for jobs of the topic `ringback.on-dead` itself.
    #[schema(format = "uri", max_length = 2048, example = "https://shop.example/dead")]
    on_dead: Option<String>,
    /// What to do if a job has this topic and id. Not part of the content. Other values than `refuse` only
    /// together with `id`, and not in an import.
    #[schema(default = "refuse")]
    if_exists: Option<IfExists>,
    /// How long after its first submit the job is due at the latest, 1 ms to 10 years. Only together with
    /// `postpone`; without it there is no limit. Not part of the content.
    max_delay: Option<Duration>,
}

/// `refuse`: nothing; the same content again is answered with 200 unless the job was cancelled, other
/// content with 409. `replace`: the submit takes the place of the job, unless that is being delivered.
/// `postpone`: the same, but the job is due no later than `max_delay` after its first submit.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum IfExists {
    Refuse,
    Replace,
    Postpone,
}

/// The new due time of a delayed job: exactly one of `delay` and `at`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"delay": "10m"}))]
#[serde(deny_unknown_fields)]
pub(crate) struct RescheduleRequest {
    /// How long after this call, at most 10 years; 0 means now.
    delay: Option<Duration>,
    /// A time at most 10 years ahead, as in a submit. A time in the past means now.
    #[schema(
        pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}",
        example = "2026-11-20T09:30:00Z"
    )]
    at: Option<String>,
    /// The time zone of `at`, as in a submit. Only together with `at`.
    #[schema(min_length = 1, max_length = 64, example = "Europe/Berlin")]
    time_zone: Option<String>,
}

/// Seconds as a number (2, 0.25), or a friendly duration ("250ms", "10s", "1h 30m", "7d").
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = "10m")]
#[serde(untagged)]
enum Duration {
    Seconds(f64),
    Friendly(String),
}

/// A retry policy: exactly one of `delays` and `preset`.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Retry {
    /// The delay after each failure, each 10 ms to 30 days.
    #[schema(min_items = 1, max_items = 50)]
    delays: Option<Vec<Duration>>,
    /// A named list of delays.
    preset: Option<Preset>,
    /// After this number of failures the job is dead. Beyond the list its last delay repeats. -1 means
    /// never.
    max: Option<i64>,
    /// The share of a delay that may be added at random.
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

/// A line of an import: an exported job, or a job as it is submitted. Each field of an exported job
/// that a submit does not have is optional.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ImportLine {
    Exported(ExportLine),
    Submitted(JobRequest),
}

/// Defaults for the jobs of a topic that do not set these fields themselves. All are optional.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "retry": {"delays": ["15s", "3m", "10m"], "max": -1}, "timeout": "5s",
    "headers": {"x-tenant": "a7"}, "expect_body": "success",
    "on_dead": "https://shop.example/dead",
}))]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyRequest {
    /// When failed jobs are retried.
    retry: Option<Retry>,
    /// The total deadline of one attempt, 100 ms to 10 min.
    timeout: Option<Duration>,
    /// The lease of a pull job, 100 ms to 12 h.
    ttr: Option<Duration>,
    /// The callback URL of jobs that are submitted later with neither `url` nor `ttr`.
    #[schema(max_length = 2048)]
    url: Option<String>,
    /// Headers that are added unless the job has one of the same name. Limits and reserved names are
    /// those of a job. A secret one whose value is `[masked by ringback]`, as answers show it, keeps its
    /// stored value.
    headers: Option<BTreeMap<String, String>>,
    /// The body that a 2xx response of the receiver must have, apart from surrounding ASCII white
    /// space. With any other body the attempt fails. At most 1,024 bytes, without surrounding white
    /// space.
    #[schema(max_length = 1024)]
    expect_body: Option<String>,
    /// Which attempts are logged: `failed`, `all` or `off`.
    #[schema(pattern = "^(failed|all|off)$")]
    attempts: Option<String>,
    /// The URL for dead-letter notices of jobs without an `on_dead` of their own, once the policy is
    /// in effect. Not for the topic `ringback.on-dead`.
    #[schema(format = "uri", max_length = 2048)]
    on_dead: Option<String>,
    /// Whether `/metrics` of the carriers shows the jobs of this topic by itself. At most 100 topics can.
    metrics: Option<bool>,
}

/// Which dead jobs to revive, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"reason": "exhausted", "died_before": "2026-11-20T09:30:00Z", "rate": 200}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviveRequest {
    /// Only jobs with this reason: exhausted, gone, lost, or one given by a consumer.
    #[schema(max_length = 64)]
    reason: Option<String>,
    /// Only jobs that died at this time (RFC 3339) or later.
    #[schema(format = DateTime, example = "2026-11-19T00:00:00Z")]
    died_after: Option<String>,
    /// Only jobs that died before this time (RFC 3339).
    #[schema(format = DateTime, example = "2026-11-20T09:30:00Z")]
    died_before: Option<String>,
    /// The number of jobs per second.
    #[schema(minimum = 1, maximum = 100_000, default = 100)]
    rate: Option<u32>,
}

/// How many jobs to reserve, and for how long.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"max": 10, "ttr": "30s", "wait": "20s"}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveRequest {
    /// The most jobs to reserve.
    #[schema(minimum = 1, maximum = 100, default = 1)]
    max: Option<u32>,
    /// The lease, 100 ms to 12 h. By default the job's own `ttr`, else that of the topic's policy,
    /// else 30 s.
    ttr: Option<Duration>,
    /// How long to wait if there are no jobs, at most 60 s. By default not at all.
    wait: Option<Duration>,
}

/// Why the attempt failed.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryRequest {
    /// How long to wait before the next attempt. By default the delay of the job's retry policy; if it
    /// allows no further attempt, the job is dead.
    delay: Option<Duration>,
    /// The error message, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// Why the job is buried.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuryRequest {
    /// A short reason of visible ASCII.
    #[schema(max_length = 64, default = "buried")]
    reason: Option<String>,
    /// The error message, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// When the job is ready again.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseRequest {
    /// How long it waits. By default it is ready at once.
    delay: Option<Duration>,
}

/// How long the consumer keeps the job.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// The new lease, counted from this call: 100 ms to 12 h; 30 s by default.
    ttr: Option<Duration>,
}

/// The jobs that are done.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FinishAllRequest {
    /// Their receipts.
    #[schema(min_items = 1, max_items = 1000)]
    receipts: Vec<String>,
}
