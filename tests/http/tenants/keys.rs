//! API keys: scopes, topics, destinations, networks, lifetimes; an API without a root key serves only its own machine.

use http::Method;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_testkit::{Role, http_client};
use tokio::time::{Instant, sleep, timeout};

use super::{ALL, Caller, ROOT, stacks};
use crate::prelude::*;

const JOB: &str = r#"{"topic":"t","url":"https://hooks.example.com/","delay":"1h"}"#;

fn job(topic: &str, url: &str) -> Value {
    json!({"topic": topic, "url": url, "delay": "1h"})
}

#[tokio::test]
async fn a_deleted_key_is_refused_by_all_apis_within_a_second() {
    let options = StackOptions::api_only().count(Role::Api, 2).env("RINGBACK_ROOT_KEY", ROOT);
    let stack = options.start().await;
    let caller = Caller::of(&stack, "acme").await;
    let urls: Vec<_> = stack.api_urls().iter().map(|url| format!("{url}/v1/topics")).collect();
    for url in &urls {
        caller.wait_status_at(url, 200, SOON).await;
    }
    let root = Caller::root(None);
    let keys = root.get(&stack, "/v1/keys").await.expect(200);
    assert_eq!((&keys["items"][0]["tenant"], &keys["items"][0]["scopes"]), (&json!("acme"), &json!(ALL)));
    assert!(!keys.to_string().contains(&caller.key) && !keys.to_string().contains("hash"), "{keys}");
    let path = format!("/v1/keys/{}", keys["items"][0]["id"].as_str().expect("an id"));
    let deleted = Instant::now();
    assert_eq!(root.send(&stack, Method::DELETE, &path, None).await.expect(200), json!({"items": []}));
    for url in &urls {
        caller.wait_status_at(url, 401, Duration::from_secs(1)).await;
    }
    assert!(deleted.elapsed() < SOON);
    root.send(&stack, Method::DELETE, &path, None).await.expect(404);
}

#[tokio::test]
async fn a_key_expires_and_shows_when_it_was_used() {
    for options in stacks() {
        let stack = options.start().await;
        let at = SystemClock.now().plus(Duration::from_secs(3));
        let caller = Caller::with(&stack, &json!({"scopes": ["read"], "expires": at.to_string()})).await;
        caller.get(&stack, "/v1/topics").await.expect(200);
        let is_used = |keys: &Value| keys["items"][0]["last_used_at"].is_string();
        Caller::root(None).wait_get(&stack, "/v1/keys", is_used).await;
        caller.wait_status(&stack, "/v1/topics", 401).await;
        let text = caller.get(&stack, "/v1/topics").await.json().to_string();
        assert!(text.contains("expired"), "{text}");
    }
}

#[tokio::test]
async fn a_key_is_limited_to_its_topics_and_destinations() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let limits = json!({
        "tenant": "acme", "scopes": ALL, "topics": ["t", "u"], "destinations": ["hooks.example.com"],
    });
    let caller = Caller::with(&stack, &limits).await;
    let free = Caller::of(&stack, "acme").await;
    let jobs = "/v1/jobs";
    caller.post(&stack, jobs, &serde_json::from_str(JOB).expect("JSON")).await.expect(201);
    free.post(&stack, jobs, &job("other", "https://elsewhere.example/")).await.expect(201);
    let refused = caller.post(&stack, jobs, &job("other", "https://hooks.example.com/")).await;
    refused.refused(403, "it is for t, u");
    for url in ["http://hooks.example.com/", "https://elsewhere.example/"] {
        let refused = caller.post(&stack, jobs, &job("t", url)).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], "url", "{refused}");
        let policy = json!({"url": url});
        caller.send(&stack, Method::PUT, "/v1/topics/t", Some(&policy)).await.expect(422);
        for field in ["on_dead", "on_done"] {
            let noted = json!({"topic": "t", "url": "https://hooks.example.com/", field: url});
            let refused = caller.post(&stack, jobs, &noted).await.expect(422);
            assert_eq!(refused["errors"][0]["field"], field, "{refused}");
            let policy = json!({field: url});
            let refused = caller.send(&stack, Method::PUT, "/v1/topics/t", Some(&policy)).await.expect(422);
            assert_eq!(refused["errors"][0]["field"], field, "{refused}");
        }
        caller.post(&stack, "/v1/import", &job("t", url)).await.expect(200);
    }
    let batch = json!([job("t", "https://hooks.example.com/"), job("other", "https://hooks.example.com/")]);
    let results = caller.post(&stack, "/v1/jobs/batch", &batch).await.expect(200);
    assert_eq!(
        (&results["accepted"], &results["results"][1]["status"]),
        (&json!(1), &json!(403)),
        "{results}"
    );
    for path in ["/v1/topics/other", "/v1/jobs?topic=other", "/v1/export?topic=other"] {
        caller.get(&stack, path).await.expect(403);
    }
    for path in ["/v1/topics", "/v1/jobs", "/v1/export", "/v1/stats"] {
        let reply = caller.get(&stack, path).await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(
            reply.status == 200 && !text.contains("elsewhere") && !text.contains("other"),
            "{path}: {text}"
        );
    }
    assert_eq!(caller.get(&stack, "/v1/stats").await.expect(200)["states"]["delayed"], 2);
    let metrics = json!({"metrics": true});
    free.send(&stack, Method::PUT, "/v1/topics/t", Some(&metrics)).await.expect(422);
}

#[tokio::test]
async fn a_key_for_some_topics_lists_them_page_by_page() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let free = Caller::of(&stack, "acme").await;
    for topic in ["a", "b", "m", "n", "y", "z"] {
        free.post(&stack, "/v1/jobs", &json!({"topic": topic, "delay": "1h"})).await.expect(201);
    }
    let limits = json!({"tenant": "acme", "scopes": ["read"], "topics": ["b", "m", "z"]});
    let caller = Caller::with(&stack, &limits).await;
    let (mut path, mut listed) = ("/v1/topics?limit=1".to_owned(), Vec::new());
    for _ in 0..10 {
        let page = caller.get(&stack, &path).await.expect(200);
        assert!(!page.to_string().contains("\"n\"") && !page.to_string().contains("\"y\""), "{page}");
        let items = page["items"].as_array().expect("topics");
        listed.extend(items.iter().map(|topic| topic["topic"].as_str().expect("a name").to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/topics?limit=1&cursor={next}");
    }
    assert_eq!(listed, ["b", "m", "z"]);
}

#[tokio::test]
async fn a_key_for_some_topics_settles_no_jobs_of_others() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).unchecked().start().await;
    let free = Caller::of(&stack, "acme").await;
    let caller =
        Caller::with(&stack, &json!({"tenant": "acme", "scopes": ["consume"], "topics": ["t"]})).await;
    let mut receipts = Vec::new();
    for topic in ["t", "other"] {
        free.post(&stack, "/v1/jobs", &json!({"topic": topic})).await.expect(201);
        let path = format!("/v1/topics/{topic}/reserve");
        let reserved = free.post(&stack, &path, &json!({"wait": "5s"})).await.expect(200);
        receipts.push(reserved["jobs"][0]["receipt"].as_str().expect("a receipt").to_owned());
    }
    for how in ["finish", "retry", "bury", "release", "renew"] {
        let path = format!("/v1/receipts/{}/{how}", receipts[1]);
        caller.post(&stack, &path, &json!({})).await.expect(403);
    }
    let refused = caller.post(&stack, "/v1/receipts/finish", &json!({"receipts": receipts})).await;
    assert_eq!(refused.status, 403);
    caller.post(&stack, &format!("/v1/receipts/{}/finish", receipts[0]), &json!({})).await.expect(200);
    free.post(&stack, &format!("/v1/receipts/{}/finish", receipts[1]), &json!({})).await.expect(200);
}

#[tokio::test]
async fn what_a_deleted_key_has_begun_ends() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let (caller, root) = (Caller::of(&stack, "acme").await, Caller::root(None));
    let events = caller.client.get(stack.url("/v1/events")).headers(caller.headers()).send();
    let mut events = events.await.expect("events");
    let submit = async |id: &str| {
        let job = json!({"topic": "t", "id": id, "delay": "1h"});
        Caller::root(Some("acme")).post(&stack, "/v1/jobs", &job).await.expect(201);
    };
    submit("before").await;
    let mut seen = String::new();
    while !seen.contains("before") {
        let chunk = timeout(SOON, events.chunk()).await.expect("an event").expect("a chunk");
        seen += &String::from_utf8_lossy(&chunk.expect("the stream goes on"));
    }
    let keys = root.get(&stack, "/v1/keys").await.expect(200);
    let path = format!("/v1/keys/{}", keys["items"][0]["id"].as_str().expect("an id"));
    root.send(&stack, Method::DELETE, &path, None).await.expect(200);
    submit("after").await;
    let mut rest = String::new();
    while let Some(chunk) = timeout(SOON, events.chunk()).await.expect("the stream ends").expect("a chunk") {
        rest += &String::from_utf8_lossy(&chunk);
    }
    assert!(!rest.contains("after"), "{rest}");
}

#[tokio::test]
async fn calls_without_a_valid_key_learn_nothing_and_a_key_chooses_no_tenant() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let caller = Caller::of(&stack, "acme").await;
    for header in ["", "Bearer", "Bearer wrong", "Basic cm9vdDpyb290", &format!("Bearer {}x", caller.key)] {
        let request = http_client().get(stack.url("/v1/jobs/t/i")).header("authorization", header);
        let reply = request.send().await.expect("an answer");
        assert_eq!(
            (reply.status(), reply.headers()["www-authenticate"].to_str().ok()),
            (http::StatusCode::UNAUTHORIZED, Some("Bearer")),
            "{header}"
        );
    }
    assert_eq!(http_client().get(stack.url("/v1/jobs/t/i")).send().await.expect("an answer").status(), 401);
    let other = Caller { tenant: Some("bcme"), ..caller.clone() };
    other.get(&stack, "/v1/topics").await.expect(403);
    let own = Caller { tenant: Some("acme"), ..caller.clone() };
    own.get(&stack, "/v1/topics").await.expect(200);
    Caller::root(Some("bcme")).get(&stack, "/v1/topics").await.expect(200);
    for (path, body) in
        [("/v1/keys", json!({"scopes": ["read"]})), ("/v1/check/accept-loss", json!({"run_id": "a"}))]
    {
        caller.post(&stack, path, &body).await.expect(403);
    }
    caller.get(&stack, "/v1/check").await.expect(403);
}

#[tokio::test]
async fn a_store_that_has_lost_its_keys_admits_the_root_key_alone() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).unchecked().start().await;
    let caller = Caller::of(&stack, "acme").await;
    caller.get(&stack, "/v1/topics").await.expect(200);
    let mut redis = stack.redis().client().await;
    redis::cmd("DEL").arg("ringback:{meta}:policies").exec_async(&mut redis).await.expect("DEL");
    redis::cmd("INCR").arg("ringback:{meta}:policies:version").exec_async(&mut redis).await.expect("INCR");
    eventually(Duration::from_secs(20), "the key is refused", async || {
        sleep(Duration::from_millis(50)).await;
        let status = caller.get(&stack, "/v1/topics").await.status;
        if status == 401 { Ok(()) } else { Err(status) }
    })
    .await;
    Caller::root(None).get(&stack, "/v1/topics").await.expect(200);
}

#[tokio::test]
async fn without_a_root_key_no_other_name_and_no_page_of_another_site_reaches_the_api() {
    let stack = StackOptions::api_only().start().await;
    let pause = stack.url("/v1/topics/t/pause");
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let reply = http_client().post(&pause).header(name, value).send().await.expect("an answer");
        assert_eq!(reply.status(), 403, "{name}: {value}");
    }
    let header =
        http_client().post(&pause).header("ringback-tenant", "acme").send().await.expect("an answer");
    assert_eq!(header.status(), 422);
    stack.post("/v1/keys", &json!({"scopes": ["read"]})).await.expect(409);
    stack.get("/v1/topics/t").await.expect(404);
}

#[tokio::test]
async fn a_key_is_limited_to_its_networks() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let here =
        Caller::with(&stack, &json!({"scopes": ["read"], "cidrs": ["127.0.0.1/32", "10.0.0.0/8"]})).await;
    here.get(&stack, "/v1/topics").await.expect(200);
    let client = reqwest::Client::builder().no_proxy().local_address(std::net::IpAddr::from([127, 0, 0, 2]));
    let there = Caller { client: client.build().expect("a client"), ..here.clone() };
    there.get(&stack, "/v1/topics").await.refused(403, "address");
    Caller { client: there.client, ..Caller::root(None) }.get(&stack, "/v1/topics").await.expect(200);
    let wrong = json!({"scopes": ["read"], "cidrs": ["127.0.0.1/8"]});
    Caller::root(None).post(&stack, "/v1/keys", &wrong).await.expect(422);
}

#[tokio::test]
async fn a_tenant_leaves_half_of_the_places_for_listeners_to_the_others() {
    let options =
        StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_EVENT_LISTENERS", "4");
    let stack = options.start().await;
    let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
    let mut streams = Vec::new();
    for (caller, status) in [(&a, 200), (&a, 200), (&a, 503), (&b, 200), (&b, 503), (&a, 503)] {
        let request = caller.client.get(stack.url("/v1/events")).headers(caller.headers());
        let reply = request.send().await.expect("an answer");
        assert_eq!(reply.status().as_u16(), status, "after {} listeners", streams.len());
        if status == 200 {
            streams.push(reply);
        }
    }
}

#[tokio::test]
async fn what_belongs_to_no_tenant_can_be_asked_for_as_such() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    for tenant in [None, Some("acme")] {
        let caller = Caller::root(tenant);
        caller.post(&stack, "/v1/jobs", &job("t", "https://hooks.example.com/")).await.expect(201);
    }
    let none = Caller::root(Some("~none"));
    let export = String::from_utf8(none.get(&stack, "/v1/export").await.body.to_vec()).expect("UTF-8");
    assert!(export.lines().count() == 1 && !export.contains("acme"), "{export}");
    assert_eq!(none.get(&stack, "/v1/stats").await.expect(200)["states"]["delayed"], 1);
    let line = json!({"tenant": "acme", "topic": "t", "url": "https://hooks.example.com/", "delay": "1h"});
    let answer = none.post(&stack, "/v1/import", &line).await.expect(200);
    assert_eq!((&answer["created"], &answer["refused"]), (&json!(0), &json!(1)), "{answer}");

    let of_acme = Caller { tenant: Some("~none"), ..Caller::of(&stack, "acme").await };
    assert_eq!(of_acme.get(&stack, "/v1/topics").await.status, 403);
    let of_none = Caller::with(&stack, &json!({"scopes": ALL})).await;
    let of_none = Caller { tenant: Some("~none"), ..of_none };
    assert_eq!(of_none.get(&stack, "/v1/topics").await.status, 200);
    for wrong in ["~acme", "none/", ""] {
        let refused = Caller::root(Some(wrong)).get(&stack, "/v1/topics").await;
        assert_eq!(refused.status, 422, "{wrong:?}");
    }
    let open = StackOptions::api_only().start().await;
    assert_eq!(none.get(&open, "/v1/topics").await.status, 200);
    assert_eq!(Caller::root(Some("acme")).get(&open, "/v1/topics").await.status, 422);
}

#[tokio::test]
async fn a_key_for_some_topics_sees_the_credentials_that_these_use_and_changes_none() {
    let keys = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";
    for options in stacks() {
        let stack = options.env("RINGBACK_MASTER_KEYS", keys).start().await;
        let all = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ALL})).await;
        let some = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ALL, "topics": ["t"]})).await;
        let credential = json!({"to": ["https://b.example"], "bearer": "t"});
        for (name, topic) in [("used", "t"), ("others", "u")] {
            let path = format!("/v1/credentials/{name}");
            all.send(&stack, Method::PUT, &path, Some(&credential)).await.expect(201);
            let policy = json!({"credentials": name});
            all.send(&stack, Method::PUT, &format!("/v1/topics/{topic}"), Some(&policy)).await.expect(201);
            some.send(&stack, Method::PUT, &path, Some(&credential)).await.expect(403);
            some.send(&stack, Method::DELETE, &path, None).await.expect(403);
        }
        for (caller, names) in [(&all, &["others", "used"][..]), (&some, &["used"])] {
            let list = caller.get(&stack, "/v1/credentials").await.expect(200);
            let items = list["items"].as_array().expect("items").iter();
            let found: Vec<_> = items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect();
            assert_eq!(found, names);
            let lines = caller.get(&stack, "/v1/export/credentials").await.body;
            assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), names.len());
        }
    }
}
