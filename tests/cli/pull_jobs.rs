//! `ringback reserve`, `finish`, `retry`, `bury`, `release` and `renew`.

use ringback_testkit::{Role, Stack};
use serde_json::json;

use super::{Run, ringback};
use crate::sample_jobs::TOPIC;

/// The receipt of the only job that a reserve gives.
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

    succeed(&server, &["submit", "--topic", TOPIC, "--id", "a", "--body", "1", "--ttr", "5m"]).await;
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

    succeed(&server, &["submit", "--topic", TOPIC, "--id", "b"]).await;
    let held = receipt(&server).await;
    succeed(&server, &["bury", &held, "--reason", "unwanted"]).await;
    assert_eq!(stack.job(TOPIC, "b").await.1["reason"], "unwanted");
    let run = ringback(&server, &["finish", "x"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
}
