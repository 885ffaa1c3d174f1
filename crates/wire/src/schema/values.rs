//! OpenAPI schemas of single values: names, times, URLs, cursors, durations, headers. Limits are the constants that the
//! parsers use. A text has a pattern where a reader sees at once what it means, and else a description.

use std::borrow::Cow;
use std::time::Duration;

use ringback_core::duration::MAX_DURATION;
use ringback_core::job::{
    MAX_AHEAD, MAX_BODY, MAX_CONTEXT, MAX_HEADERS, MAX_TAG, MAX_TIMEOUT, MAX_TTR, MAX_URL, MIN_TIMEOUT,
    MIN_TTR,
};
use ringback_core::limits::{MAX_ERROR, MAX_REASON};
use ringback_core::retry::{MAX_TIER, MIN_TIER};
use ringback_core::schedule::{MAX_CATCHUP, MAX_EVERY, MAX_JITTER, MIN_EVERY};
use ringback_core::store_types::MAX_ERROR_TEXT;
use ringback_core::topic_policy::MAX_EXPECTED;
use ringback_core::written_time::MAX_TIME;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::field_parsers::values::{MAX_KEEP, MAX_REPLAY_NAME, MAX_WAIT};

/// Declares values whose schema an expression makes, and describes each by its comment. `Text` at the end of a name
/// keeps it apart from the type of the parsed value; the document has the name without it.
macro_rules! values {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(serde::Deserialize, serde::Serialize, PartialEq, Eq, Hash)]
        pub struct $name(Value);

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.description(Some(concat!($($doc),+).trim())).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).trim_end_matches("Text").into()
            }
        }
    )+};
}

values! {
    /// A topic groups jobs of one kind: 1 to 64 of `A-Z a-z 0-9 . _ -`, neither `.` nor `..`.
    TopicName = text(1, 64).pattern(Some("^[A-Za-z0-9._-]{1,64}$")).examples(["pay.notify"]);
    /// Names a job within its topic: 1 to 128 of `A-Z a-z 0-9 . _ ~ : @ + = , -`, neither `.` nor `..`.
    JobIdText = text(1, 128).pattern(Some("^[A-Za-z0-9._~:@+=,-]{1,128}$")).examples(["order-2026112000012345"]);
    /// The key of jobs in an ordered topic: 1 to 101 of `A-Z a-z 0-9 . _ : @ + = , -`, neither `.` nor `..`.
    OrderKeyText = text(1, 101).pattern(Some("^[A-Za-z0-9._:@+=,-]{1,101}$")).examples(["order-2026112000012345"]);
    /// Why a job is dead: `exhausted`, `gone`, `lost`, or what a consumer gave. Visible ASCII.
    DeadReason = text(1, MAX_REASON).pattern(Some("^[!-~]{1,64}$")).examples(["exhausted"]);
    /// Names a loss of jobs: the `run_id` of the store's server, in lower case.
    RunId = text(1, 64).pattern(Some("^[0-9a-f]{1,64}$")).examples(["8b1f0e6f2d6c4a5e9d3c7b1a0f9e8d7c6b5a4f3e"]);
    /// A text by which jobs are found again: 1 to 64 visible ASCII characters.
    TagText = text(1, MAX_TAG).pattern(Some("^[!-~]{1,64}$")).examples(["customer:42"]);
    /// What went wrong, in 1 to 128 bytes of UTF-8 without control characters.
    ErrorMessage = text(1, MAX_ERROR).examples(["no such account"]);
    /// A point in time by RFC 3339, also with annotations by RFC 9557 or in the shorter forms of ISO 8601. A
    /// fraction of a millisecond is rounded up.
    Time = text(12, MAX_TIME)
        .format(Some(SchemaFormat::Custom("timestamp".to_owned())))
        .examples(["2026-11-20T09:30:00Z"]);
    /// A time by RFC 3339, also with annotations by RFC 9557 such as `[Europe/Berlin]`, or a local time together
    /// with `time_zone`. A fraction of a millisecond is rounded up.
    DueTime = text(11, MAX_TIME)
        .format(Some(SchemaFormat::Custom("timestamp".to_owned())))
        .examples(["2026-11-20T09:30:00Z"]);
    /// A name of the IANA time zone database, in any case.
    ZoneName = text(1, 64)
        .format(Some(SchemaFormat::Custom("time-zone".to_owned())))
        .examples(["Europe/Berlin"]);
    /// A URL of http or https, without credentials or fragment, at most 2,048 bytes when it is encoded. A host name in
    /// other letters than ASCII is to be given in its ASCII form. The address guard of the installation says where it
    /// may lead; by default to public addresses and usual ports.
    CallbackUrl = text(8, MAX_URL)
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .examples(["https://merchant.example/notify"]);
    /// Scheme, host and port of URLs, or `*` for all URLs.
    Origin = text(1, MAX_URL).examples(["https://shop.example"]);
    /// Base64 with padding (RFC 4648, section 4) of at most 256 KiB.
    Base64 = text(0, MAX_BODY.div_ceil(3) * 4).content_encoding("base64").examples(["aGVsbG8="]);
    /// A media type with its parameters, in at most 255 bytes.
    MediaType = text(3, 255).examples(["text/plain; charset=utf-8"]);
    /// The body that a 2xx response must have, apart from ASCII white space around it: at most 1,024 bytes
    /// of UTF-8, itself without white space around it.
    ExpectedBody = text(0, MAX_EXPECTED).examples(["success"]);
    /// 1 to 255 visible ASCII characters, bare or as one quoted string (RFC 9651).
    IdempotencyKeyText = text(1, 512).examples(["8e03978e-40d5-43e8-bc93-6894a57f9324"]);
    /// The receipt of a reserved job. Opaque.
    ReceiptText = text(0, 40).examples(["AAEHBwcHBwcHBwcHBwcABkRi_oAAAP7-_v7-_v7-"]);
    /// How many callbacks may begin in a second (`s`), minute (`m`), hour (`h`) or day (`d`): a whole number from 1 on,
    /// a slash and the unit; at most 1,000,000 a second.
    CallbackRate = text(3, 12).pattern(Some("^[0-9]{1,10}/[smhd]$")).examples(["10/s"]);
    /// The id of a bulk operation.
    BulkId = text(16, 16).pattern(Some("^[0-9a-f]{16}$")).examples(["00a1b2c3d4e5f607"]);
    /// A host of callback URLs, or a host and a port. It is read by the rules of the URL Standard: case does not
    /// matter, and an IPv6 address is in brackets. A host in other letters is to be written in its ASCII form.
    HostAndPort = text(1, 259).examples(["merchant.example", "merchant.example:8443"]);
    /// How ids begin: 1 to 128 of `A-Z a-z 0-9 . _ ~ : @ + = , -`.
    IdPrefix = text(1, 128).pattern(Some("^[A-Za-z0-9._~:@+=,-]{1,128}$")).examples(["order-20261120"]);
    /// A part of an error, in 1 to 128 characters without control characters.
    ErrorPart = text(1, MAX_ERROR_TEXT).examples(["timeout"]);
    /// The id of a key of a caller.
    KeyIdText = text(5, 64).pattern(Some("^key_[A-Za-z0-9]{1,60}$")).examples(["key_01KAR8Z6V5Q0M5W8C1T3N9X2YB"]);
    /// A tenant, whom topics and jobs belong to: 1 to 32 of `A-Z a-z 0-9 . _ -`, neither `.` nor `..`.
    TenantName = text(1, 32).pattern(Some("^[A-Za-z0-9._-]{1,32}$")).examples(["acme"]);
    /// A tenant, or `*` for every tenant that does not have a quota of its own.
    QuotaName = text(1, 32).pattern(Some("^([A-Za-z0-9._-]{1,32}|[*])$")).examples(["acme"]);
    /// A host that jobs may go to: a name in lower case, or an address of IPv6 without brackets.
    HostName = text(1, 253).examples(["hooks.example.com"]);
    /// A network that a key may be used from: an address, a slash and the length of the prefix.
    Network = text(4, 43).examples(["10.1.0.0/16"]);
    /// The name of a credential: 1 to 64 of `A-Z a-z 0-9 . _ -`, neither `.` nor `..`.
    CredentialNameText = text(1, 64).pattern(Some("^[A-Za-z0-9._-]{1,64}$")).examples(["bank"]);
    /// A bearer token (RFC 6750): visible ASCII characters.
    BearerToken = text(1, 4096).examples(["AbCdEf123456"]);
    /// A user (RFC 7617), at most 1,024 bytes of UTF-8 without a colon and control characters.
    UserName = text(0, 1024).examples(["ringback"]);
    /// A password (RFC 7617), at most 1,024 bytes of UTF-8 without control characters.
    Password = text(0, 1024).examples(["correct horse"]);
    /// The contents of a credential that a master key of the installation has sealed for its tenant, name and origins.
    SealedCredential = text(3, 24_576).examples(["k1.AAECAwQF"]);
    /// The id of a secret.
    SecretIdText = text(5, 64).pattern(Some("^sec_[A-Za-z0-9]{1,60}$")).examples(["sec_01KAR8Z6V5Q0M5W8C1T3N9X2YB"]);
    /// A secret by the Standard Webhooks specification: `whsec_` and the base64 of 24 to 64 bytes.
    SigningSecretText = text(38, 94).examples(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
    /// A secret that a master key of the installation has sealed for this topic.
    SealedValue = text(3, 256).examples(["k1.AAECAwQF"]);
    /// Values of secret headers that a master key of the installation has sealed for this topic.
    SealedHeaders = text(3, 24_576).examples(["k1.AAECAwQF"]);
    /// The hash that recognises a repeated submit.
    ContentHashText = text(16, 16).pattern(Some("^[0-9a-f]{16}$")).examples(["000102ff10ab0908"]);
    /// A `traceparent` of version 00 (W3C Trace Context). Neither id is all zeros.
    TraceParent = text(55, 55).pattern(Some("^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"))
        .examples(["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]);
    /// The host of URLs, without scheme and port; an IPv6 address without brackets.
    HostText = text(1, 253).examples(["merchant.example"]);
    /// `next` of the previous page of the history. Opaque.
    HistoryCursor = text(0, 512).examples(["gICAgICAgAEDcGF5B29yZGVyLTGA8AICBGRlYWQ"]);
    /// `next` of the previous page of the audit log. Opaque.
    AuditLogCursor = text(0, 26).examples(["01KAR8Z6V5Q0M5W8C1T3N9X2YB"]);
    /// An operation that leaves an entry in the audit log, by its `operationId`.
    AuditLogOperation = ObjectBuilder::new().schema_type(Type::String).examples(["pause"]);
    /// Who has called: `key:` and the id of a key, `root` for the root key, or `open` where there is no root key.
    CallerText = text(4, 68).examples(["key:key_01KAR8Z6V5Q0M5W8C1T3N9X2YB"]);
    /// `next` of the previous answer to a replay. Opaque.
    ReplayCursorText = text(0, 528).examples(["19a8e4a1c3b."]);
    /// The name of a replay. A replay with another name makes other new ids.
    ReplayName = text(1, MAX_REPLAY_NAME).pattern(Some("^[A-Za-z0-9._-]{1,64}$")).examples(["after-the-outage"]);
    /// `next` of the previous page of jobs. Opaque. The embedded store refuses those from before its restart.
    JobCursor = text(0, 128).examples(["0-0-0"]);
    /// `next` of the previous page of topics. Opaque.
    TopicCursor = text(0, 98).examples(["pay.notify"]);
    /// `next` of the previous page of destinations. Opaque.
    DestinationCursor = text(0, 270).examples(["https~443~merchant.example"]);
    /// Names a schedule within its tenant: 1 to 96 of `A-Z a-z 0-9 . _ -`, neither `.` nor `..`.
    ScheduleIdText = text(1, 96).pattern(Some("^[A-Za-z0-9._-]{1,96}$")).examples(["daily-report"]);
    /// `next` of the previous page of schedules. Opaque.
    ScheduleCursor = text(0, 195).examples(["daily-report~reports"]);
    /// A cron expression: minute, hour, day of the month, month and day of the week. Each is `*`, a number, a list, a
    /// range or a step of these; months and days of the week can be names, `L` is the last day, `15W` the weekday
    /// nearest to the 15th, `MON#2` the second Monday and `FRIL` the last Friday of a month. If both days are given,
    /// either is enough, unless one begins with `*`. Or `@hourly`, `@daily`, `@weekly`, `@monthly` or `@yearly`.
    CronExpression = text(1, 256).examples(["0 8 * * MON-FRI"]);
    /// How long from one firing to the next, 1 s to 366 days.
    SchedulePeriod = duration(MIN_EVERY, MAX_EVERY).examples(["15m"]);
    /// How late a missed firing is at most, 1 s to 7 days.
    Catchup = duration(Duration::from_secs(1), MAX_CATCHUP).examples(["1h"]);
    /// How long after its time a job is due at most, up to 1 day.
    ScheduleJitter = duration(Duration::ZERO, MAX_JITTER).examples(["30s"]);
    /// `next` of the previous answer. Opaque. The embedded store refuses those from before its restart.
    DeletionCursor = text(0, 128).examples(["0-0-0"]);
    /// `next` of the previous page of dead jobs. Opaque.
    DeadCursorText = text(0, 37).examples(["19a8e4a1c3b-00000000000000000000000a"]);
    /// `next` of the previous answer to a purge. Opaque.
    PurgeCursorText = text(0, 55).examples(["0-19a8e4a1c3c"]);

    /// A duration with units: `250ms`, `10s`, `1h 30m`, `7d`. A day has 24 hours, a week 7 days. Months and
    /// years have no fixed length and are refused.
    FriendlyDuration = text(2, MAX_DURATION).pattern(Some("^[+]?[PpTt]{0,2}[0-9][0-9A-Za-zµ.,: \\t\\n\\f\\r]*$"))
        .format(Some(SchemaFormat::Custom("friendly-duration".to_owned())))
        .examples(["1h 30m"]);
    /// How long to wait, at most 10 years of 365 days.
    Delay = duration(Duration::ZERO, MAX_AHEAD).examples(["10m"]);
    /// How long after its first submit a job is due at the latest, 1 ms to 10 years of 365 days.
    MaxDelay = duration(Duration::from_millis(1), MAX_AHEAD).examples(["1h"]);
    /// The total deadline of one attempt, 100 ms to 10 min.
    Timeout = duration(MIN_TIMEOUT, MAX_TIMEOUT).examples(["10s"]);
    /// How long a lease lasts, 100 ms to 12 h.
    Ttr = duration(MIN_TTR, MAX_TTR).examples(["30s"]);
    /// How long to wait for jobs, at most 60 s.
    ReserveWait = duration(Duration::ZERO, MAX_WAIT).examples(["20s"]);
    /// How long former secrets go on signing, at most 30 days.
    SecretRetention = duration(Duration::ZERO, MAX_KEEP).examples(["24h"]);
    /// The wait before a retry, 10 ms to 30 days.
    RetryDelay = duration(MIN_TIER, MAX_TIER).examples(["15s"]);

    /// Headers of the delivery: at most 32 and 8 KiB together, by the grammar of RFC 9110, values in ASCII.
    /// No two names differ only in case. Those that the delivery sets itself are refused: `host`, `content-*` and
    /// others of the connection, `user-agent`, `traceparent`, and all that begin with `webhook-` or `ringback-`.
    HeadersText = texts(MAX_HEADERS, Type::String).examples([serde_json::json!({"x-merchant": "88231"})]);
    /// Headers by name: a value to set, or null for one to remove.
    HeadersPatch = texts(MAX_HEADERS, SchemaType::from_iter([Type::String, Type::Null])).examples([serde_json::json!({"x-merchant": "88231", "x-old": null})]);
    /// Delivered as headers `ringback-context-<key>`, with `-` in place of everything in the key but letters and
    /// digits: at most 16 entries and 4 KiB together. No two keys make the same header.
    ContextText = texts(MAX_CONTEXT, Type::String).examples([serde_json::json!({"tenant": "a7"})]);
}

/// A text. Lengths are in characters, as JSON Schema counts them; the parsers count bytes.
fn text(min: usize, max: usize) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(max));
    text.min_length(Some(min).filter(|min| *min > 0))
}

/// The schema of a duration: a number of seconds within a range, or a friendly text, whose range no pattern can tell.
fn duration(min: Duration, max: Duration) -> OneOfBuilder {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(min.as_secs_f64()))
        .maximum(Some(max.as_secs_f64()));
    OneOfBuilder::new().item(seconds).item(Ref::from_schema_name("FriendlyDuration"))
}

/// The schema of an object with at most `max` fields, each of the type `values`: a string, or a string or null.
fn texts(max: usize, values: impl Into<SchemaType>) -> ObjectBuilder {
    let value = ObjectBuilder::new().schema_type(values).build();
    ObjectBuilder::new()
        .max_properties(Some(max))
        .additional_properties(Some(RefOr::from(Schema::from(value))))
}
