//! An exported job that is imported again is the same job.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ringback_core::clock::Timestamp;
use ringback_core::job::{
    Body, Callback, CallbackMethod, Context, Due, Expires, Headers, History, ImportJob, JobKey, Tags,
    TenantScope, Trace,
};
use ringback_core::outcome::LastAttempt;
use ringback_core::retry::{Max, RetryPolicy};
use ringback_core::state::State;

use std::time::Duration;

use super::*;
use crate::{Defaults, Problem, parse_import, parse_job};

fn import(line: &str) -> Result<ImportJob, Problem> {
    let now = Timestamp::from_millis(1_763_600_000_000);
    let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
    parse_import(
        line.as_bytes(),
        Defaults { now, make_id, make_token, trace: None, tenant: None },
        &TenantScope::All,
    )
}

fn job(state: State) -> Job {
    Job {
        key: JobKey { topic: "pay.notify".parse().unwrap(), id: "o~1".parse().unwrap() },
        state,
        due: Timestamp::from_millis(1_763_600_000_120),
        created: Timestamp::from_millis(1_763_500_000_007),
        attempts: 0,
        failures: 0,
        last: None,
        reason: None,
        tags: Tags::default(),
    }
}

fn delivery(body: Body) -> Delivery {
    Delivery::new(Callback::parse("https://m.example/notify?x=1").unwrap(), body)
}

fn json(bytes: impl Into<Bytes>) -> Body {
    Body { bytes: bytes.into(), content_type: None }
}

const HASH: ContentHash = ContentHash([0, 1, 2, 3, 4, 5, 6, 0xff]);

fn line(body: Body) -> String {
    ExportLine::new(job(State::Delayed), delivery(body), HASH).to_string()
}

#[test]
fn a_line_has_the_fields_of_a_submit_and_the_history_of_the_job() {
    let mut dead = job(State::Dead);
    (dead.attempts, dead.failures, dead.reason) = (4, 3, Some("exhausted".to_owned()));
    let at = Timestamp::from_millis(1_763_600_000_121);
    dead.last = Some(LastAttempt { at, status: Some(503), error: None, duration: Duration::from_millis(9) });
    let mut delivery = delivery(json(r#"{"b": 1.0e5,  "a":"\u00e9"}"#));
    delivery.headers = Headers::parse(vec![("X-B".into(), "1".into()), ("x-a".into(), "\"".into())]).unwrap();
    delivery.context = Context::parse(vec![("Key".into(), "v".into())]).unwrap();
    let delays = vec![Duration::from_secs(15), Duration::from_millis(180_500)];
    delivery.retry = Some(RetryPolicy::new(delays, Max::Unlimited, 0.25).unwrap());
    delivery.timeout = Some(Duration::from_secs(5));
    delivery.trace = Some(Trace { trace_id: [1; 16], parent_id: [2; 8], flags: 1 });
    let line = ExportLine::new(dead, delivery, HASH).to_string();
    let expected = concat!(
        r#"{"topic":"pay.notify","id":"o~1","state":"dead","at":"2025-11-20T00:53:20.120Z","#,
        r#""url":"https://m.example/notify?x=1","body":{"b": 1.0e5,  "a":"\u00e9"},"#,
        r#""headers":{"x-b":"1","x-a":"\""},"context":{"Key":"v"},"#,
        r#""retry":{"delays":["15s","3m 500ms"],"max":-1,"jitter":0.25},"timeout":"5s","#,
        r#""created_at":"2025-11-18T21:06:40.007Z","attempts":4,"failures":3,"#,
        r#""last":{"at":"2025-11-20T00:53:20.121Z","status":503,"duration_ms":9},"reason":"exhausted","#,
        r#""content":"00010203040506ff","#,
        r#""traceparent":"00-01010101010101010101010101010101-0202020202020202-01"}"#,
    );
    assert_eq!(line, expected);
}

#[test]
fn json_that_a_line_cannot_contain_is_exported_as_base64_byte_for_byte() {
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    for text in ["{\n  \"a\": 1\n}", "[1,\r2]", " 1", "1 ", "", "{", &deep] {
        let body = json(text.to_owned());
        let line = line(body.clone());
        assert!(line.contains(r#""content_type":"application/json""#), "{line}");
        assert!(!line.contains(['\n', '\r']), "{line}");
        assert_eq!(import(&line).unwrap().job.delivery.body, body, "{line}");
    }
    for text in ["null", "{\"a\": [1,\t2]}", "\"\u{2028}\\n\"", "1E400"] {
        let body = json(text.to_owned());
        assert!(line(body.clone()).contains(&format!("\"body\":{text}")));
        assert_eq!(import(&line(body.clone())).unwrap().job.delivery.body, body);
    }
}

#[test]
fn an_exported_job_keeps_the_hash_of_its_submit() {
    for submitted in [
        r#"{"topic":"t","id":"i","url":"http://h","delay":600,"body":[ 1 ],"retry":{"preset":"none"}}"#,
        r#"{"topic":"t","id":"i","url":"http://h","retry":{"preset":"default","max":3},"timeout":0.25}"#,
        "{\"topic\":\"t\",\"id\":\"i\",\"url\":\"http://h\",\"body\":{\n\"a\":1}}",
        r#"{"topic":"t","id":"i","url":"http://h","body_base64":"e30=","content_type":"application/json"}"#,
        r#"{"topic":"t","id":"i","url":"http://h","content_type":"text/plain; charset=utf-8"}"#,
    ] {
        let now = Timestamp::from_millis(1_763_600_000_000);
        let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
        let defaults = Defaults { now, make_id, make_token, trace: None, tenant: None };
        let new = parse_job(submitted.as_bytes(), defaults).unwrap();
        let job = Job { key: new.key.clone(), ..job(State::Delayed) };
        let line = ExportLine::new(job, new.delivery.clone(), new.content).to_string();
        let back = import(&line).unwrap().job;
        assert_eq!((back.delivery, back.content), (new.delivery, new.content), "{line}");
    }
}

fn bodies() -> impl Strategy<Value = Body> {
    let content_type = prop_oneof![Just("application/octet-stream"), Just("text/plain; charset=utf-8")];
    prop_oneof![
        // Well-formed, with and without line breaks; and anything at all.
        any::<Vec<String>>().prop_map(|list| json(serde_json::to_string(&list).unwrap())),
        any::<Vec<String>>().prop_map(|list| json(serde_json::to_string_pretty(&list).unwrap())),
        any::<f64>().prop_map(|number| json(number.to_string())),
        any::<Vec<u8>>().prop_map(json),
        "\\PC*".prop_map(json),
        (any::<Vec<u8>>(), content_type)
            .prop_map(|(bytes, name)| Body { bytes: bytes.into(), content_type: Some(name.to_owned()) }),
    ]
}

/// Names of headers.
const NAMES: &str = "[a-z0-9!#$%&'*+.^_`|~-]{1,12}";
/// Keys of the context of which no two make the same header.
const KEYS: &str = "[a-z0-9]{1,12}";

/// Names that differ and values that a header can have.
fn entries(name: &'static str, most: usize) -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::btree_map(name, "([!-~]([ -~]{0,20}[!-~])?)?", 0..=most)
        .prop_map(|map| map.into_iter().map(|(name, value)| (format!("x-{name}"), value)).rev().collect())
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let waits = vec((0..2_592_000_u64, 10_000_000..1_000_000_000_u32), 1..6)
        .prop_map(|list| list.into_iter().map(|(s, ns)| Duration::new(s, ns)).collect::<Vec<_>>());
    let max = prop_oneof![Just(Max::Tiers), Just(Max::Unlimited), (1..=u32::MAX).prop_map(Max::Failures)];
    prop_oneof![
        Just(RetryPolicy::none()),
        (waits, max, 0.0..=1.0_f32)
            .prop_map(|(waits, max, jitter)| RetryPolicy::new(waits, max, jitter).unwrap()),
    ]
}

fn deliveries() -> impl Strategy<Value = Delivery> {
    let trace = (any::<[u8; 16]>(), any::<[u8; 8]>(), any::<u8>())
        .prop_filter("no id of zeros", |(trace, parent, _)| *trace != [0; 16] && *parent != [0; 8])
        .prop_map(|(trace_id, parent_id, flags)| Trace { trace_id, parent_id, flags });
    let timeout = (100_000_000..=600_000_000_000_u64).prop_map(Duration::from_nanos);
    let on_dead = "[a-z]{1,9}"
        .prop_map(|path| Box::new(Callback::parse(&format!("https://m.example/{path}")).unwrap()));
    let ways = (option::of(policies()), option::of(timeout), option::of(trace), option::of(on_dead));
    let parts = (bodies(), entries(NAMES, 32), entries(KEYS, 16), ways);
    parts.prop_map(|(body, headers, context, (retry, timeout, trace, on_dead))| Delivery {
        method: [CallbackMethod::Post, CallbackMethod::Put, CallbackMethod::Patch][body.bytes.len() % 3],
        headers: Headers::parse(headers).unwrap(),
        context: Context::parse(context).unwrap(),
        retry,
        expires: timeout.map(|timeout| {
            let millis = Duration::from_millis(1 + timeout.as_secs());
            if trace.is_some() {
                Expires::After(millis)
            } else {
                Expires::At(Timestamp::from_millis(1).plus(millis))
            }
        }),
        timeout,
        trace,
        tags: Tags::from_stored(if trace.is_some() { "a b:1" } else { "" }).unwrap(),
        on_done: on_dead.clone().filter(|_| trace.is_some()),
        on_dead,
        ..delivery(body)
    })
}

fn jobs() -> impl Strategy<Value = Job> {
    // To the end of 2035, so that no due time is too far ahead.
    let time = || (0..2_079_000_000_000_u64).prop_map(Timestamp::from_millis);
    let state =
        prop_oneof![Just(State::Delayed), Just(State::Ready), Just(State::Reserved), Just(State::Dead)];
    let seen = prop_oneof![
        (100..=999_u16).prop_map(|status| (Some(status), None)),
        "[!-~]{1,128}".prop_map(|error| (None, Some(error))),
    ];
    let last = (time(), seen, any::<u32>()).prop_map(|(at, (status, error), ms)| LastAttempt {
        at,
        status,
        error,
        duration: Duration::from_millis(ms.into()),
    });
    let parts = (state, time(), time(), any::<u32>(), any::<u32>(), option::of(last), "[!-~]{1,64}");
    parts.prop_map(|(state, due, created, attempts, failures, last, reason)| Job {
        due,
        created,
        attempts,
        failures,
        last,
        reason: Some(reason).filter(|_| state == State::Dead),
        ..job(state)
    })
}

proptest! {
    #[test]
    fn what_is_exported_is_imported_as_the_same_job(
        job in jobs(),
        delivery in deliveries(),
        hash in any::<[u8; 8]>(),
    ) {
        let content = ContentHash(hash);
        let line = ExportLine::new(job.clone(), delivery.clone(), content).to_string();
        prop_assert!(!line.contains(['\n', '\r']), "{}", line);
        let ImportJob { job: back, history } = import(&line).map_err(|problem| {
            TestCaseError::fail(format!("{line}: {problem:?}"))
        })?;
        prop_assert_eq!(back.key, job.key);
        prop_assert_eq!(back.due, Due::At(job.due));
        prop_assert_eq!(back.delivery, delivery);
        prop_assert_eq!(back.content, content);
        let Job { created, attempts, failures, last, reason, .. } = job;
        let behind = History { dead: reason, created: Some(created), attempts, failures, last };
        prop_assert_eq!(history, Some(behind));
    }
}
