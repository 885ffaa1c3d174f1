//! `ringback watch`: one job until it ends, a topic over a restart of the API, exit codes, and a reader that goes away.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use ringback_testkit::Process;

use super::{ringback, spec};
use crate::prelude::*;

fn start(stack: &Stack, words: &[&str]) -> Process {
    spec(&stack.url(""), &[&["watch"], words].concat()).start()
}

async fn shows(watch: &Process, what: &str) {
    watch.wait_log(what, SOON).await;
}

/// The JSON lines that a watch has printed, each with the name of its event.
fn lines(watch: &Process) -> Vec<(String, Value)> {
    let log = watch.log();
    let json =
        |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    log.lines().map(|line| (json(line)["event"].as_str().expect("a name").to_owned(), json(line))).collect()
}

#[tokio::test]
async fn a_job_is_watched_until_it_is_done() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    stack.accept(&with(job(&sink, "a"), "delay", "1h")).await;
    let mut watch = start(&stack, &[&format!("{TOPIC}/a")]);
    shows(&watch, "delayed").await;
    stack.run(TOPIC, "a").await;
    assert_eq!(watch.wait_exit(SOON).await.code(), Some(0), "{}", watch.log());
    let log = watch.log();
    let kinds: Vec<_> = log.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(kinds.ends_with(&["promoted", "attempt", "done"]), "{log}");
    assert!(log.contains("e2e/a") && log.contains("1: complete"), "{log}");
}

#[tokio::test]
async fn a_job_that_dies_or_is_cancelled_or_unknown_ends_with_1() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("dies", Answer::status(500).held());
    stack.accept(&with(job(&sink, "dies"), "retry", json!({"preset": "none"}))).await;
    sink.wait_for_job("dies", 1, SOON).await;
    let mut watch = start(&stack, &[TOPIC, "dies", "--output", "json"]);
    shows(&watch, "reserved").await;
    sink.release();
    assert_eq!(watch.wait_exit(SOON).await.code(), Some(1), "{}", watch.log());
    let lines = lines(&watch);
    let names: Vec<_> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["state", "attempt", "dead"]);
    assert_eq!((&lines[0].1["state"], &lines[1].1["status"]), (&json!("reserved"), &json!(500)));
    assert_eq!(lines[2].1["reason"], "exhausted");

    let run = ringback(&stack.url(""), &["watch", "e2e/dies"]).await;
    assert!(run.code == Some(1) && run.out.contains("exhausted"), "it has ended before: {run:?}");
    let run = ringback(&stack.url(""), &["watch", "e2e/nobody"]).await;
    assert!(run.code == Some(1) && run.out.is_empty() && run.err.contains("404"), "{run:?}");
    stack.accept(&with(job(&sink, "cancelled"), "delay", "1h")).await;
    let mut watch = start(&stack, &["e2e/cancelled", "--kind", "promoted"]);
    shows(&watch, "delayed").await;
    stack.cancel(TOPIC, "cancelled").await;
    assert_eq!(watch.wait_exit(SOON).await.code(), Some(1), "{}", watch.log());
    assert!(!watch.log().contains("cancelled  "), "its end is not shown, but it is seen: {}", watch.log());
}

#[tokio::test]
async fn a_topic_is_watched_for_scripts_and_after_a_restart_of_the_api_again() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    let watch = start(&stack, &[TOPIC, "--output", "json", "--kind", "done,dead"]);
    let mut n = 0;
    let mut is_shown = async |stack: &Stack| {
        // Jobs submitted before it listens have no events here.
        eventually(SOON, "a job is shown", async || {
            n += 1;
            let id = format!("job-{n}");
            stack.accept(&job(&sink, &id)).await;
            stack.wait_state(TOPIC, &id, "done", SOON).await;
            stack.accept(&with(with(job(&sink, &id), "topic", "other"), "delay", "1h")).await;
            let log = watch.log();
            if log.contains(&format!("\"{id}\"")) { Ok(()) } else { Err(log) }
        })
        .await;
    };
    is_shown(&stack).await;
    let known = lines(&watch);
    assert!(known.iter().all(|(name, line)| name == "done" && line["topic"] == TOPIC), "{known:?}");

    stack.apis[0].restart();
    stack.ready(SOON).await;
    shows(&watch, "{\"event\":\"missed\"}").await;
    is_shown(&stack).await;
    assert!(watch.log().contains("reconnecting"), "{}", watch.log());
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_quietly() {
    let stack = StackOptions::api_only().start().await;
    let mut command = spec(&stack.url(""), &["watch"]).command();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = child.stdout.take().expect("it is piped");
    let first = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("it writes");
        line
    });
    let mut n = 0;
    eventually(SOON, "it shows a line", async || {
        n += 1;
        stack.accept(&json!({"topic": TOPIC, "id": format!("job-{n}"), "delay": "1h"})).await;
        if first.is_finished() { Ok(()) } else { Err(n) }
    })
    .await;
    let line = first.await.expect("it is read");
    assert!(line.contains("submitted") && line.contains("(in 1h)") | line.contains("(in 59m 59s)"), "{line}");
    let mut ended = None;
    eventually(SOON, "it ends at the next line", async || {
        n += 1;
        stack.accept(&json!({"topic": TOPIC, "id": format!("job-{n}"), "delay": "1h"})).await;
        ended = child.try_wait().expect("it can be waited for");
        ended.ok_or("it goes on")
    })
    .await;
    let output = child.wait_with_output().expect("it has ended");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]));
}
