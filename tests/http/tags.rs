//! Tags of jobs are in all answers, events, exports and reserves, also of schedules' jobs; receivers never see them.

use super::events::listener::Listener;
use crate::cli::ringback;
use crate::prelude::*;

fn tags() -> Value {
    json!(["customer:42", "order:7"])
}

fn tagged(sink: &Sink, id: &str) -> Value {
    with(job(sink, id), "tags", tags())
}

#[tokio::test]
async fn the_tags_of_a_job_are_shown_until_it_has_ended_and_no_receiver_sees_them() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let mut listener = Listener::start(&stack.url("/v1/events?id=done&topic=e2e")).await;
        let late = stack.accept(&with(tagged(&sink, "late"), "delay", "1h")).await;
        assert_eq!(late["tags"], tags());
        let shown = stack.get(&format!("/v1/jobs/{TOPIC}/late?include=request")).await.expect(200);
        assert_eq!((&shown["tags"], &shown["request"]["tags"]), (&tags(), &tags()));
        let (_, moved) = stack.reschedule(TOPIC, "late", &json!({"delay": "2h"})).await;
        assert_eq!(moved["tags"], tags(), "{moved}");
        let list = stack.get("/v1/jobs").await.expect(200);
        assert_eq!(list["items"][0]["tags"], tags());
        // The same submit is a repetition; with other tags it is a conflict.
        let again = with(tagged(&sink, "late"), "delay", "1h");
        assert_eq!(stack.submit(&again).await.0, 200);
        assert_eq!(stack.submit(&with(again.clone(), "tags", json!(["order:7"]))).await.0, 409);
        let other = with_all(again, &json!({"tags": ["order:8"], "if_exists": "replace"}));
        assert_eq!(stack.submit(&other).await.1["tags"], json!(["order:8"]));

        sink.answer_job("dies", Answer::status(410));
        stack.accept(&tagged(&sink, "dies")).await;
        stack.wait_state(TOPIC, "dies", "dead", SOON).await;
        let dead = stack.get(&format!("/v1/topics/{TOPIC}/dead")).await.expect(200);
        assert_eq!(dead["items"][0]["tags"], tags());
        let arrival = &sink.wait_for_job("dies", 1, SOON).await[0];
        assert!(!format!("{arrival:?}").contains("customer:42"), "{arrival:?}");

        // A notice has the tags of its job, so that it is found with it.
        stack.post("/v1/topics/ringback.on-dead/pause", &json!({})).await.expect(200);
        let noticed = with(tagged(&sink, "noticed"), "on_dead", sink.url("/dead"));
        sink.answer_job("noticed", Answer::status(410));
        stack.accept(&noticed).await;
        eventually(SOON, "the notice is there", async || {
            let list = stack.get("/v1/jobs?topic=ringback.on-dead&include=request").await.expect(200);
            let notice = &list["items"][0];
            let of_both = (&notice["tags"], &notice["request"]["body"]["data"]["tags"]);
            if of_both == (&tags(), &tags()) { Ok(()) } else { Err(list) }
        })
        .await;
        stack.accept(&tagged(&sink, "done")).await;
        let done = stack.wait_state(TOPIC, "done", "done", SOON).await;
        assert!(done.get("tags").is_none(), "{done}");
        for kind in ["submitted", "attempt", "done"] {
            assert_eq!(listener.expect(kind, "done").await["tags"], tags(), "{kind}");
        }
        stack.accept(&json!({"topic": "pulled", "id": "pulled", "tags": tags()})).await;
        assert_eq!(stack.reserve_one("pulled", &json!({})).await["tags"], tags());
    }
}

#[tokio::test]
async fn jobs_of_schedules_have_tags_and_exports_carry_them_to_another_store() {
    let [first, second] = StackOptions::each_store();
    let (first, second) = (first.start().await, second.start().await);
    let sink = Sink::start().await;
    let words = ["schedule", "set", "daily", "--every", "1d", "--topic", TOPIC, "--url"];
    let url = sink.url("/hook");
    let words = [&words[..], &[&url, "--tag", "customer:42", "--tag", "order:7"]].concat();
    let set = ringback(&first.url(""), &words).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let shown = first.get("/v1/schedules/daily").await.expect(200);
    assert_eq!(shown["job"]["tags"], tags());
    first.post(&format!("/v1/topics/{TOPIC}/pause"), &json!({})).await.expect(200);
    first.post("/v1/schedules/daily/run", &json!({})).await.expect(200);
    let list = first.get("/v1/jobs").await.expect(200);
    assert_eq!(list["items"][0]["tags"], tags(), "{list}");

    let lines = first.get("/v1/export").await;
    let imported = second.import_lines(lines.body.clone()).await;
    assert_eq!(imported.status, 200, "{imported:?}");
    let copied = eventually(SOON, "the job is there", async || {
        let id = list["items"][0]["id"].as_str().expect("an id");
        let arrivals = sink.arrivals_of(id).len();
        if arrivals == 1 { Ok(id.to_owned()) } else { Err(arrivals) }
    })
    .await;
    assert!(copied.starts_with("daily~run-"), "{copied}");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.backup").display().to_string();
    assert_eq!(ringback(&first.url(""), &["backup", &path]).await.code, Some(0));
    let empty = StackOptions::api_only().start().await;
    let restored = ringback(&empty.url(""), &["restore", &path]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(empty.get("/v1/schedules/daily").await.expect(200)["job"]["tags"], tags());
    assert_eq!(empty.get("/v1/jobs").await.expect(200)["items"][0]["tags"], tags());
}

#[tokio::test]
async fn tags_that_are_not_allowed_are_refused_and_nothing_is_accepted() {
    let (stack, sink): (Stack, Sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let longest = "x".repeat(64);
    let most = json!([longest.clone(), "!", "a/b:c,d", "~"]);
    let accepted = stack.accept(&with_all(job(&sink, "most"), &json!({"tags": most, "delay": "1h"}))).await;
    assert_eq!(accepted["tags"], most);
    for (tags, detail) in [
        (json!("a"), "is not a list"),
        (json!(["a", 1]), "1 is not a string"),
        (json!(["a", "a"]), "a is there twice"),
        (json!(["a b"]), "in place 1 is not allowed"),
        (json!(["a", "é"]), "in place 2 is not allowed"),
        (json!([""]), "in place 1 is not allowed"),
        (json!([longest + "x"]), "in place 1 is not allowed"),
        (json!(["a", "b", "c", "d", "e"]), "5 tags"),
        (json!({"a": "b"}), "is not a list"),
    ] {
        let refused = stack.post("/v1/jobs", &with(job(&sink, "i"), "tags", tags.clone())).await.expect(422);
        let error = &refused["errors"][0];
        assert_eq!(error["field"], "tags", "{refused}");
        assert!(error["detail"].as_str().expect("a text").contains(detail), "{tags}: {refused}");
    }
    assert_eq!(stack.job(TOPIC, "i").await.0, 404);
    let none = stack.accept(&with_all(job(&sink, "none"), &json!({"tags": [], "delay": "1h"}))).await;
    assert!(none.get("tags").is_none(), "{none}");
    let run = ringback(&stack.url(""), &["submit", "--topic", "t", "--tag", "a b"]).await;
    assert!(run.code == Some(64) && run.err.contains("a tag is 1 to 64 visible ASCII characters"), "{run:?}");
}
