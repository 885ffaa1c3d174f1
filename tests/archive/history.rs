//! The history: ends that the archive has kept are listed, shown, replayed and erased through the API and the command line.

use std::time::Duration;

use http::Method;
use ringback_testkit::{Answer, PostgresServer, Role, Sink, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use super::database::{Database, attached};
use crate::cli::ringback;
use crate::http::tenants::{Caller, ROOT};
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

        let cursor = stack.get("/v1/history?cursor=gICAgICAgAEDcGF5B29yZGVyLTGA8AICBGRlYWQ").await;
        assert_eq!(cursor.status, 422, "a time that no end has: {cursor:?}");
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
async fn a_tenant_sees_replays_and_erases_its_own_history_and_a_key_that_of_its_topics() {
    let change =
        |options: StackOptions| options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_ATTEMPTS", "all");
    for (database, options) in Database::options(change).await {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let root = Caller::root(None);
        eventually(SOON, "the archive is attached", async || {
            let archive = root.get(&stack, "/v1/archive").await.expect(200);
            if archive["attached"] == true { Ok(()) } else { Err(archive) }
        })
        .await;
        let (acme, bcme) = (Caller::of(&stack, "acme").await, Caller::of(&stack, "bcme").await);
        for (caller, topic) in [(&acme, "pay"), (&acme, "refund"), (&bcme, "pay"), (&root, "pay")] {
            let job = with_all(job(&sink, "a"), &json!({"topic": topic, "tags": ["customer:1"]}));
            caller.post(&stack, "/v1/jobs", &job).await.expect(201);
        }
        database.lines("select tenant, topic from ringback_ends", 4, SOON).await;
        let topics = async |caller: &Caller, query: &str| {
            let page = caller.get(&stack, &format!("/v1/history{query}")).await.expect(200);
            let topic = |end: &Value| end["topic"].as_str().expect("a topic").to_owned();
            let mut topics: Vec<_> = page["items"].as_array().expect("items").iter().map(topic).collect();
            topics.sort_unstable();
            topics
        };
        for query in ["", "?id=a", "?tag=customer:1", "?host=127.0.0.1"] {
            assert_eq!(topics(&acme, query).await, ["pay", "refund"], "{query}");
            assert_eq!(topics(&bcme, query).await, ["pay"], "{query}");
            assert_eq!(topics(&root, query).await, ["pay"], "{query}");
        }
        assert_eq!(topics(&Caller::root(Some("acme")), "").await, ["pay", "refund"]);
        let only = json!({"tenant": "acme", "scopes": ["read", "manage"], "topics": ["refund"]});
        let of_refund = Caller::with(&stack, &only).await;
        assert_eq!(topics(&of_refund, "").await, ["refund"]);
        of_refund.get(&stack, "/v1/history?topic=pay").await.expect(403);
        of_refund.get(&stack, "/v1/history/pay/a").await.expect(403);
        let replay = json!({"filter": {"tag": "customer:1"}, "ids": "new"});
        let answer = of_refund.post(&stack, "/v1/history/replay", &replay).await.expect(200);
        assert_eq!(answer["submitted"], 1, "{answer}");
        let of_pay = json!({"filter": {"topic": "pay"}});
        of_refund.post(&stack, "/v1/history/replay", &of_pay).await.expect(403);
        let reader = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ["read", "submit"]})).await;
        reader.post(&stack, "/v1/history/replay", &replay).await.expect(403);
        reader.send(&stack, Method::DELETE, "/v1/history?tag=customer:1", None).await.expect(403);
        database.lines("select tenant, topic from ringback_ends", 5, SOON).await;

        let erase = async |caller: &Caller| {
            let erased = caller.send(&stack, Method::DELETE, "/v1/history?tag=customer:1", None).await;
            erased.expect(200)["erased"].clone()
        };
        assert_eq!(erase(&of_refund).await, 2);
        assert_eq!(erase(&acme).await, 1);
        assert_eq!((erase(&bcme).await, erase(&root).await), (json!(1), json!(1)));
    }
}

#[tokio::test]
async fn a_replay_under_a_quota_goes_on_as_the_quota_allows() {
    let change = |options: StackOptions| options.env("RINGBACK_ROOT_KEY", ROOT);
    let [_, (database, options)] = Database::options(change).await;
    let (stack, sink) = (options.start().await, Sink::start().await);
    let (root, acme) = (Caller::root(None), Caller::of(&stack, "acme").await);
    eventually(SOON, "the archive is attached", async || {
        let archive = root.get(&stack, "/v1/archive").await.expect(200);
        if archive["attached"] == true { Ok(()) } else { Err(archive) }
    })
    .await;
    for n in 0..12 {
        acme.post(&stack, "/v1/jobs", &with(job(&sink, &format!("{n}")), "topic", "pay")).await.expect(201);
    }
    database.lines("select id from ringback_ends", 12, SOON).await;
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
        // The first life is dead and purged, the second one purged too; each has a body of its own.
        for life in 1..=2 {
            sink.answer_job("a", Answer::status(410));
            stack.accept(&with(job(&sink, "a"), "body", json!({"life": life}))).await;
            stack.wait_state(TOPIC, "a", "dead", SOON).await;
            stack.delete(&format!("/v1/topics/{TOPIC}/dead/a")).await.expect(200);
        }
        found(&stack, "?id=a", 4).await;
        sink.answer_job("a", Answer::status(200));
        let replay = async |body: Value| stack.post("/v1/history/replay", &body).await.expect(200);
        let answer = replay(json!({"filter": {"id": "a"}})).await;
        assert_eq!((&answer["submitted"], &answer["existing"]), (&json!(2), &json!(0)), "one of each life");
        let answer = replay(json!({"filter": {"id": "a"}, "ids": "same"})).await;
        assert_eq!((&answer["submitted"], &answer["existing"]), (&json!(1), &json!(0)), "the last life");
        let arrivals = sink.wait_for_job("a", 3, SOON).await;
        assert_eq!(&arrivals[2].body[..], br#"{"life":2}"#);
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

/// Rows of so many jobs with a tag, as an archiver writes them.
async fn insert_many(database: &Database, count: usize) {
    const COLUMNS: &str = "tenant, topic, id, life, attempts, state, finished_at, created_at, first_due_at, due_at, failures, \
        attempt_log, attempts_complete, tags";
    match database {
        Database::Postgres(_) => {
            let sql = format!(
                "insert into ringback_ends ({COLUMNS}) select '', 'many', n::text, n, 1, 'done', now() - interval '1 hour', \
                now(), now(), now(), 0, '[]', true, array['all:1'] from generate_series(1, {count}) as n"
            );
            database.rows(&sql).await;
        }
        Database::Sqlite(_) => {
            let numbers =
                format!("with recursive n(n) as (select 1 union all select n + 1 from n where n < {count}) ");
            let ends = format!(
                "insert into ringback_ends ({COLUMNS}, archived_at) {numbers} select '', 'many', n, n, 1, 'done', 1000, n, n, n, \
                0, '[]', 1, '[\"all:1\",\"n:1\"]', 1 from n"
            );
            database.rows(&ends).await;
            for tag in ["all:1", "n:1"] {
                let tags = format!(
                    "insert into ringback_tags (tenant, tag, finished_at, topic, id, life, attempts, state) {numbers} \
                    select '', '{tag}', 1000, 'many', n, n, 1, 'done' from n"
                );
                database.rows(&tags).await;
            }
        }
    }
}

#[tokio::test]
async fn many_ends_are_erased_by_several_at_once_and_none_is_left() {
    for (database, stack) in Database::each(|options| options).await {
        const COUNT: usize = 4_500;
        insert_many(&database, COUNT).await;
        let page = history(&stack, "?topic=many&limit=1000").await;
        assert_eq!((ends(&page).len(), page["next"].is_string()), (1000, true));
        let erase = async || {
            let mut erased = 0;
            loop {
                let reply = stack.delete("/v1/history?tag=all:1").await;
                assert!([200, 202].contains(&reply.status), "{reply:?}");
                erased += reply.json()["erased"].as_u64().expect("a count");
                assert_eq!(reply.json()["complete"], reply.status == 200, "{reply:?}");
                if reply.status == 200 {
                    return erased;
                }
            }
        };
        let (first, second) = tokio::join!(erase(), erase());
        assert_eq!(first + second, COUNT as u64);
        assert_eq!(database.rows("select count(*) from ringback_ends").await, [["0"]]);
        if let Database::Sqlite(_) = database {
            assert_eq!(database.rows("select count(*) from ringback_tags").await, [["0"]]);
        }
    }
}

#[tokio::test]
async fn a_child_that_is_killed_is_started_again_by_the_next_query() {
    let [(_postgres, stack), (_sqlite, embedded)] = Database::each(|options| options).await;
    for (stack, pid) in [(&stack, stack.apis[0].pid()), (&embedded, embedded.ups[0].pid())] {
        history(stack, "").await;
        let children = children_that_answer(pid);
        assert_eq!(children.len(), 1, "{children:?}");
        nix_kill(children[0]);
        eventually(SOON, "it answers again", async || {
            let reply = stack.get("/v1/history").await;
            if reply.status == 200 { Ok(()) } else { Err(format!("{reply:?}")) }
        })
        .await;
        assert_ne!(children_that_answer(pid), children);
    }
}

/// The children of a process that answer queries.
fn children_that_answer(parent: u32) -> Vec<u32> {
    let of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(") ")?.1;
        let is_child = after_name.split(' ').nth(1)?.parse() == Ok(parent) && !after_name.starts_with('Z');
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let answers =
            environment.split(|byte| *byte == 0).any(|entry| entry == b"RINGBACK_ARCHIVE_SOURCE=history");
        (is_child && answers).then_some(pid)
    };
    let processes = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.filter_map(of).collect()
}

fn nix_kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

#[tokio::test]
async fn an_archive_of_the_first_schema_is_brought_up_with_its_rows() {
    let postgres = Database::Postgres(Box::new(PostgresServer::start().await));
    let sqlite = Database::Sqlite(tempfile::tempdir().expect("a directory"));
    for database in [postgres, sqlite] {
        let (schema, row) = match &database {
            Database::Postgres(_) => (
                concat!(
                    "create table ringback_migrations (version integer primary key, applied_at timestamptz not null default now());",
                    "insert into ringback_migrations (version) values (1);",
                    include_str!("../../crates/archiver/src/postgres/schema/1.sql")
                ),
                "insert into ringback_ends (tenant, topic, id, life, attempts, state, finished_at, created_at, first_due_at, due_at, \
                failures, attempt_log, attempts_complete) values ('', 'old', 'a', 1, 1, 'done', now(), now(), now(), now(), 0, '[]', true)",
            ),
            Database::Sqlite(_) => (
                concat!(
                    "create table ringback_migrations (version integer primary key, applied_at integer not null);",
                    "insert into ringback_migrations values (1, 1);",
                    include_str!("../../crates/archiver/src/sqlite/1.sql")
                ),
                "insert into ringback_ends (tenant, topic, id, life, attempts, state, finished_at, created_at, first_due_at, due_at, \
                failures, attempt_log, attempts_complete, archived_at) values ('', 'old', 'a', 1, 1, 'done', 5, 1, 1, 1, 0, '[]', 1, 1)",
            ),
        };
        database.execute(schema).await;
        database.execute(row).await;
        let options = Stack::options().count(Role::Archiver, 1).env("RINGBACK_ARCHIVE", &database.url());
        let stack = options.start().await;
        attached(&stack).await;
        let page = found(&stack, "?topic=old", 1).await;
        assert!(page["items"][0].get("tags").is_none(), "{page}");
        let sink = Sink::start().await;
        stack.accept(&with(job(&sink, "new"), "tags", json!(["a:1"]))).await;
        found(&stack, "?tag=a:1", 1).await;
        assert_eq!(stack.delete("/v1/history?topic=old&id=a").await.expect(200)["erased"], 1);
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
