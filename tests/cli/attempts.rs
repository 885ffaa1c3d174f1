//! `ringback attempts` on a real stack: the attempts of a job as a table and as JSON.

use super::{reports, ringback};
use crate::prelude::*;

#[tokio::test]
async fn the_attempts_of_a_job_are_shown_as_a_table_and_as_the_json_of_the_api() {
    let (stack, sink) = (Stack::options().in_one_process().start().await, Sink::start().await);
    sink.answer_job("dies", Answer::status(500).body("out of\n\u{1b}[31mink"));
    stack.accept(&with(job(&sink, "dies"), "retry", json!({"delays": ["10ms"], "jitter": 0}))).await;
    stack.accept(&with(job(&sink, "waits"), "delay", "1h")).await;
    stack.wait_state(TOPIC, "dies", "dead", SOON).await;

    let server = stack.url("");
    let name = format!("{TOPIC}/dies");
    let run = ringback(&server, &["attempts", &name]).await;
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!((run.code, lines.len()), (Some(0), 3), "{run:?}");
    let heading: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heading, ["ATTEMPT", "AT", "MS", "RESULT", "BY", "ANSWER"]);
    assert!(
        lines[2].trim_start().starts_with("2  ") && lines[2].ends_with(r"out of\n\u{1b}[31mink"),
        "{run:?}"
    );
    assert!(lines[2].contains("  500  "), "{run:?}");

    let run = ringback(&server, &["attempts", TOPIC, "dies", "--output", "json"]).await;
    let items = run.json()["items"].clone();
    assert_eq!((run.code, &items[1]["answer"]), (Some(0), &json!("out of\n\u{1b}[31mink")), "{run:?}");

    let run = ringback(&server, &["attempts", TOPIC, "waits"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no attempts were made yet\n"));
    stack.accept(&job(&sink, "works")).await;
    stack.wait_state(TOPIC, "works", "done", SOON).await;
    let run = ringback(&server, &["attempts", TOPIC, "works"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    for part in ["no attempts are logged: by default only failed attempts are", "RINGBACK_ATTEMPT_LOG=all"] {
        assert!(run.err.contains(part), "{run:?}");
    }
    let run = ringback(&server, &["attempts", TOPIC, "works", "--json"]).await;
    assert_eq!((run.code, run.json(), run.err.as_str()), (Some(0), json!({"items": []}), ""), "{run:?}");
    reports(&server, &["attempts", TOPIC, "nobody"], 1, "no job").await;
}
