//! OpenAPI schemas of the request to put a schedule.

use std::collections::HashSet;

use ringback_core::job::CallbackMethod;
use ringback_core::schedule::{Missed, Overlap};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::callback::RetryPolicy;
use super::values::{
    Base64, CallbackUrl, Catchup, ContextText, CronExpression, DueTime, HeadersText, MaxDelay, MediaType,
    ScheduleJitter, SchedulePeriod, TagText, Timeout, TopicName, Ttr, ZoneName,
};

/// When to submit which job. Exactly one of `cron` and `every`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "cron": "0 8 * * MON-FRI", "time_zone": "Europe/Berlin",
    "job": {"topic": "reports", "url": "https://shop.example/report", "body": {"kind": "daily"}},
    "missed": "one", "catchup": "1h", "overlap": "skip",
}))]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// The times at which it fires. Hours that are numbers are those of the clock: a time that clocks skip fires once,
    /// after the gap, and one that comes twice fires once. Where the hours begin with `*`, an hour that comes twice
    /// fires twice, and one that is skipped does not fire.
    cron: Option<CronExpression>,
    /// How long from one firing to the next.
    every: Option<SchedulePeriod>,
    /// One of the times of `every`; the others are whole periods from it. By default that of the schedule with the same
    /// period that it replaces, else `from`, else now: then it fires first after a period.
    anchor: Option<DueTime>,
    /// The time zone of `cron`, by default UTC, and of the other times if they have no offset, which need it.
    time_zone: Option<ZoneName>,
    /// The job.
    job: ScheduledJobRequest,
    /// What becomes of firings that were missed because nobody was there to make them, so that they are more than a
    /// minute late: `skip` makes none, `one`, the default, makes the last, `all` makes all, the last 1,000 at most. Of
    /// several times that come within a minute, `skip` and `one` make the last.
    missed: Option<Missed>,
    /// How late a missed firing is at most, to be made up for; 1 h by default. Less than a minute has no effect.
    catchup: Option<Catchup>,
    /// Whether it fires while the job of the firing before is delayed, ready or reserved; `allow` by default.
    overlap: Option<Overlap>,
    /// Each job is due up to so long after its time. How long follows from its id.
    jitter: Option<ScheduleJitter>,
    /// It does not fire before.
    from: Option<DueTime>,
    /// It does not fire after.
    until: Option<DueTime>,
    /// Whether it is paused. By default it stays as it is, and a new one is not.
    paused: Option<bool>,
}

/// The job of a schedule: the fields of a submitted job, without its id and its due time, which come from the firing.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduledJobRequest {
    /// The topic, which stays.
    topic: TopicName,
    /// The callback URL. With neither `url` nor `ttr` each job goes to the URL that the policy of its topic has then, or
    /// is for pull if that has none.
    url: Option<CallbackUrl>,
    /// How long after it was first due each job expires.
    expires: Option<MaxDelay>,
    /// Texts by which callers find the jobs again.
    #[schema(max_items = 4)]
    tags: Option<HashSet<TagText>>,
    /// The method of the callback, `POST` by default. `GET` and `DELETE` have no body. Only for a job with a URL.
    method: Option<CallbackMethod>,
    /// Any JSON, at most 32 KiB and 64 levels deep.
    body: Option<Value>,
    /// A body that is not JSON, at most 32 KiB. Not together with `body`.
    body_base64: Option<Base64>,
    /// The media type of `body_base64`; by default `application/octet-stream`. Not together with `body`.
    content_type: Option<MediaType>,
    /// Headers of the delivery. The value of a secret one cannot be `[masked by ringback]`.
    headers: Option<HeadersText>,
    /// Values that are sent with every attempt.
    context: Option<ContextText>,
    /// When to retry after a failure.
    retry: Option<RetryPolicy>,
    /// The total deadline of one attempt. Only for jobs that have a URL, of their own or by the topic's policy.
    timeout: Option<Timeout>,
    /// The lease if the consumer asks for no other. Only for jobs without a `url`.
    ttr: Option<Ttr>,
    /// The URL for a dead-letter notice.
    on_dead: Option<CallbackUrl>,
    /// The URL for a notice of its success. Only for a job with a URL.
    on_done: Option<CallbackUrl>,
}
