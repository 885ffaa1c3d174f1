//! `ringback list`, `export` and `import` on real stacks: jobs move from one installation to another.

use std::collections::BTreeSet;
use std::fs;

use ringback_testkit::Role;
use tempfile::tempdir;

use super::{Run, fed, reports, ringback};
use crate::prelude::*;

fn far(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "delay": "1h", "url": "http://127.0.0.1:9/", "body": {"id": id}})
}

async fn accept_far(stack: &Stack, count: usize) {
    let jobs: Vec<_> = (0..count).map(|n| far(&format!("far-{n}"))).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], count);
}

fn sorted(text: &str) -> BTreeSet<&str> {
    text.lines().collect()
}

fn counts(run: &Run) -> Value {
    let run = run.json();
    json!([run["lines"], run["created"], run["repeated"], run["refused"], run["complete"]])
}

#[tokio::test]
async fn jobs_move_from_one_installation_to_another() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    accept_far(&stack, 2_500).await;
    sink.answer_job("dead", Answer::status(410));
    stack.accept(&job(&sink, "dead")).await;
    stack.wait_state(TOPIC, "dead", "dead", SOON).await;
    let other = Stack::options().store(&stack.store_url()).env("RINGBACK_PREFIX", "other");
    let other = other.count(Role::Carrier, 0).count(Role::Notifier, 0).start().await;
    let (from, to, dir) = (stack.url(""), other.url(""), tempdir().expect("a directory"));
    let (first, again) = (dir.path().join("first.ndjson"), dir.path().join("again.ndjson"));
    let (first, again) = (first.to_str().expect("UTF-8"), again.to_str().expect("UTF-8"));

    reports(&from, &["export", "-o", first], 0, "2501 jobs exported to ").await;
    for expected in [json!([2501, 2501, 0, 0, true]), json!([2501, 0, 2501, 0, true])] {
        let run = ringback(&to, &["import", first, "--output", "json"]).await;
        assert_eq!((run.code, run.err.as_str(), counts(&run)), (Some(0), "", expected), "{run:?}");
    }
    let run = ringback(&to, &["export", "--file", again]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let texts = [first, again].map(|path| fs::read_to_string(path).expect("a file"));
    assert_eq!(sorted(&texts[0]), sorted(&texts[1]));
    // Compares JSON, because the table shows relative times.
    let get = ["get", "e2e/dead", "--output", "json"];
    assert_eq!(ringback(&to, &get).await.json(), ringback(&from, &get).await.json());
}

#[tokio::test]
async fn lists_show_what_the_server_has() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let server = stack.url("");
    let run = ringback(&server, &["list"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no jobs\n"));
    accept_far(&stack, 1_200).await;
    sink.answer_job("dead", Answer::status(410));
    stack.accept(&job(&sink, "dead")).await;
    stack.wait_state(TOPIC, "dead", "dead", SOON).await;

    let run = ringback(&server, &["list", "--state", "dead"]).await;
    assert_eq!((run.code, run.err.as_str(), run.out.lines().count()), (Some(0), "", 2), "{run:?}");
    let row: Vec<_> = run.out.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(
        (&row[..3], &row[row.len() - 3..]),
        (&["e2e", "dead", "dead"][..], &["gone", "answered", "410"][..])
    );
    let run = ringback(&server, &["list"]).await;
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 101));
    assert!(run.err.contains("the first 100 jobs; more with --limit or --all"), "{run:?}");
    let run = ringback(&server, &["list", "--all", "--topic", TOPIC, "--output", "json"]).await;
    let ids =
        run.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].to_string());
    assert_eq!((run.code, ids.collect::<BTreeSet<_>>().len()), (Some(0), 1_201), "{}", run.err);
    let run = ringback(&server, &["list", "--topic", "a b"]).await;
    assert!(run.code != Some(0) && run.err.contains("topic"), "{run:?}");
}

#[tokio::test]
async fn bad_lines_of_an_import_are_reported_by_the_server() {
    let stack = StackOptions::api_only().start().await;
    stack.accept(&far("taken")).await;
    let other = json!({"topic": TOPIC, "id": "taken", "url": "http://other/"});
    let file = format!("{}\n\nnonsense\n{other}\n{}", far("a"), json!({"topic": "a b", "url": "x"}));
    let run = fed(&stack.url(""), &["import", "-"], file.into_bytes()).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.out, "LINES  CREATED  REPEATED  REFUSED\n    4        1         0        3\n");
    let refused: Vec<_> = run.err.lines().filter(|line| line.starts_with("line ")).collect();
    assert!(refused[0].starts_with("line 3: 400 not a JSON object"), "{run:?}");
    assert!(refused[1].starts_with("line 4: 409 another job has this topic and id"), "{run:?}");
    assert!(refused[2].starts_with("line 5: 422 wrong: topic, url"), "{run:?}");
    assert_eq!(stack.job(TOPIC, "a").await.0, 200);
}
