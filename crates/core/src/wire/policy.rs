//! The policy of a topic: from JSON to a [`Policy`], or to all the fields that are wrong.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Problem;
use super::fields::{Fields, Mistakes, read, shown, wrong_type};
use super::submit::{entries, retry, timeout_of};
use crate::job::{Callback, Headers};
use crate::policy::{MAX_EXPECTED, MAX_POLICY, Policy};
use crate::store::Logging;

/// The fields of a policy.
const KNOWN: [&str; 7] = ["retry", "timeout", "ttr", "url", "headers", "expect_body", "attempts"];

/// Parses a policy.
///
/// # Errors
/// A 400 problem for what is no JSON object in UTF-8, 413 for more than [`MAX_POLICY`] bytes,
/// 422 with all the fields that are wrong.
pub fn parse_policy(json: &[u8]) -> Result<Policy, Problem> {
    bound(json.len())?;
    let fields = super::submit::open(json)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &KNOWN, &mut mistakes);
    let policy = Policy {
        retry: retry(&fields, &mut mistakes),
        timeout: fields.get("timeout").and_then(|raw| timeout_of(raw, &mut mistakes)),
        ttr: fields.get("ttr").and_then(|raw| super::pull::ttr(raw, &mut mistakes)),
        url: fields.get("url").and_then(|raw| url(raw, &mut mistakes)),
        headers: entries(&fields, "headers", Headers::parse, Headers::ALLOWED, &mut mistakes),
        expect_body: fields.get("expect_body").and_then(|raw| expected(raw, &mut mistakes)),
        attempts: fields.get("attempts").and_then(|raw| logging(raw, &mut mistakes)),
        written: written(&fields),
    };
    if !mistakes.is_empty() {
        return Err(Problem::fields(mistakes.into_inner()));
    }
    // A number can get longer: what is kept must be readable again.
    bound(policy.written.len())?;
    Ok(policy)
}

fn bound(bytes: usize) -> Result<(), Problem> {
    if bytes <= MAX_POLICY {
        return Ok(());
    }
    let detail = format!("the policy has {bytes} bytes; at most {MAX_POLICY} are allowed");
    Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail))
}

fn url(raw: &RawValue, mistakes: &mut Mistakes) -> Option<Callback> {
    let Some(text) = read::<String>(raw) else {
        return wrong_type(mistakes, "url", raw, Callback::ALLOWED);
    };
    Callback::parse(&text).map_err(|e| mistakes.add("url", e.detail, e.allowed)).ok()
}

/// With white space at its ends no answer could ever be equal to it.
fn expected(raw: &RawValue, mistakes: &mut Mistakes) -> Option<String> {
    let text = read::<String>(raw);
    let text = text.filter(|text| text.len() <= MAX_EXPECTED && text.trim_ascii() == text);
    if text.is_none() {
        let allowed = format!("a string of at most {MAX_EXPECTED} bytes, without white space at its ends");
        mistakes.add("expect_body", format!("{} cannot be it", shown(raw)), allowed);
    }
    text
}

fn logging(raw: &RawValue, mistakes: &mut Mistakes) -> Option<Logging> {
    let logging = read::<String>(raw).and_then(|text| text.parse().ok());
    if logging.is_none() {
        mistakes.add("attempts", format!("{} cannot be it", shown(raw)), "\"failed\", \"all\" or \"off\"");
    }
    logging
}

/// The fields that say something, without the white space between their parts.
fn written(fields: &Fields<'_>) -> Box<str> {
    let compact = |raw: &RawValue| Some(read::<serde_json::Value>(raw)?.to_string());
    let told = KNOWN.iter().filter_map(|name| Some(format!("\"{name}\":{}", compact(fields.get(name)?)?)));
    format!("{{{}}}", told.collect::<Vec<_>>().join(",")).into()
}

/// A topic and its policy.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyAnswer {
    /// The topic.
    pub topic: String,
    /// Its policy, each field as it was written; `null` where it has none.
    #[schema(value_type = Option<serde_json::Value>)]
    pub policy: Option<Box<RawValue>>,
}

impl PolicyAnswer {
    /// What is told of a topic.
    pub fn new(topic: &crate::job::Topic, policy: Option<&Policy>) -> Self {
        let written = policy.and_then(|policy| RawValue::from_string(policy.written().to_owned()).ok());
        Self { topic: topic.to_string(), policy: written }
    }
}

/// What a deletion of a topic has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicDeleteAnswer {
    /// The topic.
    pub topic: String,
    /// Its policy is forgotten, and no job was left.
    pub deleted: bool,
    /// How many jobs this call has cancelled.
    pub cancelled: u64,
    /// How many dead ones it has purged.
    pub purged: u64,
    /// How many are being handed over; the cancel is noted.
    pub requested: u64,
    /// Where the next call goes on; `null` where this one came to the end.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::retry::Max;

    fn parse(json: &str) -> Result<Policy, Problem> {
        parse_policy(json.as_bytes())
    }

    #[test]
    fn an_empty_policy_says_nothing() {
        assert_eq!(parse("{}").unwrap().written(), "{}");
        let nothing = parse(
            r#"{"retry":null,"timeout":null,"ttr":null,"url":null,"headers":null,"expect_body":null,"attempts":null}"#,
        );
        assert_eq!(nothing.unwrap().written(), "{}");
        assert_eq!(Policy::default().written(), "{}");
    }

    #[test]
    fn a_policy_is_kept_as_it_was_written_and_read_again() {
        let text = r#"{ "expect_body": "success", "retry": {"delays": ["1s", 2.50], "max": -1},
            "ttr":"1h 30m","timeout":0.5, "url":"http://H:80/a?b", "headers":{"X-A":"1"}}"#;
        let policy = parse(text).unwrap();
        let retry = policy.retry.clone().unwrap();
        assert_eq!((retry.delays().len(), retry.max()), (2, Max::Unlimited));
        assert_eq!(policy.timeout, Some(Duration::from_millis(500)));
        assert_eq!(policy.ttr, Some(Duration::from_secs(5400)));
        assert_eq!(policy.url.as_ref().unwrap().to_string(), "http://h/a?b");
        assert_eq!(policy.headers.entries(), [("x-a".to_owned(), "1".to_owned())]);
        assert_eq!(policy.expect_body.as_deref(), Some("success"));
        let written = r#"{"retry":{"delays":["1s",2.5],"max":-1},"timeout":0.5,"ttr":"1h 30m","url":"http://H:80/a?b","headers":{"X-A":"1"},"expect_body":"success"}"#;
        assert_eq!(policy.written(), written);
        assert_eq!(parse(written).unwrap(), policy);
    }

    #[test]
    fn an_answer_that_is_expected_may_be_empty() {
        assert_eq!(parse(r#"{"attempts":"all"}"#).unwrap().attempts, Some(Logging::All));
        assert_eq!(parse(r#"{"expect_body":""}"#).unwrap().expect_body.as_deref(), Some(""));
        let longest = format!(r#"{{"expect_body":"{}"}}"#, "x".repeat(1024));
        assert_eq!(parse(&longest).unwrap().expect_body.map(|text| text.len()), Some(1024));
    }

    #[test]
    fn each_wrong_field_is_refused_by_its_name() {
        let long = format!(r#"{{"expect_body":"{}"}}"#, "ä".repeat(513));
        for (json, field) in [
            (r#"{"colour":"red"}"#, "colour"),
            (r#"{"topic":"t"}"#, "topic"),
            (r#"{"timeout":"1s","timeout":"1s"}"#, "timeout"),
            (r#"{"timeout":"99ms"}"#, "timeout"),
            (r#"{"timeout":"11m"}"#, "timeout"),
            (r#"{"timeout":true}"#, "timeout"),
            (r#"{"ttr":"13h"}"#, "ttr"),
            (r#"{"url":"ftp://h/"}"#, "url"),
            (r#"{"url":5}"#, "url"),
            (r#"{"headers":{"host":"x"}}"#, "headers"),
            (r#"{"headers":["x"]}"#, "headers"),
            (r#"{"retry":{}}"#, "retry"),
            (r#"{"retry":{"delays":["1s"],"max":0}}"#, "retry.max"),
            (r#"{"retry":{"delays":["1s"],"max":-2}}"#, "retry.max"),
            (r#"{"retry":{"preset":"mine"}}"#, "retry.preset"),
            (r#"{"attempts":"some"}"#, "attempts"),
            (r#"{"attempts":true}"#, "attempts"),
            (r#"{"expect_body":5}"#, "expect_body"),
            (r#"{"expect_body":" success"}"#, "expect_body"),
            (r#"{"expect_body":"success\n"}"#, "expect_body"),
            (long.as_str(), "expect_body"),
        ] {
            let problem = parse(json).expect_err(json);
            assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, field), "{json}");
        }
    }

    #[test]
    fn what_is_no_object_or_too_large_is_refused_as_a_whole() {
        for json in ["", "5", "[]", "{", "{}{}"] {
            assert_eq!(parse(json).expect_err(json).status, 400, "{json}");
        }
        assert_eq!(parse_policy(b"{\"url\":\"\xff\"}").expect_err("not UTF-8").status, 400);
        assert_eq!(parse(&format!("{{{}}}", " ".repeat(MAX_POLICY))).expect_err("too large").status, 413);
        assert!(parse(&format!("{{{}}}", " ".repeat(MAX_POLICY - 2))).is_ok());
        // What is kept of it is longer than what came: 2e6 is written 2000000.0.
        let delays = ["2e6"; 50].join(",");
        let grown =
            |n| format!(r#"{{"headers":{{"x":"{}"}},"retry":{{"delays":[{delays}]}}}}"#, r"\\".repeat(n));
        assert!(grown(8_040).len() <= MAX_POLICY);
        assert_eq!(parse(&grown(8_040)).expect_err("too large once written").status, 413);
        let policy = parse(&grown(7_900)).expect("it is small enough");
        assert!(parse(policy.written()).is_ok());
    }
}
