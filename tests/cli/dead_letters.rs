//! `ringback dead`: lists and purges dead jobs, revives many, and shows, watches and stops the revive.

use ringback_testkit::Role;

use super::{reports, ringback};
use crate::prelude::*;

fn dead(id: &str, reason: &str) -> Value {
    json!({"topic": "t", "id": id, "url": "http://127.0.0.1:9/", "state": "dead", "reason": reason, "failures": 3,
        "attempts": 4, "last": {"at": "2026-11-20T09:30:00.000Z", "status": 503, "duration_ms": 7}})
}

/// Parses lines of JSON.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[tokio::test]
async fn dead_jobs_are_listed_and_purged() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let run = ringback(&server, &["dead", "list", "t"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", "no dead jobs\n"));
    let jobs: Vec<_> =
        (0..250).map(|n| dead(&format!("job-{n}"), if n < 5 { "gone" } else { "lost" })).collect();
    stack.import(&jobs).await;
    let run = ringback(&server, &["dead", "list", "t", "--reason", "gone"]).await;
    let text: Vec<_> =
        run.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        (run.code, text.len(), text[0].as_str()),
        (Some(0), 6, "ID DIED ATTEMPTS REASON LAST FAILURE TAGS")
    );
    assert!(text[1].starts_with("job-") && text[1].ends_with(" 4 gone answered 503"), "{text:?}");
    let run = ringback(&server, &["dead", "list", "t"]).await;
    assert_eq!(
        (run.out.lines().count(), run.err.as_str()),
        (101, "the first 100 dead jobs; more with --limit or --all\n")
    );
    let run = ringback(&server, &["dead", "list", "t", "--all", "--output", "json"]).await;
    let all = lines(&run.out);
    assert!(all.len() == 250 && all.iter().all(|job| job["died_at"].is_string()), "{run:?}");

    let run = ringback(&server, &["dead", "purge", "t", "job-0"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "t/job-0 is purged\n"));
    reports(&server, &["dead", "purge", "t", "job-0"], 1, "no job t/job-0 is known").await;
    for wrong in [
        &["dead", "purge", "t"][..],
        &["dead", "purge", "t", "a", "--all"],
        &["dead", "list", "a b"],
        &["dead"],
    ] {
        assert_eq!(ringback(&server, wrong).await.code, Some(64), "{wrong:?}");
    }
    let run = ringback(&server, &["dead", "purge", "t", "--reason", "gone", "--output", "json"]).await;
    assert_eq!((run.code, run.json()), (Some(0), json!({"purged": 4, "next": null})));
    let run = ringback(&server, &["dead", "purge", "t", "--all"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "245 dead jobs of t are purged\n"));
    assert_eq!(stack.count_in("dead").await, 0);
}

#[tokio::test]
async fn many_are_revived_and_the_progress_is_shown_watched_and_stopped() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    let server = stack.url("");
    let jobs: Vec<_> =
        (0..300).map(|n| dead(&format!("job-{n}"), if n < 50 { "gone" } else { "lost" })).collect();
    stack.import(&jobs).await;
    let run = ringback(&server, &["dead", "revive", "t", "--reason", "gone", "--rate", "500"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for text in ["state      done", "changed    50", "rate       500/s", "--reason gone"] {
        assert!(run.out.contains(text), "no {text:?} in {}", run.out);
    }
    assert!(run.err.contains("to stop it: ringback bulk stop "), "{}", run.err);

    let run =
        ringback(&server, &["dead", "revive", "t", "--rate", "20", "--no-wait", "--output", "json"]).await;
    let begun = run.json();
    assert_eq!((run.code, &begun["state"]), (Some(0), &json!("running")));
    let id = begun["id"].as_str().expect("an id").to_owned();
    eventually(SOON, "some are revived", async || match stack.count_in("ready").await {
        50 => Err(50),
        n => Ok(n),
    })
    .await;
    let watch = ["bulk", "watch", &id, "--output", "json"];
    let stop = ["bulk", "stop", &id];
    let (watched, run) = tokio::join!(ringback(&server, &watch), ringback(&server, &stop));
    assert!(run.code == Some(0) && run.out.contains("state      stopped"), "{run:?}");
    assert_eq!((watched.code, &watched.json()["state"]), (Some(0), &json!("stopped")));
    let run = ringback(&server, &["bulk", "list"]).await;
    assert!(run.out.contains("revive") && run.out.lines().count() == 3, "{}", run.out);
    for wrong in ["0", "100001", "fast"] {
        assert_eq!(ringback(&server, &["dead", "revive", "t", "--rate", wrong]).await.code, Some(64));
    }
}
