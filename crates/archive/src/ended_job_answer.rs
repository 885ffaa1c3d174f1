//! An ended job as the API shows it, and the submit and the id with which a replay makes the job again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_core::clock::Timestamp;
use ringback_core::duration::format_duration;
use ringback_core::hex::Hex;
use ringback_core::job::{Body, CallbackMethod, DEFAULT_TTR};
use ringback_wire::{EndedJobDetails, LastAttemptDetails, RequestDetails};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::ended_job_row::EndedJobRow;

/// The longest id, in bytes.
const MAX_ID: usize = 128;

/// A time from ms since 1970; a negative one counts as 0.
fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(ms).unwrap_or(0))
}

impl EndedJobRow {
    pub fn finished(&self) -> Timestamp {
        time(self.finished_at)
    }

    /// The answer of the API. The log of attempts, and the request, are in it only if the flags say so.
    pub fn answer(self, with_attempts: bool, with_request: bool) -> EndedJobDetails {
        let time = |ms: i64| time(ms).to_string();
        let request = with_request.then(|| self.shown_request()).flatten();
        EndedJobDetails {
            state: self.state,
            reason: self.reason,
            finished_at: time(self.finished_at),
            created_at: time(self.generation),
            first_due_at: time(self.first_due_at),
            due_at: time(self.due_at),
            attempts: self.attempts,
            failures: self.failures,
            last: self.last_at.map(|at| LastAttemptDetails {
                at: time(at),
                status: self.last_status,
                error: self.last_error,
                duration_ms: u64::try_from(self.last_duration_ms.unwrap_or(0)).unwrap_or(0),
            }),
            url: self.url,
            attempts_complete: self.is_attempts_complete,
            log: with_attempts.then(|| serde_json::from_str(&self.attempt_log).unwrap_or_default()),
            has_body: with_request.then_some(self.body.is_some()),
            request: request.map(Box::new),
            topic: self.topic,
            id: self.id,
            tags: self.tags,
        }
    }

    /// The request that was submitted, with the body if that was kept; `None` if it was not kept or cannot be read.
    fn shown_request(&self) -> Option<RequestDetails> {
        let mut request: RequestDetails = serde_json::from_str(self.request.as_deref()?).ok()?;
        request.url.clone_from(&self.url);
        request.tags.clone_from(&self.tags);
        if let Some(bytes) = &self.body {
            let body = Body { bytes: bytes.clone().into(), content_type: self.content_type.clone() };
            request.show_body(body);
        }
        Some(request)
    }

    /// The id in a replay with this name: the same for each end of a generation of the job, and each time. Of a long id
    /// only the start is kept, so that the new one has at most 128 bytes.
    pub fn replay_id(&self, name: &str) -> String {
        let Self { tenant, topic, id, generation, .. } = self;
        let hash: [u8; 32] = Sha256::digest(format!("{tenant} {topic} {id} {generation}")).into();
        let suffix = format!("{}{}", mark_of(name), Hex(&hash[..5]));
        let kept = id.len().min(MAX_ID - suffix.len());
        format!("{}{suffix}", id.get(..kept).unwrap_or_default())
    }

    /// Whether the id has the form that a replay with this name gives to ids.
    pub fn is_of_replay(&self, name: &str) -> bool {
        let hash = self.id.rsplit_once(&mark_of(name)).map(|(_, hash)| hash);
        hash.is_some_and(|hash| hash.len() == 10 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    /// The JSON of a submit of the same job under the id `id`.
    ///
    /// # Errors
    /// If the request or its body is not in the archive. The text says which.
    pub fn submit_again(&self, id: &str) -> Result<Vec<u8>, &'static str> {
        const UNREADABLE: &str = "what was submitted is not in the archive";
        let request = self.request.as_deref().ok_or(UNREADABLE)?;
        let mut fields: Map<String, Value> = serde_json::from_str(request).map_err(|_| UNREADABLE)?;
        // It belongs to the trace of the first submit.
        fields.remove("traceparent");
        let method =
            fields.get("method").and_then(Value::as_str).and_then(|name| name.parse::<CallbackMethod>().ok());
        match (&self.body, method.unwrap_or_default().has_body()) {
            (Some(body), true) => {
                fields.insert("body_base64".to_owned(), STANDARD.encode(body).into());
                let content_type = self.content_type.as_deref().unwrap_or("application/json");
                fields.insert("content_type".to_owned(), content_type.into());
            }
            (None, true) => return Err("its body is not in the archive, which keeps none of this topic"),
            (_, false) => {}
        }
        fields.insert("topic".to_owned(), self.topic.as_str().into());
        fields.insert("id".to_owned(), id.into());
        if let Some(url) = &self.url {
            fields.insert("url".to_owned(), url.as_str().into());
        } else if !fields.contains_key("ttr") {
            // Without it the policy of the topic might have a URL for it by now.
            fields.insert("ttr".to_owned(), format_duration(DEFAULT_TTR).into());
        }
        if !self.tags.is_empty() {
            fields.insert("tags".to_owned(), self.tags.clone().into());
        }
        Ok(Value::Object(fields).to_string().into_bytes())
    }
}

/// The part of new ids that all jobs of a replay with this name share.
fn mark_of(name: &str) -> String {
    let hash: [u8; 32] = Sha256::digest(format!("replay {name}")).into();
    format!("~{}", Hex(&hash[..3]))
}

#[cfg(test)]
mod tests {
    use ringback_core::job::JobId;
    use ringback_wire::{Defaults, parse_job};

    use super::*;
    use crate::ended_job_row::tests::row;

    #[test]
    fn an_end_is_shown_with_the_parts_that_were_asked_for() {
        let shown = serde_json::to_value(row().answer(true, true)).unwrap();
        assert_eq!(
            (&shown["id"], &shown["request"]["body"], &shown["has_body"]),
            (&"order-1".into(), &serde_json::json!({"a": 1}), &true.into())
        );
        assert_eq!((&shown["tags"][0], shown["log"].as_array().unwrap().len()), (&"customer:42".into(), 2));
        assert_eq!(shown["created_at"], "1970-01-01T00:00:00.700Z");
        assert_eq!(shown["request"]["headers"]["authorization"], "[masked by ringback]");
        let plain = serde_json::to_value(row().answer(false, false)).unwrap();
        assert!(
            plain.get("log").is_none() && plain.get("request").is_none() && plain.get("has_body").is_none()
        );
    }

    #[test]
    fn a_job_is_submitted_again_as_it_was() {
        let mut row = row();
        row.request = Some(r#"{"context":{"k":"v"},"retry":{"delays":["1s"]},"timeout":"9s","expires":"1h","on_dead":"https://u.example/","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#.to_owned());
        let json = row.submit_again("order-1~2").unwrap();
        let (make_id, make_token) = (&mut |_: &_| -> JobId { unreachable!() }, &mut || unreachable!());
        let defaults =
            Defaults { now: Timestamp::from_millis(9), make_id, make_token, trace: None, tenant: None };
        let job = parse_job(&json, defaults).unwrap();
        assert_eq!((job.key.id.as_str(), job.delivery.tags.as_str()), ("order-1~2", "customer:42 order:1"));
        assert_eq!(
            (&job.delivery.body.bytes[..], job.delivery.body.content_type()),
            (&b"{\"a\":1}"[..], "application/json")
        );
        assert_eq!(job.delivery.callback.to_string(), "https://m.example:8443/notify?x=1");
        assert!(
            job.delivery.retry.is_some() && job.delivery.expires.is_some() && job.delivery.on_dead.is_some()
        );
        assert_eq!(job.delivery.trace, None);
    }

    #[test]
    fn the_id_in_a_replay_is_that_of_the_life_and_of_the_name() {
        let (one, mut other_end, mut other_generation) = (row(), row(), row());
        (other_end.state, other_end.attempts) = ("done".to_owned(), 9);
        other_generation.generation += 1;
        let id = one.replay_id("a");
        assert!(id.starts_with("order-1~") && id.len() == 24, "{id}");
        assert_eq!(other_end.replay_id("a"), id);
        assert!(other_generation.replay_id("a") != id && one.replay_id("b") != id);
        let mut long = row();
        long.id = "x".repeat(MAX_ID);
        assert!(long.replay_id("").parse::<JobId>().is_ok());
        let of = |id: String| EndedJobRow { id, ..row() };
        assert!(of(one.replay_id("a")).is_of_replay("a") && of(long.replay_id("a")).is_of_replay("a"));
        assert!(!of(one.replay_id("a")).is_of_replay("b") && !one.is_of_replay("a"));
    }

    #[test]
    fn a_pull_job_stays_one_whatever_the_policy_of_its_topic_says() {
        let mut row = row();
        (row.url, row.request) = (None, Some("{}".to_owned()));
        let json: Value = serde_json::from_slice(&row.submit_again("a").unwrap()).unwrap();
        assert_eq!((json.get("url"), &json["ttr"]), (None, &"30s".into()));
        row.request = Some(r#"{"ttr":"5s"}"#.to_owned());
        let json: Value = serde_json::from_slice(&row.submit_again("a").unwrap()).unwrap();
        assert_eq!(json["ttr"], "5s");
    }

    #[test]
    fn a_job_of_which_something_is_missing_is_not_submitted_again() {
        let mut row = row();
        row.body = None;
        assert!(row.submit_again("a").unwrap_err().contains("body"));
        row.request = Some(r#"{"method":"GET"}"#.to_owned());
        assert!(row.submit_again("a").is_ok());
        row.request = None;
        assert!(row.submit_again("a").is_err());
    }
}
