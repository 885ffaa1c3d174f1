//! OpenAPI schemas of the request bodies: jobs, bulk revives, and the requests of consumers.

use std::collections::HashSet;

use ringback_core::job::CallbackMethod;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::callback::{Expiry, RetryPolicy};
use super::values::{
    Base64, CallbackUrl, ContentHashText, Context, DeadReason, Delay, DueTime, ErrorMessage, Headers,
    JobIdText, MaxDelay, MediaType, TagText, TenantName, Time, Timeout, TopicName, TraceParent, Ttr,
    ZoneName,
};

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
pub struct JobRequest {
    /// The topic that groups jobs of one kind.
    topic: TopicName,
    /// The id within the topic. By default the server makes one.
    id: Option<JobIdText>,
    /// How long until it is due. With neither `delay` nor `at` it is due at once.
    delay: Option<Delay>,
    /// When it is due, at most 10 years ahead. A time in the past means now. Not together with `delay`.
    at: Option<DueTime>,
    /// The time zone of `at`. If `at` has an offset or an annotation too, they must agree. Only together
    /// with `at`.
    time_zone: Option<ZoneName>,
    /// The callback URL. With neither `url` nor `ttr` the URL of the topic's policy is used. A job without
    /// any URL is a pull job: it waits for a consumer that reserves jobs of its topic.
    url: Option<CallbackUrl>,
    /// When it expires: how long after it was first due, or a time after it is due. Then it is dead with the reason
    /// `expired`, and neither sent nor given to a consumer.
    expires: Option<Expiry>,
    /// Texts by which callers find the job again, such as `customer:42`: in answers, events and the history. No receiver
    /// sees them.
    #[schema(max_items = 4)]
    tags: Option<HashSet<TagText>>,
    /// The method of the callback, `POST` by default. `GET` and `DELETE` have no body. Only for a job with a URL.
    method: Option<CallbackMethod>,
    /// Any JSON, at most 256 KiB and 64 levels deep; `null` is a body too. It is delivered byte for byte as
    /// sent.
    body: Option<Value>,
    /// A body that is not JSON. Not together with `body`.
    body_base64: Option<Base64>,
    /// The media type of `body_base64`; by default `application/octet-stream`. Not together with `body`.
    content_type: Option<MediaType>,
    /// Headers of the delivery. The value of a secret one cannot be `[masked by ringback]`.
    headers: Option<Headers>,
    /// Values that are sent with every attempt.
    context: Option<Context>,
    /// When to retry after a failure. By default the retry policy of the topic, else that of the server.
    retry: Option<RetryPolicy>,
    /// The total deadline of one attempt. By default that of the topic's policy, else 10 s. Only for jobs
    /// that have a URL, of their own or by the topic's policy.
    timeout: Option<Timeout>,
    /// The lease if the consumer asks for no other. By default that of the topic's policy, else 30 s. Only
    /// for jobs without a `url`.
    ttr: Option<Ttr>,
    /// The URL for a dead-letter notice. If the job dies, a job of the topic `ringback.on-dead`, the
    /// notice, is posted there with a `NoticeBody`. By default the URL of the topic's policy. Not for jobs
    /// of the topics `ringback.on-dead` and `ringback.on-done`.
    on_dead: Option<CallbackUrl>,
    /// The URL for a notice of its success. If its receiver accepts the job, a job of the topic
    /// `ringback.on-done`, the notice, is posted there with a `NoticeBody`. By default the URL of the topic's
    /// policy. Not for jobs of the topics `ringback.on-dead` and `ringback.on-done`. Only for a job with a URL.
    on_done: Option<CallbackUrl>,
    /// What to do if a job has this topic and id; `refuse` by default. Not part of the content. `replace` and
    /// `postpone` need an `id`, and are refused in an import.
    if_exists: Option<IfExists>,
    /// How long after its first submit the job is due at the latest. Only together with `postpone`; without
    /// it there is no limit. Not part of the content.
    max_delay: Option<MaxDelay>,
}

/// `refuse`: nothing; the same content again is answered with 200 unless the job was cancelled, other
/// content with 409. `replace`: the submit takes the place of the job, unless that is being delivered.
/// `postpone`: the same, but the job is due no later than `max_delay` after its first submit.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum IfExists {
    Refuse,
    Replace,
    Postpone,
}

/// The jobs of a batch. Each is accepted or refused by itself, with the status that it would have alone.
#[derive(ToSchema)]
#[schema(max_items = 10_000)]
pub struct BatchRequest(pub Vec<JobRequest>);

/// The fields of a line of an import that a submit does not have.
#[derive(Deserialize, Serialize, ToSchema)]
struct HistoryFields {
    /// The tenant whose job it is. Of a key, only its own.
    tenant: Option<TenantName>,
    /// The state of an exported job. Only `dead` counts: any other job is pending.
    state: Option<PendingState>,
    /// When it was accepted.
    created_at: Option<Time>,
    /// How often it was reserved.
    #[schema(maximum = 4_294_967_295_u32)]
    attempts: Option<u32>,
    /// How many of the attempts failed.
    #[schema(maximum = 4_294_967_295_u32)]
    failures: Option<u32>,
    /// The last failed attempt.
    last: Option<ImportedAttempt>,
    /// Why it is dead. Only for a dead job, which must have it.
    reason: Option<DeadReason>,
    /// The hash of its submit. By default that of the fields of this line.
    content: Option<ContentHashText>,
    /// The trace it belongs to.
    traceparent: Option<TraceParent>,
}

/// The states of jobs that have not ended.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum PendingState {
    Delayed,
    Ready,
    Reserved,
    Dead,
}

/// A failed attempt of an imported job.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"at": "2026-11-20T09:30:15.017Z", "status": 503, "duration_ms": 17}))]
#[serde(deny_unknown_fields)]
pub struct ImportedAttempt {
    /// When it was sent.
    at: Time,
    /// The status of the response.
    #[schema(minimum = 100, maximum = 999)]
    status: Option<u16>,
    /// What went wrong.
    error: Option<ErrorMessage>,
    /// How long it took, in milliseconds.
    #[schema(maximum = 4_294_967_295_u32)]
    duration_ms: Option<u32>,
}

/// A line of an import: an exported job, or a job as it is submitted. It has the fields of both.
#[derive(Serialize)]
pub struct ImportLine;

impl PartialSchema for ImportLine {
    fn schema() -> RefOr<Schema> {
        let (RefOr::T(Schema::Object(mut line)), RefOr::T(Schema::Object(history))) =
            (JobRequest::schema(), HistoryFields::schema())
        else {
            unreachable!("both are objects")
        };
        line.properties.extend(history.properties);
        line.description =
            Some("A line of an import: an exported job, or a job as it is submitted.".to_owned());
        line.example = Some(serde_json::json!({
            "topic": "pay.notify", "id": "order-2026112000012345", "state": "dead", "at": "2026-11-20T09:30:00.000Z",
            "url": "https://merchant.example/notify", "body": {"status": "PAID"},
            "created_at": "2026-11-20T09:20:00.000Z", "attempts": 3, "failures": 3,
            "last": {"at": "2026-11-20T09:30:00.017Z", "status": 503, "duration_ms": 17},
            "reason": "exhausted", "content": "000102ff10ab0908",
        }));
        line.into()
    }
}

impl ToSchema for ImportLine {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        JobRequest::schemas(schemas);
        HistoryFields::schemas(schemas);
    }
}
