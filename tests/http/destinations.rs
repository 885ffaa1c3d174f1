//! Destinations over HTTP with real notifiers: pauses of hosts and ports, the list, what holds a job, pauses of
//! tenants, and destinations that fail.

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_testkit::{Answer, Role, Script, Sink, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use super::tenants::{Caller, stacks};
use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

fn job_to(sink: &Sink, host: &str, topic: &str, id: &str) -> Value {
    let url = sink.url("/hook").replace("127.0.0.1", host);
    with(with(job(sink, id), "topic", topic), "url", url)
}

fn port(sink: &Sink) -> String {
    let url = sink.url("");
    url.rsplit_once(':').expect("a port").1.trim_end_matches('/').to_owned()
}

async fn change(stack: &Stack, destination: &str, verb: &str) -> Value {
    let path = format!("/v1/destinations/{}/{verb}", destination.replace('[', "%5B").replace(']', "%5D"));
    stack.post_empty(&path).await.expect(200)
}

#[tokio::test]
async fn a_paused_host_gets_nothing_until_it_is_resumed_whatever_becomes_of_the_notifiers() {
    for (options, is_embedded) in [(Stack::options(), false), (StackOptions::embedded(), true)] {
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        let answer = change(&stack, "LOCALHOST", "pause").await;
        let paused = json!({"host": "localhost", "port": null, "paused": true, "pauses": ["localhost"]});
        assert_eq!(answer, paused);
        for topic in ["a", "b"] {
            stack.accept(&job_to(&sink, "localhost", topic, &format!("held-{topic}"))).await;
        }
        sentinel(&stack, &sink, "open").await;
        if !is_embedded {
            stack.notifiers.remove(0).kill();
            stack.add(Role::Notifier).await;
            stack.ready(SOON).await;
        }
        sentinel(&stack, &sink, "open-still").await;
        assert!(sink.arrivals_of("held-a").is_empty() && sink.arrivals_of("held-b").is_empty());
        let listed = stack.get("/v1/destinations").await.expect(200);
        let waiting = |host: &str| {
            let items = listed["items"].as_array().expect("items");
            let item = items.iter().find(|item| item["host"] == host).unwrap_or_else(|| panic!("{listed}"));
            (item["waiting"].as_u64().expect("a number"), item["paused"] == true)
        };
        assert_eq!(waiting("localhost"), (2, true));

        let resumed = json!({"host": "localhost", "port": null, "paused": false, "pauses": []});
        assert_eq!(change(&stack, "localhost", "resume").await, resumed);
        sink.wait_for_jobs(&["held-a", "held-b"], 1, SOON).await;
    }
}

#[tokio::test]
async fn breakers_of_a_host_are_forced_open_and_closed_and_reset() {
    for options in [Stack::options(), StackOptions::embedded()] {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let force = async |state: &str| {
            let path = "/v1/destinations/127.0.0.1/breaker";
            let answer = stack.post(path, &json!({"state": state})).await.expect(200);
            let shown = stack.get("/v1/destinations/127.0.0.1").await.expect(200);
            assert_eq!(shown["breaker"], answer["breaker"]);
            (answer["breaker"].clone(), answer["paused"].clone(), answer["pauses"].clone())
        };
        let (none, own) = (json!([]), json!(["127.0.0.1"]));
        assert_eq!(force("open").await, (json!("open"), json!(true), own));
        stack.accept(&job(&sink, "held")).await;
        let other = stack.post("/v1/destinations/a.example:81/breaker", &json!({"state": "closed"})).await;
        assert_eq!(other.expect(200)["breaker"], "closed");
        let listed = stack.get("/v1/destinations").await.expect(200);
        let breakers: Vec<_> =
            listed["items"].as_array().expect("items").iter().map(|item| &item["breaker"]).collect();
        assert_eq!(breakers, ["open", "closed"], "{listed}");
        assert!(sink.arrivals().is_empty());
        assert_eq!(force("closed").await, (json!("closed"), json!(false), none.clone()));
        sink.wait_for_job("held", 1, SOON).await;
        assert_eq!(force("auto").await, (json!("auto"), json!(false), none));
        let wrong = stack.post("/v1/destinations/a.example/breaker", &json!({"state": "half"})).await;
        assert_eq!((wrong.status, &wrong.json()["errors"][0]["field"]), (422, &json!("state")));
    }
}

#[tokio::test]
async fn a_pause_of_a_port_and_one_of_a_topic_hold_each_by_itself() {
    let (stack, first, second) = (Stack::start().await, Sink::start().await, Sink::start().await);
    let held = format!("127.0.0.1:{}", port(&first));
    change(&stack, &held, "pause").await;
    stack.accept(&job(&first, "held")).await;
    sentinel(&stack, &second, "open").await;
    assert!(first.arrivals().is_empty());
    stack.post_empty(&format!("/v1/topics/{TOPIC}/pause")).await.expect(200);
    change(&stack, &held, "resume").await;
    stack.accept(&with(job(&second, "other-topic"), "topic", "other")).await;
    second.wait_for_job("other-topic", 1, SOON).await;
    assert!(first.arrivals().is_empty(), "its topic is paused");
    change(&stack, "127.1", "pause").await;
    stack.post_empty(&format!("/v1/topics/{TOPIC}/resume")).await.expect(200);
    let answer = change(&stack, &held, "pause").await;
    assert_eq!(answer["pauses"], json!(["127.0.0.1", held]), "{answer}");
    let answer = change(&stack, &held, "resume").await;
    assert_eq!((&answer["paused"], &answer["pauses"]), (&json!(true), &json!(["127.0.0.1"])), "{answer}");
    assert!(first.arrivals().is_empty(), "its host is paused");
    change(&stack, "127.0.0.1", "resume").await;
    first.wait_for_job("held", 1, SOON).await;
}

#[tokio::test]
async fn a_job_that_waits_says_what_pauses_hold_it() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for (id, delay) in [("due", "0s"), ("later", "1h")] {
            let url = "http://held.example:8080/hook";
            stack.accept(&json!({"topic": TOPIC, "id": id, "url": url, "delay": delay})).await;
        }
        stack.accept(&json!({"topic": TOPIC, "id": "pull"})).await;
        let held = async |id: &str| {
            let path = format!("/v1/jobs/{TOPIC}/{id}");
            let short = stack.get(&path).await.expect(200);
            let whole = stack.get(&format!("{path}?include=request")).await.expect(200);
            assert_eq!(short["paused_by"], whole["paused_by"], "{short} {whole}");
            short["paused_by"].clone()
        };
        let topic = |verb: &str| format!("/v1/topics/{TOPIC}/{verb}");
        assert_eq!(
            [held("due").await, held("later").await, held("pull").await],
            [(); 3].map(|()| Value::Null)
        );
        change(&stack, "held.example:8080", "pause").await;
        change(&stack, "other.example", "pause").await;
        let destination = json!(["destination"]);
        assert_eq!([held("due").await, held("later").await], [destination.clone(), destination.clone()]);
        assert_eq!(held("pull").await, Value::Null, "it has no destination");
        stack.post_empty(&topic("pause")).await.expect(200);
        assert_eq!(
            [held("due").await, held("later").await],
            [(); 2].map(|()| json!(["topic", "destination"]))
        );
        assert_eq!(held("pull").await, json!(["topic"]));
        change(&stack, "held.example:8080", "resume").await;
        assert_eq!(held("due").await, json!(["topic"]));
        stack.delete(&format!("/v1/jobs/{TOPIC}/later")).await.expect(200);
        assert_eq!(held("later").await, Value::Null, "it has ended");
        stack.post_empty(&topic("resume")).await.expect(200);
        assert_eq!([held("due").await, held("pull").await], [(); 2].map(|()| Value::Null));
    }
}

#[tokio::test]
async fn destinations_are_listed_page_by_page_and_what_is_none_is_refused() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for (n, origin) in ["http://b.example", "https://b.example", "http://[::1]:81"].iter().enumerate() {
            for topic in ["a", "b"] {
                let far =
                    json!({"topic": topic, "id": n.to_string(), "delay": "1h", "url": format!("{origin}/")});
                stack.accept(&far).await;
            }
        }
        change(&stack, "[::1]:81", "pause").await;
        change(&stack, "idle.example", "pause").await;
        let item = |host: &str, port: Value, scheme: Value, delayed: u64, pauses: Value| {
            let is_paused = pauses != json!([]);
            let breaker = if is_paused { "open" } else { "auto" };
            json!({"host": host, "port": port, "scheme": scheme, "waiting": 0, "delayed": delayed, "reserved": 0,
                "dead": 0, "paused": is_paused, "pauses": pauses, "breaker": breaker, "limited_by": [],
                "failing": null})
        };
        let expected = [
            item("[::1]", json!(81), json!("http"), 2, json!(["[::1]:81"])),
            item("b.example", json!(80), json!("http"), 2, json!([])),
            item("b.example", json!(443), json!("https"), 2, json!([])),
            item("idle.example", json!(null), json!(null), 0, json!(["idle.example"])),
        ];
        for limit in [1, 3, 4, 1000] {
            let pages = stack.pages(&format!("/v1/destinations?limit={limit}")).await;
            assert_eq!(pages.concat(), expected, "{limit} at a time");
        }
        assert_eq!(stack.pages("/v1/destinations?failing=true").await.concat(), [] as [Value; 0]);
        let (status, problem) =
            stack.get("/v1/destinations?cursor=x&limit=0&colour=red&failing=1").await.parts();
        let errors = problem["errors"].as_array().expect("errors").iter();
        let fields: Vec<_> = errors.map(|error| error["field"].as_str().expect("a name")).collect();
        assert_eq!((status, fields), (422, vec!["colour", "cursor", "failing", "limit"]));
        for text in ["a%20b", "a:0", "http:%2F%2Fa", "::1"] {
            for verb in ["pause", "resume"] {
                let refused = stack.post_empty(&format!("/v1/destinations/{text}/{verb}")).await.expect(422);
                assert_eq!(refused["errors"][0]["field"], "host", "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn a_tenant_pauses_and_sees_its_own_jobs_alone() {
    for options in stacks() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
        let operator = Caller::root(None);
        let send = async |caller: &Caller, verb: &str| {
            caller.post(&stack, &format!("/v1/destinations/127.0.0.1/{verb}"), &json!({})).await.expect(200)
        };
        let pauses = async |caller: &Caller| {
            let items = caller.get(&stack, "/v1/destinations").await.expect(200)["items"].clone();
            let items = items.as_array().expect("items").clone();
            items.iter().map(|item| json!([item["host"], item["paused"], item["pauses"]])).collect::<Vec<_>>()
        };
        assert_eq!(send(&a, "pause").await["paused"], true);
        a.post(&stack, "/v1/jobs", &job(&sink, "of-a")).await.expect(201);
        b.post(&stack, "/v1/jobs", &job(&sink, "of-b")).await.expect(201);
        sink.wait_for_job("of-b", 1, SOON).await;
        eventually(SOON, "b has no jobs left", async || {
            let left = pauses(&b).await;
            if left.is_empty() { Ok(()) } else { Err(json!(left)) }
        })
        .await;
        assert_eq!(pauses(&a).await, [json!(["127.0.0.1", true, ["127.0.0.1"]])]);
        // Neither another tenant nor the operator ends the tenant's pause.
        assert_eq!(send(&b, "resume").await["paused"], false);
        send(&operator, "resume").await;
        assert_eq!(pauses(&operator).await, [json!(["127.0.0.1", false, []])]);

        assert_eq!(send(&operator, "pause").await["pauses"], json!(["127.0.0.1"]));
        let resumed = send(&a, "resume").await;
        assert_eq!((&resumed["paused"], &resumed["pauses"]), (&json!(true), &json!([])), "{resumed}");
        b.post(&stack, "/v1/jobs", &job(&sink, "of-b-again")).await.expect(201);
        assert_eq!(pauses(&b).await, [json!(["127.0.0.1", true, []])]);
        assert!(sink.arrivals_of("of-a").is_empty() && sink.arrivals_of("of-b-again").is_empty());
        send(&operator, "resume").await;
        sink.wait_for_jobs(&["of-a", "of-b-again"], 1, SOON).await;

        let some = json!({"tenant": "a", "scopes": ["read", "manage"], "topics": ["t"]});
        let some = Caller::with(&stack, &some).await;
        for verb in ["pause", "resume"] {
            some.post(&stack, &format!("/v1/destinations/a.example/{verb}"), &json!({})).await.expect(403);
        }
        send(&a, "pause").await;
        assert_eq!(pauses(&some).await, [] as [Value; 0]);
        send(&a, "resume").await;
    }
}

#[tokio::test]
async fn a_destination_that_fails_says_since_when_and_how_until_it_answers_again() {
    for options in [Stack::options(), StackOptions::embedded()] {
        let (stack, sink, well) = (options.start().await, Sink::start().await, Sink::start().await);
        let before = SystemClock.now().to_string();
        sink.answer(Script::always(Answer::status(503)));
        let policy = json!({"retry": {"delays": ["1s"], "max": -1, "jitter": 0}});
        stack.put(&format!("/v1/topics/{TOPIC}"), &policy).await.expect(201);
        stack.accept(&job(&sink, "fails")).await;
        // These jobs keep both destinations in the list.
        stack.accept(&with(job(&sink, "later"), "delay", "1h")).await;
        stack.accept(&with(job(&well, "later-too"), "delay", "1h")).await;
        stack.accept(&job(&well, "goes-well")).await;
        let refused = "http://127.0.0.1:9/";
        stack.accept(&with(with(job(&sink, "refused"), "url", refused), "topic", "other")).await;
        let list = async |query: &str| {
            stack.get(&format!("/v1/destinations{query}")).await.expect(200)["items"].clone()
        };
        eventually(SOON, "both are known to fail", async || {
            let items = list("?failing=true").await;
            if items.as_array().map(Vec::len) == Some(2) { Ok(()) } else { Err(items) }
        })
        .await;
        let failing = |items: &Value, port: &str| {
            let items = items.as_array().expect("items");
            let port: u16 = port.parse().expect("a port");
            let item = items.iter().find(|item| item["port"] == port);
            item.unwrap_or_else(|| panic!("{items:?}"))["failing"].clone()
        };
        let items = list("").await;
        assert_eq!(failing(&items, &port(&well)), Value::Null);
        assert_eq!(failing(&items, "9")["last_error"], "refused", "{items}");
        assert_eq!(failing(&items, "9")["last_status"], Value::Null, "{items}");
        let found = failing(&items, &port(&sink));
        assert_eq!((&found["last_status"], &found["last_error"]), (&json!(503), &Value::Null), "{found}");
        let times = ["since", "last_at"].map(|field| found[field].as_str().expect("a time"));
        assert!(*before <= *times[0] && times[0] <= times[1], "{found}");
        let arrived = sink.arrivals_of("fails").len() as u64;
        assert!((1..=arrived).contains(&found["attempts"].as_u64().expect("a number")), "{found}");

        sink.answer(Script::always(Answer::status(200)));
        eventually(SOON, "it no longer fails", async || {
            let items = list("?failing=true").await;
            if items.as_array().map(Vec::len) == Some(1) { Ok(()) } else { Err(items) }
        })
        .await;
        assert_eq!(list("?failing=true").await[0]["port"], 9);
        assert_eq!(failing(&list("").await, &port(&sink)), Value::Null);
    }
}
