//! `ringback audit-log` on real stacks: lists and filters the audit log.

use super::{reports, ringback};
use crate::prelude::*;

#[tokio::test]
async fn the_audit_log_is_listed_and_filtered() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        for words in [["pause", "pay.notify"], ["resume", "pay.notify"], ["pause", "other"]] {
            assert_eq!(ringback(&server, &words).await.code, Some(0));
        }
        let lines = async |words: &[&str]| {
            let words = [&["audit-log", "--json"], words].concat();
            let run = ringback(&server, &words).await;
            assert_eq!(run.code, Some(0), "{run:?}");
            let entries: Result<Vec<Value>, _> = run.out.lines().map(serde_json::from_str).collect();
            entries.expect("a line of JSON for each entry")
        };
        let all = eventually(SOON, "three entries", async || match lines(&[]).await {
            all if all.len() == 3 => Ok(all),
            all => Err(all.len()),
        })
        .await;
        assert_eq!((&all[0]["operation"], &all[0]["target"]), (&json!("pause"), &json!({"topic": "other"})));
        assert_eq!(lines(&["--limit", "1"]).await, all[..1]);
        assert_eq!(lines(&["--topic", "pay.notify", "--operation", "resume"]).await, all[1..2]);
        assert_eq!(lines(&["--who", "root"]).await, [Value::Null; 0]);
        let at = all[0]["at"].as_str().expect("a time");
        assert!(
            lines(&["--after", at]).await.contains(&all[0])
                && !lines(&["--before", at]).await.contains(&all[0])
        );
        let run = ringback(&server, &["audit-log"]).await;
        for text in
            ["OPERATION", "pause", "topic=pay.notify", "open", r#"{"paused":true} -> {"paused":false}"#]
        {
            assert!(run.out.contains(text), "{text}: {run:?}");
        }
        reports(&server, &["audit-log", "--operation", "submit"], 1, "put_policy").await;
        reports(&server, &["audit-log", "--who", "root"], 0, "no calls in the audit log").await;
    }
}
