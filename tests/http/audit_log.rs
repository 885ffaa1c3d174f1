//! The audit log on each store: each call that changes something leaves one entry, which shows no secret, and is shown
//! only to the root key and to keys of its tenant and topics. Entries are found by filters and in pages, hostile texts
//! are only data, and entries survive callers that leave, a shutdown and an outage of the store.

mod cases;

use std::collections::BTreeSet;

use http::Method;
use ringback_testkit::http_client;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

use self::cases::{ARCHIVED, Case, SECRETS, cases};
use super::tenants::{Caller, ROOT};
use crate::prelude::*;
use crate::redis_layout::keys::ask;

const MASTER_KEY: &str = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";

fn with_keys(options: StackOptions) -> StackOptions {
    options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_MASTER_KEYS", MASTER_KEY)
}

async fn items(caller: &Caller, stack: &Stack, query: &str) -> Vec<Value> {
    let answer = caller.get(stack, &format!("/v1/audit-log{query}")).await.expect(200);
    answer["items"].as_array().expect("items").clone()
}

/// All entries, once there are at least `count`. Panics if there are more then.
async fn entries(stack: &Stack, count: usize, of: &str) -> Vec<Value> {
    let root = Caller::root(None);
    let found = eventually(SOON, &format!("{of} has left its entry"), async || {
        let items = items(&root, stack, "?limit=1000").await;
        if items.len() >= count { Ok(items) } else { Err(items.len()) }
    })
    .await;
    assert_eq!(found.len(), count, "{of}: {:?}", found.first());
    found
}

/// Makes the calls of the cases, and asserts that each leaves its entry. Returns the names of the operations, and the
/// number of entries, with that of the key.
async fn call_all(stack: &Stack, cases: Vec<Case>, acme: &Caller, id: &str) -> (BTreeSet<String>, usize) {
    // The first entry is that of the key.
    let (mut count, mut called) = (1, BTreeSet::from(["add_key".to_owned()]));
    let named = &mut Vec::<(String, String)>::new();
    for case in cases {
        let caller = if case.is_roots { &Caller::root(None) } else { acme };
        let path =
            named.iter().fold(case.path.clone(), |path, (name, text)| path.replace(name.as_str(), text));
        let reply = caller.send(stack, case.method.clone(), &path, case.body.as_ref()).await;
        assert!((200..300).contains(&reply.status), "{path}: {} {:?}", reply.status, reply.body);
        named.extend(
            case.names
                .map(|name| (format!("{{{name}}}"), reply.json()["id"].as_str().expect("an id").to_owned())),
        );
        count += 1;
        let entry = entries(stack, count, case.operation).await.swap_remove(0);
        assert_eq!(
            (&entry["operation"], &entry["outcome"]),
            (&json!(case.operation), &json!("done")),
            "{entry}"
        );
        let who = if case.is_roots { "root".to_owned() } else { format!("key:{id}") };
        assert_eq!((&entry["who"], &entry["address"]), (&json!(who), &json!("127.0.0.1")), "{entry}");
        assert_eq!(entry["tenant"], if case.is_roots { Value::Null } else { json!("acme") }, "{entry}");
        for (field, expected) in case.entry.as_object().expect("fields") {
            let expected =
                named.iter().fold(expected.to_string(), |text, (name, id)| text.replace(name.as_str(), id));
            let expected: Value = serde_json::from_str(&expected).expect("JSON");
            assert!(has(&entry[field], &expected), "{field} of {entry}: not {expected}");
        }
        called.insert(case.operation.to_owned());
    }
    (called, count)
}

/// Whether a value has all that is expected. An object may have more fields.
fn has(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(fields), Value::Object(expected)) => {
            expected.iter().all(|(name, expected)| fields.get(name).is_some_and(|value| has(value, expected)))
        }
        _ => value == expected,
    }
}

/// Asserts that each operation that the audit log can have was called, except those in `left_out`.
async fn check_operations(stack: &Stack, called: &BTreeSet<String>, left_out: &[&str]) {
    let document = stack.get("/openapi.json").await.expect(200);
    let audited = &document["components"]["schemas"]["AuditLogOperation"]["enum"];
    let names = audited.as_array().expect("names").iter().map(|name| name.as_str().expect("a name"));
    let expected: BTreeSet<_> = names.filter(|name| !left_out.contains(name)).map(str::to_owned).collect();
    assert_eq!(*called, expected);
}

/// Makes calls that are refused or change nothing, and asserts their statuses.
async fn refused(stack: &Stack, acme: &Caller) {
    for (method, path, body, status) in [
        (Method::DELETE, "/v1/jobs/pay/nobody", None, 404),
        (Method::PUT, "/v1/topics/pay", Some(json!({"timeout": 0})), 422),
        (Method::POST, "/v1/keys", Some(json!({"scopes": ["read"]})), 403),
        (Method::POST, "/v1/topics/never/resume", None, 404),
        (Method::POST, "/v1/jobs", Some(json!({"topic": "other", "delay": "1h"})), 201),
        (Method::DELETE, "/v1/schedules/none", None, 404),
    ] {
        assert_eq!(acme.send(stack, method, path, body.as_ref()).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn each_call_that_changes_something_leaves_one_entry_without_secrets() {
    for (has_archive, options) in [(false, StackOptions::api_only()), (true, StackOptions::embedded())] {
        let directory = tempfile::tempdir().expect("a directory");
        let archive = format!("sqlite:{}", directory.path().join("archive.db").display());
        let options = with_keys(options).env("RINGBACK_LOG", "debug");
        let options = if has_archive { options.env("RINGBACK_ARCHIVE", &archive) } else { options };
        let stack = options.start().await;
        let ask_key = json!({"tenant": "acme", "scopes": ["submit", "read", "manage", "import", "consume"]});
        let (acme, id, key) = Caller::made(&stack, &ask_key).await;
        if has_archive {
            acme.wait_status(&stack, "/v1/history", 200).await;
        } else {
            lose_jobs(&stack).await;
        }
        refused(&stack, &acme).await;
        let (called, count) = call_all(&stack, cases(has_archive), &acme, &id).await;
        refused(&stack, &acme).await;
        let left_out = if has_archive { &["accept_loss", "accept_clock"][..] } else { &ARCHIVED[..] };
        // `http::order` has a key to unblock.
        check_operations(&stack, &called, &[left_out, &["unblock"]].concat()).await;

        let entries = entries(&stack, count, "no other call").await;
        let shown = json!(entries).to_string();
        let logs: String = stack.apis.iter().chain(&stack.ups).map(|process| process.log()).collect();
        for secret in SECRETS.into_iter().chain([key.as_str(), ROOT]) {
            assert!(!shown.contains(secret), "{secret} is shown: {shown}");
            assert!(!logs.contains(secret), "{secret} is logged");
            assert!(!is_stored(&stack, secret).await, "{secret} is stored");
        }
        assert!(shown.contains("[masked by ringback]"), "{shown}");
        assert_eq!(
            logs.matches("a call has changed something").count(),
            count,
            "each entry is a line of the log"
        );
        assert!(
            logs.contains("audit.operation=\"put_quota\"") || logs.contains("audit.operation=put_quota"),
            "{logs}"
        );
    }
}

/// Writes a loss of jobs into Redis, as if a server had come back without them.
async fn lose_jobs(stack: &Stack) {
    let mut redis = stack.redis().client().await;
    let install: Vec<String> = ask(&mut redis, &[b"KEYS", b"*:install"]).await;
    let set = [b"HSET", install[0].as_bytes(), b"lost_run", b"8b1f", b"lost_jobs", b"3"];
    let _: u64 = ask(&mut redis, &set).await;
}

/// Whether Redis' keys of the audit log, or any file of an embedded store, contain a text. Ignores a URL in those files.
async fn is_stored(stack: &Stack, text: &str) -> bool {
    if let Some(up) = stack.ups.first() {
        // The file has the URL of the policy itself.
        if text == SECRETS[3] {
            return false;
        }
        let found = std::fs::read_dir(up.directory().join("data")).expect("a directory");
        return found.flatten().any(|file| {
            let bytes = std::fs::read(file.path()).expect("a file");
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        });
    }
    let mut redis = stack.redis().client().await;
    let keys: Vec<String> = ask(&mut redis, &[b"KEYS", b"*:audit-log*"]).await;
    assert!(keys.len() > 3, "{keys:?}");
    for key in keys.iter().filter(|key| !key.ends_with("weight")) {
        let members: Vec<String> = ask(&mut redis, &[b"ZRANGE", key.as_bytes(), b"0", b"-1"]).await;
        if members.iter().any(|member| member.contains(text)) {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn entries_are_found_by_each_part_of_a_filter_and_in_pages() {
    for options in StackOptions::api_on_each_store() {
        let stack = with_keys(options).start().await;
        let root = Caller::root(None);
        for n in 0..7 {
            let path = format!("/v1/topics/t{}/{}", n % 2, if n < 4 { "pause" } else { "resume" });
            root.send(&stack, Method::POST, &path, None).await;
        }
        let all = entries(&stack, 7, "pauses and resumes").await;
        let ids = |items: &[Value]| items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
        assert!(ids(&all).is_sorted_by_key(|id| std::cmp::Reverse(id.as_str().map(str::to_owned))));
        for (query, count) in [
            ("?topic=t0", 4),
            ("?topic=t1&operation=pause", 2),
            ("?operation=resume", 3),
            ("?operation=cancel", 0),
            ("?who=root", 7),
            ("?who=open", 0),
            ("?after=2026-01-01T00:00:00Z", 7),
            ("?before=2026-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(items(&root, &stack, query).await.len(), count, "{query}");
        }
        let middle = all[3]["at"].as_str().expect("a time");
        let (from, until) = (
            items(&root, &stack, &format!("?after={middle}")).await,
            items(&root, &stack, &format!("?before={middle}")).await,
        );
        assert_eq!(from.len() + until.len(), 7);
        assert!(from.iter().all(|item| item["at"].as_str() >= Some(middle)));
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = root.get(&stack, &format!("/v1/audit-log?limit=3{cursor}")).await.expect(200);
            paged.extend(page["items"].as_array().expect("items").clone());
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, all);
        for query in
            ["?operation=submit", "?who=me", "?who=key:x", "?cursor=x", "?limit=0", "?colour=1", "?after=now"]
        {
            assert_eq!(root.get(&stack, &format!("/v1/audit-log{query}")).await.status, 422, "{query}");
        }
    }
}

#[tokio::test]
async fn a_key_sees_what_is_about_its_tenant_and_its_topics() {
    for options in StackOptions::api_on_each_store() {
        let stack = with_keys(options).start().await;
        let scopes = json!(["manage", "submit"]);
        let a = Caller::with(&stack, &json!({"tenant": "a", "scopes": scopes})).await;
        let b = Caller::with(&stack, &json!({"tenant": "b", "scopes": scopes})).await;
        let plain = Caller::with(&stack, &json!({"scopes": scopes})).await;
        let one = Caller::with(&stack, &json!({"tenant": "a", "scopes": ["manage"], "topics": ["x"]})).await;
        let reader = Caller::with(&stack, &json!({"tenant": "a", "scopes": ["read", "submit"]})).await;
        let pause = async |caller: &Caller, topic: &str| {
            let path = format!("/v1/topics/{topic}/pause");
            caller.send(&stack, Method::POST, &path, None).await.expect(200);
        };
        for (caller, topic) in
            [(&a, "x"), (&a, "y"), (&b, "x"), (&plain, "x"), (&Caller::root(Some("a")), "z")]
        {
            pause(caller, topic).await;
        }
        entries(&stack, 10, "five keys and five pauses").await;
        let topics = async |caller: &Caller, query: &str| {
            let found = items(caller, &stack, query).await;
            found
                .iter()
                .map(|item| item["target"]["topic"].as_str().expect("a topic").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(topics(&a, "").await, ["z", "y", "x"]);
        assert_eq!(topics(&a, "?topic=x").await, ["x"]);
        assert_eq!(
            (topics(&b, "").await, topics(&one, "").await),
            (vec!["x".to_owned()], vec!["x".to_owned()])
        );
        assert_eq!(topics(&plain, "").await, ["x"], "what is about the installation is the operator's");
        assert_eq!(topics(&Caller::root(Some("b")), "").await, ["x"]);
        assert_eq!(one.get(&stack, "/v1/audit-log?topic=y").await.status, 403);
        assert_eq!(reader.get(&stack, "/v1/audit-log").await.status, 403);
        let of_root = items(&a, &stack, "?who=root").await;
        assert_eq!((&of_root[0]["who"], &of_root[0]["address"]), (&json!("root"), &Value::Null));
        assert_eq!(items(&a, &stack, "?topic=x").await[0]["address"], "127.0.0.1");
    }
}

#[tokio::test]
async fn hostile_texts_are_data_and_the_trace_of_a_caller_is_kept() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let policy = json!({"expect_body": "\"'\\é🎉", "headers": {"x-a": "}]; redis.call('FLUSHALL')"}});
        stack.put("/v1/topics/t", &policy).await.expect(201);
        let id = "a~:@+=,-";
        stack.accept(&json!({"topic": "t", "id": id, "delay": "1h"})).await;
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let path = format!("/v1/jobs/t/{id}");
        let cancel = http_client().delete(stack.url(&path)).header("traceparent", trace);
        assert_eq!(cancel.send().await.expect("an answer").status(), 200);
        let items = logged(&stack, 2).await;
        assert_eq!((&items[0]["target"]["id"], &items[0]["who"]), (&json!(id), &json!("open")));
        assert_eq!(items[0]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((&items[1]["after"], &items[1]["trace_id"]), (&policy, &Value::Null));
    }
}

/// The entries of a stack without keys, once there are exactly `count`.
async fn logged(stack: &Stack, count: usize) -> Value {
    let is_all = |log: &Value| log["items"].as_array().is_some_and(|items| items.len() == count);
    stack.wait_get("/v1/audit-log", SOON, is_all).await["items"].clone()
}

#[tokio::test]
async fn a_caller_who_does_not_wait_leaves_an_entry_and_so_does_a_call_whose_outcome_is_unknown() {
    let mut stack = StackOptions::api_only().unchecked().start().await;
    for id in ["a", "b"] {
        stack.accept(&json!({"topic": "t", "id": id, "delay": "1h"})).await;
    }
    stack.redis_mut().stop();
    let address = stack.url("").replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!("DELETE /v1/jobs/t/a HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    // The call has to begin before its caller leaves; it waits for the store for two seconds.
    sleep(Duration::from_millis(500)).await;
    drop(stream);
    assert_eq!(stack.delete("/v1/jobs/t/b").await.status, 503);
    stack.redis_mut().cont();
    let items = logged(&stack, 2).await;
    for (item, id) in items.as_array().expect("items").iter().zip(["b", "a"]) {
        assert_eq!((&item["outcome"], &item["target"]["id"]), (&json!("unknown"), &json!(id)), "{items}");
        assert_eq!((&item["before"], &item["after"]), (&Value::Null, &Value::Null));
    }
}

#[tokio::test]
async fn entries_are_stored_at_the_shutdown_and_survive_it() {
    for options in StackOptions::api_on_each_store() {
        let mut stack = options.start().await;
        for n in 0..40 {
            stack.post_empty(&format!("/v1/topics/t{n}/pause")).await.expect(200);
        }
        stack.apis[0].term();
        assert!(stack.apis[0].wait_exit(SOON).await.success());
        stack.apis[0].restart();
        stack.apis[0].ready(SOON).await;
        let items = stack.get("/v1/audit-log").await.expect(200)["items"].clone();
        assert_eq!(items.as_array().map(Vec::len), Some(40));
    }
}

#[tokio::test]
async fn a_store_that_is_away_changes_no_answer_and_the_entry_is_in_the_log() {
    let mut stack = StackOptions::api_only().unchecked().start().await;
    stack.accept(&json!({"topic": "t", "id": "a", "delay": "1h"})).await;
    stack.delete("/v1/jobs/t/a").await.expect(200);
    stack.redis_mut().kill();
    stack.apis[0].wait_metric("ringback_audit_log_failures_total", 1.0, 2 * SOON).await;
    let log = stack.apis[0].log();
    assert!(
        log.contains("an entry is missing in the audit log of the store") && log.contains("\\\"cancel\\\""),
        "{log}"
    );
}
