//! `ringback reserve`, `finish`, `retry`, `bury`, `release` and `renew`; and what `submit` says of jobs without a URL.

use ringback_testkit::Role;

use super::{Run, fed, ringback};
use crate::prelude::*;

/// Reserves one job and returns its receipt. Panics unless there is exactly one.
async fn receipt(server: &str) -> String {
    let run = ringback(server, &["reserve", TOPIC, "--wait", "10s", "--output", "json"]).await;
    let jobs = run.json()["jobs"].clone();
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{run:?}");
    jobs[0]["receipt"].as_str().expect("a receipt").to_owned()
}

async fn succeed(server: &str, words: &[&str]) -> Run {
    let run = ringback(server, words).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{words:?}: {run:?}");
    run
}

#[tokio::test]
async fn a_job_is_reserved_and_settled_in_each_way_by_its_receipt() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    let server = stack.url("");
    let run = ringback(&server, &["reserve", TOPIC]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no job is ready\n"));

    let run =
        ringback(&server, &["submit", "--topic", TOPIC, "--id", "a", "--body", "1", "--ttr", "5m"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = succeed(&server, &["reserve", TOPIC, "--max", "5"]).await;
    let lines: Vec<_> = run.out.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("ID  ATTEMPT  DEADLINE"), "{run:?}");
    let held = lines[1].split_whitespace().last().expect("a receipt").to_owned();
    let run = succeed(&server, &["renew", &held, "--ttr", "1h"]).await;
    assert!(run.out.starts_with("the lease ends at 20"), "{run:?}");
    succeed(&server, &["release", &held]).await;

    let held = receipt(&server).await;
    succeed(&server, &["retry", &held, "--delay", "10ms", "--error", "out of paper"]).await;
    let (_, job) = stack.job(TOPIC, "a").await;
    assert_eq!((&job["failures"], &job["last"]["error"]), (&json!(1), &json!("out of paper")), "{job}");

    let held = receipt(&server).await;
    let run = succeed(&server, &["finish", &held]).await;
    assert_eq!(run.out, "the job is done\n");
    let run = ringback(&server, &["bury", &held]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.starts_with("error: 409 Conflict: the receipt no longer holds the job"), "{run:?}");

    succeed(&server, &["submit", "--topic", TOPIC, "--id", "b", "--json"]).await;
    let held = receipt(&server).await;
    succeed(&server, &["bury", &held, "--reason", "unwanted"]).await;
    assert_eq!(stack.job(TOPIC, "b").await.1["reason"], "unwanted");
    let run = ringback(&server, &["finish", "x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
}

/// A scripted server that accepts a job and then shows it with these fields.
async fn accepting(shown: &Value) -> Sink {
    let sink = Sink::start().await;
    let job = json!({"topic": "t", "id": "i", "state": "delayed", "due_at": "2025-11-20T10:22:44.193Z",
        "created_at": "2025-11-20T10:22:41.087Z", "attempts": 0, "failures": 0});
    sink.answer_path("/v1/jobs", Answer::status(201).body(job.to_string()));
    let inspected = with_all(job, shown);
    sink.answer_path("/v1/jobs/t/i?include=request", Answer::status(200).body(inspected.to_string()));
    sink
}

#[tokio::test]
async fn a_submit_without_a_url_says_where_the_job_goes() {
    let pull = "the job has no URL: it is a pull job, which waits until a consumer reserves it (ringback reserve t)\n";
    let of_topic = "the job has no URL of its own: it is delivered to that of the topic's policy, http://127.0.0.1:9/t\n";
    let either = "the job has no URL of its own: it is delivered to that of the topic's policy; if there is none, it \
                  is a pull job, which waits until a consumer reserves it (ringback reserve t)\n";
    for (shown, expected) in [
        (json!({"request": {}}), pull),
        (json!({"request": {"url": "http://127.0.0.1:9/t"}}), of_topic),
        // An older server, which does not show requests.
        (json!({}), either),
        (json!({"state": "done"}), ""),
    ] {
        let sink = accepting(&shown).await;
        let run = ringback(&sink.url(""), &["submit", "--topic", "t", "--id", "i"]).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), expected), "{shown}: {run:?}");
        for silent in [&["--url", "http://127.0.0.1:9/"][..], &["--json"]] {
            let words = [&["submit", "--topic", "t", "--id", "i"], silent].concat();
            let run = ringback(&sink.url(""), &words).await;
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        }
    }
}

#[tokio::test]
async fn a_submit_of_a_pull_job_says_so_on_each_store() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let words = ["submit", "--topic", TOPIC, "--delay", "1h", "--id", "pulled"];
        let expected = "pull job, which waits until a consumer reserves it (ringback reserve e2e)\n";
        let run = ringback(&server, &words).await;
        assert!(run.code == Some(0) && run.err.ends_with(expected), "{run:?}");
        let again = ringback(&server, &words).await;
        assert!(
            again.err.starts_with("the same job was accepted before: nothing changed\nthe job"),
            "{again:?}"
        );
        assert!(again.err.ends_with(expected), "{again:?}");
        let job = format!(r#"{{"topic":"{TOPIC}","url":null,"delay":"1h"}}"#);
        let run = fed(&server, &["submit", "-"], job.into_bytes()).await;
        assert!(run.err.ends_with(expected), "{run:?}");
    }
}
