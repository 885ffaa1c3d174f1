//! One submitted job: from JSON to a [`NewJob`], or to all the fields that were wrong.

mod body;
mod due;
mod policy;

use std::time::Duration;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

pub(super) use self::body::DEFAULT_CONTENT_TYPE;
pub(super) use self::due::{TIME, due, millis_up, time};
pub(super) use self::policy::retry;
use super::fields::{Fields, Mistakes, read, shown};
use super::{Problem, duration, notice};
use crate::clock::Timestamp;
use crate::job::{
    Callback, ContentHash, Context, Delivery, Headers, JobId, JobKey, MAX_JOB, MAX_TIMEOUT, MIN_TIMEOUT,
    NewJob, Topic, Trace,
};
use crate::policy::Policies;

/// The fields of a submit.
pub(super) const KNOWN: [&str; 14] = [
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
    "ttr",
    "on_dead",
];

/// What is told while the policies count and are not known.
const UNKNOWN: &str = "where the job goes is not known yet, for want of its topic's policy: it was not accepted; submit it again later";

/// What a submit needs beside its own fields.
pub struct Defaults<'a> {
    /// The time, to judge `at` by.
    pub now: Timestamp,
    /// Makes an id for a job that brings none.
    pub make_id: &'a mut dyn FnMut() -> JobId,
    /// The trace the request belongs to.
    pub trace: Option<Trace>,
}

/// Parses one job; one without a URL is for pull.
///
/// # Errors
/// Those of [`parse_job_by`].
pub fn parse_job(json: &[u8], defaults: Defaults<'_>) -> Result<NewJob, Problem> {
    parse_job_by(json, defaults, Some(&Policies::new()))
}

/// Parses one job. One that brings neither a URL nor a time to run goes to the URL of its
/// topic's policy, where that has one.
///
/// # Errors
/// A 400 problem for what is no JSON object in UTF-8, 413 for a body over
/// [`MAX_BODY`](crate::job::MAX_BODY), 422 with all the fields that are wrong, 503 where the
/// policies count and are not known.
pub fn parse_job_by(
    json: &[u8],
    defaults: Defaults<'_>,
    policies: Option<&Policies>,
) -> Result<NewJob, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &KNOWN, &mut mistakes);
    match judge(&fields, defaults, policies, &mut mistakes)? {
        Some(job) if mistakes.is_empty() => Ok(job),
        _ => Err(Problem::fields(mistakes.into_inner())),
    }
}

/// The fields of one job, none of them looked at yet.
pub(super) fn open(json: &[u8]) -> Result<Fields<'_>, Problem> {
    if json.len() > MAX_JOB {
        let detail = format!("the job has {} bytes; at most {MAX_JOB} are allowed", json.len());
        return Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let text = std::str::from_utf8(json).map_err(|e| Problem::unreadable(format!("not UTF-8: {e}")))?;
    serde_json::from_str(text).map_err(|e| Problem::unreadable(format!("not a JSON object: {e}")))
}

/// The job that the fields of a submit make; only to be used where there are no mistakes.
pub(super) fn judge(
    fields: &Fields<'_>,
    defaults: Defaults<'_>,
    policies: Option<&Policies>,
    mistakes: &mut Mistakes,
) -> Result<Option<NewJob>, Problem> {
    let Defaults { now, make_id, trace } = defaults;
    let topic = topic(fields, mistakes);
    let says_where = fields.get("url").is_some() || fields.get("ttr").is_some();
    let of_topic = topic.as_ref().filter(|_| !says_where).and_then(|topic| policies?.get(topic)?.url.clone());
    let is_push = fields.get("url").is_some() || of_topic.is_some();
    let id = id(fields, make_id, mistakes);
    let due = due::due(fields, now, mistakes);
    let callback = callback(fields, of_topic, mistakes);
    let body = body::body(fields, mistakes)?;
    let headers = entries(fields, "headers", Headers::parse, Headers::ALLOWED, mistakes);
    let context = entries(fields, "context", Context::parse, Context::ALLOWED, mistakes);
    let retry = retry(fields, mistakes);
    if !says_where && policies.is_none() && mistakes.is_empty() {
        return Err(Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, UNKNOWN));
    }
    let timeout = if is_push { timeout(fields, mistakes) } else { no_timeout(fields, mistakes) };
    let ttr = ttr(fields, mistakes);
    let timeout = if is_push { timeout } else { ttr };
    let on_dead = notice::on_dead(fields, topic.as_ref(), mistakes);
    let (Some(topic), Some(id), Some(callback)) = (topic, id, callback) else { return Ok(None) };
    Ok(Some(NewJob {
        key: JobKey { topic, id },
        due,
        delivery: Delivery {
            callback,
            body,
            headers,
            context,
            retry,
            timeout,
            trace,
            on_dead: on_dead.map(Box::new),
        },
        content: content_hash(fields),
    }))
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

fn callback(fields: &Fields<'_>, of_topic: Option<Callback>, mistakes: &mut Mistakes) -> Option<Callback> {
    let Some(raw) = fields.get("url") else { return of_topic.or_else(|| Some(Callback::pull())) };
    super::policy::url("url", raw, mistakes)
}

/// A map of strings, in the order written; a name that stands twice is refused.
pub(super) fn entries<T: Default>(
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

fn timeout(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    timeout_of(fields.get("timeout")?, mistakes)
}

fn no_timeout(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    fields.get("timeout")?;
    mistakes.add("timeout", "given for a job without a url, which is for pull", "ttr");
    None
}

/// The deadline of an attempt.
pub(super) fn timeout_of(raw: &RawValue, mistakes: &mut Mistakes) -> Option<Duration> {
    match duration::from_json(raw) {
        Ok(timeout) if (MIN_TIMEOUT..=MAX_TIMEOUT).contains(&timeout) => Some(timeout),
        _ => {
            mistakes.add("timeout", format!("{} is no timeout", shown(raw)), "100 ms to 10 min");
            None
        }
    }
}

fn ttr(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let raw = fields.get("ttr")?;
    if fields.get("url").is_some() {
        mistakes.add("ttr", "given for a job with a url", "timeout, or no url: then the job is for pull");
        return None;
    }
    super::pull::ttr(raw, mistakes)
}

/// The fields of a submit as written, before defaults: sorted by name, scalars as their text, objects
/// and lists without the white space between their parts, the body byte for byte.
fn content_hash(fields: &Fields<'_>) -> ContentHash {
    let counts =
        |name: &str, raw: &RawValue| KNOWN.contains(&name) && (name == "body" || raw.get() != "null");
    let mut parts: Vec<_> = fields.iter().filter(|(name, raw)| counts(name, raw)).collect();
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

#[cfg(test)]
mod tests;
