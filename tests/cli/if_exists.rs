//! `ringback submit --if-exists` replaces or postpones a job with the same id; wrong combinations of flags fail.

use super::{fed, reports, ringback};
use crate::prelude::*;
use crate::sample_jobs::{between, time};

const SUBMIT: &str = "submit --topic t --id page-7 --delay 1h --url http://127.0.0.1:9/";

#[tokio::test]
async fn a_job_is_replaced_and_postponed_by_flags_and_from_a_file() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let submit: Vec<_> = SUBMIT.split(' ').collect();
        let with = |more: &[&'static str]| [&submit[..], more].concat();
        let run = ringback(&server, &with(&["--body", "1"])).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        reports(&server, &with(&["--body", "2"]), 1, "if_exists").await;
        let run = ringback(&server, &with(&["--body", "2", "--if-exists", "replace"])).await;
        let note = "it took the place of the job that had this topic and id\n";
        assert_eq!((run.code, run.err.as_str()), (Some(0), note), "{run:?}");

        let postpone = ["--body", "3", "--if-exists", "postpone", "--max-delay", "10m", "--output", "json"];
        let run = ringback(&server, &with(&postpone)).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        let job = run.json();
        assert_eq!(between(time(&job["created_at"]), time(&job["due_at"])).as_secs(), 600, "{job}");

        let file = json!({"topic": "t", "id": "page-7", "delay": "1h", "url": "http://127.0.0.1:9/", "body": 4,
            "if_exists": "postpone"});
        let run = fed(&server, &["submit", "-"], file.to_string().into()).await;
        let note = "it postponed the job that had this topic and id\n";
        assert_eq!((run.code, run.err.as_str()), (Some(0), note), "{run:?}");

        let run = ringback(&server, &["cancel", "t/page-7"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let again = with(&["--body", "4", "--output", "json"]);
        let run = ringback(&server, &again).await;
        let problem: Value = serde_json::from_str(&run.err).expect("the problem on standard error");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(run.code == Some(1) && detail.contains("was cancelled"), "{run:?}");
        let run = ringback(&server, &[&again[..], &["--if-exists", "replace"]].concat()).await;
        assert_eq!((run.code, &run.json()["state"]), (Some(0), &json!("delayed")), "{run:?}");
    }
}

#[tokio::test]
async fn flags_that_do_not_go_together_are_wrong_usage() {
    let submit: Vec<_> = SUBMIT.split(' ').collect();
    for (more, hint) in [
        (&["--max-delay", "5m"][..], "--if-exists"),
        (&["--if-exists", "replace", "--max-delay", "5m"], "only for --if-exists postpone"),
        (&["--if-exists", "ignore"], "refuse, replace, postpone"),
        (&["--if-exists", "postpone", "--max-delay", "1 month"], "months and years have no fixed length"),
    ] {
        let run = ringback("http://127.0.0.1:9", &[&submit[..], more].concat()).await;
        assert!(run.code == Some(64) && run.err.contains(hint), "{more:?}: {run:?}");
    }
}
