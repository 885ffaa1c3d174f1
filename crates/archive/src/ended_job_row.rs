//! An ended job as a row of the archive, and texts and JSON without NUL, which databases refuse.

use std::net::Ipv6Addr;

use ringback_core::clock::millis;
use ringback_core::job::Delivery;
use ringback_core::store_types::{ArchivedJob, Attempt};
use ringback_wire::{LoggedAttempt, RequestDetails};
use serde::{Deserialize, Serialize};

/// An end of a job. Times are in milliseconds since 1970. No text has a NUL, which databases refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedJobRow {
    /// The tenant, empty for none.
    pub tenant: String,
    /// The topic, without its tenant.
    pub topic: String,
    pub id: String,
    /// Which generation of this name it is: when the job was accepted. It survives export and import.
    pub generation: i64,
    /// How many attempts the job had, with those of former generations.
    pub attempts: u32,
    /// The state that it ended in: `done`, `dead`, `cancelled` or `purged`.
    pub state: String,
    pub finished_at: i64,
    /// When it was first due.
    pub first_due_at: i64,
    /// When it was last due.
    pub due_at: i64,
    /// How many of its attempts had failed in a row of retries.
    pub failures: u32,
    /// Why it was dead.
    pub reason: Option<String>,
    /// The URL; `None` for a pull job.
    pub url: Option<String>,
    /// The host of the URL, without its port.
    pub host: Option<String>,
    /// The last failed attempt: when, status, error, and duration in ms.
    pub last_at: Option<i64>,
    pub last_status: Option<u16>,
    pub last_error: Option<String>,
    /// How long it took, in ms.
    pub last_duration_ms: Option<i64>,
    pub tags: Vec<String>,
    /// What was submitted beside the URL, the tags and the body, as JSON, with the values of secret headers masked;
    /// `None` if it could not be read.
    pub request: Option<String>,
    /// The attempts that were logged, as JSON: a list, the newest last.
    pub attempt_log: String,
    /// Whether all attempts of this generation were logged.
    pub is_attempts_complete: bool,
    /// The body, if the archive keeps it.
    pub body: Option<Vec<u8>>,
    pub content_type: Option<String>,
}

impl EndedJobRow {
    /// The row of an ended job. The body is left out unless `with_body`.
    pub fn new(end: ArchivedJob, with_body: bool) -> Self {
        let is_attempts_complete = end.is_attempts_complete();
        let ArchivedJob { kind, at, job, first_due, delivery, has_body, former_attempts, attempts } = end;
        let time = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let of_this_end = former_attempts + 1..=job.attempts;
        let own = attempts.into_iter().filter(|attempt| of_this_end.contains(&attempt.number));
        let callback = delivery.as_ref().map(|delivery| delivery.callback.clone());
        let callback = callback.filter(|callback| !callback.is_pull());
        let body = delivery.as_ref().filter(|_| has_body && with_body);
        let (body, content_type) = body.map_or((None, None), |delivery| {
            (Some(delivery.body.bytes.to_vec()), Some(clean(delivery.body.content_type())))
        });
        Self {
            tenant: job.key.topic.tenant().map_or_else(String::new, |tenant| tenant.as_str().to_owned()),
            topic: job.key.topic.name().to_owned(),
            id: job.key.id.to_string(),
            generation: time(job.created.as_millis()),
            attempts: job.attempts,
            state: kind.state().to_owned(),
            finished_at: time(at.as_millis()),
            first_due_at: time(first_due.as_millis()),
            due_at: time(job.due.as_millis()),
            failures: job.failures,
            reason: job.reason.as_deref().map(clean),
            host: callback.as_ref().and_then(|callback| host(callback.origin())),
            url: callback.map(|callback| callback.to_string()),
            last_at: job.last.as_ref().map(|last| time(last.at.as_millis())),
            last_status: job.last.as_ref().and_then(|last| last.status),
            last_error: job.last.as_ref().and_then(|last| last.error.as_deref().map(clean)),
            last_duration_ms: job.last.as_ref().map(|last| time(millis(last.duration))),
            tags: job.tags.to_vec(),
            request: delivery.map(request),
            attempt_log: log(own),
            is_attempts_complete,
            body,
            content_type,
        }
    }
}

impl EndedJobRow {
    /// About how many bytes the row takes.
    pub fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let texts = [&self.reason, &self.url, &self.last_error, &self.request].map(length);
        let body = self.body.as_ref().map_or(0, Vec::len);
        self.id.len() + self.attempt_log.len() + texts.iter().sum::<usize>() + body
    }
}

/// A text with U+FFFD in place of each NUL.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// JSON with U+FFFD in place of each NUL in its texts. A database refuses a NUL, although JSON can express it.
pub(crate) fn clean_json(json: String) -> String {
    // An escaped backslash before it would make it another text, so the text is parsed where it may be there.
    if !json.contains("\\u0000") {
        return json;
    }
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    clean_value(&mut value);
    value.to_string()
}

fn clean_value(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = clean(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(clean_value),
        serde_json::Value::Object(entries) => {
            let cleaned = std::mem::take(entries).into_iter().map(|(name, mut value)| {
                clean_value(&mut value);
                (clean(&name), value)
            });
            *entries = cleaned.collect();
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// What was submitted beside the URL, the tags and the body, as JSON, with the values of secret headers masked.
fn request(mut delivery: Delivery) -> String {
    delivery.body.bytes = Default::default();
    delivery.body.content_type = None;
    let mut answer = RequestDetails::masked(delivery);
    (answer.url, answer.body, answer.body_base64, answer.content_type) = (None, None, None, None);
    answer.tags = Vec::new();
    clean_json(serde_json::to_string(&answer).unwrap_or_else(|_| "{}".to_owned()))
}

fn log(attempts: impl Iterator<Item = Attempt>) -> String {
    let items: Vec<_> = attempts.map(LoggedAttempt::from).collect();
    clean_json(serde_json::to_string(&items).unwrap_or_else(|_| "[]".to_owned()))
}

/// The host of an origin, `scheme://host:port`, an IPv6 address without brackets; `None` for a text of another form.
fn host(origin: &str) -> Option<String> {
    let (_, authority) = origin.split_once("://")?;
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, _) = rest.split_once(']')?;
        return address.parse::<Ipv6Addr>().ok().map(|address| address.to_string());
    }
    Some(authority.split_once(':').map_or(authority, |(host, _)| host).to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{Body, Callback, Context, Headers, Job, JobKey, Tags, Topic};
    use ringback_core::state::State;
    use ringback_core::store_types::EndedState;

    use super::*;

    fn end() -> ArchivedJob {
        let topic = Topic::from_stored("~acme/pay").unwrap();
        let at = Timestamp::from_millis;
        let body = Body { bytes: b"{\"a\":1}".to_vec().into(), content_type: None };
        let entries = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let delivery = Delivery {
            headers: Headers::parse(entries("authorization", "Bearer s3cret")).unwrap(),
            context: Context::parse(entries("k", "v")).unwrap(),
            ..Delivery::new(Callback::parse("https://m.example:8443/notify?x=1").unwrap(), body)
        };
        let attempt = |number| Attempt { number, answer: b"no\0".to_vec().into(), ..Attempt::default() };
        ArchivedJob {
            kind: EndedState::Expired,
            at: at(1_000),
            job: Job {
                key: JobKey { topic, id: "order-1".parse().unwrap() },
                state: State::Dead,
                due: at(900),
                created: at(700),
                attempts: 3,
                failures: 2,
                last: None,
                reason: Some("expired".into()),
                tags: Tags::from_stored("customer:42 order:1").unwrap(),
            },
            first_due: at(800),
            delivery: Some(delivery),
            has_body: true,
            former_attempts: 1,
            attempts: [1, 2, 3].map(attempt).into(),
        }
    }

    pub(crate) fn row() -> EndedJobRow {
        EndedJobRow::new(end(), true)
    }

    #[test]
    fn a_row_has_what_was_submitted_and_no_secret_header() {
        let row = row();
        assert_eq!(row.tags, ["customer:42", "order:1"]);
        assert_eq!((row.tenant.as_str(), row.topic.as_str(), row.id.as_str()), ("acme", "pay", "order-1"));
        assert_eq!((row.state.as_str(), row.reason.as_deref()), ("dead", Some("expired")));
        assert_eq!((row.generation, row.first_due_at, row.due_at, row.finished_at), (700, 800, 900, 1_000));
        assert_eq!(row.host.as_deref(), Some("m.example"));
        assert_eq!(row.url.as_deref(), Some("https://m.example:8443/notify?x=1"));
        let request = row.request.unwrap();
        assert!(request.contains(r#""context":{"k":"v"}"#) && !request.contains("s3cret"), "{request}");
        assert!(!request.contains("\"url\"") && !request.contains("\"body\""), "{request}");
        assert_eq!(
            (row.body.as_deref(), row.content_type.as_deref()),
            (Some(&b"{\"a\":1}"[..]), Some("application/json"))
        );
        assert_eq!(EndedJobRow::new(end(), false).body, None);
    }

    #[test]
    fn a_row_has_the_attempts_of_its_own_life_and_no_nul() {
        let row = row();
        let log: serde_json::Value = serde_json::from_str(&row.attempt_log).unwrap();
        assert_eq!(
            (&log[0]["attempt"], &log[1]["answer"], log.as_array().unwrap().len()),
            (&2.into(), &"no\u{fffd}".into(), 2)
        );
        assert!(row.is_attempts_complete && !row.attempt_log.contains("u0000"));
        let mut one_is_missing = end();
        one_is_missing.attempts.remove(2);
        assert!(!EndedJobRow::new(one_is_missing, true).is_attempts_complete);
    }

    #[test]
    fn only_a_nul_is_replaced() {
        let json = r#"{"a\u0000":["\\u0000","\u0000"]}"#.to_owned();
        assert_eq!(clean_json(json), "{\"a\u{fffd}\":[\"\\\\u0000\",\"\u{fffd}\"]}");
    }

    #[test]
    fn hosts_are_those_of_origins() {
        for (origin, expected) in [
            ("http://a", Some("a")),
            ("https://a.b:8443", Some("a.b")),
            ("http://[::1]:80", Some("::1")),
            ("x", None),
        ] {
            assert_eq!(host(origin).as_deref(), expected, "{origin}");
        }
    }
}
