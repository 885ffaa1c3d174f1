//! Replays: ended jobs of the history are submitted again, once each, at a rate and within quotas, unless they did well.

use http::Method;

use super::{attached_for, ends, found, some_ends};
use crate::archive::database::Database;
use crate::http::tenants::{Caller, ROOT};
use crate::prelude::*;

#[tokio::test]
async fn a_replay_submits_each_job_once_as_it_was_and_says_what_it_cannot_submit() {
    for (_database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        some_ends(&stack, &sink).await;
        let replay = async |body: Value| stack.post("/v1/history/replay", &body).await.expect(200);
        let answer = replay(json!({"filter": {"tag": "customer:1"}, "rate": 1000})).await;
        let counts = |answer: &Value| {
            ["submitted", "existing", "refused"].map(|field| answer[field].as_u64().unwrap())
        };
        assert_eq!((counts(&answer), &answer["next"]), ([2, 0, 0], &Value::Null), "{answer}");
        let page = found(&stack, "?tag=customer:1", 4).await;
        let again =
            ends(&page).into_iter().map(|(id, _)| id).find(|id| id.starts_with("a~")).expect("a new id");
        let arrival = &sink.wait_for_job(&again, 1, SOON).await[0];
        assert_eq!(
            (&arrival.body[..], arrival.header("ringback-context-k")),
            (&br#"{"of":"a"}"#[..], Some("a"))
        );
        // The same replay again: jobs that it has submitted end too, but are not replayed.
        let answer = replay(json!({"filter": {"tag": "customer:1"}, "rate": 1000})).await;
        assert_eq!(counts(&answer), [0, 4, 0], "{answer}");
        let answer = replay(json!({"filter": {"id": "a"}, "name": "second"})).await;
        assert_eq!(counts(&answer), [1, 0, 0], "another name makes another id");
        // The secret header is in no archive.
        let answer = replay(json!({"filter": {"state": "dead"}})).await;
        assert_eq!(counts(&answer), [0, 0, 1]);
        let detail = answer["refusals"][0]["detail"].as_str().expect("a text");
        assert!(detail.contains("authorization is [masked by ringback]"), "{detail}");

        let cursor = stack.get("/v1/history?cursor=gICAgICAgAEDcGF5B29yZGVyLTGA8AICBGRlYWQ").await;
        assert_eq!(cursor.status, 422, "a time that no end has: {cursor:?}");
        // With the same ids, only free ids are submitted.
        let answer = replay(json!({"filter": {"id": "b"}, "ids": "same"})).await;
        assert_eq!(counts(&answer), [0, 1, 0]);
        sink.answer_job("e", Answer::status(410));
        stack.accept(&job(&sink, "e")).await;
        stack.wait_state(TOPIC, "e", "dead", SOON).await;
        stack.delete(&format!("/v1/topics/{TOPIC}/dead/e")).await.expect(200);
        found(&stack, "?id=e", 2).await;
        sink.answer_job("e", Answer::status(200));
        let answer = replay(json!({"filter": {"id": "e", "state": "purged"}, "ids": "same"})).await;
        assert_eq!(counts(&answer), [1, 0, 0]);
        stack.wait_state(TOPIC, "e", "done", SOON).await;
    }
}

#[tokio::test]
async fn a_job_that_came_to_a_good_end_later_is_not_replayed_and_neither_are_notices() {
    for (_database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        for id in ["mended", "stays"] {
            sink.answer_job(id, Answer::status(410));
            let notices = json!({"on_dead": sink.url("/dead")});
            stack.accept(&with_all(job(&sink, id), &notices)).await;
            stack.wait_state(TOPIC, id, "dead", SOON).await;
        }
        sink.answer_job("mended", Answer::status(200));
        stack.post(&format!("/v1/jobs/{TOPIC}/mended/revive"), &json!({})).await.expect(200);
        stack.wait_state(TOPIC, "mended", "done", SOON).await;
        // Waits for two deaths, a success, and two notices.
        found(&stack, "", 5).await;
        sink.answer_job("stays", Answer::status(200));
        let replay = async |filter: Value| {
            stack.post("/v1/history/replay", &json!({"filter": filter, "rate": 1000})).await.expect(200)
        };
        assert_eq!(replay(json!({"state": "dead"})).await["submitted"], 1, "only the one that is still dead");
        let answer = replay(json!({"topic": "ringback.on-dead"})).await;
        assert_eq!((&answer["submitted"], &answer["refused"]), (&json!(0), &json!(0)), "{answer}");
        let answer = replay(json!({})).await;
        assert_eq!((&answer["submitted"], &answer["refused"]), (&json!(1), &json!(0)), "{answer}");
    }
}

#[tokio::test]
async fn a_replay_keeps_to_its_rate_and_goes_on_where_it_was() {
    let [_, (_database, stack)] = Database::each(|options| options).await;
    let sink = Sink::start().await;
    for n in 0..25 {
        stack.accept(&with(job(&sink, &format!("{n}")), "tags", json!(["batch:1"]))).await;
    }
    found(&stack, "?tag=batch:1", 25).await;
    let begun = tokio::time::Instant::now();
    let (mut calls, mut submitted, mut cursor) = (0, 0, None::<String>);
    loop {
        let mut body = json!({"filter": {"tag": "batch:1"}, "rate": 10});
        if let Some(cursor) = &cursor {
            body["cursor"] = cursor.as_str().into();
        }
        let answer = stack.post("/v1/history/replay", &body).await.expect(200);
        calls += 1;
        submitted += answer["submitted"].as_u64().expect("a count");
        assert_eq!((&answer["existing"], &answer["refused"]), (&json!(0), &json!(0)), "{answer}");
        match answer["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(submitted, 25, "what was submitted again and has ended is not submitted once more");
    assert!(
        calls >= 2 && begun.elapsed() >= Duration::from_secs(2),
        "{calls} calls in {:?}",
        begun.elapsed()
    );
    found(&stack, "?tag=batch:1", 50).await;
    let wrong = stack.post("/v1/history/replay", &json!({"filter": {}, "cursor": "x"})).await.expect(422);
    assert_eq!(wrong["errors"][0]["field"], "cursor");
}

#[tokio::test]
async fn a_replay_under_a_quota_goes_on_as_the_quota_allows() {
    let change = |options: StackOptions| options.env("RINGBACK_ROOT_KEY", ROOT);
    let [_, (database, options)] = Database::options(change).await;
    let (stack, sink) = (options.start().await, Sink::start().await);
    let (root, acme) = (Caller::root(None), Caller::of(&stack, "acme").await);
    attached_for(&root, &stack).await;
    for n in 0..12 {
        acme.post(&stack, "/v1/jobs", &with(job(&sink, &format!("{n}")), "topic", "pay")).await.expect(201);
    }
    database.lines("select id from ringback_ended_jobs", 12, SOON).await;
    root.send(&stack, Method::PUT, "/v1/quotas/acme", Some(&json!({"jobs_per_second": 4}))).await.expect(201);
    let (mut submitted, mut cursor) = (0, None::<String>);
    eventually(SOON, "all are submitted", async || {
        let mut body = json!({"filter": {"topic": "pay"}, "rate": 1000});
        if let Some(cursor) = &cursor {
            body["cursor"] = cursor.as_str().into();
        }
        let reply = acme.post(&stack, "/v1/history/replay", &body).await;
        if reply.status == 429 {
            return Err("the quota is used up".to_owned());
        }
        let answer = reply.expect(200);
        assert_eq!(answer["refused"], 0, "{answer}");
        submitted += answer["submitted"].as_u64().expect("a count");
        cursor = answer["next"].as_str().map(str::to_owned);
        if cursor.is_none() { Ok(()) } else { Err(format!("{submitted} so far")) }
    })
    .await;
    assert_eq!(submitted, 12, "each once");
}

#[tokio::test]
async fn of_several_ends_and_lives_a_replay_submits_the_last_ones() {
    for (_database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        // The job has two generations, both dead and purged, each with a body of its own.
        for generation in 1..=2 {
            sink.answer_job("a", Answer::status(410));
            stack.accept(&with(job(&sink, "a"), "body", json!({"generation": generation}))).await;
            stack.wait_state(TOPIC, "a", "dead", SOON).await;
            stack.delete(&format!("/v1/topics/{TOPIC}/dead/a")).await.expect(200);
        }
        found(&stack, "?id=a", 4).await;
        sink.answer_job("a", Answer::status(200));
        let replay = async |body: Value| stack.post("/v1/history/replay", &body).await.expect(200);
        let answer = replay(json!({"filter": {"id": "a"}})).await;
        assert_eq!(
            (&answer["submitted"], &answer["existing"]),
            (&json!(2), &json!(0)),
            "one of each generation"
        );
        let answer = replay(json!({"filter": {"id": "a"}, "ids": "same"})).await;
        assert_eq!(
            (&answer["submitted"], &answer["existing"]),
            (&json!(1), &json!(0)),
            "the last generation"
        );
        let arrivals = sink.wait_for_job("a", 3, SOON).await;
        assert_eq!(&arrivals[2].body[..], br#"{"generation":2}"#);
        // A pull job stays one, though its topic has a URL by now.
        stack.accept(&json!({"topic": "pulled", "id": "p", "body": 1})).await;
        let reserved = stack.reserve_one("pulled", &json!({})).await;
        stack.settle(&reserved, "finish", &json!({})).await.expect(200);
        found(&stack, "?topic=pulled", 1).await;
        stack.set_policy("pulled", &json!({"url": sink.url("/policy")})).await;
        assert_eq!(replay(json!({"filter": {"topic": "pulled"}})).await["submitted"], 1);
        let reserved = stack.reserve_one("pulled", &json!({})).await;
        assert_eq!(
            (&reserved["body"], reserved["id"].as_str().map(|id| id.starts_with("p~"))),
            (&json!(1), Some(true))
        );
    }
}
