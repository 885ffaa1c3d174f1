//! The history: ends that the archive has kept are listed, shown, replayed and erased through the API and the command line.

use std::time::Duration;

use ringback_testkit::{Answer, PostgresServer, Role, Sink, Stack, eventually};
use serde_json::{Value, json};

use super::database::{Database, attached};
use crate::cli::ringback;
use crate::sample_jobs::{SOON, TOPIC, job, with, with_all};

/// The ends of a page: id and state, the newest first.
fn ends(page: &Value) -> Vec<(String, String)> {
    let text = |end: &Value, field: &str| end[field].as_str().expect("a text").to_owned();
    page["items"].as_array().expect("items").iter().map(|end| (text(end, "id"), text(end, "state"))).collect()
}

async fn history(stack: &Stack, query: &str) -> Value {
    stack.get(&format!("/v1/history{query}")).await.expect(200)
}

/// Waits until a query finds so many ends.
async fn found(stack: &Stack, query: &str, count: usize) -> Value {
    eventually(SOON, &format!("{count} ends of {query}"), async || {
        let page = history(stack, query).await;
        if ends(&page).len() == count { Ok(page) } else { Err(page) }
    })
    .await
}

/// Three done jobs and one dead one, with tags.
async fn some_ends(stack: &Stack, sink: &Sink) {
    for (id, tags) in
        [("a", json!(["customer:1", "kind:x"])), ("b", json!(["customer:2"])), ("c", json!(["customer:1"]))]
    {
        let more = json!({"tags": tags, "context": {"k": id}, "body": {"of": id}});
        stack.accept(&with_all(job(sink, id), &more)).await;
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
    sink.answer_job("d", Answer::status(410));
    let more = json!({"tags": ["customer:2"], "headers": {"authorization": "Bearer s3cret"}});
    stack.accept(&with_all(job(sink, "d"), &more)).await;
    stack.wait_state(TOPIC, "d", "dead", SOON).await;
    found(stack, "", 4).await;
}

#[tokio::test]
async fn the_history_is_found_by_each_part_of_a_filter_and_in_pages() {
    for (_database, stack) in Database::each(|options| options.env("RINGBACK_ATTEMPTS", "all")).await {
        let sink = Sink::start().await;
        some_ends(&stack, &sink).await;
        let all = history(&stack, "").await;
        let (done, dead) = ("done".to_owned(), "dead".to_owned());
        let expected = [("d", &dead), ("c", &done), ("b", &done), ("a", &done)];
        assert_eq!(ends(&all), expected.map(|(id, state)| (id.to_owned(), state.clone())));
        assert_eq!(
            (&all["items"][3]["tags"], &all["next"]),
            (&json!(["customer:1", "kind:x"]), &Value::Null)
        );
        assert!(all["items"][0].get("log").is_none() && all["items"][0].get("request").is_none());
        let (first, last) = (&all["items"][3]["finished_at"], &all["items"][0]["finished_at"]);
        for (query, ids) in [
            ("?tag=customer:1".to_owned(), vec!["c", "a"]),
            ("?tag=kind:x&state=done".to_owned(), vec!["a"]),
            ("?tag=customer:3".to_owned(), vec![]),
            (format!("?topic={TOPIC}&id=b"), vec!["b"]),
            ("?topic=other".to_owned(), vec![]),
            ("?state=dead".to_owned(), vec!["d"]),
            ("?state=purged".to_owned(), vec![]),
            ("?reason=gone".to_owned(), vec!["d"]),
            ("?host=127.0.0.1&limit=2".to_owned(), vec!["d", "c"]),
            ("?host=other.example".to_owned(), vec![]),
            (format!("?finished_before={}", last.as_str().unwrap()), vec!["c", "b", "a"]),
            (format!("?finished_after={}", last.as_str().unwrap()), vec!["d"]),
            (format!("?finished_before={}", first.as_str().unwrap()), vec![]),
            (format!("/{TOPIC}/a"), vec!["a"]),
            (format!("/{TOPIC}/nothing"), vec![]),
        ] {
            let page = history(&stack, &query).await;
            let found: Vec<_> = ends(&page).into_iter().map(|(id, _)| id).collect();
            assert_eq!(found, ids, "{query}");
        }
        // Page by page, the whole list.
        let (mut cursor, mut listed) = (String::new(), Vec::new());
        loop {
            let page = history(&stack, &format!("?limit=1{cursor}")).await;
            listed.extend(ends(&page));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(listed, ends(&all));

        let whole = history(&stack, &format!("/{TOPIC}/a?include=request,attempts")).await;
        let end = &whole["items"][0];
        assert_eq!((&end["request"]["body"], &end["has_body"]), (&json!({"of": "a"}), &json!(true)));
        assert_eq!(
            (&end["request"]["context"]["k"], &end["request"]["tags"][0]),
            (&json!("a"), &json!("customer:1"))
        );
        assert_eq!((&end["log"][0]["status"], &end["attempts_complete"]), (&json!(200), &json!(true)));
        let dead = history(&stack, &format!("/{TOPIC}/d?include=request")).await;
        assert_eq!(dead["items"][0]["request"]["headers"]["authorization"], "[masked by ringback]");

        for (query, field) in [
            ("?tag=a%20b", "tag"),
            ("?state=expired", "state"),
            ("?host=127.0.0.1:80", "host"),
            ("?cursor=!", "cursor"),
            ("?include=log", "include"),
            ("?limit=0", "limit"),
            ("?colour=red", "colour"),
        ] {
            let problem = stack.get(&format!("/v1/history{query}")).await.expect(422);
            assert_eq!(problem["errors"][0]["field"], field, "{query}");
        }
    }
}

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
        // The same again: what it has submitted ends too, and is no part of it.
        let answer = replay(json!({"filter": {"tag": "customer:1", "id": "a"}, "rate": 1000})).await;
        assert_eq!(counts(&answer), [0, 1, 0]);
        let answer = replay(json!({"filter": {"id": "a"}, "name": "second"})).await;
        assert_eq!(counts(&answer), [1, 0, 0], "another name makes another id");
        // The secret header is in no archive.
        let answer = replay(json!({"filter": {"state": "dead"}})).await;
        assert_eq!(counts(&answer), [0, 0, 1]);
        let detail = answer["refusals"][0]["detail"].as_str().expect("a text");
        assert!(detail.contains("authorization is [masked by ringback]"), "{detail}");

        // Under the same ids only those that are free.
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
async fn a_replay_keeps_to_its_rate_and_goes_on_where_it_was() {
    let [_, (_database, stack)] = Database::each(|options| options).await;
    let sink = Sink::start().await;
    for n in 0..25 {
        stack.accept(&with(job(&sink, &format!("{n}")), "tags", json!(["batch:1"]))).await;
    }
    found(&stack, "?tag=batch:1", 25).await;
    let begun = std::time::Instant::now();
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
async fn what_is_erased_is_gone_with_its_bodies_and_what_ends_later_stays() {
    for (database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        some_ends(&stack, &sink).await;
        let erase = async |query: &str| stack.delete(&format!("/v1/history{query}")).await;
        assert_eq!(erase("?tag=customer:1").await.expect(200), json!({"erased": 2, "complete": true}));
        assert_eq!(erase("?tag=customer:1").await.expect(200), json!({"erased": 0, "complete": true}));
        let left = database.lines("select id from ringback_ends order by id", 2, SOON).await;
        assert_eq!(left, ["b", "d"]);
        assert_eq!(database.rows("select id from ringback_bodies order by id").await, [["b"], ["d"]]);
        assert_eq!(erase(&format!("?topic={TOPIC}&id=b")).await.expect(200)["erased"], 1);
        assert_eq!(erase("?topic=other&tag=customer:2").await.expect(200)["erased"], 0);
        assert_eq!(ends(&history(&stack, "").await).len(), 1);

        // A job that ends later stays.
        stack.accept(&with(job(&sink, "late"), "tags", json!(["customer:1"]))).await;
        found(&stack, "?tag=customer:1", 1).await;
        assert_eq!(erase("?tag=customer:1").await.expect(200)["erased"], 1);

        for (query, field) in
            [("", "tag"), ("?id=a", "topic"), ("?tag=a&id=b&topic=c", "tag"), ("?topic=a", "tag")]
        {
            assert_eq!(erase(query).await.expect(422)["errors"][0]["field"], field, "{query}");
        }
    }
}

#[tokio::test]
async fn an_end_that_waits_for_the_archive_while_it_is_erased_never_comes() {
    let postgres = Database::Postgres(Box::new(PostgresServer::start().await));
    let sqlite = Database::Sqlite(tempfile::tempdir().expect("a directory"));
    for database in [postgres, sqlite] {
        let options = Stack::options().count(Role::Archiver, 1).env("RINGBACK_ARCHIVE", &database.url());
        let mut stack = options.start().await;
        attached(&stack).await;
        let sink = Sink::start().await;
        stack.archivers[0].kill();
        stack.archivers.clear();
        for (id, tag) in [("by-tag", "customer:9"), ("by-id", "customer:8"), ("stays", "customer:8")] {
            stack.accept(&with(job(&sink, id), "tags", json!([tag]))).await;
            stack.wait_state(TOPIC, id, "done", SOON).await;
        }
        for query in ["tag=customer:9".to_owned(), format!("topic={TOPIC}&id=by-id")] {
            let erased = stack.delete(&format!("/v1/history?{query}")).await.expect(200);
            assert_eq!(erased, json!({"erased": 0, "complete": true}));
        }
        // Of another topic, so that it erases nothing.
        stack.delete("/v1/history?topic=other&tag=customer:8").await.expect(200);
        stack.add(Role::Archiver).await;
        found(&stack, "?tag=customer:8", 1).await;
        eventually(SOON, "nothing waits", async || {
            let archive = stack.get("/v1/archive").await.expect(200);
            if archive["pending"] == 0 { Ok(()) } else { Err(archive) }
        })
        .await;
        assert_eq!(database.rows("select id from ringback_ends").await, [["stays"]]);
        assert_eq!(database.rows("select id from ringback_bodies").await, [["stays"]]);
    }
}

#[tokio::test]
async fn the_command_line_lists_shows_replays_and_erases() {
    let [(_postgres, stack), _] = Database::each(|options| options).await;
    let sink = Sink::start().await;
    some_ends(&stack, &sink).await;
    let server = stack.url("");
    let run = async |words: &[&str]| ringback(&server, &[&["history"], words].concat()).await;
    let list = run(&["list", "--tag", "customer:1", "--utc"]).await;
    assert!(list.code == Some(0) && list.out.lines().count() == 3, "{list:?}");
    assert!(list.out.contains("customer:1 kind:x"), "{list:?}");
    let whole = run(&["list", "--full", "--json", "--id", "a"]).await;
    let end: Value = serde_json::from_str(&whole.out).expect("JSON");
    assert_eq!(end["request"]["body"], json!({"of": "a"}));
    let get = run(&["get", &format!("{TOPIC}/d")]).await;
    assert!(get.out.contains("state      dead") && get.out.contains("attempt 1  "), "{get:?}");
    let none = run(&["get", TOPIC, "nothing"]).await;
    assert_eq!((none.code, none.out.as_str()), (Some(1), ""));
    let all = run(&["replay"]).await;
    assert_eq!(all.code, Some(64), "{all:?}");
    let replay = run(&["replay", "--topic", TOPIC, "--rate", "1000"]).await;
    assert_eq!(
        (replay.code, replay.out.as_str()),
        (Some(1), "3 submitted, 0 existing, 1 refused\n"),
        "{replay:?}"
    );
    assert!(replay.err.contains("/d: ") && replay.err.contains("[masked by ringback]"), "{replay:?}");
    let erase = run(&["erase", "--tag", "customer:2", "--json"]).await;
    let erased: Value = serde_json::from_str(&erase.out).expect("JSON");
    assert!(erased["complete"] == true && erased["erased"].as_u64() >= Some(2), "{erase:?}");
    let both = run(&["erase", "--tag", "customer:2", "t/a"]).await;
    assert_eq!(both.code, Some(64));
}

#[tokio::test]
async fn without_an_archive_there_is_no_history_and_one_that_is_away_is_said_so() {
    let stack = Stack::options().start().await;
    let problem = stack.get("/v1/history").await.expect(409);
    assert!(problem["detail"].as_str().expect("a text").contains("RINGBACK_ARCHIVE"), "{problem}");
    let away = Stack::options()
        .env("RINGBACK_ARCHIVE", "postgres://u:s3cret@127.0.0.1:1/d?sslmode=disable")
        .start()
        .await;
    for _ in 0..3 {
        let reply = away.get("/v1/history").await;
        assert_eq!(reply.status, 503, "{reply:?}");
        let text = reply.json()["detail"].as_str().expect("a text").to_owned();
        assert!(text.contains("cannot be read now") && !text.contains("127.0.0.1"), "{text}");
    }
    // The API goes on without it.
    let sink = Sink::start().await;
    away.accept(&job(&sink, "a")).await;
    away.wait_state(TOPIC, "a", "done", SOON).await;
}
