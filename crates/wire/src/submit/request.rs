//! The declaration of a submitted job, and of a batch of them. Rules that concern several fields are in `submit`.

use ringback_core::job::{CallbackMethod, Context, Headers, Tags, Topic};
use utoipa::ToSchema;

use crate::declare::request;
use crate::field_parsers::if_exists::Mode;
use crate::kinds::{AnyJson, Given};
use crate::schema::{
    Base64, CallbackUrl, ContextText, Delay, DueTime, Expiry, HeadersText, JobIdText, MaxDelay, MediaType,
    OrderKeyText, RetryPolicy, Timeout, TopicName, Ttr, ZoneName,
};

request! {
    /// A job: its content, its due time, and its callback URL unless it is a pull job.
    #[example {
        "topic": "pay.notify", "id": "order-2026112000012345", "delay": "10m",
        "url": "https://merchant.example/notify", "body": {"status": "PAID"},
        "headers": {"x-merchant": "88231"}, "context": {"key": "value"},
        "retry": {"delays": ["15s", "3m", "10m"], "jitter": 0.1}, "timeout": "10s",
        "on_dead": "https://shop.example/dead",
    }]
    pub struct JobRequest(open) {
        /// The topic that groups jobs of one kind.
        topic: TopicName [Topic::ALLOWED], required;
        /// The id within the topic. By default the server makes one.
        id: JobIdText;
        /// The key by which an ordered topic delivers its jobs one at a time. Without an `id`, the id begins with it and
        /// `~`; an `id` must be the key or begin so.
        key: OrderKeyText;
        /// How long until it is due. With neither `delay` nor `at` it is due at once.
        delay: Given<Delay>;
        /// When it is due, at most 10 years ahead. A time in the past means now. Not together with `delay`.
        at: Given<DueTime>;
        /// The time zone of `at`. If `at` has an offset or an annotation too, they must agree. Only together
        /// with `at`.
        time_zone: Given<ZoneName>;
        /// The callback URL. With neither `url` nor `ttr` the URL of the topic's policy is used. A job without
        /// any URL is a pull job: it waits for a consumer that reserves jobs of its topic.
        url: CallbackUrl;
        /// The method of the callback, `POST` by default. `GET` and `DELETE` have no body. Only for a job with a URL.
        method: CallbackMethod;
        /// Any JSON, at most 256 KiB and 64 levels deep; `null` is a body too. It is delivered byte for byte as
        /// sent.
        body: AnyJson;
        /// A body that is not JSON. Not together with `body`.
        body_base64: Given<Base64>;
        /// The media type of `body_base64`; by default `application/octet-stream`. Not together with `body`.
        content_type: Given<MediaType>;
        /// Headers of the delivery. The value of a header that answers mask, such as `authorization`,
        /// cannot be the mask `[masked by ringback]`.
        headers: HeadersText, or Headers::default();
        /// Values that are sent with every attempt.
        context: ContextText, or Context::default();
        /// When to retry after a failure. By default the retry policy of the topic, else that of the server.
        retry: RetryPolicy;
        /// The total deadline of one attempt, 100 ms to 10 min. By default that of the topic's policy, else 10 s. Only for
        /// jobs that have a URL, of their own or by the topic's policy.
        timeout: Given<Timeout>;
        /// The lease if the consumer asks for no other, 100 ms to 12 h. By default that of the topic's policy, else 30 s.
        /// Only for jobs without a `url`.
        ttr: Given<Ttr>;
        /// When it expires: how long after it was first due, or a time after it is due. Then it is dead with the reason
        /// `expired`, and neither sent nor given to a consumer.
        expires: Expiry;
        /// Texts by which callers find the job again, such as `customer:42`: in answers, events and the history. No receiver
        /// sees them.
        tags: Tags, or Tags::default();
        /// The URL for a dead-letter notice. If the job dies, a job of the topic `ringback.on-dead`, the
        /// notice, is posted there with a `NoticeBody`. By default the URL of the topic's policy. Not for jobs
        /// of the topics `ringback.on-dead` and `ringback.on-done`.
        on_dead: Given<CallbackUrl>;
        /// The URL for a notice of its success. If its receiver accepts the job, a job of the topic
        /// `ringback.on-done`, the notice, is posted there with a `NoticeBody`. By default the URL of the topic's
        /// policy. Not for jobs of the topics `ringback.on-dead` and `ringback.on-done`. Only for a job with a URL.
        on_done: Given<CallbackUrl>;
        /// What to do if a job has this topic and id; `refuse` by default. It is not compared when a submit is repeated.
        /// `replace` and `postpone` need an `id`, and are refused in an import.
        if_exists: Given<Mode>;
        /// How long after its first submit the job is due at the latest. Only together with `postpone`; without
        /// it there is no limit. It is not compared when a submit is repeated.
        max_delay: Given<MaxDelay>;
    }
}

/// The jobs of a batch. Each is accepted or refused by itself, with the status that it would have alone.
#[derive(ToSchema)]
#[schema(max_items = 10_000)]
pub struct BatchRequest(pub Vec<JobRequest>);
