//! What a job waits for, over HTTP with real notifiers: once the named cause is removed, the job goes.

use ringback_testkit::{Answer, Script, Sink, Stack, StackOptions};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, job, time};

fn path(id: &str) -> String {
    format!("/v1/jobs/{TOPIC}/{id}")
}

fn topic(verb: &str) -> String {
    format!("/v1/topics/{TOPIC}{verb}")
}

/// Waits until a job waits for this, and returns what its answer says of that, without `since` of a due job.
async fn waiting(stack: &Stack, id: &str, cause: &str) -> Value {
    let is_it = |job: &Value| job["waiting"]["for"] == cause;
    let mut job = stack.wait_get(&path(id), SOON, is_it).await;
    if cause != "retry" {
        let since = job["waiting"].as_object_mut().expect("an object").remove("since");
        assert_eq!(since.as_ref(), Some(&job["due_at"]), "{job}");
    }
    job["waiting"].take()
}

#[tokio::test]
async fn a_job_that_waits_for_the_end_of_a_pause_goes_after_it() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.post_empty(&topic("/pause")).await.expect(200);
        stack.accept(&job(&sink, "first")).await;
        assert_eq!(
            waiting(&stack, "first", "pause").await,
            json!({"for": "pause", "by": ["topic"], "before": 0})
        );
        stack.accept(&job(&sink, "second")).await;
        assert_eq!(
            waiting(&stack, "second", "pause").await,
            json!({"for": "pause", "by": ["topic"], "before": 1})
        );
        stack.post_empty(&topic("/resume")).await.expect(200);
        sink.wait_for_jobs(&["first", "second"], 1, SOON).await;
        stack.wait_get(&path("second"), SOON, |job| job["state"] == "done" && job["waiting"].is_null()).await;
    }
}

#[tokio::test]
async fn a_job_that_waits_for_a_limit_of_its_destination_goes_without_it() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let limits = json!({"limits": {"in_flight": 1}});
        stack.put("/v1/destinations/127.0.0.1", &limits).await.expect(201);
        sink.answer_job("first", Answer::status(200).held());
        stack.accept(&job(&sink, "first")).await;
        sink.wait_for_job("first", 1, SOON).await;
        stack.accept(&job(&sink, "second")).await;
        assert_eq!(
            waiting(&stack, "second", "limit").await,
            json!({"for": "limit", "by": ["destination"], "before": 0})
        );
        assert!(sink.arrivals_of("second").is_empty());
        stack.delete("/v1/destinations/127.0.0.1").await.expect(200);
        sink.wait_for_job("second", 1, SOON).await;
        sink.release();
    }
}

#[tokio::test]
async fn a_job_that_waits_for_a_limit_of_its_topic_goes_without_it() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let limits = json!({"rate": "1/h"});
        stack.put(&topic(""), &json!({"timeout": "5s", "limits": limits})).await.expect(201);
        stack.accept(&job(&sink, "first")).await;
        sink.wait_for_job("first", 1, SOON).await;
        let second = stack.accept(&job(&sink, "second")).await;
        let waits = waiting(&stack, "second", "limit").await;
        assert_eq!((&waits["by"], &waits["before"]), (&json!(["topic"]), &json!(0)), "{waits}");
        let wait = time(&waits["until"]).duration_since(time(&second["due_at"])).as_secs();
        assert!((3000..=3700).contains(&wait), "{waits}");

        let shown = stack.get(&topic("")).await.expect(200)["limits"].take();
        assert_eq!((&shown["rate"], &shown["in_flight"]), (&json!("1/h"), &Value::Null), "{shown}");
        assert!(shown["used"]["next_in_ms"].as_u64().is_some_and(|ms| ms > 3_000_000), "{shown}");
        let effective =
            stack.get(&format!("{}?include=request", path("second"))).await.expect(200)["effective"].take();
        assert_eq!(effective["limits"], json!({"rate": "1/h", "burst": null, "in_flight": null}));

        let without = stack.patch(&topic(""), &json!({"limits": null})).await.expect(200);
        assert_eq!(without["dropped"], json!(["limits"]), "{without}");
        sink.wait_for_job("second", 1, SOON).await;
        assert_eq!(stack.get(&topic("")).await.expect(200)["limits"], Value::Null);
    }
}

#[tokio::test]
async fn a_job_that_waits_for_its_retry_is_due_then_or_goes_when_it_is_run() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.retry("1h").start().await, Sink::start().await);
        sink.answer_job("fails", Script::first(1, Answer::status(503)));
        stack.accept(&job(&sink, "fails")).await;
        let waits = waiting(&stack, "fails", "retry").await;
        stack.post_empty(&topic("/pause")).await.expect(200);
        let found = stack.get(&path("fails")).await.expect(200);
        assert_eq!(
            (&found["waiting"], &found["paused_by"]),
            (&waits, &json!(["topic"])),
            "the retry is first"
        );
        assert_eq!((&waits["until"], &waits["before"]), (&found["due_at"], &Value::Null), "{found}");
        let last = time(&found["last"]["at"]);
        assert!(last <= time(&waits["since"]) && time(&waits["since"]) < time(&waits["until"]), "{found}");
        stack.post_empty(&topic("/resume")).await.expect(200);
        stack.post_empty(&format!("{}/run", path("fails"))).await.expect(200);
        sink.wait_for_job("fails", 2, SOON).await;
    }
}

#[tokio::test]
async fn a_pull_job_waits_for_a_consumer_and_a_job_that_is_not_due_for_nothing() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.accept(&json!({"topic": TOPIC, "id": "pull"})).await;
        assert_eq!(waiting(&stack, "pull", "places").await, json!({"for": "places", "before": 0}));
        stack.post(&topic("/reserve"), &json!({})).await.expect(200);
        assert_eq!(stack.get(&path("pull")).await.expect(200)["waiting"], Value::Null);
        stack.accept(&json!({"topic": TOPIC, "id": "later", "delay": "1h"})).await;
        assert_eq!(stack.get(&path("later")).await.expect(200)["waiting"], Value::Null);
    }
}
