//! Export and import over HTTP: exports are complete or visibly broken off, imports read by line, jobs move unchanged.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use ringback_testkit::{Role, http_client};
use tokio::time::{Instant, timeout};

use crate::http::batch::peak_memory;
use crate::http::limits_per_address::client;
use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};

/// Another installation on the same Redis, with only an API.
async fn other(stack: &Stack) -> Stack {
    StackOptions::api_only().store(&stack.store_url()).env("RINGBACK_PREFIX", "other").start().await
}

fn counts(answer: &Value) -> [u64; 3] {
    ["created", "repeated", "refused"].map(|name| answer[name].as_u64().expect("a count"))
}

/// The lines of an export. Asserts that none is there twice.
async fn export(stack: &Stack, query: &str) -> BTreeSet<String> {
    let reply = stack.get(&format!("/v1/export{query}")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let text = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), text.lines().count());
    lines
}

fn joined(lines: &BTreeSet<String>) -> String {
    lines.iter().map(|line| line.clone() + "\n").collect()
}

/// Jobs that differ in all fields that a job can have.
fn all_kinds() -> Vec<Value> {
    let far = |id: &str| json!({"topic": TOPIC, "id": id, "delay": "1h", "url": "https://h.example/a?b=c"});
    vec![
        far("plain"),
        with(far("body"), "body", json!({"n": 1.5e3, "text": "ä\u{1f600}"})),
        with(with(far("binary"), "body_base64", "AAH/"), "content_type", "application/octet-stream"),
        with(far("large"), "body", "x".repeat(200_000)),
        with(with(far("headers"), "headers", json!({"x-a": "1"})), "context", json!({"k": "v"})),
        with(far("retry"), "retry", json!({"delays": ["1s", "1h 30m"], "max": -1, "jitter": 0.5})),
        with(with(far("none"), "retry", json!({"preset": "none"})), "timeout", "2m"),
        with(with(far("at"), "delay", Value::Null), "at", "2030-01-02T03:04:05+01:00"),
        with(far("c7~1@x:y"), "topic", "other.topic"),
        with(far("with-notice"), "on_dead", "https://up.example/dead?x=1"),
    ]
}

#[tokio::test]
async fn what_was_exported_and_imported_is_exported_the_same_again() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let jobs = all_kinds();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], jobs.len());
    sink.answer_job("gone", Answer::status(410));
    sink.answer_job("tired", Answer::status(503));
    stack.accept(&job(&sink, "gone")).await;
    stack.accept(&with(job(&sink, "tired"), "retry", json!({"delays": ["10ms"]}))).await;
    stack.accept(&job(&sink, "done")).await;
    traced(&stack, "traced").await;
    let dead = [("gone", "gone"), ("tired", "exhausted")];
    for (id, reason) in dead {
        assert_eq!(stack.wait_state(TOPIC, id, "dead", SOON).await["reason"], reason);
    }
    stack.wait_state(TOPIC, "done", "done", SOON).await;

    let lines = export(&stack, "").await;
    assert_eq!(lines.len(), jobs.len() + 3, "{lines:?}");
    assert_eq!(export(&stack, "?state=dead").await.len(), 2);
    assert_eq!(export(&stack, "?topic=other.topic&state=delayed").await.len(), 1);
    for other in [other(&stack).await, StackOptions::api_only().store("embedded:./data").start().await] {
        let answer = other.import_lines(joined(&lines)).await.json();
        assert_eq!(counts(&answer), [13, 0, 0], "{answer}");
        assert_eq!(export(&other, "").await, lines);
        for (id, _) in dead {
            assert_eq!(other.job(TOPIC, id).await, stack.job(TOPIC, id).await);
        }

        // The other installation recognises a repetition of the submit.
        for job in &jobs {
            let (status, answer) = other.submit(job).await;
            assert_eq!(status, 200, "{job}: {answer}");
            assert_eq!(other.submit(&with(job.clone(), "url", "http://another/")).await.0, 409, "{job}");
        }
        let answer = other.import_lines(joined(&lines)).await.json();
        assert_eq!(counts(&answer), [0, 13, 0], "{answer}");
        assert_eq!(export(&other, "").await, lines);
    }
}

/// Submits a job with a `traceparent`.
async fn traced(stack: &Stack, id: &str) {
    let job = json!({"topic": TOPIC, "id": id, "delay": "1h", "url": "http://h/"});
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(
        raw_post(stack.url("/v1/jobs"), &[JSON, ("traceparent", trace)], job.to_string()).await.status,
        201
    );
}

#[tokio::test]
async fn due_jobs_are_delivered_by_the_installation_they_were_moved_to() {
    let (mut stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    for id in ["a", "b"] {
        stack.accept(&job(&sink, id)).await;
    }
    let lines = export(&stack, "").await;
    assert_eq!(lines.len(), 2);
    let other = Stack::options().store(&stack.store_url()).env("RINGBACK_PREFIX", "other").start().await;
    // An imported job that was tried before keeps its counts.
    let lines = joined(&lines).replace(r#""id":"b""#, r#""id":"tried""#);
    let lines = lines.lines().map(|line| match serde_json::from_str::<Value>(line).expect("JSON") {
        line if line["id"] == "tried" => with(with(line, "attempts", 4), "failures", 2).to_string() + "\n",
        line => line.to_string() + "\n",
    });
    let answer = other.import_lines(lines.collect::<String>()).await.json();
    assert_eq!(counts(&answer), [2, 0, 0], "{answer}");
    sink.wait_for_jobs(&["a", "tried"], 1, SOON).await;
    assert_eq!(sink.arrivals_of("tried")[0].attempt(), Some(5));
    other.wait_state(TOPIC, "tried", "done", SOON).await;
    // The old installation still has it, and receivers see the difference.
    stack.add(Role::Carrier).await;
    stack.add(Role::Notifier).await;
    let both = sink.wait_for_job("a", 2, SOON).await;
    assert_eq!(both[0].header("webhook-id"), both[1].header("webhook-id"));
}

#[tokio::test]
async fn bad_lines_are_reported_by_number_and_spoil_no_other() {
    let stack = StackOptions::api_only().start().await;
    let far = |id: &str| json!({"topic": TOPIC, "id": id, "delay": "1h", "url": "http://h/"});
    stack.accept(&with(far("taken"), "body", 1)).await;
    let lines = [
        far("a").to_string(),
        String::new(),
        "{".to_owned(),
        far("a").to_string(),
        with(far("b"), "state", "done").to_string() + "\r",
        "  ".to_owned(),
        with(far("c"), "state", "dead").to_string(),
        far("taken").to_string(),
        with(far("huge"), "body", "x".repeat(270_000)).to_string(),
        with(with(far("late"), "delay", Value::Null), "at", "2020-01-01T00:00:00Z").to_string(),
    ];
    let reply = stack.import_lines(lines.join("\n")).await;
    let answer = reply.json();
    assert_eq!((reply.status, counts(&answer)), (200, [2, 1, 5]), "{answer}");
    let problems = answer["problems"].as_array().expect("problems");
    let refused: Vec<_> = problems.iter().map(|p| (p["line"].as_u64(), p["status"].as_u64())).collect();
    let expected = [(3, 400), (5, 422), (7, 422), (8, 409), (9, 413)];
    assert_eq!(refused, expected.map(|(line, status)| (Some(line), Some(status))), "{answer}");
    assert_eq!(problems[1]["problem"]["errors"][0]["field"], "state", "{answer}");
    assert_eq!(problems[2]["problem"]["errors"][0]["field"], "reason", "{answer}");
    assert_eq!(stack.job(TOPIC, "late").await.1["state"], "ready");
    assert_eq!(stack.job(TOPIC, "b").await.0, 404);
    let wrong = stack.request(Method::POST, "/v1/import", Some(("application/json", "[]".into()))).await;
    assert_eq!(wrong.status, 415);
}

#[tokio::test]
async fn the_largest_import_goes_in_whole_and_a_silent_redis_is_reported_in_time() {
    let mut stack = StackOptions::api_only().start().await;
    let lines: String = (0..10_000)
        .map(|n| {
            json!({"topic": TOPIC, "id": n.to_string(), "delay": "1h", "url": "http://h/"}).to_string() + "\n"
        })
        .collect();
    let answer = stack.import_lines(lines.clone()).await.json();
    assert_eq!(counts(&answer), [10_000, 0, 0], "{}", answer["problems"][0]);
    assert_eq!(export(&stack, "").await.len(), 10_000);
    stack.redis_mut().stop();
    stack.skip_check();
    let begin = Instant::now();
    let few: String = lines.lines().take(50).map(|line| line.to_owned() + "\n").collect();
    let reply = stack.import_lines(few).await;
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
}

#[tokio::test]
async fn a_redis_that_is_nearly_full_takes_no_imports() {
    let stack = StackOptions::api_only().start().await;
    let line = json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": "http://h/"}).to_string();
    assert_eq!(counts(&stack.import_lines(line.clone()).await.json()), [1, 0, 0]);
    eventually(SOON, "imports are refused", async || {
        // The memory that Redis uses varies by some per cent, because connections come and go.
        let limit = stack.redis().used_memory().await * 20 / 19;
        stack.redis().limit_memory(limit).await;
        match stack.import_lines(line.clone()).await {
            reply if reply.status == 503 && reply.json()["detail"].to_string().contains("memory limit") => {
                Ok(())
            }
            reply => Err(format!("{} {:?}", reply.status, reply.body)),
        }
    })
    .await;
    assert_eq!(export(&stack, "").await.len(), 1);
}

#[tokio::test]
async fn what_is_set_for_topics_is_exported_whole_and_in_order() {
    const PAUSED: usize = 700;
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        assert_eq!(export_of_topics(&stack).await, [Value::Null; 0]);
        let secret = json!({"headers": {"authorization": "Bearer s3cret"}, "headers_to": ["http://h"], "timeout": "5s"});
        for topic in ["a", "topic-0350", "z"] {
            stack.set_policy(topic, &secret).await;
        }
        // A topic that only has jobs has neither a policy nor a pause.
        stack.accept(&json!({"topic": "jobs", "id": "i", "delay": "1h", "url": "http://h/"})).await;
        // More topics than are read from the store at a time.
        for n in 0..PAUSED {
            stack.post_empty(&format!("/v1/topics/topic-{n:04}/pause")).await.expect(200);
        }
        let lines = export_of_topics(&stack).await;
        let names: Vec<_> = lines.iter().map(|line| line["topic"].as_str().expect("a name")).collect();
        assert!(names.is_sorted() && names.len() == PAUSED + 2, "{names:?}");
        let policies: Vec<_> = lines.iter().filter(|line| line["policy"] != Value::Null).collect();
        let expected = |topic, paused| json!({"topic": topic, "paused": paused, "policy": secret});
        let expected = [expected("a", false), expected("topic-0350", true), expected("z", false)];
        assert_eq!(policies, expected.iter().collect::<Vec<_>>());
        assert_eq!(lines.iter().filter(|line| line["paused"] == true).count(), PAUSED);
        stack.post_empty("/v1/topics/topic-0001/resume").await.expect(200);
        assert_eq!(export_of_topics(&stack).await.len(), PAUSED + 1);
    }
}

async fn export_of_topics(stack: &Stack) -> Vec<Value> {
    let reply = stack.get("/v1/export/topics").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let text = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Submits jobs that take about 25 MB in an export, which is more than connections buffer.
pub(crate) async fn accept_much(stack: &Stack) {
    let body = "x".repeat(100_000);
    for chunk in (0..250).collect::<Vec<_>>().chunks(125) {
        let far = |n: &usize| json!({"topic": TOPIC, "id": n.to_string(), "delay": "1h", "url": "http://h/", "body": body});
        let jobs: Vec<_> = chunk.iter().map(far).collect();
        assert_eq!(stack.batch(&jobs).await.1["accepted"], chunk.len());
    }
}

/// Starts an export and reads its first lines.
async fn begun_export(stack: &Stack) -> reqwest::Response {
    begun(&http_client(), stack).await
}

async fn begun(client: &reqwest::Client, stack: &Stack) -> reqwest::Response {
    let mut answer = client.get(stack.url("/v1/export")).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.chunk().await.expect("lines").expect("lines");
    answer
}

/// Reads an export to its end, which must be a broken connection.
async fn breaks_off(mut export: reqwest::Response) {
    let rest = async {
        loop {
            match export.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it looks complete"),
                Err(_) => return,
            }
        }
    };
    timeout(SOON, rest).await.expect("it ends");
}

#[tokio::test]
async fn an_export_that_loses_redis_breaks_off() {
    let mut stack = StackOptions::api_only().start().await;
    accept_much(&stack).await;
    let export = begun_export(&stack).await;
    stack.redis_mut().kill();
    stack.skip_check();
    breaks_off(export).await;
    stack.apis[0].wait_log("export aborted", SOON).await;
}

#[tokio::test]
async fn an_export_outlives_a_short_silence_of_redis() {
    let mut stack = StackOptions::api_only().start().await;
    accept_much(&stack).await;
    let mut export = begun_export(&stack).await;
    stack.redis_mut().stop();
    let mut lines = 0;
    let mut count = |chunk: Bytes| lines += chunk.iter().filter(|byte| **byte == b'\n').count();
    // Lines that were read already arrive; then the export waits for Redis.
    while let Ok(chunk) = timeout(Duration::from_secs(1), export.chunk()).await {
        count(chunk.expect("it does not break off").expect("it is not over"));
    }
    // Once a later call has been given up, so has that of the export.
    let listed = stack.get("/v1/jobs").await;
    assert_eq!(listed.status, 503);
    stack.redis_mut().cont();
    while let Some(chunk) = export.chunk().await.expect("it does not break off") {
        count(chunk);
    }
    assert!(lines >= 249, "{lines}");
}

#[tokio::test]
async fn readers_that_hang_hold_little_memory_few_exports_and_no_shutdown() {
    let mut stack = StackOptions::api_only().start().await;
    accept_much(&stack).await;
    stack.apis[0].restart();
    stack.ready(SOON).await;
    let mut exports = Vec::new();
    // One address may have two of the four exports.
    for last in [1, 1, 2, 3] {
        exports.push(begun(&client(last), &stack).await);
    }
    let refused = stack.get("/v1/export").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    // An export that ends makes room for another.
    exports.remove(0);
    let again = eventually(SOON, "there is room again", async || {
        let answer =
            client(4).get(stack.url("/v1/export")).send().await.map_err(|error| error.to_string())?;
        if answer.status() == 200 { Ok(answer) } else { Err(answer.status().to_string()) }
    })
    .await;
    exports.push(again);
    if let Some(peak) = peak_memory(stack.apis[0].pid()) {
        assert!(peak < 120 << 20, "{} MiB", peak >> 20);
    }
    let begin = Instant::now();
    stack.apis[0].term();
    let status = stack.apis[0].wait_exit(SOON).await;
    assert_eq!(status.code(), Some(0), "{}", stack.apis[0].log());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    for export in exports {
        breaks_off(export).await;
    }
}
