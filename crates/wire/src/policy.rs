//! The policy of a topic: parses it, limits its size, and answers the calls about it. Some fields have modules below.

mod headers_to;
mod mask;
mod patch;
mod request;
mod sealed;
mod secrets;

use ringback_core::job::Topic;
use ringback_core::topic_policy::{
    ArchivePolicy, MAX_POLICY, MAX_SEALED_HEADERS, MAX_SECRETS_JSON, Metrics, Policy,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

pub use self::headers_to::close_policy;
pub(super) use self::headers_to::parse_origin;
pub(super) use self::mask::masked_policy;
pub use self::mask::unmask_policy;
use self::mask::without_sealed_headers;
pub use self::patch::{PolicyPatch, dropped_fields};
pub use self::request::{ArchivedState, LoggedAttempts, PolicyPatchRequest, PolicyRequest, TopicArchive};
pub use self::sealed::{opened_headers, secret_header_values, with_opened_headers, with_sealed_headers};
use self::secrets::without_secrets;
pub use self::secrets::{
    CreatedSecret, NewSecretRequest, SealedSecret, SecretDetails, SecretsResponse, brings_secrets,
    with_secrets,
};
use super::declare::Request as _;
use super::field_parsers::object::{Fields, Mistakes, open, read};
use super::order::OrderedBy;
use super::problem::Problem;

/// The sealed values of secret headers: a stored policy has it, and so has one from an export or a backup.
const SEALED_HEADERS: &str = "sealed_headers";
/// The bytes of that field's name, its colon, and the comma before it.
const SEALED_HEADERS_NAME: usize = SEALED_HEADERS.len() + 4;
/// The sealed secrets of a topic: a stored policy has it, and so has one from an export or a backup.
const SECRETS: &str = "secrets";
/// The bytes of that field's name, its colon, and the comma before it.
const SECRETS_NAME: usize = SECRETS.len() + 4;

/// Parses a policy, and keeps its JSON as `written`.
///
/// # Errors
/// A 400 problem if it is not a JSON object in UTF-8, 413 if it has more than [`MAX_POLICY`] bytes beside what is
/// sealed, 422 with all wrong fields.
pub fn parse_policy(json: &[u8]) -> Result<Policy, Problem> {
    let sealed = [
        (SECRETS, MAX_SECRETS_JSON, SECRETS_NAME),
        (SEALED_HEADERS, MAX_SEALED_HEADERS, SEALED_HEADERS_NAME),
    ];
    // More cannot be right, so it is not looked at.
    bound(json.len().saturating_sub(sealed.iter().map(|(_, most, name)| most + name).sum()))?;
    let fields = open(json)?;
    let of_sealed = sealed
        .iter()
        .filter_map(|(field, most, name)| fields.get(field).map(|raw| raw.get().len().min(*most) + name));
    bound(json.len().saturating_sub(of_sealed.sum()))?;
    let mut mistakes = Mistakes::default();
    let given = PolicyRequest::read(&fields, &mut mistakes);
    if given.order_on_dead.is_some() && fields.get("order").is_none() {
        mistakes.add("order_on_dead", "given without order", "only together with \"order\":\"key\"");
    }
    let policy = Policy {
        retry: given.retry,
        timeout: given.timeout,
        ttr: given.ttr,
        url: given.url,
        headers: given.headers,
        headers_to: given.headers_to,
        sealed_headers: given.sealed_headers,
        credentials: given.credentials,
        expect_body: given.expect_body,
        bury_on: given.bury_on,
        limits: given.limits,
        order: given.order.map(|OrderedBy::Key| given.order_on_dead.unwrap_or_default()),
        attempts: given.attempts,
        on_dead: given.on_dead,
        on_done: given.on_done,
        metrics: if given.metrics { Metrics::ByTopic } else { Metrics::Together },
        archive: given.archive.map(ArchivePolicy::from).unwrap_or_default(),
        secrets: given.secrets,
        written: written(&fields),
    };
    let policy = mistakes.or(policy)?;
    // Numbers can get longer when written again, and what is stored must be readable.
    bound(without_sealed_headers(without_secrets(&policy)).len())?;
    Ok(policy)
}

fn bound(bytes: usize) -> Result<(), Problem> {
    if bytes <= MAX_POLICY {
        return Ok(());
    }
    let detail = format!("the policy has {bytes} bytes; at most {MAX_POLICY} are allowed");
    Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail))
}

/// The JSON of the known fields that are not null, without white space between its parts.
fn written(fields: &Fields<'_>) -> Box<str> {
    let compact = |raw: &RawValue| Some(read::<serde_json::Value>(raw)?.to_string());
    let fields = PolicyRequest::NAMES
        .iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", compact(fields.get(name)?)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(",")).into()
}

/// A topic and its policy.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyResponse {
    /// The topic.
    pub topic: String,
    /// Its policy, each field as it was written, without its secrets, and with secret header values masked; `null` if it
    /// has none.
    #[schema(value_type = Option<PolicyRequest>)]
    pub policy: Option<Box<RawValue>>,
    /// The fields that were set before the call and no longer are. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

impl PolicyResponse {
    /// The answer for a topic.
    pub fn new(topic: &Topic, policy: Option<&Policy>) -> Self {
        let shown = policy.and_then(|policy| RawValue::from_string(masked_policy(policy).into_owned()).ok());
        Self { topic: topic.to_string(), policy: shown, dropped: Vec::new() }
    }
}

/// The result of deleting a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicDeleteResponse {
    /// The topic.
    pub topic: String,
    /// Its policy is deleted, and it has no jobs left.
    pub deleted: bool,
    /// How many jobs this call has cancelled.
    pub cancelled: u64,
    /// How many dead jobs this call has purged.
    pub purged: u64,
    /// How many jobs are being delivered; their cancel is requested.
    pub requested: u64,
    /// The cursor of the next call; `null` after the last one.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ringback_core::flow::Limits;
    use ringback_core::retry::Max;
    use ringback_core::topic_policy::Logging;

    fn parse(json: &str) -> Result<Policy, Problem> {
        parse_policy(json.as_bytes())
    }

    #[test]
    fn an_empty_policy_has_no_effect() {
        assert_eq!(parse("{}").unwrap().written(), "{}");
        let nothing = parse(
            r#"{"retry":null,"timeout":null,"ttr":null,"url":null,"headers":null,"expect_body":null,"attempts":null,"on_dead":null}"#,
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
    fn a_policy_may_have_32_headers() {
        let with = |headers: usize| {
            let headers: Vec<_> = (0..headers).map(|n| format!("\"h{n}\":\"\"")).collect();
            parse(&format!("{{\"headers\":{{{}}}}}", headers.join(",")))
        };
        assert_eq!(with(32).unwrap().headers.entries().len(), 32);
        for many in [33, 65, 1500] {
            assert_eq!(with(many).unwrap_err().errors[0].detail, "more than 32 entries", "{many} headers");
        }
    }

    #[test]
    fn the_notice_url_is_kept_as_it_was_written() {
        let policy = parse(r#"{"on_dead":"HTTP://H:80/dead"}"#).unwrap();
        assert_eq!(policy.on_dead.as_ref().unwrap().to_string(), "http://h/dead");
        assert_eq!(policy.written(), r#"{"on_dead":"HTTP://H:80/dead"}"#);
    }

    #[test]
    fn a_topic_has_metrics_of_its_own_only_where_its_policy_says_so() {
        for (json, metrics) in [
            ("{}", Metrics::Together),
            (r#"{"metrics":null}"#, Metrics::Together),
            (r#"{"metrics":false}"#, Metrics::Together),
            (r#"{"metrics":true}"#, Metrics::ByTopic),
        ] {
            assert_eq!(parse(json).unwrap().metrics, metrics, "{json}");
        }
        assert_eq!(parse(r#"{ "metrics" : true }"#).unwrap().written(), r#"{"metrics":true}"#);
    }

    #[test]
    fn a_policy_has_limits_of_the_callbacks_of_its_topic() {
        let json = r#"{"limits":{"burst":20,"in_flight":10,"rate":"100/s"}}"#;
        let policy = parse(json).unwrap();
        let rate = Some("100/s".parse().unwrap());
        assert_eq!(policy.limits, Limits { rate, burst: Some(20), in_flight: Some(10) });
        assert_eq!(policy.written(), json);
        for without in ["{}", r#"{"limits":null}"#] {
            assert_eq!(
                (parse(without).unwrap().limits, parse(without).unwrap().written()),
                (Limits::default(), "{}")
            );
        }
        let problem = parse(r#"{"limits":{"rate":null}}"#).unwrap_err();
        assert!(problem.errors[0].allowed.contains("set it to null"), "{problem:?}");
    }

    #[test]
    fn an_expected_response_may_be_empty() {
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
            (r#"{"on_dead":"http://u:p@h/"}"#, "on_dead"),
            (r#"{"on_dead":5}"#, "on_dead"),
            (r#"{"headers":{"host":"x"}}"#, "headers"),
            (r#"{"headers":["x"]}"#, "headers"),
            (r#"{"retry":{}}"#, "retry"),
            (r#"{"retry":{"delays":["1s"],"max":0}}"#, "retry.max"),
            (r#"{"retry":{"delays":["1s"],"max":-2}}"#, "retry.max"),
            (r#"{"retry":{"preset":"mine"}}"#, "retry.preset"),
            (r#"{"credentials":"a b"}"#, "credentials"),
            (r#"{"bury_on":[]}"#, "bury_on"),
            (r#"{"bury_on":[200]}"#, "bury_on"),
            (r#"{"bury_on":[400,400]}"#, "bury_on"),
            (r#"{"bury_on":["400"]}"#, "bury_on"),
            (r#"{"limits":5}"#, "limits"),
            (r#"{"limits":{}}"#, "limits"),
            (r#"{"limits":{"burst":5}}"#, "limits.burst"),
            (r#"{"limits":{"rate":"10"}}"#, "limits.rate"),
            (r#"{"limits":{"in_flight":0}}"#, "limits.in_flight"),
            (r#"{"limits":{"in_flight":1,"per":"s"}}"#, "limits.per"),
            (r#"{"attempts":"some"}"#, "attempts"),
            (r#"{"attempts":true}"#, "attempts"),
            (r#"{"metrics":"true"}"#, "metrics"),
            (r#"{"metrics":1}"#, "metrics"),
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
    fn a_policy_that_is_not_an_object_or_too_large_is_refused() {
        for json in ["", "5", "[]", "{", "{}{}"] {
            assert_eq!(parse(json).expect_err(json).status, 400, "{json}");
        }
        assert_eq!(parse_policy(b"{\"url\":\"\xff\"}").expect_err("not UTF-8").status, 400);
        assert_eq!(parse(&format!("{{{}}}", " ".repeat(MAX_POLICY))).expect_err("too large").status, 413);
        assert!(parse(&format!("{{{}}}", " ".repeat(MAX_POLICY - 2))).is_ok());
        // The stored text is longer than the one that came: 2e6 is written 2000000.0.
        let delays = ["2e6"; 50].join(",");
        let grown =
            |n| format!(r#"{{"headers":{{"x":"{}"}},"retry":{{"delays":[{delays}]}}}}"#, r"\\".repeat(n));
        assert!(grown(8_040).len() <= MAX_POLICY);
        assert_eq!(parse(&grown(8_040)).expect_err("too large once written").status, 413);
        let policy = parse(&grown(7_900)).expect("it is small enough");
        assert!(parse(policy.written()).is_ok());
    }

    #[test]
    fn a_policy_that_is_accepted_is_accepted_again_as_it_is_stored() {
        let of_length = |n: usize| {
            format!(r#""headers":{{"x":"{}"}},"expect_body":"{}""#, r"\\".repeat(8_000), "a".repeat(n))
        };
        let rest = of_length(0).len();
        let secrets = [
            "",
            r#","secrets":[]"#,
            r#","secrets":null"#,
            r#","secrets":[{"id":"sec_a","sealed":"k.a","created_at":"1970-01-01T00:00:01Z"}]"#,
        ];
        let grows = r#","retry":{"delays":[2e6,2e6,2e6]}"#;
        let mut accepted = 0;
        for (secrets, other) in secrets.into_iter().flat_map(|one| [(one, ""), (one, grows)]) {
            let room = MAX_POLICY - rest - other.len();
            for n in room - 40..=room + 20 {
                let json = format!("{{{}{other}{secrets}}}", of_length(n));
                let Ok(policy) = parse(&json) else { continue };
                accepted += 1;
                assert_eq!(parse(policy.written()).as_ref(), Ok(&policy), "{n} {other} {secrets}");
            }
        }
        assert!(accepted > 200, "{accepted}");
    }
}
