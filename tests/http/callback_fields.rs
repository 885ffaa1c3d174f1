//! Less common fields of a job or its policy: the method of the callback, final statuses, growing delays, and expiry.

use ringback_testkit::Script;

use crate::cli::ringback;
use crate::prelude::*;

#[tokio::test]
async fn a_callback_has_the_method_of_its_job_and_a_body_where_the_method_has_one() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        for method in ["POST", "PUT", "PATCH"] {
            stack.accept(&with(job(&sink, method), "method", method)).await;
            let arrival = sink.wait_for_job(method, 1, SOON).await.remove(0);
            assert_eq!(
                (&*arrival.method, arrival.header("content-type")),
                (method, Some("application/json"))
            );
            assert_eq!(arrival.body, json!({"id": method}).to_string().as_bytes());
        }
        for method in ["GET", "DELETE"] {
            let bodyless =
                json!({"topic": TOPIC, "id": method, "url": sink.url("/hook?a=1"), "method": method});
            stack.accept(&bodyless).await;
            let arrival = sink.wait_for_job(method, 1, SOON).await.remove(0);
            assert_eq!((&*arrival.method, arrival.body.len()), (method, 0));
            for name in ["content-type", "content-length", "transfer-encoding"] {
                assert_eq!(arrival.header(name), None, "{method}: {name}");
            }
        }
        // The method is shown and exported, and a submit with another method is another job.
        stack.post("/v1/topics/e2e/pause", &json!({})).await.expect(200);
        let waiting = json!({"topic": TOPIC, "id": "waits", "url": sink.url("/hook"), "method": "DELETE"});
        stack.accept(&waiting).await;
        let shown = stack.get("/v1/jobs/e2e/waits?include=request").await.expect(200);
        assert_eq!(shown["request"]["method"], "DELETE", "{shown}");
        let line = stack.get("/v1/export").await.json();
        assert_eq!((&line["id"], &line["method"]), (&json!("waits"), &json!("DELETE")), "{line}");
        stack.post("/v1/jobs", &with(waiting, "method", "GET")).await.expect(409);
        let run = ringback(&stack.url(""), &["get", TOPIC, "waits", "--curl"]).await;
        assert!(run.out.contains("-X DELETE") && !run.out.contains("--data"), "{run:?}");

        for (job, detail) in [
            (with(job(&sink, "x"), "method", "GET"), "GET, which has no body"),
            (with(job(&sink, "x"), "method", "get"), "is not a method"),
            (with(job(&sink, "x"), "method", "HEAD"), "is not a method"),
            (json!({"topic": "pulled", "id": "x", "method": "POST"}), "without a url"),
        ] {
            let problem = stack.post("/v1/jobs", &job).await.expect(422);
            let error = &problem["errors"][0];
            assert_eq!(error["field"], "method", "{problem}");
            assert!(error["detail"].as_str().is_some_and(|text| text.contains(detail)), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_status_that_the_policy_says_is_final_ends_a_job_at_once() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let run = ringback(&stack.url(""), &["policy", "set", TOPIC, "--bury-on", "400,422"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(stack.topic(TOPIC).await["policy"]["bury_on"], json!([400, 422]));
        for status in [400, 422] {
            let id = format!("final-{status}");
            sink.answer_job(&id, Answer::status(status));
            stack.accept(&with(job(&sink, &id), "delay", "1s")).await;
            let dead = stack.wait_state(TOPIC, &id, "dead", SOON).await;
            assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("rejected"), &json!(1)), "{dead}");
            assert_eq!(dead["last"]["status"], status);
        }
        let retry = json!({"backoff": {"base": "50ms", "factor": 1, "count": 3}, "jitter": 0});
        sink.answer_job("later", Script::first(2, Answer::status(503)));
        let later = with(job(&sink, "later"), "retry", retry);
        stack.accept(&later).await;
        stack.wait_state(TOPIC, "later", "done", SOON).await;
        assert_eq!(sink.arrivals_of("later").len(), 3);
        let shown = stack.get("/v1/jobs/e2e/later?include=request").await;
        assert!(shown.status == 200, "{shown:?}");
        let list = stack.get("/v1/topics/e2e/dead?reason=rejected").await.expect(200);
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");
    }
}

#[tokio::test]
async fn delays_that_grow_are_waited_for_one_after_the_other() {
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let policy = ringback(&stack.url(""), &["policy", "set", TOPIC, "--retry", "backoff 1s 3 10s 4"]).await;
    assert_eq!(policy.code, Some(0), "{policy:?}");
    stack.accept(&with(job(&sink, "i"), "delay", "1h")).await;
    let shown = stack.get("/v1/jobs/e2e/i?include=request").await.expect(200);
    assert_eq!(shown["effective"]["retry"]["delays"], json!(["1s", "3s", "9s", "10s"]), "{shown}");
    let wrong = ringback(&stack.url(""), &["policy", "set", TOPIC, "--retry", "backoff 1s 3 10s"]).await;
    assert!(wrong.code == Some(64) && wrong.err.contains("backoff 1s 2 1h 15"), "{wrong:?}");
}

/// Waits until `delay` has passed by the clock of the store, with a job that has this delay.
async fn time_passes(stack: &Stack, delay: &str) {
    stack.accept(&json!({"topic": "clock", "id": delay, "delay": delay})).await;
    stack.wait_state("clock", delay, "ready", SOON).await;
}

#[tokio::test]
async fn a_job_that_has_expired_is_dead_and_not_sent_and_a_revive_sends_it() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let pause = async |how: &str| {
            stack.post(&format!("/v1/topics/e2e/{how}"), &json!({})).await.expect(200);
        };
        pause("pause").await;
        stack.accept(&with(job(&sink, "after"), "expires", "50ms")).await;
        stack.accept(&with(job(&sink, "later"), "expires", "1h")).await;
        let soon = stack.job(TOPIC, "later").await.1["created_at"].as_str().expect("a time").to_owned();
        let soon: jiff::Timestamp = soon.parse().expect("a time");
        let time = (soon + jiff::SignedDuration::from_millis(1_500)).to_string();
        stack.accept(&with(job(&sink, "at"), "expires", &*time)).await;
        let shown = stack.get("/v1/jobs/e2e/after?include=request").await.expect(200);
        assert_eq!(shown["request"]["expires"], "50ms", "{shown}");
        time_passes(&stack, "1600ms").await;
        assert_eq!(stack.job(TOPIC, "after").await.1["state"], "ready", "nobody has met it");
        pause("resume").await;
        for id in ["after", "at"] {
            let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
            assert_eq!((&dead["reason"], &dead["failures"]), (&json!("expired"), &json!(1)), "{dead}");
            assert_eq!(sink.arrivals_of(id).len(), 0);
        }
        stack.wait_state(TOPIC, "later", "done", SOON).await;
        sink.answer_job("after", Script::first(1, Answer::status(503)));
        for id in ["after", "at"] {
            stack.post(&format!("/v1/jobs/e2e/{id}/revive"), &json!({})).await.expect(200);
            stack.wait_state(TOPIC, id, "done", SOON).await;
        }

        // A retry that would come after the time ends it at once.
        sink.answer_job("retried", Answer::status(503));
        let retried = with(job(&sink, "retried"), "retry", json!({"delays": ["1h"], "jitter": 0}));
        stack.accept(&with(retried, "expires", "59m")).await;
        let dead = stack.wait_state(TOPIC, "retried", "dead", SOON).await;
        assert_eq!((&dead["reason"], &dead["last"]["status"]), (&json!("expired"), &json!(503)), "{dead}");

        for (job, detail) in [
            (with(job(&sink, "x"), "expires", "soon"), "neither a duration"),
            (with(job(&sink, "x"), "expires", 0), "neither a duration"),
            (with(job(&sink, "x"), "expires", "2020-01-01T00:00:00Z"), "before the job is due"),
            (with(with(job(&sink, "x"), "delay", "2h"), "expires", &*time), "before the job is due"),
        ] {
            let problem = stack.post("/v1/jobs", &job).await.expect(422);
            let error = &problem["errors"][0];
            assert_eq!(error["field"], "expires", "{problem}");
            assert!(error["detail"].as_str().is_some_and(|text| text.contains(detail)), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_pull_job_that_has_expired_is_given_to_nobody() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let pull = |id: &str| json!({"topic": "pulled", "id": id});
        stack.accept(&with(pull("brief"), "expires", "50ms")).await;
        stack.accept(&with(pull("later"), "expires", "1h")).await;
        time_passes(&stack, "60ms").await;
        let ask = json!({"wait": "10s", "ttr": "1m"});
        let given = stack.reserve_one("pulled", &ask).await;
        assert_eq!((&given["id"], &given["attempt"]), (&json!("later"), &json!(1)), "{given}");
        // The job may be in another shard than the one that is asked first.
        assert!(stack.reserve("pulled", &json!({"wait": "300ms"})).await.is_empty());
        let dead = stack.wait_state("pulled", "brief", "dead", SOON).await;
        assert_eq!((&dead["reason"], &dead["failures"]), (&json!("expired"), &json!(1)), "{dead}");
        assert_eq!(stack.settle(&given, "finish", &json!({})).await.status, 200);

        stack.post("/v1/jobs/pulled/brief/revive", &json!({})).await.expect(200);
        let given = stack.reserve_one("pulled", &ask).await;
        assert_eq!((&given["id"], &given["attempt"]), (&json!("brief"), &json!(2)), "{given}");
        assert_eq!(stack.settle(&given, "finish", &json!({})).await.status, 200);

        // A retry by the policy that would come after the time ends the job at once.
        let retried = with(pull("retried"), "retry", json!({"delays": ["1h"], "jitter": 0}));
        stack.accept(&with(retried, "expires", "59m")).await;
        let given = stack.reserve_one("pulled", &ask).await;
        assert_eq!(stack.settle(&given, "retry", &json!({"error": "no paper"})).await.status, 200);
        let dead = stack.job("pulled", "retried").await.1;
        assert_eq!((&dead["state"], &dead["reason"]), (&json!("dead"), &json!("expired")), "{dead}");
        assert_eq!(dead["last"]["error"], "no paper");

        // A retry by the consumer's own delay, or a release, ends the job in the same way.
        for (id, action) in [("delayed", "retry"), ("given-back", "release")] {
            stack.accept(&with(pull(id), "expires", "59m")).await;
            let given = stack.reserve_one("pulled", &ask).await;
            assert_eq!(stack.settle(&given, action, &json!({"delay": "1h"})).await.status, 200);
            let dead = stack.job("pulled", id).await.1;
            assert_eq!(
                (&dead["state"], &dead["reason"]),
                (&json!("dead"), &json!("expired")),
                "{id}: {dead}"
            );
        }

        // An expired lease ends the job in the same way.
        stack.accept(&with(with(pull("held"), "retry", json!({"delays": ["1h"]})), "expires", "59m")).await;
        stack.reserve_one("pulled", &json!({"wait": "10s", "ttr": "100ms"})).await;
        let dead = stack.wait_state("pulled", "held", "dead", SOON).await;
        assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("expired"), &json!(1)), "{dead}");
    }
}

#[tokio::test]
async fn many_pull_jobs_that_have_expired_are_passed_over() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let jobs: Vec<_> = (0..300)
            .map(|n| json!({"topic": "pulled", "id": format!("job-{n}"), "expires": "10ms"}))
            .collect();
        assert_eq!(stack.batch(&jobs).await.1["accepted"], 300);
        time_passes(&stack, "20ms").await;
        stack.accept(&json!({"topic": "pulled", "id": "last"})).await;
        let given = stack.reserve_one("pulled", &json!({"wait": "20s"})).await;
        assert_eq!(given["id"], "last", "{given}");
    }
}
