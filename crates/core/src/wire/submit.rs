//! One submitted job: from JSON to a [`NewJob`], or to all the fields that were wrong.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::fields::{Fields, Mistakes, depth, read};
use super::{Problem, duration};
use crate::clock::Timestamp;
use crate::job::{
    Body, Callback, ContentHash, Context, Delivery, Due, Headers, JobId, JobKey, MAX_AHEAD, MAX_BODY,
    MAX_DEPTH, MAX_JOB, MAX_TIMEOUT, MIN_TIMEOUT, NewJob, Topic, Trace,
};
use crate::retry::{DEFAULT_JITTER, Max, RetryPolicy};

const KNOWN: [&str; 12] = [
    "topic",
    "id",
    "delay",
    "at",
    "url",
    "body",
    "body_base64",
    "content_type",
    "headers",
    "context",
    "retry",
    "timeout",
];

/// What a submit needs beside its own fields.
pub struct Defaults<'a> {
    /// The time, to judge `at` by.
    pub now: Timestamp,
    /// Makes an id for a job that brings none.
    pub make_id: &'a mut dyn FnMut() -> JobId,
    /// The trace the request belongs to.
    pub trace: Option<Trace>,
}

/// Parses one job.
///
/// # Errors
/// A 400 problem for what is no JSON object in UTF-8, 413 for a body over
/// [`MAX_BODY`], 422 with all the fields that are wrong.
pub fn parse_job(json: &[u8], defaults: Defaults<'_>) -> Result<NewJob, Problem> {
    let Defaults { now, make_id, trace } = defaults;
    if json.len() > MAX_JOB {
        let detail = format!("the job has {} bytes; at most {MAX_JOB} are allowed", json.len());
        return Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let text = std::str::from_utf8(json).map_err(|e| Problem::unreadable(format!("not UTF-8: {e}")))?;
    let fields: Fields<'_> =
        serde_json::from_str(text).map_err(|e| Problem::unreadable(format!("not a JSON object: {e}")))?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &KNOWN, &mut mistakes);

    let topic = topic(&fields, &mut mistakes);
    let id = id(&fields, make_id, &mut mistakes);
    let due = due(&fields, now, &mut mistakes);
    let callback = callback(&fields, &mut mistakes);
    let body = body(&fields, &mut mistakes)?;
    let headers = entries(&fields, "headers", Headers::parse, Headers::ALLOWED, &mut mistakes);
    let context = entries(&fields, "context", Context::parse, Context::ALLOWED, &mut mistakes);
    let retry = retry(&fields, &mut mistakes);
    let timeout = timeout(&fields, &mut mistakes);

    match (topic, id, callback) {
        (Some(topic), Some(id), Some(callback)) if mistakes.is_empty() => Ok(NewJob {
            key: JobKey { topic, id },
            due,
            delivery: Delivery { callback, body, headers, context, retry, timeout, trace },
            content: content_hash(&fields),
        }),
        _ => Err(Problem::fields(mistakes.into_inner())),
    }
}

fn topic(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Topic> {
    let Some(raw) = fields.get("topic") else {
        mistakes.add("topic", "missing", Topic::ALLOWED);
        return None;
    };
    let topic = read::<String>(raw).and_then(|t| t.parse().ok());
    if topic.is_none() {
        mistakes.add("topic", format!("{} is no topic", shown(raw)), Topic::ALLOWED);
    }
    topic
}

fn id(fields: &Fields<'_>, make: &mut dyn FnMut() -> JobId, mistakes: &mut Mistakes) -> Option<JobId> {
    let Some(raw) = fields.get("id") else { return Some(make()) };
    let id = read::<String>(raw).and_then(|t| t.parse().ok());
    if id.is_none() {
        mistakes.add("id", format!("{} is no id", shown(raw)), JobId::ALLOWED);
    }
    id
}

fn due(fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> Due {
    const AHEAD: &str = "at most 10 years ahead";
    match (fields.get("delay"), fields.get("at")) {
        (None, None) => Due::In(Duration::ZERO),
        (Some(_), Some(_)) => {
            mistakes.add("delay", "given together with at", "one of delay and at, or neither for now");
            Due::In(Duration::ZERO)
        }
        (Some(raw), None) => match duration::from_json(raw) {
            Ok(delay) if delay <= MAX_AHEAD => Due::In(delay),
            Ok(_) => wrong_due(mistakes, "delay", raw, "too far ahead", AHEAD),
            Err(why) => wrong_due(mistakes, "delay", raw, &why, duration::ALLOWED),
        },
        (None, Some(raw)) => {
            let at = read::<String>(raw).and_then(|t| t.parse::<jiff::Timestamp>().ok());
            match at.map(|t| Timestamp::from_millis(millis_up(t))) {
                Some(at) if at.since(now) <= MAX_AHEAD => Due::At(at),
                Some(_) => wrong_due(mistakes, "at", raw, "too far ahead", AHEAD),
                None => wrong_due(
                    mistakes,
                    "at",
                    raw,
                    "not RFC 3339",
                    "a time by RFC 3339, such as 2026-11-20T09:30:00Z",
                ),
            }
        }
    }
}

fn wrong_due(mistakes: &mut Mistakes, field: &str, raw: &RawValue, why: &str, allowed: &str) -> Due {
    mistakes.add(field, format!("{}: {why}", shown(raw)), allowed);
    Due::In(Duration::ZERO)
}

/// In ms, rounded up so that a job is never early; times before 1970 count as 1970.
fn millis_up(t: jiff::Timestamp) -> u64 {
    u64::try_from(t.as_nanosecond().max(0)).map_or(u64::MAX, |ns| ns.div_ceil(1_000_000))
}

fn callback(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Callback> {
    let Some(raw) = fields.get("url") else {
        mistakes.add("url", "missing; jobs without a callback URL are not supported yet", Callback::ALLOWED);
        return None;
    };
    let parsed = match read::<String>(raw) {
        Some(text) => Callback::parse(&text),
        None => return wrong_type(mistakes, "url", raw, Callback::ALLOWED),
    };
    parsed.map_err(|e| mistakes.add("url", e.detail, e.allowed)).ok()
}

fn wrong_type<T>(mistakes: &mut Mistakes, field: &str, raw: &RawValue, allowed: &str) -> Option<T> {
    mistakes.add(field, format!("{} is of the wrong type", shown(raw)), allowed);
    None
}

fn body(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Result<Body, Problem> {
    let content_type = fields.get("content_type");
    let bytes = match (fields.raw("body"), fields.get("body_base64")) {
        (Some(_), Some(raw)) => {
            mistakes.add("body_base64", "given together with body", "one of body and body_base64");
            return Ok(Body { bytes: Bytes::new(), content_type: Some(shown(raw)) });
        }
        (Some(raw), None) => {
            if depth(raw.get()) > MAX_DEPTH {
                mistakes.add("body", "nested too deeply", format!("at most {MAX_DEPTH} levels"));
            }
            if content_type.is_some() {
                mistakes.add("content_type", "given for a JSON body", "only together with body_base64");
            }
            let bytes = Bytes::copy_from_slice(raw.get().as_bytes());
            return sized(bytes).map(|bytes| Body { bytes, content_type: None });
        }
        (None, Some(raw)) => match read::<String>(raw).map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) => sized(bytes.into())?,
            _ => {
                mistakes.add("body_base64", "not base64", "base64 by RFC 4648, section 4, with padding");
                Bytes::new()
            }
        },
        (None, None) => Bytes::new(),
    };
    let content_type = match content_type {
        None => "application/octet-stream".to_owned(),
        Some(raw) => read::<String>(raw).filter(|t| is_content_type(t)).unwrap_or_else(|| {
            mistakes.add(
                "content_type",
                format!("{} is no content type", shown(raw)),
                "a media type such as text/plain, at most 255 bytes",
            );
            String::new()
        }),
    };
    Ok(Body { bytes, content_type: Some(content_type) })
}

fn sized(bytes: Bytes) -> Result<Bytes, Problem> {
    if bytes.len() > MAX_BODY {
        let detail = format!("the body has {} bytes; at most {MAX_BODY} are allowed", bytes.len());
        return Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(bytes)
}

fn is_content_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let token = |t: &str| !t.is_empty() && http::HeaderName::from_bytes(t.as_bytes()).is_ok();
    let named = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    named && text.len() <= 255 && text.trim() == text && http::HeaderValue::from_str(text).is_ok()
}

/// A map of strings, in the order written; a name that stands twice is refused.
fn entries<T: Default>(
    fields: &Fields<'_>,
    name: &str,
    parse: impl FnOnce(Vec<(String, String)>) -> Result<T, crate::job::Refused>,
    allowed: &str,
    mistakes: &mut Mistakes,
) -> T {
    let Some(raw) = fields.get(name) else { return T::default() };
    let strings = serde_json::from_str::<Fields<'_>>(raw.get()).ok().and_then(|map| {
        map.iter()
            .map(|(key, value)| Some((key.to_owned(), read::<String>(value)?)))
            .collect::<Option<Vec<_>>>()
    });
    let Some(strings) = strings else {
        mistakes.add(name, "not an object of strings", allowed);
        return T::default();
    };
    parse(strings).unwrap_or_else(|e| {
        mistakes.add(name, e.detail, e.allowed);
        T::default()
    })
}

fn retry(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<RetryPolicy> {
    const ALLOWED: &str = "an object with delays (1 to 50, each 10 ms to 30 days) or preset (default, standard-webhooks, none), \
        and optionally max (failures, -1 for ever) and jitter (0 to 1)";
    let raw = fields.get("retry")?;
    let Ok(policy) = serde_json::from_str::<Fields<'_>>(raw.get()) else {
        return wrong_type(mistakes, "retry", raw, ALLOWED);
    };
    policy.check_names("retry.", &["delays", "preset", "max", "jitter"], mistakes);
    let jitter = match policy.get("jitter") {
        None => DEFAULT_JITTER,
        Some(raw) => read::<f32>(raw).filter(|j| (0.0..=1.0).contains(j)).unwrap_or_else(|| {
            mistakes.add("retry.jitter", format!("{} is no share", shown(raw)), "0 to 1");
            DEFAULT_JITTER
        }),
    };
    let max = match policy.get("max") {
        None => Max::Tiers,
        Some(raw) => max(raw).unwrap_or_else(|| {
            mistakes.add(
                "retry.max",
                format!("{} is no bound", shown(raw)),
                "1 to 4294967295, or -1 for ever",
            );
            Max::Tiers
        }),
    };
    let tiers = match (policy.get("delays"), policy.get("preset")) {
        (Some(raw), None) => delays(raw),
        (None, Some(raw)) => {
            read::<String>(raw).and_then(|name| RetryPolicy::preset(&name)).ok_or_else(|| {
                ("retry.preset", format!("{} is unknown", shown(raw)), "default, standard-webhooks, none")
            })
        }
        _ => Err(("retry", "needs exactly one of delays and preset".to_owned(), ALLOWED)),
    };
    match tiers {
        Ok(tiers) => tiers.with(max, jitter).map_err(|e| mistakes.add("retry", e, ALLOWED)).ok(),
        Err((field, detail, allowed)) => {
            mistakes.add(field, detail, allowed);
            None
        }
    }
}

fn delays(raw: &RawValue) -> Result<RetryPolicy, (&'static str, String, &'static str)> {
    let wrong = |detail: String| ("retry.delays", detail, "1 to 50 durations, each 10 ms to 30 days");
    let list: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| wrong(format!("{} is no list", shown(raw))))?;
    let delays = list.into_iter().map(duration::from_json).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    RetryPolicy::new(delays, Max::Tiers, DEFAULT_JITTER).map_err(|e| wrong(e.to_string()))
}

fn max(raw: &RawValue) -> Option<Max> {
    match read::<i64>(raw)? {
        -1 => Some(Max::Unlimited),
        n => u32::try_from(n).ok().filter(|n| *n > 0).map(Max::Failures),
    }
}

fn timeout(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let raw = fields.get("timeout")?;
    match duration::from_json(raw) {
        Ok(timeout) if (MIN_TIMEOUT..=MAX_TIMEOUT).contains(&timeout) => Some(timeout),
        _ => {
            mistakes.add("timeout", format!("{} is no timeout", shown(raw)), "100 ms to 10 min");
            None
        }
    }
}

/// The fields as written, before defaults: sorted by name, scalars as their text, objects
/// and lists without the white space between their parts, the body byte for byte.
fn content_hash(fields: &Fields<'_>) -> ContentHash {
    let mut parts: Vec<_> = fields.iter().filter(|(n, raw)| *n == "body" || raw.get() != "null").collect();
    parts.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    for (name, raw) in parts {
        let text = raw.get();
        let compact = if name != "body" && text.starts_with(['{', '[']) {
            read::<serde_json::Value>(raw).map(|v| v.to_string())
        } else {
            None
        };
        let text = compact.as_deref().unwrap_or(text);
        hash.update(name);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut short = [0; 8];
    short.copy_from_slice(&digest[..8]);
    ContentHash(short)
}

/// A value as written, cut to what an error message can carry.
fn shown(raw: &RawValue) -> String {
    let text = raw.get();
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
