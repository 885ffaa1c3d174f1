//! Retries and dead jobs: tiers, limits of the operator, and which answers of a receiver are failures.

use ringback_testkit::{Arrival, Script, free_port};
use tokio::time::Instant;

use crate::prelude::*;
use crate::sample_jobs::{between, sentinel, time};

/// A retry policy with three exact tiers.
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

    sink.answer_job("after", Answer::status(200));
    sentinel(&stack, &sink, "after").await;
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

/// A job and what its receiver answers; the state that it ends in or why it is dead, after how many attempts; and the
/// least gaps between its arrivals in milliseconds, where they are looked at.
type Case = (&'static str, Script, Value, &'static str, usize, Option<&'static [u64]>);

fn cases(sink: &Sink) -> Vec<Case> {
    let once = |answer| Script::first(1, answer);
    let status = Answer::status;
    let (always, failing) = (Script::always, || Script::always(Answer::status(500)));
    let tiers = json!({"retry": tiers()});
    let retry = |delays: &[&str]| json!({"retry": {"delays": delays, "jitter": 0}});
    let up_to = |delays: &[&str], max: u32| json!({"retry": {"delays": delays, "jitter": 0, "max": max}});
    let recovers = Script::first(2, status(500)).finally(status(204));
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot a hundred bytes";
    let nonsense = "SSH-2.0-nonsense\r\n\r\n";
    let refused = with(retry(&["50ms", "50ms"]), "url", format!("http://127.0.0.1:{}/", free_port()));
    let same =
        json!({"retry": tiers["retry"], "headers": {"x-merchant": "88231"}, "context": {"order": "17"}});
    let redirect = |code| once(status(code).header("location", &sink.url("/elsewhere")));
    vec![
        ("recovers", recovers, tiers.clone(), "done", 3, Some(&[])),
        ("same", Script::first(2, status(500)), same, "done", 3, Some(&[])),
        (
            "retry-after",
            once(status(503).header("retry-after", "1")),
            tiers.clone(),
            "done",
            2,
            Some(&[1000]),
        ),
        // Retry-After never shortens a tier.
        ("tier", once(status(500).header("retry-after", "0")), retry(&["300ms"]), "done", 2, Some(&[300])),
        ("gone", always(status(410)), tiers.clone(), "gone", 1, Some(&[])),
        ("redirect-301", redirect(301), tiers.clone(), "done", 2, None),
        ("redirect-302", redirect(302), tiers.clone(), "done", 2, None),
        ("redirect-303", redirect(303), tiers.clone(), "done", 2, None),
        ("redirect-307", redirect(307), tiers.clone(), "done", 2, None),
        ("redirect-308", redirect(308), tiers.clone(), "done", 2, None),
        ("redirect-304", redirect(304), tiers.clone(), "done", 2, None),
        // The gap counts from the start of the first call: its whole timeout, then the tier.
        (
            "slow",
            always(status(200).held()),
            with(retry(&["100ms"]), "timeout", "200ms"),
            "exhausted",
            2,
            Some(&[290]),
        ),
        // A body that never ends.
        ("cut", once(Answer::raw(cut)), tiers, "done", 2, None),
        // A body longer than is read.
        ("long", always(status(200).body(vec![b'x'; 4 << 20])), json!({}), "done", 1, None),
        ("close", always(Answer::close()), retry(&["50ms"]), "exhausted", 2, None),
        ("nonsense", always(Answer::raw(nonsense)), retry(&["50ms"]), "exhausted", 2, None),
        ("refused", failing(), refused, "exhausted", 3, None),
        ("more", failing(), up_to(&["20ms"], 4), "exhausted", 4, Some(&[])),
        ("fewer", failing(), up_to(&["20ms", "20ms", "20ms"], 2), "exhausted", 2, Some(&[])),
        ("none", failing(), json!({"retry": {"preset": "none"}}), "exhausted", 1, Some(&[])),
    ]
}

#[tokio::test]
async fn each_answer_but_a_whole_2xx_in_time_is_a_failure() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let cases = cases(&sink);
    for (id, answers, fields, ..) in &cases {
        sink.answer_job(id, answers.clone());
        stack.accept(&with_all(job(&sink, id), fields)).await;
    }
    for (id, _, _, end, attempts, gaps) in &cases {
        let ended = stack.wait_state(TOPIC, id, if *end == "done" { end } else { "dead" }, SOON).await;
        assert_eq!(ended["attempts"], *attempts, "{ended}");
        if *end != "done" {
            assert_eq!(ended["reason"], *end, "{ended}");
            let has_no_answer = ["slow", "close", "nonsense", "refused"].contains(id);
            let last = &ended["last"];
            assert_eq!(
                (last["error"].is_string(), last["status"].is_null()),
                (has_no_answer, has_no_answer),
                "{ended}"
            );
        }
        if *end == "exhausted" {
            assert_eq!(ended["failures"], *attempts, "{ended}");
        }
        if let Some(gaps) = gaps {
            is_spaced(&sink.arrivals_of(id), gaps);
        }
    }
    sentinel(&stack, &sink, "after").await;
    for (id, .., attempts, _) in cases.iter().filter(|(.., gaps)| gaps.is_some()) {
        are_attempts_of_one_job(&sink.arrivals_of(id), *attempts);
    }
    assert!(sink.arrivals().iter().all(|arrival| arrival.path == "/hook"), "a redirect was followed");
    for arrival in sink.arrivals_of("same") {
        assert_eq!(arrival.header("x-merchant"), Some("88231"));
        assert_eq!(arrival.header("ringback-context-order"), Some("17"));
        assert_eq!(arrival.body, r#"{"id":"same"}"#);
    }
}

/// Asserts that the attempts are numbered from 1 to `count`, have one `webhook-id`, and none came before it was due.
fn are_attempts_of_one_job(arrivals: &[Arrival], count: usize) {
    let attempts: Vec<_> = arrivals.iter().filter_map(Arrival::attempt).collect();
    assert_eq!(attempts, (1..=count as u64).collect::<Vec<_>>(), "{:?}", arrivals[0].job_id());
    for arrival in arrivals {
        assert_eq!(arrival.header("webhook-id"), arrivals[0].header("webhook-id"));
        let due = arrival.due_at().expect("ringback-due-at");
        assert!(arrival.at >= due, "attempt {:?} is early: due at {due}", arrival.attempt());
    }
}

/// Asserts that no gap is shorter than its tier in milliseconds, and none two seconds longer.
fn is_spaced(arrivals: &[Arrival], tiers: &[u64]) {
    assert!(arrivals.len() > tiers.len(), "{arrivals:?}");
    for (pair, &tier) in arrivals.windows(2).zip(tiers) {
        let gap = between(pair[0].at, pair[1].at);
        let tier = Duration::from_millis(tier);
        assert!(
            gap >= tier && gap < tier + Duration::from_secs(2),
            "{}: a gap of {gap:?} for a tier of {tier:?}",
            pair[0].job_id()
        );
    }
}
