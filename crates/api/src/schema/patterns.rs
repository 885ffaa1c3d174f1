//! The patterns of texts in requests: what the parsers of `ringback_core` take, as regular expressions.
//!
//! They keep to what ECMA-262, RE2, Python and Rust understand alike: no look-around and no classes that
//! depend on Unicode. Limits in bytes and ranges of numbers are stated beside the pattern where it is used.

/// A token of RFC 9110.
macro_rules! token {
    () => {
        "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
    };
}

/// One of the four numbers of an IPv4 address.
macro_rules! octet {
    () => {
        "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    };
}

/// A day of a month.
macro_rules! day {
    () => {
        "(?:0[1-9]|[12][0-9]|3[01])"
    };
}

/// An hour of a day.
macro_rules! hour {
    () => {
        "(?:[01][0-9]|2[0-3])"
    };
}

/// A minute, or a second.
macro_rules! sixty {
    () => {
        "[0-5][0-9]"
    };
}

/// A decimal fraction; with `?` it may be left out.
macro_rules! fraction {
    ($times:literal) => {
        concat!("(?:[.,][0-9]{1,9})", $times)
    };
}

/// A date and a time of day.
macro_rules! local_time {
    () => {
        concat!(
            "(?:[0-9]{4}-(?:0[1-9]|1[0-2])-",
            day!(),
            "|[0-9]{4}(?:0[1-9]|1[0-2])",
            day!(),
            ")[Tt ]",
            hour!(),
            "(?::",
            sixty!(),
            "(?::(?:",
            sixty!(),
            "|60)",
            fraction!("?"),
            ")?|",
            sixty!(),
            "(?:(?:",
            sixty!(),
            "|60)",
            fraction!("?"),
            ")?)?"
        )
    };
}

/// An offset from UTC.
macro_rules! offset {
    () => {
        concat!(
            "(?:[Zz]|[+-](?:[01][0-9]|2[0-5])(?::",
            sixty!(),
            "(?::",
            sixty!(),
            ")?|",
            sixty!(),
            "(?:",
            sixty!(),
            ")?)?)"
        )
    };
}

/// Annotations of a time; `*` or `+` says how many.
macro_rules! annotations {
    ($times:literal) => {
        concat!("(?:\\[[^\\[\\]]+\\])", $times)
    };
}

/// White space at the end of a duration, or none.
macro_rules! end {
    () => {
        "(?:\\b[ \\t\\n\\f\\r]+)?$"
    };
}

/// What may stand between two units of a duration: nothing, or white space after an optional comma. `\b`
/// keeps it from the beginning.
macro_rules! separator {
    () => {
        "(?:\\b,?[ \\t\\n\\f\\r]+)?"
    };
}

/// A unit of a duration, which may be left out.
macro_rules! whole {
    ($label:literal) => {
        concat!("(?:", separator!(), "[0-9]+[ \\t\\n\\f\\r]*", $label, ")?")
    };
}

/// A unit of a duration, which may be left out, and may have a fraction if it is the last one.
macro_rules! unit {
    ($label:literal) => {
        concat!(
            "(?:",
            separator!(),
            "[0-9]+(?:[ \\t\\n\\f\\r]*",
            $label,
            "|",
            fraction!(""),
            "[ \\t\\n\\f\\r]*",
            $label,
            end!(),
            "))?"
        )
    };
}

/// A topic in a cursor, with its tenant in a list of all tenants; the schema excludes `.` and `..` separately.
macro_rules! topic_of_any {
    () => {
        "(?:~[A-Za-z0-9._-]{1,32}/)?[A-Za-z0-9._-]{1,64}"
    };
}

/// A position in the job list.
macro_rules! position {
    () => {
        "0*[0-9A-Fa-f]{1,4}-0*[0-9A-Fa-f]{1,16}-0*[0-9A-Fa-f]{1,8}"
    };
}

/// A position in the dead jobs.
macro_rules! dead {
    () => {
        "[0-9A-Fa-f]{1,12}-[0-9A-Fa-f]{24}"
    };
}

/// A cursor of the list of topics.
pub(super) const TOPIC_CURSOR: &str = concat!("^", topic_of_any!(), "$");
/// A topic; the schema excludes `.` and `..` separately.
pub(super) const TOPIC: &str = "^[A-Za-z0-9._-]{1,64}$";
/// A job's id; neither `.` nor `..`.
pub(super) const JOB_ID: &str = "^[A-Za-z0-9._~:@+=,-]{1,128}$";
/// The reason of a dead job.
pub(super) const REASON: &str = "^[!-~]{1,64}$";
/// A tag.
pub(super) const TAG: &str = "^[!-~]{1,64}$";
/// The `run_id` of a server.
pub(super) const RUN_ID: &str = "^[0-9a-f]{1,64}$";
/// A line of text: no control characters.
pub(super) const LINE: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]+$";
/// A text without white space at its ends; it may be empty. `(?:[^ ]| )` is any character.
pub(super) const TRIMMED: &str = "^(?:[^ \\t\\n\\f\\r](?:(?:[^ ]| )*[^ \\t\\n\\f\\r])?)?$";
/// Base64 with padding (RFC 4648, section 4), whose unused bits are zero.
pub(super) const BASE64: &str =
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
/// A media type, with parameters in any form.
pub(super) const MEDIA_TYPE: &str =
    concat!("^", token!(), "/", token!(), "(?:[ \\t]*;(?:[ -~\\t]*[!-~])?)?$");
/// The name of a header, without those that are reserved.
pub(super) const HEADER_NAME: &str = concat!("^", token!(), "$");
/// The value of a header: visible ASCII, with white space only inside.
pub(super) const HEADER_VALUE: &str = "^(?:[!-~](?:[ -~\\t]*[!-~])?)?$";
/// A key of 1 to 255 visible ASCII characters, bare or as a quoted string.
pub(super) const IDEMPOTENCY_KEY: &str = "^(?:[!#-~][!-~]{0,254}|\"(?:[!#-\\[\\]-~]|\\\\[\"\\\\]){1,255}\")$";

/// A host of a URL that needs no encoding.
macro_rules! host {
    () => {
        concat!(
            "(?:",
            // A name whose last part does not begin with a digit.
            "(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\\.)*",
            "[A-Za-z_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\\.?",
            "|(?:",
            octet!(),
            "\\.){3}",
            octet!(),
            "|\\[[0-9A-Fa-f:.]+\\])",
        )
    };
}

/// Scheme, host and port of a URL that needs no encoding.
macro_rules! origin {
    () => {
        concat!(
            "[Hh][Tt][Tt][Pp][Ss]?://",
            host!(),
            // 1 to 65535.
            "(?::(?:0{0,3}[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])?)?",
        )
    };
}

/// A URL that needs no encoding. A host name in other letters is to be written in its ASCII form.
pub(super) const URL: &str = concat!("^", origin!(), "(?:[/?][!-\"$-\\[\\]-~]*)?$");
/// Scheme, host and port of a URL, or `*`.
pub(super) const ORIGIN: &str = concat!("^(?:\\*|", origin!(), "/?)$");

/// A point in time: RFC 3339 with annotations of RFC 9557, also without seconds or in the basic form of
/// ISO 8601. Without an offset an annotation must name the zone.
pub(super) const TIME: &str =
    concat!("^", local_time!(), "(?:", offset!(), annotations!("*"), "|", annotations!("+"), ")$");
/// A time that may be local, with its zone in another field.
pub(super) const DUE_TIME: &str = concat!("^", local_time!(), "(?:", offset!(), ")?", annotations!("*"), "$");
/// The name of a time zone.
pub(super) const ZONE: &str = "^[A-Za-z][A-Za-z0-9._+/-]{0,63}$";

/// A duration with units: `1h 30m`, `90 minutes`, `01:30:00` or `PT1H30M`. Units come in descending order
/// and only the last one, a week to a microsecond, has a fraction. Months and years have no fixed length.
pub(super) const DURATION: &str = concat!(
    "^\\+?(?:[Pp]\\B(?:[0-9]+[Ww])?(?:[0-9]+[Dd])?(?:[Tt]\\B",
    "(?:[0-9]+(?:[Hh]|",
    fraction!(""),
    "[Hh]$))?(?:[0-9]+(?:[Mm]|",
    fraction!(""),
    "[Mm]$))?",
    "(?:[0-9]+",
    fraction!("?"),
    "[Ss])?)?",
    "|",
    unit!("w(?:eeks?|ks?)?"),
    unit!("d(?:ays?)?"),
    "(?:",
    separator!(),
    "[0-9]+:[0-9]+:[0-9]+",
    fraction!("?"),
    "|",
    unit!("h(?:ours?|rs?)?"),
    unit!("m(?:inutes?|ins?)?"),
    unit!("s(?:econds?|ecs?)?"),
    unit!("m(?:illiseconds?|illis?|secs?|s)"),
    unit!("(?:micro(?:seconds?|s)?|[uµ]s(?:ecs?)?)"),
    whole!("n(?:ano(?:seconds?|s)?|secs?|s)"),
    ")",
    end!(),
    ")$",
);

/// A cursor of the job list.
pub(super) const JOB_CURSOR: &str =
    concat!("^(?:", position!(), "|(?:", position!(), ")?\\.(?:", position!(), ")?\\.[0-9A-Fa-f]{24})$");
/// A cursor of the deletion of a topic.
pub(super) const DELETION_CURSOR: &str = concat!("^", position!(), "$");
/// A cursor of dead jobs.
pub(super) const DEAD_CURSOR: &str = concat!("^", dead!(), "$");
/// A cursor of a purge.
pub(super) const PURGE_CURSOR: &str = concat!("^[0-9A-Fa-f]{1,4}-[0-9A-Fa-f]{1,12}(?:\\.", dead!(), ")?$");
/// A cursor of the history.
pub(super) const HISTORY_CURSOR: &str = "^[A-Za-z0-9_-]{2,512}$";
/// The id of an entry of the audit log, which is also a cursor of its pages.
pub(super) const AUDIT_LOG_ID: &str = "^[0-9A-HJKMNP-TV-Z]{26}$";
/// Who has called: a key, the root key, or anybody.
pub(super) const CALLER: &str = "^(?:root|open|key:key_[A-Za-z0-9]{1,60})$";
/// A cursor of a replay.
pub(super) const REPLAY_CURSOR: &str = "^[0-9A-Fa-f]{1,12}\\.[A-Za-z0-9_-]{0,512}$";
/// The name of a replay.
pub(super) const REPLAY_NAME: &str = "^[A-Za-z0-9._-]{1,64}$";
/// A host name or an IPv6 address, without a port.
pub(super) const END_HOST: &str = "^(?:[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45})$";
/// A receipt.
pub(super) const RECEIPT: &str = "^[A-Za-z0-9_-]{40}$";
/// The id of a bulk operation.
pub(super) const BULK_ID: &str = "^[0-9a-f]{16}$";
/// How the id of a job begins.
pub(super) const ID_PREFIX: &str = "^[A-Za-z0-9._~:@+=,-]{1,128}$";
/// An address, a slash and the length of a prefix.
pub(super) const NETWORK: &str = "^[0-9a-fA-F.:]+/[0-9]{1,3}$";
/// The id of a key of a caller.
pub(super) const KEY_ID: &str = "^key_[A-Za-z0-9]{1,60}$";
/// A host name in lower case, or an address of IPv6.
pub(super) const HOST: &str = "^[a-z0-9._:-]{1,253}$";
/// The name of a tenant; the schema excludes `.` and `..` separately.
pub(super) const TENANT: &str = "^[A-Za-z0-9._-]{1,32}$";
/// The name of a tenant, or `*`; the schema excludes `.` and `..` separately.
pub(super) const QUOTA: &str = "^(?:[A-Za-z0-9._-]{1,32}|\\*)$";
/// The name of a credential; the schema excludes `.` and `..` separately.
pub(super) const CREDENTIAL: &str = "^[A-Za-z0-9._-]{1,64}$";
/// A host, or a host and a port from 1 to 65535.
pub(super) const DESTINATION: &str = concat!(
    "^",
    host!(),
    "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$"
);
/// A cursor of destinations.
pub(super) const DESTINATION_CURSOR: &str = concat!("^(?:https?)?~[0-9]{1,5}~", host!(), "$");
/// The id of a schedule; the schema excludes `.` and `..` separately.
pub(super) const SCHEDULE_ID: &str = "^[A-Za-z0-9._-]{1,96}$";
/// A cursor of schedules.
pub(super) const SCHEDULE_CURSOR: &str = concat!("^[A-Za-z0-9._-]{1,96}~", topic_of_any!(), "$");
/// A cron expression.
pub(super) const CRON: &str = "^[ -~]+$";
/// A bearer token.
pub(super) const TOKEN: &str = "^[!-~]{1,4096}$";
/// A user, without a colon and control characters.
pub(super) const USER: &str = "^[^:\\p{Cc}]*$";
/// A password, without control characters.
pub(super) const PASSWORD: &str = "^\\P{Cc}*$";
/// The id of a secret.
pub(super) const SECRET_ID: &str = "^sec_[A-Za-z0-9]{1,60}$";
/// `whsec_` and the base64 of 24 to 64 bytes, whose unused bits are zero, with or without padding.
pub(super) const SECRET: &str = concat!(
    "^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/][AQgw]={0,2}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=?)?",
    "|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/][AQgw]={0,2})?)$"
);
/// A sealed secret: the id of a master key, a dot and base64.
pub(super) const SEALED: &str = "^[A-Za-z0-9_-]{1,32}\\.[A-Za-z0-9_-]+$";
/// The content hash of an exported job.
pub(super) const CONTENT: &str = "^[0-9a-f]{16}$";
/// A `traceparent` of version 00 (W3C Trace Context); neither id is all zeros.
pub(super) const TRACEPARENT: &str = "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$";

/// A text without regard to its case.
pub(super) fn in_any_case(text: &str) -> String {
    let either = |c: char| match (c.to_ascii_uppercase(), c.to_ascii_lowercase()) {
        (upper, lower) if upper == lower => c.to_string(),
        (upper, lower) => format!("[{upper}{lower}]"),
    };
    text.chars().map(either).collect()
}
