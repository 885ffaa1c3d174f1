//! `GET …/attempts`: the recorded attempts of a job, with the receiver's responses, time-outs, settles by consumers
//! and expired leases, and when none are recorded.

use ringback_testkit::{Answer, Script, Sink, Stack};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, job, noise, time, with};

/// A retry policy of `retries` retries, 10 ms apart.
fn at_once(retries: usize) -> Value {
    json!({"delays": vec!["10ms"; retries], "jitter": 0})
}

fn each<'a>(items: &'a [Value], field: &str) -> Vec<&'a Value> {
    items.iter().map(|item| &item[field]).collect()
}

#[tokio::test]
async fn the_log_of_a_dead_job_shows_each_attempt_and_its_response() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let binary = Answer::status(502).body(vec![0xff, 0x00, 0xfe]);
    let script = Script::first(1, Answer::status(500).body("out of ink"))
        .then(1, Answer::status(503).body("ä".repeat(700)))
        // Part of an answer has come, so the call is not sent again.
        .then(1, Answer::raw("HTTP/1.1 200 O"))
        .finally(binary);
    sink.answer_job("dies", script);
    let accepted = stack.accept(&with(job(&sink, "dies"), "retry", at_once(3))).await;
    let dead = stack.wait_state(TOPIC, "dies", "dead", SOON).await;

    // The attempts are visible as soon as the outcome is.
    let items = stack.attempts(TOPIC, "dies").await;
    assert_eq!(each(&items, "attempt"), [1, 2, 3, 4], "{items:?}");
    assert_eq!(each(&items, "status"), [&json!(500), &json!(503), &Value::Null, &json!(502)]);
    assert_eq!(each(&items, "error"), [&Value::Null, &Value::Null, &json!("broken"), &Value::Null]);
    assert_eq!((&items[0]["answer"], &items[1]["answer"]), (&json!("out of ink"), &json!("ä".repeat(512))));
    assert_eq!((&items[2]["answer"], &items[3]["answer"]), (&Value::Null, &Value::Null));
    assert_eq!(items[3]["answer_base64"], "/wD+");
    assert_eq!(
        (&items[3]["at"], &items[3]["duration_ms"]),
        (&dead["last"]["at"], &dead["last"]["duration_ms"])
    );
    assert!(items.iter().all(|item| time(&item["at"]) >= time(&accepted["created_at"])), "{items:?}");
    let notifier = format!("/{}", stack.notifiers[0].pid());
    assert!(
        items.iter().all(|item| item["by"].as_str().is_some_and(|by| by.ends_with(&notifier))),
        "{items:?}"
    );
}

#[tokio::test]
async fn a_success_is_logged_only_after_a_failure_and_an_unknown_job_has_no_log() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(200).body("thanks"));
    sink.answer_job(
        "second",
        Script::first(1, Answer::status(500)).finally(Answer::status(201).body("at last")),
    );
    for id in ["first", "second"] {
        stack.accept(&with(job(&sink, id), "retry", at_once(3))).await;
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
    assert_eq!(stack.attempts(TOPIC, "first").await, [Value::Null; 0]);
    let items = stack.attempts(TOPIC, "second").await;
    assert_eq!(each(&items, "status"), [500, 201]);
    assert_eq!((&items[0]["answer"], &items[1]["answer"]), (&Value::Null, &json!("at last")));
    let reply = stack.get(&format!("/v1/jobs/{TOPIC}/nobody/attempts")).await;
    assert_eq!((reply.status, &reply.json()["status"]), (404, &json!(404)));
    let reply = stack.get("/v1/jobs/%20/nobody/attempts").await;
    assert_eq!(reply.status, 422);
}

#[tokio::test]
async fn a_time_out_is_logged_by_its_class_and_how_long_it_took() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("slow", Answer::status(200).held());
    let sent = with(with(job(&sink, "slow"), "retry", json!({"preset": "none"})), "timeout", "150ms");
    stack.accept(&sent).await;
    stack.wait_state(TOPIC, "slow", "dead", SOON).await;
    let items = stack.attempts(TOPIC, "slow").await;
    assert_eq!((items.len(), &items[0]["error"]), (1, &json!("timeout")), "{items:?}");
    assert!(items[0]["duration_ms"].as_u64().is_some_and(|ms| ms >= 150), "{items:?}");
}

#[tokio::test]
async fn all_attempts_are_logged_or_none_as_it_is_set() {
    for (setting, logged) in [("all", vec![200]), ("off", Vec::new())] {
        let stack = Stack::options().in_one_process().env("RINGBACK_ATTEMPT_LOG", setting).start().await;
        let sink = Sink::start().await;
        sink.answer_job("fails", Answer::status(500));
        stack.accept(&job(&sink, "done")).await;
        stack.wait_state(TOPIC, "done", "done", SOON).await;
        assert_eq!(
            each(&stack.attempts(TOPIC, "done").await, "status"),
            logged.iter().collect::<Vec<&i32>>(),
            "{setting}"
        );
        stack.accept(&with(job(&sink, "fails"), "retry", json!({"preset": "none"}))).await;
        stack.wait_state(TOPIC, "fails", "dead", SOON).await;
        assert_eq!(stack.attempts(TOPIC, "fails").await.len(), logged.len(), "{setting}");
    }
}

/// Reserves the next pull job and settles it by `action`.
async fn settle(stack: &Stack, action: &str, body: Value) {
    let job = stack.reserve_one(TOPIC, &json!({"ttr": "10s", "wait": "10s"})).await;
    assert_eq!(stack.settle(&job, action, &body).await.status, 200);
}

#[tokio::test]
async fn settles_by_consumers_and_expired_leases_are_logged() {
    let stack = Stack::start().await;
    stack.accept(&json!({"topic": TOPIC, "id": "pull", "retry": at_once(3)})).await;
    settle(&stack, "retry", json!({"error": "out of paper"})).await;
    stack.reserve_one(TOPIC, &json!({"ttr": "1s", "wait": "10s"})).await;
    settle(&stack, "release", json!({})).await;
    settle(&stack, "bury", json!({"reason": "unwanted", "error": "no printer"})).await;
    let items = stack.attempts(TOPIC, "pull").await;
    assert_eq!(each(&items, "attempt"), [1, 2, 4], "a release is not a failure: {items:?}");
    assert_eq!(each(&items, "error"), ["out of paper", "lease ran out", "no printer"]);
    assert_eq!(each(&items, "by"), ["consumer"; 3]);
    assert!(items[1]["duration_ms"].as_u64().is_some_and(|ms| ms >= 1_000), "{items:?}");
}

#[tokio::test]
async fn settles_by_consumers_are_logged_by_the_policy_of_the_topic() {
    let stack = Stack::options().env("RINGBACK_ATTEMPT_LOG", "off").start().await;
    for (logging, logged) in [("failed", vec![1, 2, 3]), ("off", Vec::new())] {
        stack.set_policy(TOPIC, &json!({"attempts": logging})).await;
        stack.accept(&json!({"topic": TOPIC, "id": logging, "retry": at_once(3)})).await;
        // One retry by the tier, and one by its own delay.
        settle(&stack, "retry", json!({})).await;
        settle(&stack, "retry", json!({"delay": "10ms"})).await;
        settle(&stack, "bury", json!({})).await;
        let items = stack.attempts(TOPIC, logging).await;
        assert_eq!(each(&items, "attempt"), logged, "{items:?}");
    }
}

#[tokio::test]
async fn a_store_that_is_nearly_full_keeps_no_attempts_and_loses_no_outcome() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(500).body("no"));
    stack.accept(&with(job(&sink, "before"), "retry", json!({"preset": "none"}))).await;
    stack.accept(&with(with(job(&sink, "after"), "retry", json!({"preset": "none"})), "delay", "6s")).await;
    stack.wait_state(TOPIC, "before", "dead", SOON).await;
    // Data so large that buffers, which a server uses for a moment, do not matter beside it.
    let large = |n| json!({"topic": "large", "id": format!("{n}"), "delay": "1h", "body": noise(n, 100_000)});
    assert_eq!(stack.batch(&(0..100_u8).map(large).collect::<Vec<_>>()).await.1["accepted"], 100);
    let used = stack.redis().used_memory().await;
    stack.redis().limit_memory(used * 10 / 9).await;
    stack.wait_state(TOPIC, "after", "dead", SOON).await;
    assert_eq!(stack.attempts(TOPIC, "before").await.len(), 1);
    assert_eq!(stack.attempts(TOPIC, "after").await, [Value::Null; 0]);
    stack.notifiers[0].wait_metric("ringback_notifier_unlogged_attempts_total", 1.0, SOON).await;
}
