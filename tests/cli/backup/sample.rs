//! A small installation with policies, paused topics and all kinds of jobs, and the check that they go on when restored.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The number of topics that have a policy or are paused.
pub(super) const TOPICS: usize = 4;

/// The topics and ids of all jobs.
pub(super) const JOBS: [(&str, &str); 12] = [
    ("bk.push", "delayed"),
    ("bk.push", "ready"),
    ("bk.push", "binary"),
    ("bk.paused", "held"),
    ("bk.paused", "later"),
    ("bk.policy", "gone"),
    ("bk.policy", "due"),
    ("bk.url", "by-policy"),
    ("bk.pull.ready", "a"),
    ("bk.pull.reserved", "b"),
    ("bk.pull.tried", "c"),
    ("bk.pull.buried", "d"),
];

/// A time that no test reaches.
const FAR: &str = "2036-01-02T03:04:05.678Z";

fn policies(url: &str) -> [(&'static str, Value); 3] {
    let secret = json!({"timeout": "5s", "headers": {"authorization": "Bearer s3cret", "x-a": "1"}, "headers_to": ["*"],
        "retry": {"delays": ["100ms", "1m"], "max": 4, "jitter": 0.25}, "attempts": "all",
        "on_dead": "http://127.0.0.1:9/dead"});
    [
        ("bk.policy", secret),
        ("bk.paused", json!({"timeout": "7s"})),
        ("bk.url", json!({"url": format!("{url}/by-policy")})),
    ]
}

/// Fills an installation that has only an API, so nothing is delivered.
pub(super) async fn fill(stack: &Stack, url: &str) {
    for (topic, policy) in policies(url) {
        stack.set_policy(topic, &policy).await;
    }
    for topic in ["bk.paused", "bk.idle"] {
        stack.post_empty(&format!("/v1/topics/{topic}/pause")).await.expect(200);
    }
    let hook = format!("{url}/hook");
    let job = |topic: &str, id: &str, more: Value| {
        let job = json!({"topic": topic, "id": id, "url": hook});
        with_all(job, &more)
    };
    let delayed = json!({"at": FAR, "body": {"n": 1.50, "text": "ä"}, "headers": {"authorization": "Bearer job", "x-b": "2"},
        "context": {"k": "v"}, "retry": {"delays": ["1s", "2m"], "max": 5}, "timeout": "9s",
        "on_dead": "http://127.0.0.1:9/dead"});
    stack.accept(&job("bk.push", "delayed", delayed)).await;
    stack.accept(&job("bk.push", "ready", json!({"body": {"id": "ready"}}))).await;
    let binary = json!({"body_base64": "AAH/", "content_type": "application/octet-stream"});
    stack.accept(&job("bk.push", "binary", binary)).await;
    stack.accept(&job("bk.paused", "held", json!({}))).await;
    stack.accept(&job("bk.paused", "later", json!({"at": FAR, "body": "x".repeat(5_000)}))).await;
    stack.accept(&json!({"topic": "bk.url", "id": "by-policy", "body": 1})).await;
    stack.accept(&job("bk.policy", "due", json!({}))).await;
    let gone = json!({"state": "dead", "reason": "gone", "at": "2026-11-20T10:00:00.000Z", "attempts": 3, "failures": 3,
        "created_at": "2026-11-20T09:00:00.000Z",
        "last": {"at": "2026-11-20T10:00:01.000Z", "status": 410, "duration_ms": 12}});
    stack.import(&[job("bk.policy", "gone", gone)]).await;
    fill_pull(stack).await;
}

/// Adds pull jobs: one that is ready, one that is reserved, one that failed and one that is dead.
async fn fill_pull(stack: &Stack) {
    for (topic, id) in &JOBS[8..] {
        stack.accept(&json!({"topic": topic, "id": id, "body": {"of": topic}, "ttr": "5m"})).await;
    }
    stack.reserve_one("bk.pull.reserved", &json!({})).await;
    let tried = stack.reserve_one("bk.pull.tried", &json!({})).await;
    stack.settle(&tried, "retry", &json!({"delay": "1000d", "error": "no room"})).await.expect(200);
    let given_up = stack.reserve_one("bk.pull.buried", &json!({})).await;
    stack
        .settle(&given_up, "bury", &json!({"reason": "bad-input", "error": "no such file"}))
        .await
        .expect(200);
}

/// Checks in an installation with all roles that due jobs are delivered once and unchanged, that paused topics stay
/// paused until they are resumed, and that attempts go on counting.
pub(super) async fn settle_in(stack: &Stack, sink: &Sink) {
    sink.wait_for_jobs(&["ready", "binary", "due", "by-policy"], 1, SOON).await;
    for id in ["ready", "binary"] {
        stack.wait_state("bk.push", id, "done", SOON).await;
    }
    assert_eq!(sink.arrivals_of("held").len(), 0, "its topic is paused");
    let due = &sink.arrivals_of("due")[0];
    assert_eq!((due.header("authorization"), due.header("x-a")), (Some("Bearer s3cret"), Some("1")));
    assert_eq!(sink.arrivals_of("by-policy")[0].path, "/by-policy");
    for topic in ["bk.paused", "bk.idle"] {
        assert_eq!(stack.topic(topic).await["paused"], true, "{topic}");
        stack.post_empty(&format!("/v1/topics/{topic}/resume")).await.expect(200);
    }
    sink.wait_for_job("held", 1, SOON).await;
    for (topic, id, attempts) in [("bk.pull.ready", "a", 1), ("bk.pull.reserved", "b", 2)] {
        let job = stack.reserve_one(topic, &json!({"wait": "10s"})).await;
        assert_eq!((&job["id"], &job["attempt"]), (&json!(id), &json!(attempts)), "{job}");
        stack.settle(&job, "finish", &json!({})).await.expect(200);
    }
    let (status, job) = stack.run("bk.pull.tried", "c").await;
    assert_eq!(
        (status, &job["failures"], &job["last"]["error"]),
        (200, &json!(1), &json!("no room")),
        "{job}"
    );
    let job = stack.reserve_one("bk.pull.tried", &json!({"wait": "10s"})).await;
    assert_eq!(job["attempt"], 2, "{job}");
    stack.settle(&job, "finish", &json!({})).await.expect(200);
    for (topic, id) in [("bk.push", "delayed"), ("bk.paused", "later")] {
        let (_, job) = stack.job(topic, id).await;
        assert_eq!((&job["state"], &job["due_at"]), (&json!("delayed"), &json!(FAR)), "{job}");
        assert_eq!(stack.run(topic, id).await.0, 200);
        sink.wait_for_job(id, 1, SOON).await;
    }
    let delayed = &sink.arrivals_of("delayed")[0];
    assert_eq!(delayed.body, r#"{"n":1.5,"text":"ä"}"#);
    assert_eq!(
        (delayed.header("authorization"), delayed.header("ringback-context-k")),
        (Some("Bearer job"), Some("v"))
    );
    let sent: BTreeSet<_> = sink.counts().into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(sent.is_empty(), "sent more than once: {sent:?}");
}
