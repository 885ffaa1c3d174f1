//! Retries and dead letters of jobs whose receiver does not answer 2xx.

use std::time::Duration;

use ringback_testkit::{Answer, Arrival, Script, Sink, Stack, StackOptions, free_port};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::sample_jobs::{SOON, TOPIC, between, job, sentinel, time, with};

/// Three exact tiers.
fn tiers() -> Value {
    json!({"delays": ["100ms", "200ms", "400ms"], "jitter": 0})
}

#[tokio::test]
async fn failures_are_spaced_by_the_tiers_and_the_job_dies_after_the_last() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(500).body("no"));
    stack.accept(&with(job(&sink, "fails"), "retry", tiers())).await;
    let dead = stack.wait_state(TOPIC, "fails", "dead", SOON).await;

    let arrivals = sink.arrivals_of("fails");
    are_attempts_of_one_job(&arrivals, 4);
    is_spaced(&arrivals, &[100, 200, 400]);
    assert_eq!((&dead["attempts"], &dead["failures"]), (&json!(4), &json!(4)), "{dead}");
    assert_eq!((&dead["reason"], &dead["last"]["status"]), (&json!("exhausted"), &json!(500)), "{dead}");
    assert!(dead["last"]["duration_ms"].is_u64(), "{dead}");
    assert!(time(&dead["last"]["at"]) >= arrivals[2].at, "{dead}");

    sentinel_through(&stack, &sink).await;
    assert_eq!(sink.arrivals_of("fails").len(), 4, "a dead job is not delivered");
    assert_eq!(stack.count_in("dead").await, 1);
}

#[tokio::test]
async fn a_job_without_a_policy_follows_the_configured_tiers() {
    let (stack, sink) = (Stack::options().retry("50ms, 150ms").start().await, Sink::start().await);
    sink.answer(Answer::status(500));
    stack.accept(&job(&sink, "plain")).await;
    let dead = stack.wait_state(TOPIC, "plain", "dead", SOON).await;
    assert_eq!(dead["failures"], 3, "{dead}");
    let arrivals = sink.arrivals_of("plain");
    are_attempts_of_one_job(&arrivals, 3);
    is_spaced(&arrivals, &[50, 150]);
}

#[tokio::test]
async fn the_operator_limits_how_soon_and_how_often_jobs_are_retried() {
    let flood = json!({"delays": ["10ms"], "max": -1, "jitter": 0});
    for options in StackOptions::each_store() {
        let options =
            options.env("RINGBACK_RETRY_MIN_DELAY", "300ms").env("RINGBACK_RETRY_MAX_FAILURES", "3");
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(500));
        stack.set_policy("flood", &json!({"retry": flood})).await;
        stack.accept(&with(job(&sink, "own"), "retry", flood.clone())).await;
        stack.accept(&with(job(&sink, "of-topic"), "topic", "flood")).await;
        for (topic, id) in [(TOPIC, "own"), ("flood", "of-topic")] {
            let dead = stack.wait_state(topic, id, "dead", SOON).await;
            assert_eq!((&dead["failures"], &dead["reason"]), (&json!(3), &json!("exhausted")), "{dead}");
            is_spaced(&sink.arrivals_of(id), &[300, 300]);
            let shown = stack.get(&format!("/v1/jobs/{topic}/{id}?include=request")).await.json();
            assert_eq!(shown["effective"]["retry"]["delays"], json!(["300ms"]), "{shown}");
            assert_eq!(shown["effective"]["retry"]["max"], 3, "{shown}");
        }

        // A consumer that fails, and one that leaves its lease to expire.
        for (id, ttr) in [("fails", "1m"), ("leaves", "100ms")] {
            let job = json!({"topic": id, "id": id, "ttr": ttr, "retry": flood});
            stack.accept(&job).await;
            let begun = Instant::now();
            for failures in 1..=3 {
                let reserved = stack.reserve_one(id, &json!({"wait": "20s"})).await;
                assert_eq!(reserved["attempt"], failures, "{reserved}");
                if id == "fails" {
                    stack.settle(&reserved, "retry", &json!({})).await.expect(200);
                }
            }
            assert!(begun.elapsed() >= Duration::from_millis(600), "{id}: {:?}", begun.elapsed());
            let dead = stack.wait_state(id, id, "dead", SOON).await;
            assert_eq!((&dead["failures"], &dead["reason"]), (&json!(3), &json!("exhausted")), "{dead}");
        }
    }
}

#[tokio::test]
async fn the_operator_limits_how_long_jobs_are_retried() {
    let for_ever = json!({"delays": ["200ms"], "max": -1, "jitter": 0});
    for options in StackOptions::each_store() {
        let options = options.env("RINGBACK_RETRY_MAX_AGE", "1500ms");
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(500));
        stack.set_policy("flood", &json!({"retry": for_ever})).await;
        stack.accept(&with(job(&sink, "own"), "retry", for_ever.clone())).await;
        stack.accept(&with(job(&sink, "of-topic"), "topic", "flood")).await;
        // The age counts from the due time, not from the submit.
        let later = with(with(job(&sink, "later"), "retry", for_ever.clone()), "delay", "2s");
        stack.accept(&later).await;
        // A first retry beyond the age is not made at all.
        let beyond = json!({"delays": ["1h"], "jitter": 0});
        stack.accept(&with(job(&sink, "beyond"), "retry", beyond)).await;
        let shown = stack.get(&format!("/v1/jobs/{TOPIC}/own?include=request")).await.json();
        assert_eq!(shown["effective"]["retry"]["max_age"], "1s 500ms", "{shown}");
        assert_eq!(shown["effective"]["retry"]["max"], -1, "{shown}");
        for (topic, id) in [(TOPIC, "own"), ("flood", "of-topic"), (TOPIC, "later"), (TOPIC, "beyond")] {
            let dead = stack.wait_state(topic, id, "dead", SOON).await;
            assert_eq!(dead["reason"], "exhausted", "{dead}");
            let arrivals = sink.arrivals_of(id);
            let (first, last) = (&arrivals[0], &arrivals[arrivals.len() - 1]);
            let first_due = first.due_at().expect("ringback-due-at");
            let last_due = last.due_at().expect("ringback-due-at");
            // A retry is due a little later than was reckoned, by as long as it takes to record the failure.
            assert!(between(first_due, last_due) <= Duration::from_millis(1600), "{id}: {arrivals:?}");
            assert_eq!(arrivals.len() > 1, id != "beyond", "{id}: {arrivals:?}");
        }

        // A consumer that fails, and one that leaves its lease to expire.
        for (id, ttr) in [("fails", "1m"), ("leaves", "100ms")] {
            let job = json!({"topic": id, "id": id, "ttr": ttr, "retry": for_ever});
            stack.accept(&job).await;
            let begun = Instant::now();
            let mut attempts = 0;
            while stack.job(id, id).await.1["state"] != "dead" {
                assert!(begun.elapsed() < SOON, "{id} is not dead after {attempts} attempts");
                for reserved in stack.reserve(id, &json!({"wait": "300ms"})).await {
                    attempts += 1;
                    if id == "fails" {
                        stack.settle(&reserved, "retry", &json!({})).await.expect(200);
                    }
                }
            }
            assert!(attempts > 1, "{id}: {attempts} attempts");
            let dead = stack.wait_state(id, id, "dead", SOON).await;
            assert_eq!(
                (&dead["failures"], &dead["reason"]),
                (&json!(attempts), &json!("exhausted")),
                "{dead}"
            );
        }
    }
}

#[tokio::test]
async fn a_receiver_that_recovers_gets_the_job_and_no_more() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Script::first(2, Answer::status(500)).finally(Answer::status(204)));
    stack.accept(&with(job(&sink, "recovers"), "retry", tiers())).await;
    let done = stack.wait_state(TOPIC, "recovers", "done", SOON).await;
    assert_eq!(done["attempts"], 3, "{done}");
    sentinel_through(&stack, &sink).await;
    are_attempts_of_one_job(&sink.arrivals_of("recovers"), 3);
}

#[tokio::test]
async fn retry_after_a_503_waits_for_the_header() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Script::first(1, Answer::status(503).header("retry-after", "1")));
    stack.accept(&with(job(&sink, "later"), "retry", tiers())).await;
    let arrivals = sink.wait_for_job("later", 2, SOON).await;
    is_spaced(&arrivals, &[1000]);
    stack.wait_state(TOPIC, "later", "done", SOON).await;
}

#[tokio::test]
async fn retry_after_never_shortens_a_tier() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Script::first(1, Answer::status(500).header("retry-after", "0")));
    let policy = json!({"delays": ["300ms"], "jitter": 0});
    stack.accept(&with(job(&sink, "tier"), "retry", policy)).await;
    is_spaced(&sink.wait_for_job("tier", 2, SOON).await, &[300]);
}

#[tokio::test]
async fn a_410_ends_the_job_at_once() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("gone", Answer::status(410));
    stack.accept(&with(job(&sink, "gone"), "retry", tiers())).await;
    let dead = stack.wait_state(TOPIC, "gone", "dead", SOON).await;
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("gone"), &json!(1)), "{dead}");
    sentinel(&stack, &sink, "after").await;
    assert_eq!(sink.arrivals_of("gone").len(), 1);
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for status in [301, 302, 303, 307, 308, 304] {
        let id = format!("redirect-{status}");
        let away = Answer::status(status).header("location", &sink.url("/elsewhere"));
        sink.answer_job(&id, Script::first(1, away));
        stack.accept(&with(job(&sink, &id), "retry", tiers())).await;
        let done = stack.wait_state(TOPIC, &id, "done", SOON).await;
        assert_eq!(done["attempts"], 2, "{status}: {done}");
    }
    assert!(sink.arrivals().iter().all(|arrival| arrival.path == "/hook"), "a redirect was followed");
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_a_failure() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("slow", Answer::status(200).held());
    let policy = json!({"delays": ["100ms"], "jitter": 0});
    let sent = with(with(job(&sink, "slow"), "retry", policy), "timeout", "200ms");
    stack.accept(&sent).await;
    let dead = stack.wait_state(TOPIC, "slow", "dead", SOON).await;
    assert_eq!((&dead["attempts"], &dead["failures"]), (&json!(2), &json!(2)), "{dead}");
    assert_eq!(dead["reason"], "exhausted");
    assert!(dead["last"]["error"].is_string() && dead["last"].get("status").is_none(), "{dead}");
    // From the start of the first call: its whole time-out, then the tier.
    is_spaced(&sink.arrivals_of("slow"), &[290]);
}

#[tokio::test]
async fn a_body_that_never_ends_is_a_failure() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot a hundred bytes";
    sink.answer_job("cut", Script::first(1, Answer::raw(cut)));
    stack.accept(&with(job(&sink, "cut"), "retry", tiers())).await;
    let done = stack.wait_state(TOPIC, "cut", "done", SOON).await;
    assert_eq!(done["attempts"], 2, "{done}");
}

#[tokio::test]
async fn an_answer_longer_than_is_read_still_counts() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("long", Answer::status(200).body(vec![b'x'; 4 << 20]));
    stack.accept(&job(&sink, "long")).await;
    let done = stack.wait_state(TOPIC, "long", "done", SOON).await;
    assert_eq!(done["attempts"], 1, "{done}");
}

#[tokio::test]
async fn no_answer_at_all_is_a_failure() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for (id, nothing) in [("close", Answer::close()), ("nonsense", Answer::raw("SSH-2.0-nonsense\r\n\r\n"))] {
        sink.answer_job(id, nothing);
        stack.accept(&with(job(&sink, id), "retry", json!({"delays": ["50ms"], "jitter": 0}))).await;
        let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
        assert_eq!((&dead["reason"], &dead["failures"]), (&json!("exhausted"), &json!(2)), "{id}: {dead}");
        assert!(dead["last"]["error"].is_string(), "{id}: {dead}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_failure() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let mut refused = with(job(&sink, "refused"), "url", format!("http://127.0.0.1:{}/", free_port()));
    refused["retry"] = json!({"delays": ["50ms", "50ms"], "jitter": 0});
    stack.accept(&refused).await;
    let dead = stack.wait_state(TOPIC, "refused", "dead", SOON).await;
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(3)), "{dead}");
    assert!(dead["last"]["error"].is_string(), "{dead}");
}

#[tokio::test]
async fn a_policy_can_bound_the_failures_or_do_without_retries() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(500));
    let policies = [
        ("more", json!({"delays": ["20ms"], "jitter": 0, "max": 4}), 4),
        ("fewer", json!({"delays": ["20ms", "20ms", "20ms"], "jitter": 0, "max": 2}), 2),
        ("none", json!({"preset": "none"}), 1),
    ];
    for (id, policy, failures) in policies {
        stack.accept(&with(job(&sink, id), "retry", policy)).await;
        let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
        assert_eq!(
            (&dead["failures"], &dead["reason"]),
            (&json!(failures), &json!("exhausted")),
            "{id}: {dead}"
        );
        are_attempts_of_one_job(&sink.arrivals_of(id), failures);
    }
}

#[tokio::test]
async fn headers_context_and_body_are_the_same_at_every_attempt() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Script::first(2, Answer::status(500)));
    let mut sent = with(job(&sink, "same"), "retry", tiers());
    sent["headers"] = json!({"x-merchant": "88231"});
    sent["context"] = json!({"order": "17"});
    stack.accept(&sent).await;
    for arrival in sink.wait_for_job("same", 3, SOON).await {
        assert_eq!(arrival.header("x-merchant"), Some("88231"));
        assert_eq!(arrival.header("ringback-context-order"), Some("17"));
        assert_eq!(arrival.body, r#"{"id":"same"}"#);
    }
}

/// Attempt numbers from 1, one webhook-id, none before it was due.
fn are_attempts_of_one_job(arrivals: &[Arrival], count: usize) {
    let attempts: Vec<_> = arrivals.iter().filter_map(Arrival::attempt).collect();
    assert_eq!(attempts, (1..=count as u64).collect::<Vec<_>>());
    for arrival in arrivals {
        assert_eq!(arrival.header("webhook-id"), arrivals[0].header("webhook-id"));
        let due = arrival.due_at().expect("ringback-due-at");
        assert!(arrival.at >= due, "attempt {:?} is early: due at {due}", arrival.attempt());
    }
}

/// No gap shorter than its tier in milliseconds, and none two seconds longer.
fn is_spaced(arrivals: &[Arrival], tiers: &[u64]) {
    assert!(arrivals.len() > tiers.len(), "{} arrivals", arrivals.len());
    for (pair, &tier) in arrivals.windows(2).zip(tiers) {
        let gap = between(pair[0].at, pair[1].at);
        let tier = Duration::from_millis(tier);
        assert!(
            gap >= tier && gap < tier + Duration::from_secs(2),
            "a gap of {gap:?} for a tier of {tier:?}"
        );
    }
}

/// A later job gets through: whatever was still to come before it has come.
async fn sentinel_through(stack: &Stack, sink: &Sink) {
    sink.answer_job("after", Answer::status(200));
    sentinel(stack, sink, "after").await;
}
