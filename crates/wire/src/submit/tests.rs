//! Submits that are accepted, and submits that are refused.

use ringback_core::clock::Timestamp;
use ringback_core::job::{Due, IfExists, MAX_BODY};
use ringback_core::retry::{Max, RetryPolicy};

use super::*;

/// The token of every submit.
const TOKEN: Token = Token([7; 8]);

fn parse(json: &str) -> Result<NewJob, Problem> {
    let defaults = Defaults {
        now: Timestamp::from_millis(1_763_600_000_000),
        make_id: &mut |_: &_| "made".parse().unwrap(),
        make_token: &mut || TOKEN,
        trace: None,
        tenant: None,
    };
    parse_job(json.as_bytes(), defaults)
}

fn with(extra: &str) -> Result<NewJob, Problem> {
    parse(&format!(r#"{{"topic":"t","url":"http://h/"{}{extra}}}"#, if extra.is_empty() { "" } else { "," }))
}

fn wrong_fields(extra: &str) -> Vec<String> {
    let problem = with(extra).expect_err(extra);
    assert_eq!(problem.status, 422, "{extra}: {problem:?}");
    problem.errors.into_iter().map(|e| e.field).collect()
}

#[test]
fn a_whole_job_is_read_and_its_body_kept_byte_for_byte() {
    let job = parse(
        r#"{"topic":"pay.notify","id":"order-1","delay":"10m","url":"https://m.example/notify",
            "body":{"b": 1.0e5,  "a":"\u00e9"},"headers":{"X-Merchant":"88231"},"context":{"Key":"v"},
            "retry":{"delays":["15s",180],"max":-1,"jitter":0},"timeout":"5s"}"#,
    )
    .unwrap();
    assert_eq!(job.due, Due::In(Duration::from_secs(600)));
    assert_eq!(job.delivery.body.bytes, r#"{"b": 1.0e5,  "a":"\u00e9"}"#);
    assert_eq!(job.delivery.timeout, Some(Duration::from_secs(5)));
    let delays = vec![Duration::from_secs(15), Duration::from_secs(180)];
    assert_eq!(job.delivery.retry, Some(RetryPolicy::new(delays, Max::Unlimited, 0.0).unwrap()));
}

/// A job of topic `t`, whose policy has a URL.
fn by_policy(json: &str) -> Result<NewJob, Problem> {
    let policy = crate::parse_policy(br#"{"url":"http://topic/hook"}"#).unwrap();
    let policies = Policies::from([("t".parse().unwrap(), policy.into())]);
    parse_by(json, Some(&policies))
}

fn parse_by(json: &str, policies: Option<&Policies>) -> Result<NewJob, Problem> {
    let (now, make_id, make_token) =
        (Timestamp::default(), &mut |_: &_| "made".parse().unwrap(), &mut || TOKEN);
    parse_job_with_policies(
        json.as_bytes(),
        Defaults { now, make_id, make_token, trace: None, tenant: None },
        policies,
    )
}

#[test]
fn a_job_without_a_url_goes_to_the_url_of_its_topic() {
    let plain = r#"{"topic":"t","id":"i","timeout":"5s"}"#;
    let job = by_policy(plain).unwrap();
    assert_eq!(job.delivery.callback.to_string(), "http://topic/hook");
    assert_eq!(job.delivery.timeout, Some(Duration::from_secs(5)));
    let own = by_policy(r#"{"topic":"t","url":"http://own/"}"#).unwrap();
    assert_eq!(own.delivery.callback.to_string(), "http://own/");
    assert!(by_policy(r#"{"topic":"t","ttr":"5s"}"#).unwrap().delivery.callback.is_pull());
    assert!(by_policy(r#"{"topic":"other"}"#).unwrap().delivery.callback.is_pull());
    let both = by_policy(r#"{"topic":"t","ttr":"5s","timeout":"5s"}"#).unwrap_err();
    assert_eq!((both.errors.len(), both.errors[0].field.as_str()), (1, "timeout"));
}

#[test]
fn a_default_does_not_change_the_content_hash() {
    let plain = r#"{"topic":"t","id":"i","body":1}"#;
    assert_eq!(by_policy(plain).unwrap().content, parse(plain).unwrap().content);
    let written = r#"{"topic":"t","id":"i","body":1,"url":"http://topic/hook"}"#;
    assert_ne!(by_policy(written).unwrap().content, parse(plain).unwrap().content);
}

#[test]
fn without_loaded_policies_only_jobs_that_need_one_are_postponed() {
    assert_eq!(parse_by(r#"{"topic":"t"}"#, None).unwrap_err().status, 503);
    assert_eq!(parse_by(r#"{"topic":"t","timeout":"5s"}"#, None).unwrap_err().status, 503);
    assert_eq!(parse_by(r#"{"topic":"t","colour":1}"#, None).unwrap_err().status, 422);
    assert!(parse_by(r#"{"topic":"t","url":"http://h/"}"#, None).is_ok());
    assert!(parse_by(r#"{"topic":"t","ttr":"5s"}"#, None).is_ok());
}

#[test]
fn a_job_is_the_same_with_the_id_that_was_made_for_it() {
    let made = parse(r#"{"topic":"t","body":1}"#).unwrap();
    let written = format!(r#"{{"id":"{}","topic":"t","body":1}}"#, made.key.id);
    assert_eq!(parse(&written).unwrap().content, made.content);
}

#[test]
fn a_job_without_id_gets_one_and_null_is_absent() {
    let job = with(r#""id":null,"delay":null,"body":null"#).unwrap();
    assert_eq!(job.key.id.as_str(), "made");
    assert_eq!(job.delivery.body.bytes, "null");
}

#[test]
fn a_base64_body_brings_its_content_type() {
    let job = with(r#""body_base64":"AAEC/w==","content_type":"image/png""#).unwrap();
    assert_eq!(job.delivery.body.bytes, &[0, 1, 2, 255][..]);
    assert_eq!(job.delivery.body.content_type(), "image/png");
    assert_eq!(with("").unwrap().delivery.body.content_type(), "application/octet-stream");
}

#[test]
fn all_wrong_fields_are_named_at_once() {
    let problem = parse(r#"{"topic":"a b","id":5,"url":"ftp://h","delay":-1,"colour":"red"}"#).unwrap_err();
    let fields: Vec<_> = problem.errors.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["colour", "topic", "id", "url", "delay"]);
    assert!(problem.errors.iter().all(|e| !e.detail.is_empty() && !e.allowed.is_empty()));
}

#[test]
fn each_wrong_field_is_refused_by_its_name() {
    let deep = format!(r#""body":{}1{}"#, "[".repeat(65), "]".repeat(65));
    for (extra, field) in [
        (r#""delay":1,"at":"2026-01-01T00:00:00Z""#, "delay"),
        (r#""delay":-1"#, "delay"),
        (r#""delay":1e400"#, "delay"),
        (r#""delay":"Infinity""#, "delay"),
        (r#""delay":"11 years""#, "delay"),
        (r#""delay":315360001"#, "delay"),
        (r#""at":"tomorrow""#, "at"),
        (r#""at":"2099-01-01T00:00:00Z""#, "at"),
        (r#""at":1763600000"#, "at"),
        (r#""at":"2026-11-23T09:00""#, "at"),
        (r#""at":"2026-11-23T09:00:00+02:00[Europe/Berlin]""#, "at"),
        (r#""at":"2026-11-23T09:00","time_zone":"Mars/Phobos""#, "time_zone"),
        (r#""time_zone":"Europe/Berlin""#, "time_zone"),
        (r#""body":1,"body_base64":"""#, "body_base64"),
        (r#""body_base64":"@""#, "body_base64"),
        (r#""body":1,"content_type":"text/plain""#, "content_type"),
        (r#""content_type":"text\r\n/plain""#, "content_type"),
        (r#""content_type":"text""#, "content_type"),
        (r#""headers":{"a":1}"#, "headers"),
        (r#""headers":{"Host":"x"}"#, "headers"),
        (r#""headers":{"x":"a\r\nb"}"#, "headers"),
        (r#""context":{"a b":"x"}"#, "context"),
        (r#""retry":{}"#, "retry"),
        (r#""retry":[]"#, "retry"),
        (r#""retry":{"delays":[]}"#, "retry.delays"),
        (r#""retry":{"delays":["-5s"]}"#, "retry.delays"),
        (r#""retry":{"delays":[1],"preset":"none"}"#, "retry"),
        (r#""retry":{"preset":"x"}"#, "retry.preset"),
        (r#""retry":{"delays":[1],"max":0}"#, "retry.max"),
        (r#""retry":{"delays":[1],"jitter":1.5}"#, "retry.jitter"),
        (r#""retry":{"delays":[1],"tries":2}"#, "retry.tries"),
        (r#""timeout":0.05"#, "timeout"),
        (r#""timeout":"11m""#, "timeout"),
        (r#""ttr":"30s""#, "ttr"),
        (r#""id":"a","id":"b""#, "id"),
        (&deep, "body"),
    ] {
        assert_eq!(wrong_fields(extra), [field], "{extra}");
    }
}

#[test]
fn other_json_is_unreadable_and_a_large_body_too_large() {
    for bad in ["", "{", "[]", "1", r#"{"topic":}"#, "{} {}"] {
        assert_eq!(parse(bad).unwrap_err().status, 400, "{bad}");
    }
    let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
    let defaults = Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
    assert_eq!(parse_job(b"{\"topic\":\"\xff\"}", defaults).unwrap_err().status, 400);
    let large = format!(r#""body":"{}""#, "x".repeat(MAX_BODY));
    assert_eq!(with(&large).unwrap_err().status, 413);
    let deep = "[".repeat(200_000);
    assert_eq!(parse(&deep).unwrap_err().status, 400);
}

#[test]
fn a_job_that_is_too_large_or_has_too_many_fields_is_refused_before_it_is_parsed() {
    let many: String = (0..70_000).map(|n| format!(r#","f{n}":1"#)).collect();
    let problem = with(&many[1..]).unwrap_err();
    assert_eq!((problem.status, problem.errors.len()), (400, 0));
    assert!(problem.detail.contains("more than 64 fields"), "{}", problem.detail);
    // Those that are too many are counted, and not read.
    let delays = format!(r#""retry":{{"delays":[{}"no delay"]}}"#, "1,".repeat(30_000));
    let problem = with(&delays).unwrap_err();
    assert!(problem.errors[0].detail.starts_with("30001 delays"), "{problem:?}");
    let large = format!(r#""body_base64":"{}""#, "A".repeat(ringback_core::job::MAX_JOB));
    assert_eq!(with(&large).unwrap_err().status, 413);
}

/// An object of so many headers or context entries.
fn object_of(entries: usize) -> String {
    let entries: Vec<_> = (0..entries).map(|n| format!("\"e{n}\":\"\"")).collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn headers_and_context_may_have_32_and_16_entries() {
    let extra = format!(r#""headers":{},"context":{}"#, object_of(32), object_of(16));
    let delivery = with(&extra).unwrap().delivery;
    assert_eq!((delivery.headers.entries().len(), delivery.context.entries().len()), (32, 16));
    for many in [33, 65, 4_000] {
        for (name, detail) in [("headers", "more than 32 entries"), ("context", "more than 16 entries")] {
            let problem = with(&format!(r#""{name}":{}"#, object_of(many))).unwrap_err();
            let errors: Vec<_> = problem.errors.iter().map(|e| (&*e.field, &*e.detail)).collect();
            assert_eq!((problem.status, errors), (422, vec![(name, detail)]), "{many} entries");
        }
    }
    for (extra, detail) in [
        (r#""headers":{"a":1}"#, "not an object of strings"),
        (r#""headers":["a","b"]"#, "not an object of strings"),
        (r#""context":{"a":"1","A":"2"}"#, "a and A would both be sent as the header ringback-context-a"),
    ] {
        assert_eq!(with(extra).unwrap_err().errors[0].detail, detail);
    }
}

#[test]
fn a_submit_with_mistakes_is_not_read_once_more_for_its_hash() {
    let hashed = |extra: &str| {
        let json = format!(r#"{{"topic":"t","url":"http://h/",{extra}}}"#);
        let (make_id, make_token) = (&mut |_: &_| "made".parse().unwrap(), &mut || TOKEN);
        let defaults = Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
        let mut mistakes = Mistakes::default();
        let job = build_job(&open(json.as_bytes()).unwrap(), defaults, None, &mut mistakes).unwrap();
        job.expect("topic, id and url are right").content != ContentHash::default()
    };
    assert!(hashed(&format!(r#""headers":{}"#, object_of(32))));
    assert!(!hashed(&format!(r#""headers":{}"#, object_of(80_000))));
    assert!(!hashed(&format!(r#""context":[{}0]"#, "0,".repeat(400_000))));
}

#[test]
fn a_submit_may_change_a_job_that_exists() {
    let if_exists = |extra: &str| with(&format!(r#""id":"i",{extra}"#)).unwrap().if_exists;
    let postpone = |max_delay| IfExists::Postpone { token: TOKEN, max_delay };
    assert_eq!(with("").unwrap().if_exists, IfExists::Refuse);
    assert_eq!(with(r#""if_exists":"refuse""#).unwrap().if_exists, IfExists::Refuse);
    assert_eq!(if_exists(r#""if_exists":"replace","max_delay":null"#), IfExists::Replace { token: TOKEN });
    assert_eq!(if_exists(r#""if_exists":"postpone""#), postpone(None));
    let hour = postpone(Some(Duration::from_secs(3600)));
    assert_eq!(if_exists(r#""if_exists":"postpone","max_delay":"1h""#), hour);
    for (extra, field) in [
        (r#""if_exists":"replace""#, "if_exists"),
        (r#""id":null,"if_exists":"postpone""#, "if_exists"),
        (r#""id":"i","if_exists":"ignore""#, "if_exists"),
        (r#""id":"i","if_exists":"Replace""#, "if_exists"),
        (r#""id":"i","if_exists":true"#, "if_exists"),
        (r#""id":"i","max_delay":"1h""#, "max_delay"),
        (r#""id":"i","if_exists":"refuse","max_delay":"1h""#, "max_delay"),
        (r#""id":"i","if_exists":"replace","max_delay":"1h""#, "max_delay"),
        (r#""id":"i","if_exists":"postpone","max_delay":0"#, "max_delay"),
        (r#""id":"i","if_exists":"postpone","max_delay":"-1s""#, "max_delay"),
        (r#""id":"i","if_exists":"postpone","max_delay":"1 month""#, "max_delay"),
        (r#""id":"i","if_exists":"postpone","max_delay":315360001"#, "max_delay"),
    ] {
        assert_eq!(wrong_fields(extra), [field], "{extra}");
    }
}

#[test]
fn what_a_submit_does_to_a_job_that_exists_is_not_its_content() {
    let hash = |extra: &str| with(&format!(r#""id":"i"{extra}"#)).unwrap().content;
    assert_eq!(hash(""), hash(r#","if_exists":"replace""#));
    assert_eq!(hash(""), hash(r#","if_exists":"postpone","max_delay":"1h""#));
    assert_ne!(hash(""), hash(r#","at":"2026-11-23T09:00:00Z""#));
}

#[test]
fn the_id_of_a_job_with_a_key_begins_with_it() {
    let id = |extra: &str| with(extra).unwrap().key.id.to_string();
    assert_eq!(id(r#""key":"order-7""#), "order-7~made");
    assert_eq!(id(r#""key":null"#), "made");
    for given in ["order-7", "order-7~", "order-7~paid~2"] {
        assert_eq!(id(&format!(r#""key":"order-7","id":"{given}""#)), given);
    }
    for given in ["order-78", "order-", "paid~order-7"] {
        let problem = with(&format!(r#""key":"order-7","id":"{given}""#)).unwrap_err();
        let [error] = &problem.errors[..] else { panic!("{problem:?}") };
        assert_eq!((problem.status, &*error.field), (422, "id"));
        assert_eq!(error.detail, format!("{given} is not an id of a job with the key order-7"));
        assert_eq!(error.allowed, "order-7, or an id that begins with order-7~, or no id");
    }
    let too_long = "k".repeat(102);
    for wrong in [r#""a~b""#, r#""""#, "7", r#""..""#, &format!(r#""{too_long}""#)] {
        assert_eq!(wrong_fields(&format!(r#""key":{wrong}"#)), ["key"], "{wrong}");
    }
}

#[test]
fn an_id_that_would_be_too_long_with_its_key_is_refused() {
    let long = "k".repeat(101);
    let parse = |made: String| {
        let json = format!(r#"{{"topic":"t","url":"http://h/","key":"{long}"}}"#);
        let (make_id, make_token) = (&mut |_: &_| made.parse().unwrap(), &mut || TOKEN);
        let defaults = Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
        parse_job(json.as_bytes(), defaults)
    };
    assert_eq!(parse("0".repeat(26)).unwrap().key.id.as_str().len(), 128);
    let problem = parse(JobId::of_key("idempotent").to_string()).unwrap_err();
    let [error] = &problem.errors[..] else { panic!("{problem:?}") };
    assert_eq!((problem.status, &*error.field), (422, "key"));
    assert!(error.allowed.starts_with("a shorter key, or an id"), "{error:?}");
}

#[test]
fn a_key_is_not_content_since_the_id_has_it() {
    let hash = |extra: &str| with(extra).unwrap().content;
    assert_eq!(hash(r#""id":"k~1""#), hash(r#""id":"k~1","key":"k""#));
    assert_eq!(hash(r#""key":"k""#), hash(r#""id":"k~made""#));
}

#[test]
fn the_content_hash_is_of_the_fields_as_written() {
    let hash = |s: &str| with(s).unwrap().content;
    assert_eq!(
        hash(r#""id":"a","body":{"x":1},"delay":2"#),
        hash(r#" "delay":2, "body":{"x":1},"id" : "a""#)
    );
    assert_eq!(hash(r#""headers":{"a":"b"}"#), hash(r#""headers": { "a" : "b" }"#));
    assert_ne!(hash(r#""body":{"x":1}"#), hash(r#""body":{"x": 1}"#));
    assert_ne!(hash(r#""delay":2"#), hash(r#""delay":"2s""#));
    assert_ne!(hash(""), hash(r#""body":null"#));
    let local = |zone: &str| hash(&format!(r#""at":"2026-11-23T09:00","time_zone":"{zone}""#));
    assert_ne!(local("Europe/Berlin"), local("Europe/Paris"));
}

#[test]
fn the_mask_of_a_secret_header_is_refused_as_its_value() {
    let problem =
        with(r#""headers":{"x-a":"[masked by ringback]","X-Token":"[masked by ringback]"}"#).unwrap_err();
    assert_eq!((problem.status, problem.errors.len()), (422, 1), "{problem:?}");
    let error = &problem.errors[0];
    assert!(
        error.field == "headers" && error.detail.starts_with("x-token is [masked by ringback]"),
        "{error:?}"
    );
    assert!(with(r#""headers":{"x-a":"[masked by ringback]","x-token":"[masked]"}"#).is_ok());
}

#[test]
fn a_field_that_is_no_body_and_far_too_long_is_refused_by_its_length() {
    let with = |field: &str, value: &str| format!(r#"{{"topic":"t","url":"http://h/","{field}":{value}}}"#);
    let long = format!("\"{}\"", "1".repeat(70_000));
    for field in ["delay", "id", "retry", "headers", "content_type"] {
        let problem = parse(&with(field, &long)).unwrap_err();
        let [error] = &problem.errors[..] else { panic!("{problem:?}") };
        assert_eq!((problem.status, &*error.field), (422, field));
        assert_eq!((&*error.detail, &*error.allowed), ("it has 70002 bytes", "at most 65536 bytes"));
    }
    assert!(parse(&with("body", &long)).is_ok());
}

#[test]
fn delays_that_grow_are_made_from_a_base_a_factor_a_maximum_and_a_count() {
    let delays = |backoff: &str| {
        let job = with(&format!(r#""retry":{{"backoff":{backoff},"max":-1}}"#)).map_err(|problem| {
            let error = problem.errors[0].clone();
            (error.field, error.detail)
        })?;
        let retry = job.delivery.retry.expect("it has one");
        assert_eq!(retry.max(), Max::Unlimited);
        Ok::<_, (String, String)>(retry.delays().iter().map(Duration::as_millis).collect::<Vec<_>>())
    };
    assert_eq!(delays(r#"{"base":"1s","count":4}"#).unwrap(), [1_000, 2_000, 4_000, 8_000]);
    let all = r#"{"base":0.1,"factor":1.5,"max":"200ms","count":4}"#;
    assert_eq!(delays(all).unwrap(), [100, 150, 200, 200]);
    assert_eq!(delays(r#"{"base":"30d","factor":100,"count":50}"#).unwrap(), [2_592_000_000; 50]);
    for (backoff, field) in [
        (r#"{"count":4}"#, "retry.backoff.base"),
        (r#"{"base":"1s"}"#, "retry.backoff.count"),
        (r#"{"base":"1ms","count":4}"#, "retry.backoff.base"),
        (r#"{"base":"1s","count":51}"#, "retry.backoff.count"),
        (r#"{"base":"1s","count":0}"#, "retry.backoff.count"),
        (r#"{"base":"1s","count":4,"factor":0.5}"#, "retry.backoff.factor"),
        (r#"{"base":"1s","count":4,"max":"31d"}"#, "retry.backoff.max"),
        (r#"{"base":"1s","count":4,"jitter":0}"#, "retry.backoff.jitter"),
        (r#""1s""#, "retry.backoff"),
    ] {
        assert_eq!(delays(backoff).unwrap_err().0, field, "{backoff}");
    }
    let both = with(r#""retry":{"backoff":{"base":"1s","count":4},"delays":["1s"]}"#).unwrap_err();
    assert_eq!(both.errors[0].detail, "needs exactly one of delays, preset and backoff");
}
