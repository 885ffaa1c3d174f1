//! `ringback policy set`, `get` and `delete` on a real stack, and values that are refused.

use super::{reports, ringback};
use crate::prelude::*;

#[tokio::test]
async fn a_policy_is_set_shown_and_deleted() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let run = ringback(&server, &["policy", "get", "t"]).await;
    assert!(run.code == Some(1) && run.out.is_empty() && run.err.contains("no topic t is known"), "{run:?}");
    let run = ringback(
        &server,
        &[
            "policy",
            "set",
            "t",
            "--retry",
            "15s 3m",
            "--max",
            "-1",
            "--jitter",
            "0.5",
            "--timeout",
            "5s",
            "--ttr",
            "90",
            "--url",
            "http://h/",
            "--header",
            "x-tenant:a7",
            "--header",
            "x-b: 2",
            "--expect-body",
            "success",
            "--on-dead",
            "http://h/dead",
            "--on-done",
            "http://h/done",
            "--metrics",
        ],
    )
    .await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "the topic t has a policy now\n"), "{run:?}");
    let policy = json!({"retry": {"delays": ["15s", "3m"], "max": -1, "jitter": 0.5}, "timeout": "5s", "ttr": 90,
        "url": "http://h/", "headers": {"x-tenant": "a7", "x-b": "2"}, "headers_to": ["http://h"], "expect_body": "success",
        "on_dead": "http://h/dead", "on_done": "http://h/done", "metrics": true});
    let shown = stack.get("/v1/topics/t").await.json();
    assert_eq!((&shown["topic"], &shown["policy"]), (&json!("t"), &policy));
    let run = ringback(&server, &["policy", "get", "t", "--output", "json"]).await;
    assert_eq!((run.code, run.json()), (Some(0), shown));

    // Fields that are not given stay.
    let run = ringback(&server, &["policy", "set", "t", "--timeout", "6s", "--header", "x-b:3"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "the topic t has another policy now\n"));
    let mut changed = policy;
    (changed["timeout"], changed["headers"]["x-b"]) = (json!("6s"), json!("3"));
    assert_eq!(stack.get("/v1/topics/t").await.json()["policy"], changed);
    let run = ringback(&server, &["policy", "set", "t", "--unset", "expect_body,on_dead"]).await;
    assert!(run.code == Some(0) && run.err.contains("no longer set: expect_body, on_dead"), "{run:?}");
    let run = ringback(&server, &["policy", "set", "t", "--replace", "--retry", "none"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "the topic t has another policy now\n"));
    assert!(run.err.contains("no longer set: timeout, ttr, url, headers"), "{run:?}");
    let run = ringback(&server, &["policy", "get", "t"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "FIELD  VALUE\nretry  {\"preset\":\"none\"}\n"));

    stack.accept(&json!({"topic": "t", "id": "i", "delay": "1h"})).await;
    let run = ringback(&server, &["policy", "delete", "t"]).await;
    assert!(run.code == Some(1) && run.err.contains("has jobs that have not ended"), "{run:?}");
    assert!(run.err.contains("delete it with --force") && !run.err.contains("force=true"), "{run:?}");
    let run = ringback(&server, &["policy", "delete", "t", "--json"]).await;
    assert!(run.code == Some(1) && run.err.contains("force=true"), "the API's own words: {run:?}");
    let run = ringback(&server, &["policy", "delete", "t", "--force"]).await;
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "the topic t is deleted; 1 jobs were cancelled, 0 purged\n"),
        "{run:?}"
    );
    let run = ringback(&server, &["policy", "delete", "t", "--output", "json"]).await;
    assert_eq!((run.code, &run.json()["deleted"]), (Some(0), &json!(true)));
}

#[tokio::test]
async fn deleting_a_topic_waits_for_a_job_that_is_being_delivered() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack.accept(&json!({"topic": "t", "id": "held"})).await;
    let held = ringback(&server, &["reserve", "t", "--output", "json"]).await;
    assert_eq!(held.json()["jobs"].as_array().map(Vec::len), Some(1));
    reports(&server, &["policy", "delete", "t", "--force"], 1, "1 are in delivery").await;
}

#[tokio::test]
async fn the_limits_of_a_topic_are_set_as_a_whole_and_shown_with_what_is_used() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let limits = async || stack.get("/v1/topics/t").await.json()["policy"]["limits"].clone();
    let flags = ["policy", "set", "t", "--rate", "100/s", "--burst", "20", "--in-flight", "10"];
    assert_eq!(ringback(&server, &flags).await.code, Some(0));
    assert_eq!(limits().await, json!({"rate": "100/s", "burst": 20, "in_flight": 10}));
    let run = ringback(&server, &["topic", "t"]).await;
    assert!(
        run.out.ends_with("\n\n RATE  BURST  IN FLIGHT  NEXT\n100/s     20    0 of 10   now\n"),
        "{run:?}"
    );
    let run = ringback(&server, &["policy", "set", "t", "--in-flight", "5"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(limits().await, json!({"in_flight": 5}));
    let run = ringback(&server, &["policy", "set", "t", "--unset", "limits"]).await;
    assert_eq!((run.code, limits().await), (Some(0), json!(null)), "{run:?}");
}

#[tokio::test]
async fn what_can_be_no_policy_is_refused() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    for wrong in [
        &["policy", "set", "a b"][..],
        &["policy", "set", "t", "--max", "3"],
        &["policy", "set", "t", "--retry", "soon"],
        &["policy", "set", "t", "--timeout", "x"],
        &["policy", "set", "t", "--rate", "10"],
        &["policy", "set", "t", "--burst", "5"],
        &["policy", "set", "t", "--in-flight", "0"],
        &["policy", "set"],
        &["policy"],
    ] {
        assert_eq!(ringback(&server, wrong).await.code, Some(64), "{wrong:?}");
    }
    let run = ringback(&server, &["policy", "set", "t", "--timeout", "11m", "--expect-body", " x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("  timeout: ") && run.err.contains("  expect_body: "), "{run:?}");
    let shown = stack.get("/v1/topics/t").await.json();
    assert_eq!(shown["policy"], Value::Null);
}
