//! The history of ended jobs through the API and the command line: filters, pages, tenants and keys, the child that
//! reads SQLite, and an archive that is missing or away.

mod erase;
mod replay;

use std::os::unix::fs::PermissionsExt as _;

use http::Method;

use super::database::Database;
use crate::cli::ringback;
use crate::http::tenants::{Caller, ROOT};
use crate::prelude::*;

/// The ended jobs of a page as id and state, the newest first.
fn ends(page: &Value) -> Vec<(String, String)> {
    let text = |end: &Value, field: &str| end[field].as_str().expect("a text").to_owned();
    page["items"].as_array().expect("items").iter().map(|end| (text(end, "id"), text(end, "state"))).collect()
}

async fn history(stack: &Stack, query: &str) -> Value {
    stack.get(&format!("/v1/history{query}")).await.expect(200)
}

/// Waits until a query finds `count` ended jobs, and returns the page.
async fn found(stack: &Stack, query: &str, count: usize) -> Value {
    stack.wait_get(&format!("/v1/history{query}"), SOON, |page| ends(page).len() == count).await
}

/// Submits three jobs with tags that are done and one that dies, and waits until the history has them.
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

/// Waits until the archive is attached, as seen with the root key.
async fn attached_for(root: &Caller, stack: &Stack) {
    root.wait_get(stack, "/v1/archive", |archive| archive["attached"] == true).await;
}

#[tokio::test]
async fn the_history_is_found_by_each_part_of_a_filter_and_in_pages() {
    for (_database, stack) in Database::each(|options| options.env("RINGBACK_ATTEMPT_LOG", "all")).await {
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
        // Reads the whole list page by page.
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
async fn a_tenant_sees_replays_and_erases_its_own_history_and_a_key_that_of_its_topics() {
    let change =
        |options: StackOptions| options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_ATTEMPT_LOG", "all");
    for (database, options) in Database::options(change).await {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let root = Caller::root(None);
        attached_for(&root, &stack).await;
        let (acme, bcme) = (Caller::of(&stack, "acme").await, Caller::of(&stack, "bcme").await);
        for (caller, topic) in [(&acme, "pay"), (&acme, "refund"), (&bcme, "pay"), (&root, "pay")] {
            let job = with_all(job(&sink, "a"), &json!({"topic": topic, "tags": ["customer:1"]}));
            caller.post(&stack, "/v1/jobs", &job).await.expect(201);
        }
        database.lines("select tenant, topic from ringback_ended_jobs", 4, SOON).await;
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
        database.lines("select tenant, topic from ringback_ended_jobs", 5, SOON).await;

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
async fn a_child_that_is_killed_is_started_again_by_the_next_query() {
    let [(_postgres, stack), (_sqlite, embedded)] = Database::each(|options| options).await;
    for (stack, pid) in [(&stack, stack.apis[0].pid()), (&embedded, embedded.ups[0].pid())] {
        history(stack, "").await;
        let children = children_that_answer(pid);
        assert_eq!(children.len(), 1, "{children:?}");
        nix_kill(children[0]);
        stack.wait_status("/v1/history", 200, SOON).await;
        assert_ne!(children_that_answer(pid), children);
    }
}

/// The process ids of a process's children that answer history queries.
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
async fn a_file_of_an_archive_is_readable_by_its_owner_alone() {
    let [_, (database, _stack)] = Database::each(|options| options).await;
    let Database::Sqlite(directory) = database else { panic!("the second one is of SQLite") };
    let files: Vec<_> =
        std::fs::read_dir(directory.path()).expect("it is there").map(Result::unwrap).collect();
    assert!(!files.is_empty());
    for file in files {
        assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600, "{file:?}");
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
