//! Parses the values of flags and the names of jobs by the rules of the API. An error says which values are allowed.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use clap::error::ErrorKind;
use http::HeaderValue;
use reqwest::Url;
use ringback_core::access::{TENANT_HEADER_ALL, TENANT_HEADER_NONE};
use ringback_core::destination::Destination;
use ringback_core::duration::{ALLOWED_DURATION, parse_duration};
use ringback_core::job::{JobId, JobKey, OrderKey, Tags, Tenant, Topic};
use ringback_core::limits::is_idempotency_key;
use ringback_core::retry::RetryPolicy;
use ringback_core::written_time::{TimeError, WrittenTime, parse_time};
use serde_json::{Value, json};

/// A duration in the API's form: a number of seconds, or a text such as "1h 30m".
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wait(pub(crate) Value);

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(seconds) = text.parse::<f64>() {
            let number = serde_json::from_str::<serde_json::Number>(text);
            let right = Duration::try_from_secs_f64(seconds).is_ok();
            return number
                .ok()
                .filter(|_| right)
                .map(|number| Self(Value::Number(number)))
                .ok_or_else(|| "a number of seconds is 0 or more, such as 2 or 0.25".to_owned());
        }
        friendly(text).map(|_| Self(text.into()))
    }
}

fn friendly(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {ALLOWED_DURATION}"))
}

/// The forms of a retry policy, for help and errors.
pub(crate) const RETRY: &str = "\"15s 3m 10m\", default, standard-webhooks, none, or \"backoff 1s 2 1h 15\"";

/// A retry policy in the API's form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retry(pub(crate) Value);

impl FromStr for Retry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if RetryPolicy::preset(text).is_some() {
            return Ok(Self(json!({ "preset": text })));
        }
        if let Some(rest) = text.strip_prefix("backoff ") {
            return backoff(rest).ok_or_else(|| BACKOFF.to_owned());
        }
        let waits: Vec<&str> = text.split([' ', ',']).filter(|part| !part.is_empty()).collect();
        let policy = text.parse::<RetryPolicy>();
        policy.map_err(|error| format!("{error}; write {RETRY}"))?;
        Ok(Self(json!({ "delays": waits })))
    }
}

const BACKOFF: &str = "write \"backoff 1s 2 1h 15\": the first delay, how much longer each is than the one before, the longest \
    one, and how many there are, 1 to 50";

/// Parses delays that grow: the first, the factor, the longest and their number. `None` if they are not valid.
fn backoff(text: &str) -> Option<Retry> {
    let [base, factor, max, count] = text.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let (factor, count): (f64, usize) = (factor.parse().ok()?, count.parse().ok()?);
    let (first, longest) = (parse_duration(base).ok()?, parse_duration(max).ok()?);
    RetryPolicy::growing(first, factor, longest, count).ok()?;
    Some(Retry(json!({"backoff": {"base": base, "factor": factor, "max": max, "count": count}})))
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair(pub(crate) String, pub(crate) String);

pub(crate) fn header(text: &str) -> Result<Pair, String> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME:VALUE, such as x-tenant:a7")?;
    Ok(Pair(name.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn context(text: &str) -> Result<Pair, String> {
    let (key, value) =
        text.split_once('=').ok_or("an entry of the context is KEY=VALUE, such as tenant=a7")?;
    Ok(Pair(key.to_owned(), value.to_owned()))
}

pub(crate) fn tag(text: &str) -> Result<String, String> {
    let tag = Tags::is_tag(text).then(|| text.to_owned());
    tag.ok_or_else(|| format!("a tag is {}", Tags::ALLOWED_TAG))
}

pub(crate) fn topic(text: &str) -> Result<String, String> {
    let topic: Topic = text.parse().map_err(|error| format!("a topic is {error}"))?;
    Ok(topic.to_string())
}

pub(crate) fn destination(text: &str) -> Result<String, String> {
    let destination = Destination::parse(text);
    let destination = destination.map_err(|refused| format!("{refused}; allowed is {}", refused.allowed))?;
    Ok(destination.to_string())
}

/// Whose topics and jobs a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChosenTenant {
    /// Nothing was chosen: an empty text, such as that of a variable.
    Nothing,
    Tenant(Tenant),
    /// What belongs to no tenant.
    OfNone,
    /// What belongs to all and to none, for lists.
    OfAll,
}

pub(crate) fn tenant(text: &str) -> Result<ChosenTenant, String> {
    match text {
        "" => Ok(ChosenTenant::Nothing),
        TENANT_HEADER_NONE => Ok(ChosenTenant::OfNone),
        TENANT_HEADER_ALL => Ok(ChosenTenant::OfAll),
        name => name.parse().map(ChosenTenant::Tenant).map_err(|error| {
            format!("a tenant is {error}; or {TENANT_HEADER_NONE}, or {TENANT_HEADER_ALL} for lists")
        }),
    }
}

pub(crate) fn id(text: &str) -> Result<String, String> {
    let id: JobId = text.parse().map_err(|error| format!("an id is {error}"))?;
    Ok(id.to_string())
}

pub(crate) fn order_key(text: &str) -> Result<String, String> {
    let key: OrderKey = text.parse().map_err(|error| format!("a key is {error}"))?;
    Ok(key.to_string())
}

pub(crate) fn time(text: &str) -> Result<String, String> {
    parse_time(text).map(|_| text.to_owned()).map_err(|error| no_time(&error))
}

/// Checks a due time, and returns it unchanged: a point in time, or a local time, whose zone the server applies.
pub(crate) fn due_time(text: &str) -> Result<String, String> {
    WrittenTime::parse(text).map(|_| text.to_owned()).map_err(|error| no_time(&error))
}

fn no_time(error: &TimeError) -> String {
    format!("{error}; write {}", error.allowed())
}

/// Checks that a due time is a point in time, or a local time with a zone beside it.
///
/// # Errors
/// A usage error when it is a local time without a zone.
pub(crate) fn check_zone(at: Option<&str>, time_zone: Option<&str>) -> Result<(), clap::Error> {
    let is_local = |at: &&str| WrittenTime::parse(at).is_ok_and(|time| time.is_local());
    match at.filter(is_local) {
        Some(at) if time_zone.is_none() => Err(wrong(format!(
            "{at:?} is a local time: add --time-zone, such as --time-zone Europe/Berlin, or an offset, such as \
             2026-11-20T09:30:00Z or 2026-11-20T10:30:00+01:00"
        ))),
        _ => Ok(()),
    }
}

/// An idempotency key as the value of its header: a quoted string (RFC 9651). Fails unless the key has 1 to 255 visible
/// ASCII characters.
pub(crate) fn idempotency_key(text: &str) -> Result<HeaderValue, String> {
    let quoted = format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
    let value = Some(quoted).filter(|_| is_idempotency_key(text)).and_then(|quoted| quoted.parse().ok());
    value.ok_or_else(|| "a key is 1 to 255 visible ASCII characters, such as 8e03978e-40d5".to_owned())
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<Wait>()?.0 {
        Value::String(text) => friendly(&text),
        number => Ok(Duration::from_secs_f64(number.as_f64().unwrap_or_default())),
    }
}

/// Parses an IP address and a port, or a port alone, which is on 127.0.0.1.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = || text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse().or_else(|_| port()).map_err(|_| {
        "an address is an IP and a port, such as 127.0.0.1:8080 or [::1]:8080; a port alone is on 127.0.0.1"
            .to_owned()
    })
}

/// Parses an http or https URL without query and fragment. The paths of calls are appended to its path.
pub(crate) fn server(text: &str) -> Result<Url, String> {
    const ALLOWED: &str = "the API's URL is http or https without a query, such as http://127.0.0.1:7411";
    let mut url = Url::parse(text).map_err(|_| ALLOWED.to_owned())?;
    let plain = url.query().is_none() && url.fragment().is_none();
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() || !plain {
        return Err(ALLOWED.to_owned());
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// A usage error. `failure::report` adds the usage of the command.
pub(crate) fn wrong(why: String) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, why)
}

/// Parses a job from `["topic/id"]` or `["topic", "id"]`. A usage error if it is not valid.
pub(crate) fn job_key(name: &[impl AsRef<str>]) -> Result<JobKey, clap::Error> {
    let words: Vec<_> = name.iter().map(AsRef::as_ref).collect();
    parse_job_key(&words).map_err(wrong)
}

/// Like [`job_key`], with the error as a text.
pub(crate) fn parse_job_key(name: &[&str]) -> Result<JobKey, String> {
    let (topic, id) = match name {
        [topic, id] => (*topic, *id),
        _ => name
            .first()
            .and_then(|name| name.split_once('/'))
            .ok_or_else(|| format!("{:?} is not a job; write TOPIC/ID or TOPIC ID", name.join(" ")))?,
    };
    let topic = topic.parse().map_err(|error| format!("{topic:?} is not a topic; a topic is {error}"))?;
    let id = id.parse().map_err(|error| format!("{id:?} is not an id; an id is {error}"))?;
    Ok(JobKey { topic, id })
}
