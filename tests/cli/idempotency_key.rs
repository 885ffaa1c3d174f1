//! `ringback submit --idempotency-key`: repeating a key makes no second job; wrong or useless keys are refused.

use super::{fed, prints, ringback};
use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};

const SUBMIT: [&str; 7] = ["submit", "--topic", "t", "--delay", "1h", "--url", "http://127.0.0.1:9/"];
/// A key that has to be escaped in a quoted string.
const KEY: &str = r#"a"b\c"#;

fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SUBMIT, more].concat()
}

#[tokio::test]
async fn a_submit_without_an_id_is_repeated_by_its_key() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let words = submit(&["--idempotency-key", KEY, "--body", "1"]);
        let first = ringback(&server, &[&words[..], &["--json"]].concat()).await;
        assert_eq!((first.code, first.err.as_str()), (Some(0), ""), "{first:?}");

        // Other clients send the key unquoted.
        let job = json!({"topic": "t", "delay": "1h", "url": "http://127.0.0.1:9/", "body": 1}).to_string();
        let sent = raw_post(stack.url("/v1/jobs"), &[JSON, ("Idempotency-Key", KEY)], job.clone()).await;
        assert_eq!(sent.parts(), (200, first.json()));

        let note = "the same job was accepted before: nothing changed\n";
        let run = ringback(&server, &words).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), note), "{run:?}");
        let run = fed(&server, &["submit", "-", "--idempotency-key", KEY], job.into()).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), note), "{run:?}");
        let run = ringback(&server, &submit(&["--idempotency-key", KEY, "--body", "2"])).await;
        assert!(run.code == Some(1) && run.err.starts_with("error: 409 Conflict"), "{run:?}");
        assert_eq!(stack.count_in("delayed").await, 1);
    }
}

#[tokio::test]
async fn a_submit_that_replaces_a_job_is_repeated_by_its_key() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        let run = ringback(&server, &submit(&["--id", "i", "--body", "1"])).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let replace = ["--id", "i", "--body", "2", "--if-exists", "replace", "--idempotency-key"];
        let with = |key| submit(&[&replace[..], &[key]].concat());
        let run = ringback(&server, &with("first")).await;
        let note = "it took the place of the job that had this topic and id, unless this key was sent before: then \
                    nothing changed\n";
        assert_eq!((run.code, run.err.as_str()), (Some(0), note), "{run:?}");

        assert_eq!(stack.cancel("t", "i").await.0, 200);
        prints(&server, &with("first"), 0, "state     cancelled\n").await;
        prints(&server, &with("second"), 0, "state     delayed\n").await;
    }
}

#[tokio::test]
async fn a_key_that_is_wrong_or_has_no_use_is_wrong_usage() {
    let long = "k".repeat(256);
    let both = "both are only for --if-exists replace or postpone";
    let form = "a key is 1 to 255 visible ASCII characters";
    for (more, hint) in [
        (&["--idempotency-key", "k", "--id", "i"][..], both),
        (&["--idempotency-key", "k", "--id", "i", "--if-exists", "refuse"], both),
        (&["--idempotency-key", ""], form),
        (&["--idempotency-key", "a b"], form),
        (&["--idempotency-key", "ü"], form),
        (&["--idempotency-key", &long], form),
    ] {
        let run = ringback("http://127.0.0.1:9", &submit(more)).await;
        assert!(run.code == Some(64) && run.err.contains(hint), "{more:?}: {run:?}");
    }
}
