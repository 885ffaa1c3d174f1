//! Damaged backups, broken streams and killed restores write nothing, leave no file, or are completed by the next run.

use std::fs;
use std::process::Stdio;

use super::api_only;
use super::files::{backup, of_jobs, restore, restored};
use super::sample::fill;
use crate::cli::import_export_faults::stream;
use crate::cli::{reports, ringback, spec};
use crate::prelude::*;

#[tokio::test]
async fn a_damaged_file_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let stack = api_only(None, 4).start().await;
    fill(&stack, "http://127.0.0.1:9").await;
    let (_, path) = backup(&stack, dir.path(), "whole").await;
    let whole = fs::read_to_string(&path).expect("a file");
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let end = lines.len() - 1;
    let cases = [
        ("cut off after a line", lines[..end].concat(), "it is cut off after line"),
        ("cut off within a line", whole[..whole.len() - 30].to_owned(), "it is cut off after line"),
        ("a changed job", whole.replace("no such file", "no such thing"), "the checksum in its last line"),
        (
            "a line less",
            [&lines[..end - 1], &lines[end..]].concat().concat(),
            "the checksum in its last line",
        ),
        ("two backups", whole.repeat(2), "is not where lines of its kind belong"),
        ("another format", whole.replacen("\"format\":1", "\"format\":2", 1), "it has format 2"),
        (
            "another kind",
            whole.replacen("\"kind\":\"job\"", "\"kind\":\"key\"", 1),
            "has a kind that this version",
        ),
        ("an export", json!({"topic": "t", "url": "http://h/"}).to_string() + "\n", "it is not a backup"),
        ("nothing", String::new(), "it is not a backup"),
    ];
    let other = api_only(None, 4).start().await;
    let damaged = dir.path().join("damaged");
    for (what, text, why) in cases {
        fs::write(&damaged, text).expect("a file");
        let run = restore(&other, damaged.to_str().expect("UTF-8"), &[]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{what}: {run:?}");
        assert!(run.err.contains("and nothing was changed: ") && run.err.contains(why), "{what}: {run:?}");
        assert!(run.err.contains("\nnext: "), "{what}: {run:?}");
        assert_eq!(other.get("/v1/export").await.body, "", "{what}");
        assert_eq!(other.get("/v1/export/topics").await.body, "", "{what}");
    }
    restored(&other, &path).await;
    let run = restore(&other, "no-such-file", &[]).await;
    assert!(run.code == Some(2) && run.err.contains("no-such-file: No such file"), "{run:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let stack = api_only(None, 4).start().await;
    let stats = String::from_utf8(stack.get("/v1/stats").await.body.to_vec()).expect("UTF-8");
    let (job, topic) =
        (json!({"topic": "t", "id": "i"}), json!({"topic": "t", "paused": true, "policy": null}));
    let (job, topic) = (format!("{job}\n"), format!("{topic}\n"));
    let path = dir.path().join("backup");
    fs::write(&path, "the backup before").expect("a file");
    for (topics, jobs) in [
        (stream(&[&topic], ""), stream(&[&job], "0\r\n\r\n")),
        (stream(&[&topic], "0\r\n\r\n"), stream(&[&job], "")),
        (stream(&[&topic], "0\r\n\r\n"), stream(&[&job, &job[..9]], "0\r\n\r\n")),
        (stream(&[&topic], "0\r\n\r\n"), stream(&["no JSON\n"], "0\r\n\r\n")),
    ] {
        let sink = Sink::start().await;
        sink.answer_path("/v1/stats", Answer::status(200).body(stats.clone()));
        sink.answer_path("/v1/export/topics", topics);
        sink.answer_path("/v1/export", jobs);
        let run = ringback(&sink.url(""), &["backup", path.to_str().expect("UTF-8")]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        let names: Vec<_> =
            fs::read_dir(&dir).expect("it").map(|e| e.expect("an entry").file_name()).collect();
        assert_eq!(names, ["backup"]);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "the backup before");
        let run = ringback(&sink.url(""), &["backup", "-"]).await;
        assert!(run.code == Some(2) && !run.out.contains("\"kind\":\"end\""), "{run:?}");
    }
    reports(&stack.url(""), &["backup", dir.path().to_str().expect("UTF-8")], 2, "is a directory").await;
    reports(&stack.url(""), &["backup", "no/such/directory"], 2, "No such file or directory").await;
}

#[tokio::test]
async fn a_restore_that_was_killed_is_completed_by_the_next_one() {
    const JOBS: usize = 12_000;
    let dir = tempfile::tempdir().expect("a directory");
    let far = |n: usize| json!({"topic": "t", "id": format!("job-{n}"), "at": "2036-01-01T00:00:00.000Z", "url": "http://h/", "body": n});
    let path = dir.path().join("backup");
    fs::write(&path, of_jobs((0..JOBS).map(far))).expect("a file");
    let path = path.to_str().expect("UTF-8");
    for options in ringback_testkit::StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let mut command = spec(&stack.url(""), &["restore", path]).command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        eventually(SOON, "some jobs are restored", async || match some_jobs(&stack).await {
            true => Ok(()),
            false => Err("none is"),
        })
        .await;
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");

        let run = restored(&stack, path).await;
        assert_eq!((&run["jobs"]["lines"], &run["complete"]), (&json!(JOBS), &json!(true)), "{run}");
        assert!(run["jobs"]["repeated"].as_u64() > Some(0), "{run}");
        stack.wait_count("delayed", JOBS as u64, Duration::from_secs(10)).await;
        let run = restored(&stack, path).await;
        assert_eq!(run["jobs"]["repeated"], JOBS, "{run}");
    }
}

async fn some_jobs(stack: &Stack) -> bool {
    stack.get("/v1/jobs?limit=1").await.expect(200)["items"] != json!([])
}
