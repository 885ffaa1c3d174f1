//! Destinations over HTTP: pauses of hosts and ports with real notifiers, the list, and whom a pause belongs to.

use ringback_testkit::{Role, Sink, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use super::tenants::{Caller, stacks};
use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

/// A job of a topic for a host of this machine.
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
            json!({"host": host, "port": port, "scheme": scheme, "waiting": 0, "delayed": delayed, "reserved": 0,
                "dead": 0, "paused": pauses != json!([]), "pauses": pauses})
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
        let (status, problem) = stack.get("/v1/destinations?cursor=x&limit=0&colour=red").await.parts();
        let errors = problem["errors"].as_array().expect("errors").iter();
        let fields: Vec<_> = errors.map(|error| error["field"].as_str().expect("a name")).collect();
        assert_eq!((status, fields), (422, vec!["colour", "cursor", "limit"]));
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
        // Neither another tenant nor the operator ends it.
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
