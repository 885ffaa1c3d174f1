//! Lines of an import that are accepted, and lines that are refused.

use ringback_core::clock::Timestamp;
use ringback_core::job::Due;
use ringback_core::store_types::{Token, payload};

use super::*;
use crate::parse_job;

const NOW: Timestamp = Timestamp::from_millis(1_763_600_000_000);

fn import(text: &[u8], trace: Option<Trace>) -> Result<ImportJob, Problem> {
    let (make_id, make_token) = (&mut |_: &_| "made".parse().unwrap(), &mut || Token([7; 8]));
    parse_import(text, Defaults { now: NOW, make_id, make_token, trace, tenant: None }, &TenantScope::All)
}

fn line(extra: &str) -> Result<ImportJob, Problem> {
    let text = format!(r#"{{"topic":"t","id":"i","url":"http://h/"{extra}}}"#);
    import(text.as_bytes(), None)
}

fn wrong_fields(extra: &str) -> Vec<String> {
    let problem = line(extra).expect_err(extra);
    assert_eq!(problem.status, 422, "{extra}: {problem:?}");
    assert!(problem.errors.iter().all(|e| !e.detail.is_empty() && !e.allowed.is_empty()));
    problem.errors.into_iter().map(|e| e.field).collect()
}

#[test]
fn a_submitted_line_has_no_history_and_the_same_content_hash() {
    let text = br#"{"topic":"t","id":"i","url":"http://h/","delay":"10m","body":{"a": 1}}"#;
    let import = import(text, None).unwrap();
    let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
    let submit =
        parse_job(text, Defaults { now: NOW, make_id, make_token, trace: None, tenant: None }).unwrap();
    assert_eq!((import.job, import.history), (submit, None));
}

#[test]
fn the_history_of_a_job_does_not_count_as_its_content() {
    let (plain, with) = (line("").unwrap(), line(r#","state":"ready","attempts":2,"failures":1"#).unwrap());
    assert_eq!(plain.job.content, with.job.content);
    assert_eq!(plain.job, line(r#","if_exists":"refuse""#).unwrap().job);
    let given = line(r#","content":"00ff10ab00ff10ab""#).unwrap();
    assert_eq!(given.job.content.to_string(), "00ff10ab00ff10ab");
}

#[test]
fn a_dead_job_stays_dead_and_keeps_its_due_time() {
    let import = line(
        r#","state":"dead","reason":"exhausted","at":"2020-01-01T00:00:00Z","created_at":"2019-12-31T00:00:00.001Z",
           "attempts":3,"failures":2,"last":{"at":"2020-01-01T00:00:01Z","status":503,"duration_ms":7}"#,
    )
    .unwrap();
    assert_eq!(import.job.due, Due::At(Timestamp::from_millis(1_577_836_800_000)));
    let history = import.history.unwrap();
    assert_eq!(history.dead.as_deref(), Some("exhausted"));
    assert_eq!(history.created, Some(Timestamp::from_millis(1_577_750_400_001)));
    assert_eq!((history.attempts, history.failures), (3, 2));
    let last = history.last.unwrap();
    assert_eq!((last.status, last.error, last.duration), (Some(503), None, Duration::from_millis(7)));
}

#[test]
fn a_job_that_was_being_delivered_is_pending() {
    for state in ["delayed", "ready", "reserved"] {
        assert_eq!(line(&format!(r#","state":"{state}""#)).unwrap().history, None);
    }
    let history = line(r#","state":"reserved","attempts":1"#).unwrap().history.unwrap();
    assert_eq!(history, History { attempts: 1, ..History::default() });
}

#[test]
fn each_wrong_field_is_refused_by_its_name() {
    let reason = format!(r#","state":"dead","reason":"{}""#, "x".repeat(65));
    for (extra, field) in [
        (r#","colour":"red""#, "colour"),
        (r#","state":"done","reason":null"#, "state"),
        (r#","state":"cancelled""#, "state"),
        (r#","state":1"#, "state"),
        (r#","state":"dead""#, "reason"),
        (r#","state":"dead","reason":"a b""#, "reason"),
        (r#","state":"ready","reason":"gone""#, "reason"),
        (r#","reason":"gone""#, "reason"),
        (&reason, "reason"),
        (r#","state":"dead","reason":"gone","delay":5"#, "delay"),
        (r#","created_at":"yesterday""#, "created_at"),
        (r#","attempts":-1"#, "attempts"),
        (r#","attempts":4294967296"#, "attempts"),
        (r#","failures":1.5"#, "failures"),
        (r#","last":5"#, "last"),
        (r#","last":{}"#, "last.at"),
        (r#","last":{"at":5}"#, "last.at"),
        (r#","last":{"at":"2020-01-01T00:00:01Z","status":99}"#, "last.status"),
        (r#","last":{"at":"2020-01-01T00:00:01Z","error":"a\nb"}"#, "last.error"),
        (r#","last":{"at":"2020-01-01T00:00:01Z","duration_ms":-1}"#, "last.duration_ms"),
        (r#","last":{"at":"2020-01-01T00:00:01Z","body":""}"#, "last.body"),
        (r#","content":"00FF10ab00ff10ab""#, "content"),
        (r#","content":5"#, "content"),
        (r#","traceparent":"00-x""#, "traceparent"),
        (r#","headers":{"authorization":"[masked by ringback]"}"#, "headers"),
        (r#","topic":"u""#, "topic"),
        (r#","if_exists":"replace""#, "if_exists"),
        (r#","if_exists":"postpone","max_delay":"1h""#, "if_exists"),
        (r#","max_delay":"1h""#, "max_delay"),
    ] {
        assert_eq!(wrong_fields(extra), [field], "{extra}");
    }
}

#[test]
fn all_wrong_fields_are_named_at_once() {
    let text = br#"{"topic":"a b","url":"http://h/","state":"dead","attempts":"x","delay":1}"#;
    let problem = import(text, None).unwrap_err();
    let fields: Vec<_> = problem.errors.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["attempts", "topic", "reason", "delay"]);
}

#[test]
fn the_trace_of_a_line_counts_before_that_of_the_request() {
    let text = "00-74d44828298f0541ba271390f8a99532-9f6ea27029998044-01";
    let theirs: Trace = text.parse().unwrap();
    let ours = Trace { trace_id: [1; 16], parent_id: [2; 8], flags: 0 };
    let parse = |extra: &str| {
        let text = format!(r#"{{"topic":"t","id":"i","url":"http://h/"{extra}}}"#);
        import(text.as_bytes(), Some(ours)).unwrap().job.delivery.trace
    };
    assert_eq!(parse(&format!(r#","traceparent":"{text}""#)), Some(theirs));
    assert_eq!(parse(""), Some(ours));
}

#[test]
fn random_lines_are_refused_or_are_jobs_that_every_store_can_pack() {
    let samples = [
        r#"{"topic":"t","id":"i","url":"http://h/","delay":"10m","body":{"a":1},"headers":{"x-a":"b"},"context":{"c":"d"}}"#,
        r#"{"topic":"t","id":"i","ttr":"1m","body_text":"x","retry":{"delays":["1s","2s"],"max":-1,"jitter":0.5}}"#,
        r#"{"topic":"t","id":"i","url":"https://[2606:4700::1]:8443/ü?x#","state":"dead","reason":"exhausted","at":"2020-01-01T00:00:00Z"}"#,
        r#"{"tenant":"a7","topic":"t","id":"i","at":"2026-11-20 09:30 Europe/Berlin","on_dead":"http://h/d","timeout":"5s",
            "created_at":"2019-12-31T00:00:00.001Z","attempts":4,"failures":3,"content":"00ff10ab00ff10ab",
            "last":{"at":"2020-01-01T00:00:00Z","status":503,"error":"timeout","duration_ms":9},
            "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#,
        r#"{"topic":"t","id":"i","body_base64":"AAEC","content_type":"image/png","if_exists":"refuse","retry":{"preset":"none"}}"#,
        r#""\ud83d\ude00\u0000":-1e999,[[[[[[{"a":null,true"#,
    ];
    ringback_fuzz::run(&samples, |line| match import(line, None) {
        Ok(read) => {
            let delivery = &read.job.delivery;
            let packed = payload::pack(delivery).into();
            let back = payload::unpack(
                &packed,
                delivery.callback.origin().to_owned(),
                delivery.timeout,
                delivery.tags.clone(),
            );
            assert_eq!(back.as_ref(), Some(delivery));
            assert_eq!(import(line, None).as_ref(), Ok(&read));
        }
        Err(problem) => {
            assert!((400..500).contains(&problem.status), "{problem:?}");
            let size: usize = problem.errors.iter().map(|e| e.field.len() + e.detail.len()).sum();
            assert!(size < 4096 + 16 * line.len(), "{size} bytes of errors");
        }
    });
}
