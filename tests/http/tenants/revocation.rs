//! A key that is deleted also ends what it has begun: a waiting consumer gets no job, a call whose body is still
//! coming changes nothing, and streams and exports end.

use http::Method;
use ringback_core::clock::{Clock as _, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::{ALL, Caller, ROOT, stacks};
use crate::prelude::*;

/// How soon a deleted key ends everything. The rest is for a slow machine.
const WITHIN: Duration = Duration::from_secs(3);

/// A caller with a new key of a tenant, and the path of that key.
async fn made(stack: &Stack) -> (Caller, String) {
    let (caller, id, _) = Caller::made(stack, &json!({"tenant": "acme", "scopes": ALL})).await;
    (caller, format!("/v1/keys/{id}"))
}

async fn delete(stack: &Stack, path: &str) {
    Caller::root(None).send(stack, Method::DELETE, path, None).await.expect(200);
}

#[tokio::test]
async fn a_consumer_that_waits_with_a_deleted_key_is_given_no_job() {
    for options in stacks() {
        let stack = options.start().await;
        let (caller, key) = made(&stack).await;
        let mut reserve = JoinSet::new();
        {
            let (caller, url) = (caller.clone(), stack.url("/v1/topics/t/reserve"));
            let ask = json!({"wait": "30s"});
            reserve.spawn(async move { caller.send_to(&url, Method::POST, Some(&ask)).await });
        }
        // The reserve waits by then, because the API has served a later one.
        let first = json!({"topic": "seen"});
        caller.post(&stack, "/v1/jobs", &first).await.expect(201);
        caller.post(&stack, "/v1/topics/seen/reserve", &json!({"wait": "5s"})).await.expect(200);
        let deleted = Instant::now();
        delete(&stack, &key).await;
        let reply = timeout(WITHIN, reserve.join_next()).await.expect("it ends");
        let reply = reply.expect("it was spawned").expect("an answer");
        reply.expect(401);
        assert!(deleted.elapsed() < WITHIN);
        // A job that is submitted now goes to another consumer, at once and as new.
        let root = Caller::root(Some("acme"));
        root.post(&stack, "/v1/jobs", &json!({"topic": "t", "body": "secret"})).await.expect(201);
        let pulled = root.post(&stack, "/v1/topics/t/reserve", &json!({"wait": "5s"})).await.expect(200);
        assert_eq!(pulled["jobs"][0]["attempt"], 1, "{pulled}");
    }
}

#[tokio::test]
async fn jobs_that_come_as_the_key_ends_are_given_to_others_unharmed() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).unchecked().start().await;
    let at = SystemClock.now().plus(Duration::from_secs(2));
    let ask = json!({"tenant": "acme", "scopes": ["consume"], "expires": at.to_string()});
    let caller = Caller::with(&stack, &ask).await;
    let reply = caller.post(&stack, "/v1/topics/t/reserve", &json!({"wait": "30s"})).await;
    reply.expect(401);
    assert!(SystemClock.now() >= at, "it waits as long as the key is valid");
    let root = Caller::root(Some("acme"));
    root.post(&stack, "/v1/jobs", &json!({"topic": "t"})).await.expect(201);
    let pulled = root.post(&stack, "/v1/topics/t/reserve", &json!({"wait": "5s"})).await.expect(200);
    assert_eq!(pulled["jobs"].as_array().map(Vec::len), Some(1), "{pulled}");
}

/// A call of which half of the body has been sent.
struct HalfSentCall {
    stream: TcpStream,
    rest: String,
}

impl HalfSentCall {
    async fn new(stack: &Stack, caller: &Caller, method: &Method, path: &str, body: &str) -> Self {
        let address = stack.url("").strip_prefix("http://").expect("plain http").to_owned();
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let kind = if path == "/v1/import" { "application/x-ndjson" } else { "application/json" };
        let (half, rest) = body.split_at(body.len() / 2);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{half}",
            caller.key,
            body.len(),
        );
        stream.write_all(head.as_bytes()).await.expect("half of it is sent");
        Self { stream, rest: rest.to_owned() }
    }

    /// Sends the rest of the body, and returns the head and body of the answer.
    async fn finish(mut self) -> String {
        self.stream.write_all(self.rest.as_bytes()).await.expect("the rest is sent");
        let mut answer = Vec::new();
        timeout(SOON, self.stream.read_to_end(&mut answer)).await.expect("an answer").expect("all of it");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[tokio::test]
async fn a_call_whose_body_comes_after_its_key_was_deleted_changes_nothing() {
    let job = r#"{"topic":"t","id":"late","delay":"1h"}"#;
    let calls: [(Method, &str, String); 13] = [
        (Method::POST, "/v1/jobs", job.to_owned()),
        (Method::POST, "/v1/jobs/batch", format!("[{job}]")),
        (Method::POST, "/v1/import", format!("{job}\n{}", job.replace("late", "late-2"))),
        (Method::PUT, "/v1/topics/t", r#"{"timeout":"5s"}"#.to_owned()),
        (Method::PATCH, "/v1/topics/t", r#"{"timeout":"5s"}"#.to_owned()),
        (Method::POST, "/v1/topics/t/secrets", r#"{"keep":"1h"}"#.to_owned()),
        (Method::POST, "/v1/topics/t/pause", "{ }".to_owned()),
        (Method::POST, "/v1/jobs/cancel", r#"{"all":true}"#.to_owned()),
        (Method::PATCH, "/v1/jobs/t/there", r#"{"delay":"9h"}"#.to_owned()),
        (Method::POST, "/v1/jobs/t/there/run", "{ }".to_owned()),
        (Method::PUT, "/v1/schedules/s", r#"{"every":"7d","job":{"topic":"t"}}"#.to_owned()),
        (Method::PUT, "/v1/credentials/c", r#"{"to":["https://b.example"],"bearer":"t"}"#.to_owned()),
        (Method::POST, "/v1/topics/t/reserve", "{ }".to_owned()),
    ];
    for options in stacks() {
        let stack = options.start().await;
        let (caller, key) = made(&stack).await;
        let there = json!({"topic": "t", "id": "there", "delay": "1h"});
        caller.post(&stack, "/v1/jobs", &there).await.expect(201);
        let root = Caller::root(Some("acme"));
        let before = possessions(&stack, &root).await;
        let mut all = Vec::new();
        for (method, path, body) in &calls {
            all.push((path, HalfSentCall::new(&stack, &caller, method, path, body).await));
        }
        delete(&stack, &key).await;
        caller.wait_status(&stack, "/v1/topics", 401).await;
        for (path, call) in all {
            let answer = call.finish().await;
            assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        }
        assert_eq!(possessions(&stack, &root).await, before);
    }
}

async fn possessions(stack: &Stack, root: &Caller) -> Vec<Value> {
    let mut found = Vec::new();
    let paths = ["/v1/jobs", "/v1/schedules", "/v1/credentials", "/v1/bulk", "/v1/topics/t/secrets"];
    for path in paths {
        found.push(root.get(stack, path).await.expect(200));
    }
    let topics = root.get(stack, "/v1/topics").await.expect(200);
    let topic = &topics["items"][0];
    found.extend([topic["paused"].clone(), topic["policy"].clone(), topic["states"].clone()]);
    found
}

#[tokio::test]
async fn an_idle_stream_of_a_deleted_key_ends() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let (caller, key) = made(&stack).await;
    let events = caller.client.get(stack.url("/v1/events")).headers(caller.headers()).send();
    let mut events = events.await.expect("events");
    let ready = timeout(SOON, events.chunk()).await.expect("the first").expect("a chunk");
    assert!(ready.is_some());
    delete(&stack, &key).await;
    let end = timeout(WITHIN, async { while let Ok(Some(_)) = events.chunk().await {} }).await;
    assert!(end.is_ok(), "the stream goes on");
}

#[tokio::test]
async fn an_export_of_a_deleted_key_is_aborted() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let (caller, key) = made(&stack).await;
    let body = "x".repeat(60_000);
    for batch in 0..10 {
        let job = |n: usize| json!({"topic": "t", "id": format!("{batch}-{n}"), "delay": "1h", "body": body});
        let jobs: Vec<_> = (0..100).map(job).collect();
        caller.post(&stack, "/v1/jobs/batch", &json!(jobs)).await.expect(200);
    }
    let export = caller.client.get(stack.url("/v1/export")).headers(caller.headers()).send();
    let mut export = export.await.expect("an export");
    export.chunk().await.expect("a chunk").expect("it begins");
    delete(&stack, &key).await;
    caller.wait_status(&stack, "/v1/topics", 401).await;
    // Earlier chunks arrive, and an incomplete export does not look complete.
    let end = timeout(SOON, async {
        loop {
            match export.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => return "complete",
                Err(_) => return "aborted",
            }
        }
    });
    assert_eq!(end.await, Ok("aborted"));
}
