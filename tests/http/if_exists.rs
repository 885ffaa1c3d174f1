//! Submits for a topic and id that are taken, on each store: `if_exists` refuses, replaces or postpones the job.

use ringback_testkit::Reply;

use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{between, sentinel, time, without};

const ID: &str = "page-7";

/// A job that is due in an hour, with a body and a value of `if_exists`.
fn far(sink: &Sink, body: &str, if_exists: &str) -> Value {
    let job = with(job(sink, ID), "body", body);
    with(with(job, "delay", "1h"), "if_exists", if_exists)
}

/// Submits a job with an `Idempotency-Key`. Returns the status and the answer.
async fn keyed(stack: &Stack, key: &str, job: &Value) -> (u16, Value) {
    raw_post(stack.url("/v1/jobs"), &[JSON, ("Idempotency-Key", key)], job.to_string()).await.parts()
}

/// The detail of an answer, which must be a 409.
fn conflict((status, problem): (u16, Value)) -> String {
    assert_eq!(status, 409, "{problem}");
    problem["detail"].as_str().expect("a detail").to_owned()
}

/// The name of the only wrong field of an answer, which must be a 422.
fn wrong_field((status, problem): (u16, Value)) -> String {
    assert_eq!((status, problem["errors"].as_array().map(Vec::len)), (422, Some(1)), "{problem}");
    assert_ne!(problem["errors"][0]["allowed"], "", "{problem}");
    problem["errors"][0]["field"].as_str().expect("a field").to_owned()
}

#[tokio::test]
async fn a_cancelled_job_is_not_submitted_again_without_saying_so() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let plain = without(far(&sink, "a", "refuse"), "if_exists");
        stack.accept(&plain).await;
        assert_eq!(stack.submit(&plain).await.0, 200);
        stack.cancel(TOPIC, ID).await;
        for again in [plain.clone(), far(&sink, "a", "refuse")] {
            let detail = conflict(stack.submit(&again).await);
            assert!(detail.contains("was cancelled") && detail.contains("if_exists"), "{detail}");
        }
        let detail = conflict(stack.submit(&with(plain.clone(), "body", "b")).await);
        assert!(detail.contains("other content") && detail.contains("if_exists"), "{detail}");
        let answer = stack.import_lines(plain.to_string()).await.json();
        assert_eq!(answer["problems"][0]["status"], 409, "{answer}");
        assert_eq!(stack.job(TOPIC, ID).await.1["state"], "cancelled");

        let begun = stack.accept(&far(&sink, "a", "replace")).await;
        assert_eq!((&begun["state"], &begun["attempts"]), (&json!("delayed"), &json!(0)), "{begun}");
        assert_eq!(stack.submit(&plain).await, (200, begun), "it lives again");

        // A done job may have ended before the repetition came.
        stack.run(TOPIC, ID).await;
        stack.wait_state(TOPIC, ID, "done", SOON).await;
        assert_eq!(stack.submit(&plain).await.0, 200);
        assert_eq!(sink.arrivals_of(ID).len(), 1);
    }
}

#[tokio::test]
async fn of_a_burst_of_postponements_only_the_last_is_delivered_and_not_before_it_is_due() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let first = stack.accept(&far(&sink, "0", "postpone")).await;
        let mut due = time(&first["due_at"]);
        for n in 1..5 {
            let (status, job) = stack.submit(&far(&sink, &n.to_string(), "postpone")).await;
            assert_eq!((status, &job["created_at"]), (200, &first["created_at"]), "{job}");
            assert!(time(&job["due_at"]) >= due, "{job}");
            due = time(&job["due_at"]);
        }
        let last = json!({"topic": TOPIC, "id": ID, "delay": "300ms", "url": sink.url("/last"), "body": "last",
            "if_exists": "postpone", "max_delay": "2h"});
        let (status, job) = stack.submit(&last).await;
        assert_eq!(status, 200, "{job}");

        let arrival = sink.wait_for_job(ID, 1, SOON).await.remove(0);
        assert!(arrival.at >= time(&job["due_at"]), "{job}, arrived {}", arrival.at);
        assert_eq!((arrival.path.as_str(), &*arrival.body), ("/last", &b"\"last\""[..]));
        stack.wait_state(TOPIC, ID, "done", SOON).await;
        sentinel(&stack, &sink, "sentinel").await;
        assert_eq!(sink.arrivals_of(ID).len(), 1);
        assert_eq!(stack.count_in("done").await, 2, "one job, however often it was postponed");
    }
}

#[tokio::test]
async fn a_job_is_postponed_by_no_more_than_its_longest_delay() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let limited = |body: &str, max: &str| with(far(&sink, body, "postpone"), "max_delay", max);
        let first = stack.accept(&limited("a", "10m")).await;
        let latest = Duration::from_secs(600);
        assert_eq!(between(time(&first["created_at"]), time(&first["due_at"])), latest, "{first}");
        let (status, again) = stack.submit(&limited("b", "10m")).await;
        assert_eq!((status, &again["due_at"]), (200, &first["due_at"]), "counted from the first submit");
        // The limit of the present submit counts.
        let (status, longer) = stack.submit(&limited("c", "20m")).await;
        assert_eq!(status, 200);
        assert_eq!(between(time(&first["created_at"]), time(&longer["due_at"])), 2 * latest, "{longer}");
        // The latest due time has passed.
        let (status, now) = stack.submit(&limited("d", "1ms")).await;
        assert_eq!((status, &now["state"]), (200, &json!("ready")), "{now}");
        let arrival = sink.wait_for_job(ID, 1, SOON).await.remove(0);
        assert_eq!(&*arrival.body, b"\"d\"");
    }
}

#[tokio::test]
async fn a_job_that_replaces_one_after_its_end_is_delivered_as_another_with_the_next_attempt() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let now = |body: &str, path: &str| {
            json!({"topic": TOPIC, "id": ID, "url": sink.url(path), "body": body, "if_exists": "replace",
                "retry": {"preset": "none"}})
        };
        stack.accept(&now("first", "/first")).await;
        stack.wait_state(TOPIC, ID, "done", SOON).await;
        sink.answer_path("/second", Answer::status(500));
        stack.accept(&now("second", "/second")).await;
        stack.wait_state(TOPIC, ID, "dead", SOON).await;
        let (status, revived) = stack.submit(&now("third", "/third")).await;
        assert_eq!(
            (status, &revived["failures"], &revived["reason"]),
            (200, &json!(0), &Value::Null),
            "{revived}"
        );
        stack.wait_state(TOPIC, ID, "done", SOON).await;

        let arrivals = sink.wait_for_job(ID, 3, SOON).await;
        let seen: Vec<_> =
            arrivals.iter().map(|arrival| (arrival.path.as_str(), arrival.attempt())).collect();
        assert_eq!(seen, [("/first", Some(1)), ("/second", Some(2)), ("/third", Some(3))]);
        let mut ids: Vec<_> = arrivals.iter().map(|arrival| arrival.header("webhook-id")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "each is a job of its own: {ids:?}");
    }
}

#[tokio::test]
async fn a_job_in_delivery_is_not_replaced_and_the_answer_says_when_to_come_again() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let pull = |body: &str| json!({"topic": TOPIC, "id": ID, "body": body, "if_exists": "replace"});
        stack.accept(&pull("a")).await;
        let held = stack.reserve_one(TOPIC, &json!({"ttr": "100s", "wait": "20s"})).await;
        let reply: Reply = stack.post("/v1/jobs", &pull("b")).await;
        let detail = conflict(reply.parts());
        assert!(detail.contains("is being delivered"), "{detail}");
        let seconds: u64 = reply.header("retry-after").expect("a time").parse().expect("seconds");
        // The seconds are rounded up, by a clock that may be some ms behind the store's.
        assert!(
            (1..=101).contains(&seconds) && detail.contains(&format!("in {seconds} s")),
            "{seconds}: {detail}"
        );
        let (_, answer) = stack.batch(&[pull("b")]).await;
        assert_eq!(answer["results"][0]["status"], 409, "{answer}");

        stack.settle(&held, "finish", &json!({})).await.expect(200);
        stack.accept(&pull("b")).await;
        let next = stack.reserve_one(TOPIC, &json!({"ttr": "100s", "wait": "20s"})).await;
        assert_eq!((&next["body"], &next["attempt"]), (&json!("b"), &json!(2)));
        stack.settle(&next, "finish", &json!({})).await.expect(200);
    }
}

#[tokio::test]
async fn a_repetition_by_its_idempotency_key_changes_nothing() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.accept(&far(&sink, "old", "refuse")).await;
        let new = far(&sink, "new", "replace");
        let (status, replaced) = keyed(&stack, "k-1", &new).await;
        assert_eq!(status, 200, "{replaced}");
        assert_eq!(keyed(&stack, "k-1", &new).await, (200, replaced.clone()));
        let detail = conflict(keyed(&stack, "k-1", &far(&sink, "other", "replace")).await);
        assert!(detail.contains("other content"), "{detail}");
        // Without a key, the same submit is a new change.
        let (status, moved) = stack.submit(&new).await;
        assert_eq!(status, 200);
        assert!(time(&moved["due_at"]) >= time(&replaced["due_at"]));

        let (status, postponed) = keyed(&stack, "k-2", &far(&sink, "new", "postpone")).await;
        assert_eq!(status, 200, "{postponed}");
        stack.cancel(TOPIC, ID).await;
        let (status, ended) = keyed(&stack, "k-2", &far(&sink, "new", "postpone")).await;
        assert_eq!((status, &ended["state"]), (200, &json!("cancelled")), "it was this submit that ended");
        assert_eq!(keyed(&stack, "k-3", &far(&sink, "new", "postpone")).await.0, 201);
    }
}

#[tokio::test]
async fn a_batch_is_carried_out_in_its_order() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let items = [
            far(&sink, "a", "postpone"),
            far(&sink, "b", "postpone"),
            far(&sink, "b", "refuse"),
            far(&sink, "a", "refuse"),
            with(far(&sink, "c", "replace"), "url", sink.url("/c")),
            with(far(&sink, "other", "replace"), "id", "other"),
            with(far(&sink, "wrong", "replace"), "max_delay", "1h"),
        ];
        let (_, answer) = stack.batch(&items).await;
        let statuses: Vec<_> = (0..items.len()).map(|n| answer["results"][n]["status"].as_u64()).collect();
        let expected = [201, 200, 200, 409, 200, 201, 422].map(Some);
        assert_eq!((statuses.as_slice(), &answer["accepted"]), (&expected[..], &json!(5)), "{answer}");
        stack.run(TOPIC, ID).await;
        let arrival = sink.wait_for_job(ID, 1, SOON).await.remove(0);
        assert_eq!((arrival.path.as_str(), &*arrival.body), ("/c", &b"\"c\""[..]));
        stack.wait_state(TOPIC, ID, "done", SOON).await;
    }
}

#[tokio::test]
async fn what_does_not_go_together_is_refused_and_nothing_changes() {
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let (postpone, replace) = (far(&sink, "a", "postpone"), far(&sink, "a", "replace"));
    for (job, field) in [
        (with(replace.clone(), "if_exists", "ignore"), "if_exists"),
        (with(replace.clone(), "if_exists", true), "if_exists"),
        (without(replace.clone(), "id"), "if_exists"),
        (with(replace.clone(), "max_delay", "1h"), "max_delay"),
        (with(without(replace.clone(), "if_exists"), "max_delay", "1h"), "max_delay"),
        (with(postpone.clone(), "max_delay", 0), "max_delay"),
        (with(postpone.clone(), "max_delay", "1 month"), "max_delay"),
        (with(postpone.clone(), "max_delay", "4000d"), "max_delay"),
    ] {
        assert_eq!(wrong_field(stack.submit(&job).await), field, "{job}");
        let (_, answer) = stack.batch(&[job]).await;
        assert_eq!(answer["results"][0]["status"], 422, "{answer}");
    }
    assert_eq!(wrong_field(keyed(&stack, "k", &far(&sink, "a", "refuse")).await), "idempotency-key");
    assert_eq!(wrong_field(keyed(&stack, "k", &without(replace.clone(), "id")).await), "if_exists");
    let answer = stack.import_lines(replace.to_string()).await.json();
    assert_eq!(answer["problems"][0]["problem"]["errors"][0]["field"], "if_exists", "{answer}");
    assert_eq!(stack.job(TOPIC, ID).await.0, 404);
}
