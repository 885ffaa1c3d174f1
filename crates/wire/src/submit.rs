//! Parses a submitted job: from JSON to a [`NewJob`], or to a problem with all wrong fields.

pub(super) mod body;
mod request;

use std::borrow::Cow;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{
    Callback, CallbackMethod, ContentHash, Delivery, Due, Expires, JobId, JobKey, NewJob, OrderKey, Tenant,
    Topic, Trace,
};
use ringback_core::token::Token;
use ringback_core::topic_policy::Policies;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

pub use self::request::{BatchRequest, JobRequest};
use super::declare::{Kind as _, Request as _};
use super::field_parsers::due::due;
use super::field_parsers::if_exists::if_exists;
use super::field_parsers::object::{Fields, Mistakes, open, read};
use super::field_parsers::values::refuse_masks;
use super::kinds::jobs::EXPIRES;
use super::notice::notice_url;
use super::problem::Problem;
use super::schema::{Timeout, Ttr};

/// The fields that are not content: what to do with a job that exists, and the key, which the id has.
const NO_CONTENT: [&str; 3] = ["if_exists", "max_delay", "key"];

/// The fields that have a body, which may be long.
pub(super) const LONG: [&str; 2] = ["body", "body_base64"];

/// The detail of the problem while the job needs its topic's policy and policies are not loaded yet.
const UNKNOWN: &str = "the policies of the topics are not known yet, and the job needs that of its topic: it was not accepted; retry later";

/// What a submit needs besides its own fields.
pub struct Defaults<'a> {
    /// The current time, to check `at`.
    pub now: Timestamp,
    /// Makes an id for a job without one, by its topic.
    pub make_id: &'a mut dyn FnMut(&Topic) -> JobId,
    /// Makes a token for a submit that may change a job.
    pub make_token: &'a mut dyn FnMut() -> Token,
    /// The trace the request belongs to.
    pub trace: Option<Trace>,
    /// Whose topics the caller names.
    pub tenant: Option<&'a Tenant>,
}

/// Parses one job without policies. A job without a URL is a pull job.
///
/// # Errors
/// As [`parse_job_with_policies`].
pub fn parse_job(json: &[u8], defaults: Defaults<'_>) -> Result<NewJob, Problem> {
    parse_job_with_policies(json, defaults, Some(&Policies::new()))
}

/// Parses one job. A job with neither `url` nor `ttr` goes to the URL of its topic's policy, if that has
/// one. `policies` is `None` while they are not loaded yet.
///
/// # Errors
/// A 400 problem if it is not a JSON object in UTF-8, 413 if it is too long or its body is over
/// [`MAX_BODY`](ringback_core::job::MAX_BODY), 422 with all wrong fields, 503 if the policies are needed and not
/// loaded.
pub fn parse_job_with_policies(
    json: &[u8],
    defaults: Defaults<'_>,
    policies: Option<&Policies>,
) -> Result<NewJob, Problem> {
    if json.trim_ascii_start().starts_with(b"[") {
        let detail = "not a JSON object but an array; an array of jobs goes to POST /v1/jobs/batch";
        return Err(Problem::unreadable(detail));
    }
    let (fields, now) = (open(json)?, defaults.now);
    let mut mistakes = Mistakes::default();
    fields.check_names("", JobRequest::NAMES, &mut mistakes);
    if !fields.fit(&LONG, &mut mistakes) {
        return Err(mistakes.into_problem());
    }
    match build_job(&fields, defaults, policies, &mut mistakes)? {
        Some(job) if mistakes.is_empty() => {
            check_expires(&job, now, &mut mistakes);
            mistakes.or(job)
        }
        _ => Err(mistakes.into_problem()),
    }
}

/// Builds the job from the fields of a submit. The job is valid only if no mistakes were added; `None` if topic, id or
/// URL are wrong. Fails with 413 for a body that is too large, and with 503 if `policies` are needed and not loaded.
pub(super) fn build_job(
    fields: &Fields<'_>,
    defaults: Defaults<'_>,
    policies: Option<&Policies>,
    mistakes: &mut Mistakes,
) -> Result<Option<NewJob>, Problem> {
    let Defaults { now, make_id, make_token, trace, tenant } = defaults;
    let JobRequest { topic, id, key, url, method, headers, context, retry, expires, tags, .. } =
        JobRequest::values(fields, mistakes);
    let topic = topic.map(|topic| topic.of_tenant(tenant));
    let has_target = fields.get("url").is_some() || fields.get("ttr").is_some();
    let of_topic = topic.as_ref().filter(|_| !has_target).and_then(|topic| policies?.get(topic)?.url.clone());
    let is_push = fields.get("url").is_some() || of_topic.is_some();
    let is_made = fields.get("id").is_none();
    let made = topic.as_ref().filter(|_| is_made).map(&mut *make_id);
    // The caller may learn the id and submit the same with it. One with an idempotency key is repeated with that.
    let is_content = made.as_ref().is_some_and(|id| !id.is_of_key());
    let id = match made {
        Some(made) => with_key(made, key.as_ref(), mistakes),
        None => id.inspect(|id| check_key(id, key.as_ref(), mistakes)),
    };
    let due = due(fields, now, mistakes);
    let callback =
        if fields.get("url").is_some() { url } else { of_topic.or_else(|| Some(Callback::pull())) };
    let body = body::body(fields, mistakes)?;
    check_method(fields, method, is_push, mistakes);
    refuse_masks(&headers, mistakes);
    if !has_target && policies.is_none() && mistakes.is_empty() {
        return Err(Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, UNKNOWN));
    }
    let timeout =
        if is_push { Timeout::read(fields, "timeout", "", mistakes) } else { no_timeout(fields, mistakes) };
    let ttr = ttr(fields, mistakes);
    let timeout = if is_push { timeout } else { ttr };
    let on_dead = notice_url(fields, "on_dead", topic.as_ref(), mistakes);
    let on_done = notice_url(fields, "on_done", topic.as_ref(), mistakes);
    if !is_push {
        only_with_url(fields, "on_done", mistakes);
    }
    let if_exists = if_exists(fields, make_token, mistakes);
    let (Some(topic), Some(id), Some(callback)) = (topic, id, callback) else { return Ok(None) };
    // A wrong field may be as long as the request, so it is not read to its end for this.
    let content = if mistakes.is_empty() {
        content_hash(fields, is_content.then_some(&id))
    } else {
        ContentHash::default()
    };
    Ok(Some(NewJob {
        key: JobKey { topic, id },
        due,
        delivery: Delivery {
            callback,
            method: method.unwrap_or_default(),
            body,
            headers,
            context,
            retry,
            timeout,
            expires,
            tags,
            trace,
            on_dead: on_dead.map(Box::new),
            on_done: on_done.map(Box::new),
        },
        content,
        if_exists,
        limits: None,
    }))
}

/// The id that was made for a job, with its key if it has one. `None` if that would be too long, which adds a mistake.
fn with_key(made: JobId, key: Option<&OrderKey>, mistakes: &mut Mistakes) -> Option<JobId> {
    let Some(key) = key else { return Some(made) };
    let id = key.id(made.as_str());
    if id.is_none() {
        let detail = format!("{key}~{made} is too long for the id of the job");
        mistakes.add("key", detail, format!("a shorter key, or an id that begins with {key}~"));
    }
    id
}

/// Adds a mistake if an id does not have the key.
fn check_key(id: &JobId, key: Option<&OrderKey>, mistakes: &mut Mistakes) {
    if let Some(key) = key.filter(|key| !key.is_of(id)) {
        let detail = format!("{id} is not an id of a job with the key {key}");
        mistakes.add("id", detail, format!("{key}, or an id that begins with {key}~, or no id"));
    }
}

/// Adds a mistake if a pull job has a field that needs a URL.
fn only_with_url(fields: &Fields<'_>, field: &str, mistakes: &mut Mistakes) {
    if fields.get(field).is_some() {
        let allowed = format!("no {field}, or a url");
        mistakes.add(field, "given for a job without a url, which is for pull", allowed);
    }
}

/// Adds a mistake if a pull job has a method, or if the method has no body and the job has one.
fn check_method(fields: &Fields<'_>, method: Option<CallbackMethod>, is_push: bool, mistakes: &mut Mistakes) {
    if !is_push {
        only_with_url(fields, "method", mistakes);
    }
    let has_body = fields.raw("body").is_some() || fields.get("body_base64").is_some();
    if let Some(method) = method.filter(|method| !method.has_body() && has_body) {
        let detail = format!("{method}, which has no body, and the job has one");
        mistakes.add("method", detail, "POST, PUT or PATCH, or no body");
    }
}

/// Adds a mistake if the job expires at a fixed time that is not after its due time.
fn check_expires(job: &NewJob, now: Timestamp, mistakes: &mut Mistakes) {
    let due = match job.due {
        Due::In(delay) => now.plus(delay),
        Due::At(at) => at.max(now),
    };
    if let Some(Expires::At(time)) = job.delivery.expires
        && time <= due
    {
        mistakes.add("expires", format!("{time} comes before the job is due"), EXPIRES);
    }
}

fn no_timeout(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    fields.get("timeout")?;
    mistakes.add("timeout", "given for a job without a url, which is for pull", "ttr");
    None
}

fn ttr(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    if fields.get("ttr").is_some() && fields.get("url").is_some() {
        mistakes.add("ttr", "given for a job with a url", "timeout, or no url: then the job is for pull");
        return None;
    }
    Ttr::read(fields, "ttr", "", mistakes)
}

/// Hashes the fields that are content as written, before defaults: sorted by name, scalars as their text,
/// objects and lists without the white space between their parts, the body byte for byte.
/// An id that was made counts as written.
fn content_hash(fields: &Fields<'_>, made: Option<&JobId>) -> ContentHash {
    let is_content = |name: &str| JobRequest::NAMES.contains(&name) && !NO_CONTENT.contains(&name);
    let counts = |name: &str, raw: &RawValue| is_content(name) && (name == "body" || raw.get() != "null");
    let mut parts: Vec<_> = fields.iter().filter(|(name, raw)| counts(name, raw)).map(as_hashed).collect();
    parts.extend(made.map(|id| ("id", format!("\"{id}\"").into())));
    parts.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    for (name, text) in parts {
        hash.update(name);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    ContentHash::of(hash.finalize().into())
}

/// A field as it is hashed: objects and lists, except in `body`, without the white space between their parts.
fn as_hashed<'a>((name, raw): (&'a str, &'a RawValue)) -> (&'a str, Cow<'a, str>) {
    let text = raw.get();
    let compact = if name != "body" && text.starts_with(['{', '[']) {
        read::<serde_json::Value>(raw).map(|v| v.to_string())
    } else {
        None
    };
    (name, compact.map_or(text.into(), Cow::Owned))
}

#[cfg(test)]
mod tests;
