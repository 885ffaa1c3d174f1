//! `ringback cancel`, `run`, `revive`, `reschedule`, `purge` with a filter, and `ringback bulk`: counts and progress.

use super::ringback;
use crate::prelude::*;

fn tagged(id: &str, tag: &str) -> Value {
    json!({"topic": "t", "id": id, "url": "http://127.0.0.1:9/", "delay": "2h", "tags": [tag]})
}

fn dead(id: &str, status: u16) -> Value {
    json!({"topic": "t", "id": id, "url": "http://old.example/", "state": "dead", "reason": "exhausted", "failures": 3,
        "attempts": 4, "last": {"at": "2026-11-20T09:30:00.000Z", "status": status, "duration_ms": 7}})
}

#[tokio::test]
async fn jobs_of_a_filter_are_counted_and_changed() {
    let stack = StackOptions::default().start().await;
    let server = stack.url("");
    let run = async |words: &[&str]| ringback(&server, words).await;
    assert_eq!(run(&["bulk", "list"]).await.err, "no bulk operations\n");
    let jobs: Vec<_> =
        (0..20).map(|n| tagged(&format!("job-{n}"), ["customer:42", "customer:4"][n % 2])).collect();
    stack.batch(&jobs).await;
    stack.import(&[dead("one", 503), dead("two", 404)]).await;

    let dry = run(&["cancel", "--tag", "customer:42", "--dry-run"]).await;
    assert!(dry.code == Some(0) && dry.out.starts_with("cancel would change 10 jobs\n"), "{dry:?}");
    assert_eq!(dry.out.lines().filter(|line| line.starts_with("t ")).count(), 10, "{dry:?}");
    let dry = run(&["cancel", "--tag", "customer:42", "--dry-run", "--json"]).await.json();
    assert_eq!((&dry["count"], &dry["exact"]), (&json!(10), &json!(true)));
    let cancelled = run(&["cancel", "--tag", "customer:42"]).await;
    assert!(cancelled.code == Some(0) && cancelled.out.contains("changed    10\n"), "{cancelled:?}");
    assert!(cancelled.err.contains("to stop it: ringback bulk stop "), "{cancelled:?}");
    assert_eq!((stack.count_in("cancelled").await, stack.count_in("delayed").await), (10, 10));

    let none = run(&["list", "--state", "delayed", "--due-before", "1h"]).await;
    assert_eq!(
        (none.code, none.out.lines().filter(|line| line.starts_with("t ")).count()),
        (Some(0), 0),
        "{none:?}"
    );
    let due =
        run(&["list", "--state", "delayed", "--due-before", "3h", "--created-after", "1h", "--json"]).await;
    assert_eq!(due.out.lines().count(), 10, "{due:?}");
    let moved = run(&["reschedule", "--due-before", "3h", "--id-prefix", "job-1", "--delay", "5h", "--json"])
        .await
        .json();
    assert_eq!((&moved["changed"], &moved["delay_ms"]), (&json!(6), &json!(18_000_000)), "{moved}");
    let revived =
        run(&["revive", "--host", "old.example", "--status", "503", "--rate", "50", "--json"]).await.json();
    assert_eq!((&revived["changed"], &revived["rate"]), (&json!(1), &json!(50)), "{revived}");
    let purged = run(&["purge", "--error", "x", "--no-wait", "--json"]).await.json();
    assert_eq!(purged["action"], "purge");
    let purged = run(&["purge", "--failed-before", "2026-11-21T00:00:00Z", "--json"]).await.json();
    assert_eq!(purged["changed"], 1, "{purged}");

    let id = purged["id"].as_str().expect("an id");
    for words in [["bulk", "get", id], ["bulk", "watch", id], ["bulk", "stop", id]] {
        let shown = run(&words).await;
        assert!(shown.code == Some(0) && shown.out.contains("state      done"), "{shown:?}");
    }
    let list = run(&["bulk", "list"]).await;
    assert!(list.code == Some(0) && list.out.contains("--tag customer:42"), "{list:?}");
    for word in ["get", "stop"] {
        assert_eq!(run(&["bulk", word, "0123456789abcdef"]).await.code, Some(1), "{word}");
    }
    for wrong in [
        &["cancel"][..],
        &["cancel", "t/a", "--tag", "a"],
        &["cancel", "--tag", "a b"],
        &["cancel", "--host", "http://h/"],
        &["cancel", "--tag", "a", "--rate", "0"],
        &["cancel", "--tag", "a", "--dry-run", "--no-wait"],
        &["reschedule", "--tag", "a"],
        &["list", "--due-before", "soon"],
        &["purge"],
        &["purge", "t/a"],
    ] {
        let run = run(wrong).await;
        assert_eq!(run.code, Some(64), "{wrong:?}: {run:?}");
    }
    // A filter without a flag is refused by the API, which says what to do.
    let refused = run(&["cancel", "--dry-run"]).await;
    assert!(refused.code == Some(1) && refused.err.contains("all"), "{refused:?}");
}

#[tokio::test]
async fn a_revive_that_follows_its_jobs_says_how_many_ended_and_how() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("gone", Answer::status(410));
        sink.answer_job("waits", Answer::status(503));
        let jobs: Vec<_> = ["done-1", "done-2", "gone", "waits"]
            .map(|id| {
                let mut job = dead(id, 503);
                job["url"] = sink.url("/hook").into();
                job["retry"] = json!({"delays": ["1h"]});
                job
            })
            .into();
        stack.import(&jobs).await;
        stack.import(&[dead("other", 404)]).await;
        let server = stack.url("");
        let run = ringback(&server, &["revive", "--status", "503", "--follow", "3s"]).await;
        let said = "of 4 revived jobs: 2 done, 1 dead again, 1 not ended yet\n";
        assert!(run.code == Some(1) && run.out.ends_with(said), "{run:?}");
        assert!(run.out.contains("changed    4\n") && !run.err.contains("not followed"), "{run:?}");

        // All operations end within this time.
        sink.answer(Answer::status(200));
        sink.answer_job("gone", Answer::status(200));
        let follow = ["revive", "--reason", "gone", "--follow", "10m", "--json"];
        let run = ringback(&server, &follow).await;
        let line: Value = serde_json::from_str(run.out.lines().last().expect("a line")).expect("JSON");
        let done = json!({"followed": 1, "done": 1, "dead": 0, "cancelled": 0, "pending": 0, "forgotten": 0});
        assert_eq!((run.code, &line["outcomes"]), (Some(0), &done), "{run:?}");
        for wrong in [
            &["revive", "--follow", "1m"][..],
            &["revive", "t/a", "--follow", "1m"],
            &["revive", "--all", "--follow", "1m", "--no-wait"],
            &["revive", "--all", "--follow", "soon"],
        ] {
            assert_eq!(ringback(&server, wrong).await.code, Some(64), "{wrong:?}");
        }
    }
}
