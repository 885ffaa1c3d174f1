//! `ringback backup` and `ringback restore`: all that an installation keeps goes to another kind of store with other
//! shards and back, through files and pipes; a restore leaves unchanged what is there.

mod faults;
mod files;
mod moving;
mod sample;
mod schedules;
mod tenants;

use std::collections::BTreeMap;

use self::files::{Backup, backup, restore, restored};
use self::sample::{JOBS, TOPICS, fill, settle_in};
use super::{fed, ringback};
use crate::prelude::*;

/// The options of an API without other roles, on a store (by default Redis) with this many shards.
fn api_only(store: Option<&str>, shards: u16) -> StackOptions {
    let options = StackOptions::api_only().env("RINGBACK_SHARDS", &shards.to_string());
    match store {
        Some(store) => options.store(store),
        None => options,
    }
}

/// The dead jobs of all topics as a list shows them, by topic and id.
async fn dead(stack: &Stack) -> BTreeMap<String, Value> {
    let pages = stack.pages("/v1/jobs?state=dead").await;
    let named = |job: Value| (format!("{}/{}", job["topic"], job["id"]), job);
    pages.into_iter().flatten().map(named).collect()
}

#[tokio::test]
async fn everything_goes_to_other_shards_and_another_kind_of_store_and_back() {
    let (sink, dir) = (Sink::start().await, tempfile::tempdir().expect("a directory"));
    let first = api_only(None, 4).start().await;
    fill(&first, &sink.url("")).await;
    let (saved, path) = backup(&first, dir.path(), "first").await;
    assert_eq!((saved.header["store"].as_str(), saved.header["layout"].as_u64()), (Some("redis"), Some(6)));
    assert_eq!(saved.counts(), (TOPICS, JOBS.len()));

    let second = api_only(Some("embedded:./data"), 7).start().await;
    let run = restored(&second, &path).await;
    let all = |lines| json!({"lines": lines, "created": lines, "repeated": 0, "refused": 0});
    assert_eq!(run, json!({"topics": all(TOPICS), "jobs": all(JOBS.len()), "complete": true}));
    let (again, path) = backup(&second, dir.path(), "second").await;
    assert_eq!(again.header["store"], "embedded");
    assert_eq!((again.topics(), again.jobs()), (saved.topics(), saved.jobs()));
    assert_eq!(dead(&second).await, dead(&first).await);

    let third = Stack::options().env("RINGBACK_SHARDS", "2").start().await;
    restored(&third, &path).await;
    assert_eq!(dead(&third).await, dead(&first).await);
    settle_in(&third, &sink).await;
}

#[tokio::test]
async fn a_restore_changes_nothing_that_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let stack = api_only(None, 4).start().await;
    fill(&stack, "http://127.0.0.1:9").await;
    let (saved, path) = backup(&stack, dir.path(), "all").await;
    // A restore into the same installation finds everything there.
    let run = restored(&stack, &path).await;
    assert_eq!(
        (&run["topics"]["repeated"], &run["jobs"]["repeated"]),
        (&json!(TOPICS), &json!(JOBS.len())),
        "{run}"
    );

    let other = api_only(Some("embedded:./data"), 4).start().await;
    other.set_policy("bk.policy", &json!({"timeout": "3s"})).await;
    other.set_policy("bk.paused", &json!({"timeout": "7s"})).await;
    let taken = json!({"topic": "bk.push", "id": "ready", "url": "http://127.0.0.1:9/other", "delay": "1h"});
    other.accept(&taken).await;
    let run = restore(&other, &path, &[]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    let table: Vec<Vec<_>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let (jobs, created) = (JOBS.len().to_string(), (JOBS.len() - 1).to_string());
    assert_eq!(table[1], ["topics", "4", "3", "0", "1"], "{run:?}");
    assert_eq!(table[2], ["jobs", &jobs, &created, "0", "1"], "{run:?}");
    assert!(run.err.contains("topic bk.policy: the topic has another policy, which stays"), "{run:?}");
    assert!(run.err.contains(": 409 another job has this topic and id"), "{run:?}");
    assert!(run.err.contains("next: everything else is restored"), "{run:?}");
    assert_eq!(other.topic("bk.policy").await["policy"], json!({"timeout": "3s"}));
    assert_eq!(other.topic("bk.paused").await["paused"], true);
    assert_eq!(other.job("bk.push", "ready").await.1["state"], "delayed");

    let (now, _) = backup(&other, dir.path(), "other").await;
    let differ = |lines: &BTreeMap<String, Value>, was: &BTreeMap<String, Value>| {
        lines.iter().filter(|(name, line)| was.get(*name) != Some(*line)).count()
    };
    assert_eq!((differ(&now.topics(), &saved.topics()), differ(&now.jobs(), &saved.jobs())), (1, 1));
}

#[tokio::test]
async fn a_backup_goes_through_a_pipe() {
    let stack = api_only(None, 4).start().await;
    fill(&stack, "http://127.0.0.1:9").await;
    let run = ringback(&stack.url(""), &["backup", "-"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let saved = Backup::parse(&run.out);
    // The guard of the other installation forbids these destinations, but a restore accepts them.
    let other = api_only(Some("embedded:./data"), 3).guarded().start().await;
    // A backup that is cut off in the pipe changes nothing.
    let half = run.out.as_bytes()[..run.out.len() / 2].to_vec();
    let cut = fed(&other.url(""), &["restore", "-"], half).await;
    assert!(cut.code == Some(2) && cut.err.contains("and nothing was changed: it is cut off"), "{cut:?}");
    assert_eq!(ringback(&other.url(""), &["export"]).await.out, "");
    assert_eq!(other.get("/v1/export/topics").await.body, "");
    let run = fed(&other.url(""), &["restore", "-"], run.out.into_bytes()).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let again = Backup::parse(&ringback(&other.url(""), &["backup", "-"]).await.out);
    assert_eq!((again.topics(), again.jobs()), (saved.topics(), saved.jobs()));
}

#[tokio::test]
async fn a_job_that_moves_while_it_is_exported_is_saved_once() {
    let sink = Sink::start().await;
    let stats = StackOptions::api_only().start().await.get("/v1/stats").await;
    let stats = String::from_utf8(stats.body.to_vec()).expect("UTF-8");
    sink.answer_path("/v1/stats", Answer::status(200).body(stats));
    sink.answer_path("/v1/export/topics", Answer::status(200).body(""));
    let line = |id: &str, n: u64| json!({"topic": "t", "id": id, "attempts": n}).to_string() + "\n";
    let lines = [line("b", 1), line("a", 1), line("b", 2), line("c", 1), line("b", 3)].concat();
    sink.answer_path("/v1/export", Answer::status(200).body(lines));
    let run = ringback(&sink.url(""), &["backup", "-"]).await;
    let saved = Backup::parse(&run.out);
    let jobs: Vec<_> = saved.lines("job").map(|job| json!([job["id"], job["attempts"]])).collect();
    assert_eq!(jobs, [json!(["a", 1]), json!(["b", 3]), json!(["c", 1])]);
}
