//! `ringback get --full` and `--curl`, and `ringback list --full`. A printed curl command is run by `sh`, and what
//! arrives is compared with the delivery.

use std::io::Write as _;
use std::process::{Command, Output};

use http::HeaderMap;
use ringback_testkit::Arrival;

use super::{prints, reports, ringback};
use crate::prelude::*;

/// What a careless shell would run, split or expand.
const HOSTILE: &str = r#"it's "$(id)" `id` ${HOME} \ ! * ? ~ ; & | > < # [a] {b,c} --next -d @x %41"#;

/// Runs a script with `sh` from a file, without proxies of the environment. Asserts that it succeeds.
async fn sh(script: String) -> Output {
    let run = move || {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(script.as_bytes()).expect("it is written");
        let mut command = Command::new("sh");
        command.arg(file.path()).env("no_proxy", "*").output().expect("sh runs")
    };
    let output = tokio::task::spawn_blocking(run).await.expect("it runs to its end");
    assert!(output.status.success(), "{output:?}");
    output
}

/// The headers of an arrival without those that differ between attempts.
fn comparable(arrival: &Arrival) -> HeaderMap {
    let mut headers = arrival.headers.clone();
    for own in ["webhook-timestamp", "traceparent"] {
        headers.remove(own);
    }
    headers
}

/// Jobs with hostile values in every field that a callback has.
fn hostile_jobs(sink: &Sink) -> Vec<Value> {
    let url = sink.url(r#"/a'b"(c);$(id)&`x`?q='%20&r={1,2}[3]$x"#);
    let job = |id: &str, fields: Value| with_all(json!({"topic": "t", "id": id, "url": url}), &fields);
    let headers = json!({"X-Hostile": HOSTILE, "x-empty": "", "x-at": "@/etc/passwd", "x-colon": ": ;", "accept": "a/b"});
    let context = json!({"Hostile": HOSTILE, "empty": ""});
    vec![
        job("a~b:c@d+e=f,g", json!({"headers": headers, "context": context, "body": {"a": HOSTILE}})),
        job("unicode", json!({"body": "日本 💥 \u{e9} \u{202e}x"})),
        job("control", json!({"body": "\u{7f}\u{9b}31m"})),
        job("null", json!({"body": null})),
        job("none", json!({})),
        job("large", json!({"body": "x'".repeat(60_000)})),
        job("middle", json!({"body": "x'".repeat(10_000)})),
        // "@/etc/passwd"
        job("at", json!({"body_base64": "QC9ldGMvcGFzc3dk", "content_type": "text/plain"})),
        // "-d --next 'x'\n$(id)\n"
        job(
            "dashes",
            json!({"body_base64": "LWQgLS1uZXh0ICd4JwokKGlkKQo=", "content_type": "text/x; a=\"b c\""}),
        ),
        // "a\r\nb\n\n"
        job("lines", json!({"body_base64": "YQ0KYgoK"})),
        // "\0\xff'\0"
        job("bytes", json!({"body_base64": "AP8nAA=="})),
        job("many-bytes", json!({"body_base64": "AAAA".repeat(60_000)})),
    ]
}

#[tokio::test]
async fn a_printed_curl_command_sends_what_a_delivery_sends() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let server = stack.url("");
        stack.set_policy("t", &json!({"headers": {"x-topic": HOSTILE, "x-at": "of the topic"}})).await;
        // Jobs of a paused topic are not delivered, so the printed commands come first.
        assert_eq!(stack.post_empty("/v1/topics/t/pause").await.status, 200);
        let jobs = hostile_jobs(&sink);
        for job in &jobs {
            stack.accept(job).await;
            let id = job["id"].as_str().expect("an id");
            let run = ringback(&server, &["get", "t", id, "--curl"]).await;
            assert_eq!(run.code, Some(0), "{run:?}");
            assert_eq!(run.err, "webhook-timestamp and traceparent are left out: each attempt has its own\n");
            sh(run.out).await;
            assert_eq!(sink.arrivals_of(id).len(), 1, "{id} was sent once");
        }
        assert_eq!(stack.post_empty("/v1/topics/t/resume").await.status, 200);
        for job in &jobs {
            let id = job["id"].as_str().expect("an id");
            let [sent, delivered] =
                <[Arrival; 2]>::try_from(sink.wait_for_job(id, 2, SOON).await).expect("two");
            assert!(sent.body == delivered.body, "{id}: other bytes");
            assert_eq!((&sent.method, &sent.path), (&delivered.method, &delivered.path), "{id}");
            assert_eq!(comparable(&sent), comparable(&delivered), "{id}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_a_placeholder_in_the_command() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let job = json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/",
        "headers": {"authorization": "hunter2", "x-a": "1"}});
    stack.accept(&job).await;
    let run = ringback(&server, &["get", "e2e/a", "--curl"]).await;
    assert!(run.code == Some(0) && !run.out.contains("hunter2"), "{run:?}");
    assert!(run.out.contains("  -H 'authorization: [masked by ringback]' \\\n  -H 'x-a: 1' \\\n"), "{run:?}");
    assert!(
        run.err.ends_with("masked: authorization; put the value in place of [masked by ringback]\n"),
        "{run:?}"
    );
    let run = ringback(&server, &["export"]).await;
    assert!(run.out.contains(r#""authorization":"hunter2""#), "{run:?}");
}

#[tokio::test]
async fn what_has_no_callback_is_reported() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        stack.accept(&json!({"topic": "t", "id": "pull", "delay": "1h"})).await;
        let run = ringback(&server, &["get", "t/pull", "--curl"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert!(
            run.err.starts_with("t/pull is a pull job: it has no URL and no callback; `ringback reserve t`"),
            "{run:?}"
        );
        assert_eq!(stack.cancel("t", "pull").await.0, 200);
        let run = ringback(&server, &["get", "t/pull", "--curl"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert_eq!(run.err, "t/pull: its request is not stored any more, because it is cancelled\n");
        let run = ringback(&server, &["get", "t/pull", "--full"]).await;
        assert!(
            run.code == Some(0) && run.out.contains("not stored any more, because it is cancelled"),
            "{run:?}"
        );
        reports(&server, &["get", "t/nobody", "--curl"], 1, "no job t/nobody is known").await;
    }
    for wrong in [
        &["get", "t/a", "--curl", "--full"][..],
        &["get", "t/a", "--curl", "--output", "json"],
        &["get", "t/a", "t/b", "--curl"],
        &["get", "-", "--curl"],
    ] {
        assert_eq!(ringback("http://127.0.0.1:1", wrong).await.code, Some(64), "{wrong:?}");
    }
}

#[tokio::test]
async fn a_whole_job_is_shown_to_people_and_as_json() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let job = r#"{"topic":"t","id":"a","delay":"1h","url":"http://127.0.0.1:9/","body":{"n":  1},
            "headers":{"x-key":"hunter2"},"context":{"k":"v"}}"#;
        assert_eq!(stack.submit_text(job).await.status, 201);
        let run = ringback(&server, &["get", "t/a", "--full"]).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        for line in [
            "url      http://127.0.0.1:9/\n",
            "content  application/json, 9 bytes\n",
            "timeout  10s (default)\n",
            "retry    100ms, 200ms, 400ms, dead after 4 failures, jitter 0.1 (of the installation)\n",
            "header   x-key: [masked by ringback]\n",
            "context  k=v\n\n{\"n\":  1}\n",
        ] {
            assert!(run.out.contains(line), "no {line:?} in {}", run.out);
        }
        let run = ringback(&server, &["get", "t", "a", "--full", "--output", "json"]).await;
        assert_eq!(run.json(), stack.get("/v1/jobs/t/a?include=request").await.json());
        let run = ringback(&server, &["get", "t/a", "t/a", "--full"]).await;
        assert_eq!(run.out.matches("url      http://127.0.0.1:9/\n").count(), 2, "{run:?}");
    }
}

#[tokio::test]
async fn lists_have_the_url_and_the_body_of_each_job() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack
        .accept(&json!({"topic": "t", "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/", "body": [1]}))
        .await;
    stack.accept(&json!({"topic": "t", "id": "b", "delay": "1h"})).await;
    let dead =
        json!({"topic": "t", "id": "c", "url": "http://127.0.0.1:9/c", "state": "dead", "reason": "lost"});
    stack.import(&[dead]).await;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let run = ringback(&server, &["list", "--full", "--state", "delayed"]).await;
    assert!(
        words(&run.out)
            .starts_with("TOPIC ID STATE DUE ATTEMPTS FAILURES REASON LAST FAILURE TAGS URL BODY t "),
        "{run:?}"
    );
    assert!(words(&run.out).contains(" http://127.0.0.1:9/ application/json, 3 bytes"), "{run:?}");
    assert!(words(&run.out).contains(" (pull) no body"), "{run:?}");
    let run = ringback(&server, &["dead", "list", "t", "--full"]).await;
    assert!(words(&run.out).ends_with(" lost http://127.0.0.1:9/c no body"), "{run:?}");
    for command in [&["list", "--state", "dead"][..], &["dead", "list", "t"]] {
        let run = ringback(&server, &[command, &["--full", "--output", "json"]].concat()).await;
        let line: Value = serde_json::from_str(run.out.trim_end()).expect("one line");
        assert_eq!(line["request"]["url"], "http://127.0.0.1:9/c");
        let run = ringback(&server, &[command, &["--output", "json"]].concat()).await;
        assert!(!run.out.contains("request"), "{run:?}");
    }
}

#[tokio::test]
async fn a_server_without_requests_is_reported() {
    let sink = Sink::start().await;
    let job = json!({"topic": "t", "id": "a", "state": "ready", "due_at": "2025-11-20T10:22:44.193Z",
        "created_at": "2025-11-20T10:22:41.087Z", "attempts": 0, "failures": 0});
    sink.answer(ringback_testkit::Answer::status(200).body(job.to_string()));
    prints(&sink.url(""), &["get", "t/a", "--full"], 0, "\nthe server does not show requests of jobs").await;
    let run = ringback(&sink.url(""), &["get", "t/a", "--curl"]).await;
    assert!(
        run.code == Some(1) && run.err.contains("t/a: the server does not show requests of jobs"),
        "{run:?}"
    );
}
