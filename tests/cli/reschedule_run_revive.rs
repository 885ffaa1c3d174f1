//! `ringback reschedule`, `run` and `revive` of one job by its name.

use super::{reports, ringback};
use crate::prelude::*;
use crate::sample_jobs::time;

#[tokio::test]
async fn a_job_is_rescheduled_and_run_by_its_name() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    stack.accept(&json!({"topic": "t", "id": "i", "delay": "1h", "url": "http://127.0.0.1:9/"})).await;

    let at = "2030-01-02T04:04:05.678+01:00";
    let run = ringback(&server, &["reschedule", "t/i", "--at", at]).await;
    let expected = "t/i is delayed, due 2030-01-02T03:04:05.678Z (in ";
    assert!(run.code == Some(0) && run.out.starts_with(expected), "{run:?}");
    let local = ["reschedule", "t/i", "--at", "2030-07-02T04:04:05"];
    let run = ringback(&server, &[&local[..], &["--time-zone", "Europe/Berlin"]].concat()).await;
    let expected = "t/i is delayed, due 2030-07-02T02:04:05.000Z (in ";
    assert!(run.code == Some(0) && run.out.starts_with(expected), "{run:?}");
    reports(&server, &local, 64, "--time-zone Europe/Berlin").await;
    let run = ringback(&server, &[&local[..], &["--time-zone", "Mars/Phobos"]].concat()).await;
    assert!(run.code == Some(1) && run.err.contains("time_zone: \"Mars/Phobos\" is not a known"), "{run:?}");
    let run = ringback(&server, &["reschedule", "t", "i", "--delay", "1h 30m", "--output", "json"]).await;
    assert_eq!((run.code, run.json()), (Some(0), stack.job("t", "i").await.1));
    let run = ringback(&server, &["run", "t", "i"]).await;
    let due = stack.job("t", "i").await.1["due_at"].clone();
    assert_eq!(
        (run.code, run.out),
        (Some(0), format!("t/i is ready, due {} (now)\n", due.as_str().expect("a time")))
    );
    let run = ringback(&server, &["run", "t/i", "--output", "json"]).await;
    assert_eq!((run.code, &run.json()["due_at"]), (Some(0), &due));

    let run = ringback(&server, &["reschedule", "t/i", "--delay", "5"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.starts_with("error: 409 Conflict: the job t/i is ready: it is due already"), "{run:?}");
    reports(&server, &["reschedule", "t/nobody", "--delay", "0"], 1, "no job t/nobody is known").await;
    let run = ringback(&server, &["reschedule", "t/i", "--delay", "11y"]).await;
    assert!(run.code == Some(64) && run.err.contains("months and years have no fixed length"), "{run:?}");
    reports(&server, &["reschedule", "t/i", "--delay", "4000d"], 1, "  delay: \"4000d\": too far ahead")
        .await;
}

#[tokio::test]
async fn a_dead_job_is_revived_by_its_name() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let dead = json!({"topic": "t", "id": "i", "url": "http://127.0.0.1:9/", "state": "dead",
        "reason": "exhausted", "failures": 3, "attempts": 4});
    stack.import(&[dead]).await;
    reports(&server, &["run", "t/i"], 1, "the job t/i is dead: revive it").await;
    let run = ringback(&server, &["revive", "t/i"]).await;
    assert!(run.code == Some(0) && run.out.starts_with("t/i is ready, due "), "{run:?}");
    let (_, job) = stack.job("t", "i").await;
    assert_eq!((&job["failures"], &job["attempts"], &job["reason"]), (&json!(0), &json!(4), &Value::Null));
    assert!(time(&job["due_at"]) >= time(&job["created_at"]));
    reports(&server, &["revive", "t/i"], 1, "is ready, not dead").await;
    let run = ringback(&server, &["cancel", "t/i"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = ringback(&server, &["revive", "t/i", "--output", "json"]).await;
    let problem: Value = serde_json::from_str(&run.err).expect("the problem on standard error");
    assert_eq!((run.code, &problem["status"]), (Some(1), &json!(409)));
}
