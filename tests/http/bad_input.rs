//! Bad requests to the API: each is answered with a problem that names the mistake, and no job is accepted.

use ringback_testkit::{Reply, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw_post::raw_post;

/// A good job with one field replaced or added.
fn job(field: &str, value: impl Into<Value>) -> Value {
    let mut job = json!({"topic": "t", "id": "i", "delay": "1h", "url": "http://127.0.0.1:9/", "body": 1});
    job[field] = value.into();
    job
}

/// The text of a good job with one field replaced by raw JSON text, also by one that `serde_json` cannot represent.
fn raw(field: &str, value: &str) -> String {
    job(field, "\u{1}replaced").to_string().replace("\"\\u0001replaced\"", value)
}

/// A field and values that it must not have.
type Wrong = (&'static str, Vec<Value>);

fn texts<const N: usize>(texts: [&str; N]) -> Vec<Value> {
    texts.map(Value::from).to_vec()
}

fn long(length: usize) -> String {
    "x".repeat(length)
}

fn wrong_names() -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for field in ["topic", "id"] {
        wrong.push((field, texts(["", ".", "..", "a b", "a/b", "a{b", "a}b", "{a}", "ä", "日本"])));
        wrong.push((field, texts(["a\nb", "a\0b", "a\u{7f}b", "a%2Fb", "a?b", "a#b", "a\"b", " a", "a "])));
        wrong.push((field, vec![json!(1), json!([]), json!({}), json!(true), json!(long(129))]));
    }
    wrong.push(("topic", vec![json!(long(65)), json!("a~b"), json!("a:b"), Value::Null]));
    wrong.push(("dealy", vec![json!("1h")]));
    wrong.push(("Topic", vec![json!("t")]));
    wrong
}

fn wrong_times() -> Vec<Wrong> {
    vec![
        ("delay", texts(["-5s", "soon", "", "1 month", "11y", "5000d", "NaN", "inf", "5", "1h ago"])),
        ("delay", vec![json!(-1), json!(-0.001), json!(1e300), json!(400_000_000), json!([]), json!(true)]),
        ("timeout", vec![json!("99ms"), json!("11m"), json!(0), json!(-1), json!("long"), json!([])]),
    ]
}

fn wrong_callbacks() -> Vec<Wrong> {
    vec![
        (
            "url",
            texts(["", "nowhere", "//host/", "ftp://host/", "file:///etc/passwd", "javascript:alert(1)"]),
        ),
        ("url", texts(["http://", "http://user@host/", "http://user:word@host/", "http://host/#part"])),
        ("url", texts(["http://host:99999/", "http://ho st/", "http://[::1/", "http://%00/"])),
        ("url", vec![json!(format!("http://host/{}", long(2_048))), json!(1), json!({})]),
        ("on_dead", texts(["", "nowhere", "ftp://host/", "http://user:word@host/", "http://host/#part"])),
        ("on_dead", vec![json!(format!("http://host/{}", long(2_048))), json!(1), json!({})]),
        ("headers", vec![json!([]), json!("x: y"), json!({"a": 1}), json!({"a": null}), json!({"a": {}})]),
        ("headers", vec![json!({"": "x"}), json!({"a b": "x"}), json!({"ä": "x"}), json!({"a:": "x"})]),
        (
            "headers",
            vec![
                json!({"a": "x\r\ny: z"}),
                json!({"a": "x\ny"}),
                json!({"a\r\nb": "x"}),
                json!({"a": "x\0"}),
            ],
        ),
        ("headers", vec![json!({"a": long(8_193)}), numbered("h", 33)]),
        ("headers", reserved().map(|name| json!({name: "x"})).collect()),
        ("context", vec![json!([]), json!({"a": 1}), json!({"a": {}}), json!({"a": long(4_097)})]),
        ("context", vec![numbered("c", 17), json!({"a b": "x"}), json!({"a": "x\r\ny"}), json!({"": "x"})]),
    ]
}

fn wrong_policies() -> Vec<Wrong> {
    let delays = |delays: Value| json!({"delays": delays});
    let beside = |field: &str, value: Value| json!({"delays": ["1s"], field: value});
    vec![
        (
            "retry",
            vec![json!([]), json!("15s"), json!({}), json!({"preset": "whatever"}), json!({"preset": 1})],
        ),
        ("retry", vec![delays(json!([])), delays(json!(["-1s"])), delays(json!([-1])), delays(json!("1s"))]),
        ("retry", vec![delays(json!(["1ms"])), delays(json!(["31d"])), delays(json!(vec!["1s"; 51]))]),
        (
            "retry",
            vec![beside("jitter", json!(2)), beside("jitter", json!(-0.1)), beside("jitter", json!("much"))],
        ),
        ("retry", vec![beside("max", json!(0)), beside("max", json!(-2)), beside("max", json!(1.5))]),
        ("retry", vec![beside("preset", json!("none")), beside("unknown", json!(1))]),
    ]
}

/// Header names that jobs may not set.
fn reserved() -> impl Iterator<Item = &'static str> {
    let list = "host content-length content-type transfer-encoding connection te trailer upgrade expect user-agent \
                traceparent tracestate webhook-id webhook-anything ringback-topic Ringback-Attempt HOST";
    list.split(' ').filter(|name| !name.is_empty())
}

fn numbered(name: &str, count: usize) -> Value {
    (0..count).map(|n| (format!("{name}{n}"), Value::from("x"))).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn every_wrong_field_is_named_and_changes_nothing() {
    let stack = StackOptions::api_only().start().await;
    let mut wrong = Vec::new();
    let tables = [wrong_names(), wrong_times(), wrong_callbacks(), wrong_policies()].concat();
    let cases =
        tables.into_iter().flat_map(|(field, values)| values.into_iter().map(move |value| (field, value)));
    for (field, value) in cases {
        let reply = stack.submit_text(job(field, value.clone()).to_string()).await;
        let named = problem(&reply, 422)
            .and_then(|problem| names(&problem, field))
            .map_err(|why| format!("{field} {}: {why}", shorten(&value.to_string())));
        wrong.extend(named.err());
    }
    assert!(wrong.is_empty(), "{} of the cases:\n{}", wrong.len(), wrong.join("\n"));
    no_job_was_accepted(&stack).await;
}

#[tokio::test]
async fn fields_that_do_not_go_together_are_refused() {
    let stack = StackOptions::api_only().start().await;
    let both = job("at", "2030-01-01T00:00:00Z");
    reply_names(&stack, both.to_string(), "delay").await;
    let mut two_bodies = job("body_base64", "AAAA");
    two_bodies["content_type"] = json!("a/b");
    reply_names(&stack, two_bodies.to_string(), "body").await;
    let at = |at: &str| {
        let mut job = job("at", at);
        job.as_object_mut().expect("an object").remove("delay");
        job.to_string()
    };
    for bad in
        ["", "tomorrow", "2030-13-01T00:00:00Z", "2030-01-01", "2030-01-01T00:00:00", "9999-01-01T00:00:00Z"]
    {
        reply_names(&stack, at(bad), "at").await;
    }
    let mut base64 = json!({"topic": "t", "id": "i", "url": "http://127.0.0.1:9/", "content_type": "a/b"});
    base64["body_base64"] = json!("%%");
    reply_names(&stack, base64.to_string(), "body_base64").await;
    let twice = r#"{"topic":"t","id":"i","id":"j","url":"http://127.0.0.1:9/","body":1}"#;
    reply_names(&stack, twice.to_owned(), "id").await;
    no_job_was_accepted(&stack).await;
}

#[tokio::test]
async fn several_wrong_fields_are_all_named_at_once() {
    let stack = StackOptions::api_only().start().await;
    let mut wrong = job("topic", "a b");
    wrong["delay"] = json!(-1);
    wrong["url"] = json!("nowhere");
    wrong["more"] = json!(1);
    let reply = stack.submit_text(wrong.to_string()).await;
    let problem = problem(&reply, 422).expect("a problem");
    for field in ["topic", "delay", "url", "more"] {
        names(&problem, field).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[tokio::test]
async fn what_is_no_json_is_unreadable() {
    let stack = StackOptions::api_only().start().await;
    let texts: [&[u8]; 12] = [
        b"",
        b"{",
        b"{\"topic\"",
        b"nonsense",
        b"{'topic':'t'}",
        b"{\"topic\":\"t\",}",
        b"{\"topic\":\"t\"} trailing",
        b"\xef\xbb\xbf{}x",
        b"{\"topic\":\"\xff\xfe\"}",
        b"{\"topic\":\"t\",\"url\":\"http://127.0.0.1:9/\",\"body\":\"\xc3\x28\"}",
        b"{\"topic\":\"t\",\"url\":\"http://127.0.0.1:9/\",\"body\":01}",
        b"{\"topic\":\"t\",\"url\":\"http://127.0.0.1:9/\",\"body\":NaN}",
    ];
    for text in texts {
        let reply = stack.submit_text(text.to_vec()).await;
        problem(&reply, 400).unwrap_or_else(|why| panic!("{}: {why}", text.escape_ascii()));
    }
    for delay in ["NaN", "Infinity", "-Infinity", "+1", ".5", "0x10"] {
        let reply = stack.submit_text(raw("delay", delay)).await;
        problem(&reply, 400).unwrap_or_else(|why| panic!("a delay of {delay}: {why}"));
    }
    for no_object in ["null", "17", "\"text\"", "[]", "true"] {
        let reply = stack.submit_text(no_object.to_owned()).await;
        assert!([400, 422].contains(&reply.status), "{no_object}: {}", reply.status);
        problem(&reply, reply.status).unwrap_or_else(|why| panic!("{no_object}: {why}"));
    }
    no_job_was_accepted(&stack).await;
}

#[tokio::test]
async fn json_deeper_than_64_levels_is_refused() {
    let stack = StackOptions::api_only().start().await;
    let nested = |levels: usize| raw("body", &format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
    for levels in [65, 130, 10_000, 100_000] {
        let reply = stack.submit_text(nested(levels)).await;
        assert!([400, 422].contains(&reply.status), "{levels} levels: {}", reply.status);
        problem(&reply, reply.status).unwrap_or_else(|why| panic!("{levels} levels: {why}"));
    }
    no_job_was_accepted(&stack).await;
    assert_eq!(stack.submit_text(nested(64)).await.status, 201);
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let stack = StackOptions::api_only().start().await;
    let body = |bytes: usize| raw("body", &format!("\"{}\"", "x".repeat(bytes - 2)));
    let reply = stack.submit_text(body(257 << 10)).await;
    problem(&reply, 413).expect("257 KiB");
    let reply = stack.submit_text(body(20 << 20)).await;
    problem(&reply, 413).expect("20 MiB");
    let item = job("id", Value::Null).to_string();
    for (content_type, text) in [
        ("application/x-ndjson", vec![item.clone(); 10_001].join("\n")),
        ("application/json", format!("[{}]", vec![item; 10_001].join(","))),
        ("application/json", format!("[{}]", vec![body(250 << 10); 70].join(","))),
    ] {
        let reply = send(&stack, "/v1/jobs/batch", Some(content_type), text).await;
        problem(&reply, 413).unwrap_or_else(|why| panic!("a large batch as {content_type}: {why}"));
    }
    no_job_was_accepted(&stack).await;
    assert_eq!(stack.submit_text(body(256 << 10)).await.status, 201);
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let stack = StackOptions::api_only().start().await;
    let good = job("topic", "t").to_string();
    for content_type in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/xml")]
    {
        for path in ["/v1/jobs", "/v1/jobs/batch"] {
            let reply = send(&stack, path, content_type, good.clone()).await;
            problem(&reply, 415).unwrap_or_else(|why| panic!("{path} as {content_type:?}: {why}"));
        }
    }
    no_job_was_accepted(&stack).await;
    let reply = send(&stack, "/v1/jobs", Some("application/json; charset=utf-8"), good).await;
    assert_eq!(reply.status, 201);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let stack = StackOptions::api_only().start().await;
    for (method, path, status) in [
        (http::Method::GET, "/v1/nothing", 404),
        (http::Method::POST, "/", 405),
        (http::Method::GET, "/nothing", 404),
        (http::Method::PUT, "/v1/jobs", 405),
        (http::Method::DELETE, "/v1/stats", 405),
    ] {
        let reply = stack.request(method.clone(), path, None).await;
        problem(&reply, status).unwrap_or_else(|why| panic!("{method} {path}: {why}"));
    }
    for path in
        ["/v1/jobs/a%20b/i", "/v1/jobs/t/a%2Fb", "/v1/jobs/t/%7Bi%7D", "/v1/jobs/t/%FF", "/v1/jobs/t/%00"]
    {
        for method in [http::Method::GET, http::Method::DELETE] {
            let reply = stack.request(method.clone(), path, None).await;
            assert!([400, 404, 422].contains(&reply.status), "{method} {path}: {}", reply.status);
            problem(&reply, reply.status).unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        }
    }
    no_job_was_accepted(&stack).await;
}

async fn send(stack: &Stack, path: &str, content_type: Option<&str>, text: String) -> Reply {
    let headers: Vec<_> = content_type.map(|kind| ("content-type", kind)).into_iter().collect();
    raw_post(stack.url(path), &headers, text).await
}

async fn reply_names(stack: &Stack, text: String, field: &str) {
    let reply = stack.submit_text(text.clone()).await;
    let named = problem(&reply, 422).and_then(|problem| names(&problem, field));
    named.unwrap_or_else(|why| panic!("{text}: {why}"));
}

/// The problem in a reply; an error if the status, the content type or the members are not as they should be.
fn problem(reply: &Reply, status: u16) -> Result<Value, String> {
    let shown = shorten(&String::from_utf8_lossy(&reply.body));
    if reply.status != status {
        return Err(format!("{} instead of {status}: {shown}", reply.status));
    }
    if reply.header("content-type") != Some("application/problem+json") {
        return Err(format!("content-type {:?}", reply.header("content-type")));
    }
    let problem: Value = serde_json::from_slice(&reply.body).map_err(|error| format!("{error}: {shown}"))?;
    let whole = problem["status"] == status && problem["title"].is_string() && problem["detail"].is_string();
    if whole { Ok(problem) } else { Err(format!("no whole problem: {shown}")) }
}

/// Fails unless the problem names a field, or a part of it, with a `detail` and with what is `allowed`.
fn names(problem: &Value, field: &str) -> Result<(), String> {
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let names_it = |error: &Value| {
        let name = error["field"].as_str().unwrap_or_default();
        name.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '_']))
    };
    let is_explained = |error: &Value| {
        ["detail", "allowed"].iter().all(|part| error[part].as_str().is_some_and(|t| !t.is_empty()))
    };
    match errors.iter().find(|error| names_it(error)) {
        Some(error) if is_explained(error) => Ok(()),
        Some(error) => Err(format!("no detail or no allowed: {error}")),
        None => Err(format!("{field} is not named: {}", shorten(&problem.to_string()))),
    }
}

/// Asserts that there has never been a job.
async fn no_job_was_accepted(stack: &Stack) {
    let stats = stack.stats().await;
    let states = stats["states"].as_object().expect("states");
    assert!(states.values().all(|count| *count == 0), "{stats}");
    assert_eq!(states.len(), 8, "{stats}");
}

fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

#[tokio::test]
async fn a_request_without_a_host_or_with_two_is_refused() {
    let stack = StackOptions::api_only().start().await;
    let address = stack.url("").replace("http://", "");
    for (hosts, status) in [
        ("", "400"),
        ("host: localhost\r\nhost: localhost\r\n", "400"),
        ("host: localhost\r\nHost: b\r\n", "400"),
        ("host: localhost\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let request = format!("GET /v1/stats HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{hosts:?}: {answer}");
        assert!(status == "200" || answer.contains("exactly one"), "{hosts:?}: {answer}");
    }
}
