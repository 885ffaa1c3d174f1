//! Pull jobs over HTTP: reserved, settled by receipt in each way, expired, cancelled, exported and imported.

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use ringback_testkit::{Reply, Role, now};

use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{between, time};

/// Where jobs of the usual topic are reserved.
const RESERVE: &str = "/v1/topics/e2e/reserve";

/// A pull job of the usual topic that is due now.
pub(super) fn pull(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "body": {"id": id}})
}

/// A reserve as a future that can be spawned or dropped.
pub(super) fn waiting(stack: &Stack, ask: &Value) -> impl Future<Output = Reply> + Send + use<> {
    raw_post(stack.url(RESERVE), &[JSON], ask.to_string())
}

pub(super) fn jobs(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    reply.json()["jobs"].as_array().expect("a list of jobs").clone()
}

#[tokio::test]
async fn two_consumers_share_the_jobs_of_a_topic_and_no_notifier_has_any() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        for n in 0..20 {
            stack.accept(&pull(&n.to_string())).await;
        }
        stack.accept(&job(&sink, "pushed")).await;
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 20 {
            let three = json!({"max": 3});
            let (first, second) = tokio::join!(stack.reserve(TOPIC, &three), stack.reserve(TOPIC, &three));
            for job in first.iter().chain(&second) {
                assert!(seen.insert(job["id"].to_string()), "{job} is given twice");
                assert_eq!((&job["attempt"], &job["topic"]), (&json!(1), &json!(TOPIC)));
                let left = between(now(), time(&job["deadline"]));
                assert!(left > Duration::from_secs(20) && left <= Duration::from_secs(31), "{left:?}");
                let reply = stack.settle(job, "finish", &json!({})).await;
                assert_eq!((reply.status, &reply.json()["receipt"]), (200, &job["receipt"]));
            }
        }
        sink.wait_for_job("pushed", 1, SOON).await;
        assert_eq!(sink.seen(), 1);
        let done = stack.wait_state(TOPIC, "7", "done", SOON).await;
        assert_eq!((&done["attempts"], &done["failures"]), (&json!(1), &json!(0)), "{done}");
        assert!(stack.reserve(TOPIC, &json!({"max": 100})).await.is_empty());
    }
}

#[tokio::test]
async fn a_reserved_job_shows_all_that_it_brought() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    let sent = r#"{"topic":"e2e","id":"whole","body": {"b": 1.0e5,  "a":"é"},"ttr":"5m",
        "headers":{"X-Merchant":"88231"},"context":{"Key":"a b"},"retry":{"preset":"none"}}"#;
    assert_eq!(stack.submit_text(sent).await.status, 201);
    assert_eq!(stack.submit_text(sent).await.status, 200, "the same again");
    let reply = stack.post(RESERVE, &json!({})).await;
    let text = std::str::from_utf8(&reply.body).expect("UTF-8");
    assert!(text.contains(r#""body":{"b": 1.0e5,  "a":"é"}"#), "byte for byte: {text}");
    let job = jobs(&reply).remove(0);
    assert_eq!((&job["headers"], &job["context"]), (&json!({"x-merchant": "88231"}), &json!({"Key": "a b"})));
    assert_eq!(job["content_type"], "application/json");
    let left = between(now(), time(&job["deadline"]));
    assert!(left > Duration::from_secs(280) && left <= Duration::from_secs(301), "its own ttr: {left:?}");

    let other = json!({"topic": TOPIC, "id": "other", "body_base64": "AP8=", "content_type": "image/png"});
    stack.accept(&other).await;
    let job = stack.reserve_one(TOPIC, &json!({})).await;
    assert_eq!((&job["body_base64"], &job["content_type"]), (&json!("AP8="), &json!("image/png")));
    assert_eq!(job.get("body"), None);
}

#[tokio::test]
async fn the_job_of_a_consumer_that_is_gone_goes_to_another_and_its_late_finish_counts_no_more() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let retry = json!({"delays": ["10ms"], "jitter": 0});
        stack.accept(&with(pull("left"), "retry", retry)).await;
        let first = stack.reserve_one(TOPIC, &json!({"ttr": "300ms"})).await;
        let second = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
        let (deadline, at) = (time(&first["deadline"]), now());
        assert!(at >= deadline, "{at} is before {deadline}");
        // The tier is 10 ms; the rest of the limit is for a busy machine.
        assert!(between(deadline, at) < Duration::from_secs(2), "{:?} late", between(deadline, at));
        assert_eq!((&second["id"], &second["attempt"]), (&json!("left"), &json!(2)));
        let late = stack.settle(&first, "finish", &json!({})).await;
        assert_eq!(late.status, 409, "{:?}", late.body);
        assert_eq!(late.header("content-type"), Some("application/problem+json"));
        let (_, job) = stack.job(TOPIC, "left").await;
        assert_eq!((&job["state"], &job["failures"]), (&json!("reserved"), &json!(1)), "{job}");
        assert_eq!(job["last"]["error"], "lease ran out", "{job}");
        assert_eq!(stack.settle(&second, "finish", &json!({})).await.status, 200);
        assert_eq!(stack.settle(&second, "finish", &json!({})).await.status, 200, "the same call again");
        assert_eq!(stack.settle(&second, "retry", &json!({})).await.status, 409);
        stack.wait_state(TOPIC, "left", "done", SOON).await;
    }
}

#[tokio::test]
async fn a_lease_that_runs_out_after_the_last_tier_leaves_the_job_dead() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.accept(&with(pull("left"), "retry", json!({"preset": "none"}))).await;
        stack.reserve_one(TOPIC, &json!({"ttr": "100ms"})).await;
        let dead = stack.wait_state(TOPIC, "left", "dead", SOON).await;
        assert_eq!((&dead["reason"], &dead["failures"]), (&json!("exhausted"), &json!(1)), "{dead}");
    }
}

#[tokio::test]
async fn each_way_to_settle_by_receipt_has_its_effect() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.accept(&pull("words")).await;
        let job = stack.reserve_one(TOPIC, &json!({})).await;
        let renewed = stack.settle(&job, "renew", &json!({"ttr": "1h"})).await;
        let left = between(now(), time(&renewed.json()["deadline"]));
        assert!(left > Duration::from_secs(3500), "{left:?}");
        assert_eq!(stack.settle(&job, "release", &json!({})).await.status, 200);
        assert_eq!(stack.settle(&job, "renew", &json!({})).await.status, 409);

        let job = stack.reserve_one(TOPIC, &json!({})).await;
        let reply = stack.settle(&job, "retry", &json!({"delay": "1h", "error": "out of paper"})).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        let (_, delayed) = stack.job(TOPIC, "words").await;
        assert_eq!((&delayed["state"], &delayed["failures"]), (&json!("delayed"), &json!(1)), "{delayed}");
        assert_eq!(delayed["last"]["error"], "out of paper");
        let wait = between(now(), time(&delayed["due_at"]));
        assert!(wait > Duration::from_secs(3500), "{wait:?}");

        stack.accept(&pull("buried")).await;
        let job = stack.reserve_one(TOPIC, &json!({})).await;
        assert_eq!(stack.settle(&job, "bury", &json!({"reason": "unwanted"})).await.status, 200);
        let (_, dead) = stack.job(TOPIC, "buried").await;
        assert_eq!((&dead["state"], &dead["reason"]), (&json!("dead"), &json!("unwanted")), "{dead}");

        stack.accept(&pull("without")).await;
        let job = stack.reserve_one(TOPIC, &json!({})).await;
        let receipt = job["receipt"].as_str().expect("a receipt");
        let reply = stack.post_empty(&format!("/v1/receipts/{receipt}/bury")).await;
        assert_eq!(reply.status, 200, "without a body: {:?}", reply.body);
        assert_eq!(stack.job(TOPIC, "without").await.1["reason"], "buried");
    }
}

#[tokio::test]
async fn a_retry_without_a_delay_follows_the_policy_and_ends_after_its_last_tier() {
    // RINGBACK_RETRY is 100ms 200ms 400ms here.
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.accept(&pull("a")).await;
        let mut last: Option<Timestamp> = None;
        for (failures, tier) in [(1, 100), (2, 200), (3, 400), (4, 0)] {
            let job = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
            if let Some(due) = last {
                assert!(now() >= due, "early");
            }
            let before = now();
            assert_eq!(stack.settle(&job, "retry", &json!({})).await.status, 200);
            let (_, job) = stack.job(TOPIC, "a").await;
            assert_eq!(job["failures"], failures, "{job}");
            if tier > 0 {
                let wait = between(before, time(&job["due_at"])).as_millis();
                assert!((tier..tier + tier / 10 + 1000).contains(&wait), "{wait} ms, not {tier}");
                last = Some(time(&job["due_at"]));
            }
        }
        let (_, dead) = stack.job(TOPIC, "a").await;
        assert_eq!((&dead["state"], &dead["reason"]), (&json!("dead"), &json!("exhausted")), "{dead}");
    }
}

#[tokio::test]
async fn many_jobs_are_finished_at_once_with_a_result_each() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let sent: Vec<_> = (0..50).map(|n| pull(&n.to_string())).collect();
        assert_eq!(stack.batch(&sent).await.1["accepted"], 50);
        let mut held = Vec::new();
        while held.len() < 50 {
            held.extend(stack.reserve(TOPIC, &json!({"max": 100})).await);
        }
        assert_eq!(stack.settle(&held[1], "release", &json!({})).await.status, 200);
        let mut receipts: Vec<Value> = held.iter().map(|job| job["receipt"].clone()).collect();
        receipts.push(json!("nonsense"));
        receipts.push(receipts[0].clone());
        let reply = stack.post("/v1/receipts/finish", &json!({"receipts": receipts})).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        let answer = reply.json();
        let results = answer["results"].as_array().expect("results");
        let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64()).collect();
        let mut expected = vec![Some(200); 52];
        (expected[1], expected[50]) = (Some(409), Some(404));
        assert_eq!(statuses, expected);
        assert_eq!(results[1]["problem"]["status"], 409, "{}", results[1]);
        stack.wait_count("done", 49, SOON).await;
    }
}

#[tokio::test]
async fn a_cancelled_reserved_pull_job_is_done_when_it_is_finished() {
    let stack = Stack::start().await;
    for (id, action, state) in [("a", "finish", "done"), ("b", "retry", "cancelled")] {
        stack.accept(&pull(id)).await;
        let job = stack.reserve_one(TOPIC, &json!({})).await;
        let (status, answer) = stack.cancel(TOPIC, id).await;
        assert_eq!((status, &answer["in_flight"]), (202, &json!(true)), "{answer}");
        assert_eq!(stack.settle(&job, action, &json!({})).await.status, 200);
        assert_eq!(stack.job(TOPIC, id).await.1["state"], state);
    }
}

#[tokio::test]
async fn bad_requests_of_consumers_are_refused_by_field_name() {
    let stack = StackOptions::api_only().start().await;
    stack.accept(&pull("a")).await;
    for (ask, field) in [
        (json!({"max": 0}), "max"),
        (json!({"max": 101}), "max"),
        (json!({"ttr": "13h"}), "ttr"),
        (json!({"wait": "61s"}), "wait"),
        (json!({"limit": 1}), "limit"),
    ] {
        let reply = stack.post(RESERVE, &ask).await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!(field)), "{ask}");
    }
    let reply = stack.post("/v1/topics/a%20b/reserve", &json!({})).await;
    assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!("topic")));
    let text = Some(("text/plain", Bytes::from_static(b"{}")));
    assert_eq!(stack.request(Method::POST, RESERVE, text).await.status, 415);

    let job = stack.reserve_one(TOPIC, &json!({})).await;
    for (action, body, field) in [
        ("finish", json!({"delay": 1}), "delay"),
        ("retry", json!({"delay": -1}), "delay"),
        ("retry", json!({"error": "a\u{7}b"}), "error"),
        ("bury", json!({"reason": "two words"}), "reason"),
        ("release", json!({"delay": "soon"}), "delay"),
        ("renew", json!({"ttr": 0}), "ttr"),
    ] {
        let reply = stack.settle(&job, action, &body).await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!(field)), "{action}");
    }
    let known = job["receipt"].as_str().expect("a receipt").to_owned();
    let mut other = known.clone().into_bytes();
    other[39] = if other[39] == b'A' { b'B' } else { b'A' };
    let guessed = String::from_utf8(other).expect("ASCII");
    for (receipt, status) in [
        ("x".to_owned(), 404),
        ("é".repeat(20), 404),
        ("_".repeat(40), 404),
        (format!("{known}A"), 404),
        (guessed, 409),
    ] {
        for action in ["finish", "retry", "bury", "release", "renew"] {
            let reply = stack.post(&format!("/v1/receipts/{receipt}/{action}"), &json!({})).await;
            assert_eq!(reply.status, status, "{action} {receipt}: {:?}", reply.body);
        }
    }
    let many = vec!["x"; 1001];
    assert_eq!(stack.post("/v1/receipts/finish", &json!({"receipts": many})).await.status, 422);
    assert_eq!(stack.job(TOPIC, "a").await.1["state"], "reserved", "nothing was changed");

    for (job, field) in [
        (json!({"topic": "t", "timeout": "5s"}), "timeout"),
        (json!({"topic": "t", "ttr": "13h"}), "ttr"),
        (json!({"topic": "t", "ttr": "5s", "url": "http://h/"}), "ttr"),
    ] {
        let (status, problem) = stack.submit(&job).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{job}");
    }
}

#[tokio::test]
async fn pull_jobs_are_exported_without_a_url_and_imported_unchanged() {
    let stack = Stack::start().await;
    stack.accept(&with(pull("a"), "ttr", "45s")).await;
    let job = stack.reserve_one(TOPIC, &json!({})).await;
    let failed = json!({"delay": "1h", "error": "no paper, 紙がない"});
    assert_eq!(stack.settle(&job, "retry", &failed).await.status, 200);
    let exported = stack.get("/v1/export").await;
    let line = exported.json();
    assert_eq!((line.get("url"), &line["ttr"]), (None, &json!("45s")), "{line}");
    let other = Stack::options().store(&stack.store_url()).env("RINGBACK_PREFIX", "other").start().await;
    let imported = other.import_lines(exported.body.clone()).await.json();
    assert_eq!(imported["created"], 1, "{imported}");
    let again = other.get("/v1/export").await.json();
    assert_eq!(again, line);
    assert_eq!(other.submit(&with(pull("a"), "ttr", "45s")).await.0, 200, "the same job");
}
