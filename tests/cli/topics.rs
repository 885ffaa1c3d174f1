//! `ringback topics`, `topic`, `forecast`, `destinations`, `pause`, `resume` and `get`, which says why a job waits.

use super::{reports, ringback};
use crate::prelude::*;

#[tokio::test]
async fn topics_are_shown_as_tables_and_as_json() {
    let stack = StackOptions::api_only().start().await;
    for topic in ["b", "a"] {
        let far = json!({"topic": topic, "id": "far", "delay": "1h", "url": "http://127.0.0.1:9/"});
        stack.accept(&far).await;
        stack.accept(&json!({"topic": topic, "id": "due", "url": "http://127.0.0.1:9/"})).await;
    }
    let server = stack.url("");
    let run = ringback(&server, &["topics"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let lines: Vec<Vec<_>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        ["TOPIC", "DELAYED", "READY", "RESERVED", "DEAD", "DONE", "CANCELLED", "LATE", "FIRST", "DUE"]
    );
    assert_eq!(lines[1][..7], ["a", "1", "1", "0", "0", "0", "0"]);
    assert_eq!((lines.len(), lines[2][0]), (3, "b"));

    let run = ringback(&server, &["topics", "--limit", "1", "--output", "json"]).await;
    assert!(
        run.code == Some(0) && run.err.contains("the first 1 topics; more with --limit or --all"),
        "{run:?}"
    );
    assert_eq!(run.json()["topic"], "a");
    let run = ringback(&server, &["topics", "--all", "--output", "json"]).await;
    let names: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(names.iter().map(|topic| &topic["topic"]).collect::<Vec<_>>(), ["a", "b"]);

    let run = ringback(&server, &["topic", "b"]).await;
    assert!(run.code == Some(0) && run.out.lines().count() == 2 && run.out.contains("FIRST DUE"), "{run:?}");
    let run = ringback(&server, &["topic", "b", "--output", "json"]).await;
    let states = json!({"delayed": 1, "ready": 1, "reserved": 0, "done": 0, "dead": 0, "cancelled": 0});
    assert_eq!(run.json()["states"], states);
    reports(&server, &["topic", "c"], 1, "no topic c is known").await;
}

#[tokio::test]
async fn a_topic_is_paused_and_resumed() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    reports(&server, &["resume", "a"], 1, "topic a cannot be resumed").await;
    let run = ringback(&server, &["pause", "a"]).await;
    assert!(
        run.code == Some(0) && run.out.lines().any(|line| line.starts_with("a") && line.contains("paused")),
        "{run:?}"
    );
    let note = "topic a has no jobs and no policy so far: the pause holds for the jobs to come";
    assert_eq!(run.err.trim_end(), note, "{run:?}");
    let run = ringback(&server, &["topic", "a", "--output", "json"]).await;
    assert_eq!((&run.json()["paused"], &run.json()["note"]), (&json!(true), &Value::Null));
    let run = ringback(&server, &["pause", "a", "--output", "json"]).await;
    assert_eq!((&run.json()["note"], run.err.trim_end()), (&json!(note), note), "{run:?}");
    let run = ringback(&server, &["resume", "a", "--output", "json"]).await;
    assert_eq!((run.code, &run.json()["paused"]), (Some(0), &json!(false)), "{run:?}");
    // A topic is known by its jobs or by its policy.
    stack.accept(&json!({"topic": "b", "delay": "1h", "url": "http://127.0.0.1:9/"})).await;
    let put = stack.put("/v1/topics/c", &json!({"timeout": "5s"})).await;
    assert_eq!(put.status, 201);
    for used in ["b", "c"] {
        let run = ringback(&server, &["pause", used]).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    }
}

#[tokio::test]
async fn a_forecast_is_shown_as_a_table_with_bars_and_as_json() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack.accept(&json!({"topic": "a", "delay": "90m", "url": "https://merchant.example/"})).await;
    let run = ringback(&server, &["forecast", "--by", "1h", "--until", "3h"]).await;
    let lines: Vec<Vec<_>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["FROM", "JOBS", "RETRIES", "SCHEDULES"], "{run:?}");
    let full: Vec<_> = lines.iter().filter(|line| line.last().is_some_and(|bar| bar.contains('█'))).collect();
    assert!(full.len() == 1 && full[0].contains(&"1"), "{run:?}");
    let run = ringback(&server, &["forecast", "--topic", "b", "--output", "json"]).await;
    assert_eq!(
        (run.code, &run.json()["exact"], &run.json()["ready"]),
        (Some(0), &json!(true), &json!(0)),
        "{run:?}"
    );
    let run = ringback(&server, &["forecast", "--by", "1s"]).await;
    assert!(run.code != Some(0) && run.err.contains("1m to 1d"), "{run:?}");
}

#[tokio::test]
async fn a_host_is_paused_and_resumed_and_destinations_are_listed() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let run = ringback(&server, &["destinations"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no destinations\n"));
    let run = ringback(&server, &["pause", "--host", "Merchant.Example"]).await;
    let words: Vec<_> = run.out.split_whitespace().collect();
    let paused = ["HOST", "PORT", "PAUSED", "BY", "merchant.example", "all", "paused", "merchant.example"];
    assert_eq!((run.code, words), (Some(0), paused.to_vec()), "{run:?}");
    ringback(&server, &["pause", "--host", "[::1]:8443"]).await;
    stack.accept(&json!({"topic": "a", "delay": "1h", "url": "https://merchant.example/"})).await;
    let run = ringback(&server, &["destinations"]).await;
    let lines: Vec<Vec<_>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        [
            "HOST", "PORT", "SCHEME", "DELAYED", "WAITING", "RESERVED", "DEAD", "LIMITS", "FAILING", "SINCE",
            "FAILED", "LAST"
        ]
    );
    assert_eq!(lines[1], ["[::1]", "8443", "-", "paused", "0", "0", "0", "0"]);
    assert_eq!(lines[2], ["merchant.example", "443", "https", "paused", "1", "0", "0", "0"]);
    let run = ringback(&server, &["resume", "--host", "merchant.example", "--json"]).await;
    assert_eq!((run.code, &run.json()["paused"]), (Some(0), &json!(false)), "{run:?}");
    for (verb, state) in [("close", "closed"), ("open", "open"), ("reset", "auto")] {
        let run = ringback(&server, &["breaker", verb, "--host", "merchant.example", "--json"]).await;
        assert_eq!((run.code, &run.json()["breaker"]), (Some(0), &json!(state)), "{run:?}");
    }
    let run = ringback(&server, &["breaker", "close", "--host", "[::1]:8443"]).await;
    let words: Vec<_> = run.out.split_whitespace().collect();
    assert_eq!(words, ["HOST", "PORT", "BREAKER", "PAUSED", "BY", "[::1]", "8443", "closed", "-"], "{run:?}");
    ringback(&server, &["pause", "--host", "[::1]:8443"]).await;
    let run = ringback(&server, &["destinations", "--limit", "1", "--json"]).await;
    assert!(run.err.contains("the first 1 destinations; more with --limit or --all"), "{run:?}");
    assert_eq!((&run.json()["host"], &run.json()["pauses"]), (&json!("[::1]"), &json!(["[::1]:8443"])));

    for words in [
        &["pause"][..],
        &["pause", "a", "--host", "b"],
        &["resume"],
        &["resume", "a", "--host", "b"],
        &["breaker", "open"],
    ] {
        assert_eq!(ringback(&server, words).await.code, Some(64), "{words:?}");
    }
    reports(&server, &["pause", "--host", "http://a"], 64, "the host of a callback URL").await;
}

#[tokio::test]
async fn get_says_what_holds_a_job_that_waits() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack.accept(&json!({"topic": "a", "id": "i", "url": "http://merchant.example/"})).await;
    let run = ringback(&server, &["get", "a/i"]).await;
    assert!(run.code == Some(0) && !run.out.contains("paused"), "{run:?}");
    let waits = "\nwaiting   until a notifier or a consumer takes it, 0 jobs before it\n";
    assert!(run.out.contains(waits), "{run:?}");
    ringback(&server, &["pause", "a"]).await;
    let run = ringback(&server, &["get", "a/i"]).await;
    let line = |what: &str| format!("\npaused    {what} paused; until that is resumed it is not delivered\n");
    assert!(run.out.contains(&line("its topic is")), "{run:?}");
    assert!(run.out.contains("\nwaiting   until its topic is resumed, 0 jobs before it\n"), "{run:?}");
    ringback(&server, &["pause", "--host", "merchant.example"]).await;
    let run = ringback(&server, &["get", "a/i", "--full"]).await;
    assert!(run.out.contains(&line("its topic and its destination are")), "{run:?}");
    let run = ringback(&server, &["get", "a/i", "--json"]).await;
    assert_eq!(run.json()["paused_by"], json!(["topic", "destination"]), "{run:?}");
}

#[tokio::test]
async fn an_empty_list_of_topics_says_so() {
    let stack = StackOptions::api_only().start().await;
    let run = ringback(&stack.url(""), &["topics"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no topics\n"));
}
