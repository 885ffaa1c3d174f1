//! Two tenants that use the same names: every operation of the OpenAPI document, called with a key of one and with
//! names, receipts and ids of the other, changes nothing of the other and answers as if that did not exist.

use std::collections::BTreeMap;

use http::Method;
use ringback_testkit::Reply;

use super::{Caller, stacks};
use crate::prelude::*;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// What names a thing: as it is named, and a name of the same kind that nothing has.
struct Named {
    placeholder: &'static str,
    theirs: String,
    nobodys: String,
}

/// Everything that a tenant has, as the root key sees it.
async fn possessions(stack: &Stack, tenant: &'static str) -> BTreeMap<&'static str, Value> {
    let root = Caller::root(Some(tenant));
    let mut all = BTreeMap::new();
    for path in ["/v1/export", "/v1/export/topics", "/v1/export/credentials", "/v1/export/schedules"] {
        let mut lines: Vec<_> = String::from_utf8(root.get(stack, path).await.body.to_vec())
            .expect("UTF-8")
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        all.insert(path, json!(lines));
    }
    for path in [
        "/v1/topics",
        "/v1/destinations",
        "/v1/topics/shared",
        "/v1/topics/shared/dead",
        "/v1/topics/of-a/secrets",
        "/v1/bulk",
        "/v1/topics/of-a/dead",
        "/v1/jobs/of-a/failed/attempts",
    ] {
        all.insert(path, root.get(stack, path).await.expect(200));
    }
    all
}

/// Gives a tenant jobs in each state, a policy, a secret, a credential, a schedule, a pause and a bulk operation.
/// Returns their names.
async fn furnish(stack: &Stack, caller: &Caller, sink: &Sink, only: &str) -> Vec<Named> {
    let accept = async |job: Value| caller.post(stack, "/v1/jobs", &job).await.expect(201);
    let marked = |text: &str| json!(format!("{only}-{text}"));
    // Only this tenant has it, with one of each kind.
    let own = only.trim_start_matches("only-");
    let policy = json!({"timeout": "7s", "headers": {"x-of": marked("secret")}});
    caller.send(stack, Method::PUT, "/v1/topics/shared", Some(&policy)).await;
    let secret = caller.post(stack, &format!("/v1/topics/{own}/secrets"), &json!({})).await.expect(201);
    let credential = json!({"to": [format!("http://{only}-secret.example")], "bearer": "token"});
    let path = format!("/v1/credentials/{only}");
    caller.send(stack, Method::PUT, &path, Some(&credential)).await.expect(201);
    let schedule = json!({"every": "7d", "job": {"topic": own, "url": sink.url("/"), "context": {"of": marked("secret")}}});
    let path = format!("/v1/schedules/{only}");
    caller.send(stack, Method::PUT, &path, Some(&schedule)).await.expect(201);
    let host = format!("{only}.example");
    caller.post(stack, &format!("/v1/destinations/{host}/pause"), &json!({})).await.expect(200);
    accept(json!({"topic": "shared", "id": "waits", "url": sink.url("/"), "delay": "1h"})).await;
    let context = json!({"of": marked("secret")});
    accept(json!({"topic": own, "id": only, "url": sink.url("/"), "delay": "1h", "context": context})).await;
    let once = json!({"preset": "none"});
    let failing = sink.url("/fails");
    for topic in ["shared", own] {
        accept(json!({"topic": topic, "id": "failed", "url": failing, "retry": once})).await;
        let path = format!("/v1/jobs/{topic}/failed");
        caller.wait_get(stack, &path, |job| job["state"] == "dead").await;
    }
    // The notifier reports a destination that fails a little later.
    let is_known = |all: &Value| {
        all["items"].as_array().is_some_and(|items| items.iter().any(|one| one["failing"]["attempts"] == 2))
    };
    caller.wait_get(stack, "/v1/destinations", is_known).await;
    let none = json!({"reason": "none-has-it"});
    let revive = format!("/v1/topics/{own}/dead/revive");
    let bulk = caller.post(stack, &revive, &none).await.expect(202);
    let path = format!("/v1/bulk/{}", bulk["id"].as_str().expect("an id"));
    caller.wait_get(stack, &path, |found| found["state"] == "done").await;
    accept(json!({"topic": own, "id": "held", "ttr": "1h"})).await;
    let reserve = format!("/v1/topics/{own}/reserve");
    let reserved = caller.post(stack, &reserve, &json!({"wait": "5s"})).await.expect(200);
    let receipt = reserved["jobs"][0]["receipt"].as_str().expect("a receipt").to_owned();
    let named = |placeholder, theirs: &Value, nobodys: &str| {
        let theirs = theirs.as_str().expect("a text").to_owned();
        Named { placeholder, theirs, nobodys: nobodys.to_owned() }
    };
    vec![
        named("{topic}", &json!(own), "nobodys"),
        named("{id}", &json!(only), "nobodys-job"),
        named("{receipt}", &json!(receipt), &format!("{}AAAA", &receipt[..receipt.len() - 4])),
        named("{bulk}", &bulk["id"], "00000000000000ff"),
        named("{secret}", &secret["id"], "sec_nobodys"),
        named("{credential}", &json!(only), "nobodys-credential"),
        named("{host}", &json!(host), "nobodys.example"),
    ]
}

fn body_of(operation: &str, topic: &str, id: &str, receipt: &str) -> Option<Value> {
    let job = json!({"topic": topic, "id": id, "url": "http://127.0.0.1:9/", "delay": "2h"});
    Some(match operation {
        "submit" | "import_jobs" => job,
        "submit_batch" => json!([job]),
        "reschedule" => json!({"delay": "3h"}),
        "put_policy" | "patch_policy" => json!({"timeout": "1s"}),
        "put_schedule" => json!({"every": "7d", "job": {"topic": topic, "url": "http://127.0.0.1:9/"}}),
        "put_credential" => json!({"to": ["http://b.example"], "bearer": "t"}),
        "add_secret" | "revive_dead" | "finish" | "retry" | "bury" | "release" | "renew" | "reserve" => {
            json!({})
        }
        "finish_all" => json!({"receipts": [receipt]}),
        "add_key" => json!({"tenant": "a", "scopes": ["read"]}),
        "accept_loss" => json!({"run_id": "8b1f"}),
        _ => return None,
    })
}

/// The status of an answer and, of a refusal, its text with all names replaced.
fn comparable(reply: &Reply, names: &[Named]) -> (u16, String) {
    let mut text = String::from_utf8_lossy(&reply.body).into_owned();
    let mut texts: Vec<_> = names.iter().flat_map(|name| [&name.theirs, &name.nobodys]).collect();
    // One name may be part of another.
    texts.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in texts {
        text = text.replace(name.as_str(), "NAME");
    }
    (reply.status, if reply.status < 300 { String::new() } else { text })
}

#[tokio::test]
async fn no_operation_shows_or_touches_what_belongs_to_another_tenant() {
    for options in stacks() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_path("/fails", Answer::status(500));
        let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
        let names = furnish(&stack, &a, &sink, "only-of-a").await;
        furnish(&stack, &b, &sink, "only-of-b").await;
        // The times and the lateness in `possessions` change by themselves.
        let before = possessions(&stack, "a").await;
        let document = a.get(&stack, "/openapi.json").await.expect(200);
        let mut called = 0;
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
                let operation = item[*method]["operationId"].as_str().expect("an id");
                // These stream without an end, or are the operator's, which another test covers.
                if operation == "events" || path.starts_with("/v1/keys") || path.starts_with("/v1/check") {
                    continue;
                }
                let filled = |pick: &dyn Fn(&Named) -> String| {
                    names.iter().fold(path.clone(), |path, name| path.replace(name.placeholder, &pick(name)))
                };
                let method: Method = method.to_uppercase().parse().expect("a method");
                let mut answers = Vec::new();
                for pick in [(|n: &Named| n.theirs.clone()) as fn(&Named) -> String, |n| n.nobodys.clone()] {
                    let (topic, id, receipt) = (pick(&names[0]), pick(&names[1]), pick(&names[2]));
                    let body = body_of(operation, &topic, &id, &receipt);
                    let reply = b.send(&stack, method.clone(), &filled(&pick), body.as_ref()).await;
                    let text = String::from_utf8_lossy(&reply.body).into_owned();
                    assert!(!text.contains("only-of-a-secret"), "{operation}: {text}");
                    answers.push(comparable(&reply, &names));
                }
                assert_eq!(answers[0], answers[1], "{operation} tells what another tenant has");
                called += 1;
            }
        }
        assert!(called > 30, "{called} operations");
        assert_eq!(possessions(&stack, "a").await, before, "what another tenant has was changed");
        // The receipt of the first tenant still holds its job.
        let held = format!("/v1/receipts/{}/finish", names[2].theirs);
        a.post(&stack, &held, &json!({})).await.expect(200);
    }
}

#[tokio::test]
async fn lists_counts_exports_and_events_of_a_tenant_have_its_own_alone() {
    for options in stacks() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_path("/fails", Answer::status(500));
        let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
        let mut events =
            a.client.get(stack.url("/v1/events")).headers(a.headers()).send().await.expect("events");
        furnish(&stack, &b, &sink, "only-of-b").await;
        furnish(&stack, &a, &sink, "only-of-a").await;
        for path in [
            "/v1/jobs",
            "/v1/topics",
            "/v1/destinations",
            "/v1/export",
            "/v1/export/topics",
            "/v1/credentials",
            "/v1/export/credentials",
            "/v1/schedules",
            "/v1/export/schedules",
            "/v1/topics/shared",
        ] {
            let answer = a.get(&stack, path).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(answer.status == 200 && !text.contains("only-of-b"), "{path}: {text}");
        }
        let states = a.get(&stack, "/v1/stats").await.expect(200)["states"].clone();
        assert_eq!(states["delayed"], 2, "{states}");
        assert_eq!((&states["dead"], &states["reserved"]), (&json!(2), &json!(1)), "{states}");
        let all = Caller::root(None).get(&stack, "/v1/stats").await.expect(200)["states"].clone();
        assert_eq!((&all["delayed"], &all["dead"]), (&json!(4), &json!(4)), "{all}");
        assert_eq!(Caller::root(None).get(&stack, "/v1/topics").await.expect(200)["items"], json!([]));
        let export = String::from_utf8(Caller::root(None).get(&stack, "/v1/export").await.body.to_vec());
        let export = export.expect("UTF-8");
        for tenant in ["a", "b"] {
            assert_eq!(export.matches(&format!("\"tenant\":\"{tenant}\"")).count(), 5, "{export}");
        }

        let mut seen = String::new();
        while !seen.contains("held") {
            let chunk = tokio::time::timeout(SOON, events.chunk()).await.expect("an event").expect("a chunk");
            seen += &String::from_utf8_lossy(&chunk.expect("the stream goes on"));
        }
        assert!(seen.contains("only-of-a") && !seen.contains("only-of-b"), "{seen}");
    }
}

#[tokio::test]
async fn callbacks_and_notices_are_those_of_the_tenant_whose_job_it_is() {
    for options in stacks() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_path("/fails", Answer::status(500));
        let callers = [("a", Caller::of(&stack, "a").await), ("b", Caller::of(&stack, "b").await)];
        let mut secrets = Vec::new();
        for (tenant, caller) in &callers {
            let policy = json!({"headers": {"x-tenant": tenant}, "headers_to": ["*"]});
            caller.send(&stack, Method::PUT, "/v1/topics/shared", Some(&policy)).await.expect(201);
            let made = caller.post(&stack, "/v1/topics/shared/secrets", &json!({})).await.expect(201);
            secrets.push(made["secret"].as_str().expect("a secret").to_owned());
        }
        for (tenant, caller) in &callers {
            let job = json!({
                "topic": "shared", "id": "same", "url": sink.url("/fails"), "on_dead": sink.url("/dead"),
                "body": {"of": tenant}, "retry": {"preset": "none"}, "delay": "1s",
            });
            caller.post(&stack, "/v1/jobs", &job).await.expect(201);
            let job = json!({
                "topic": "shared", "id": "fine", "url": sink.url("/fine"), "on_done": sink.url("/dead"), "delay": "1s",
            });
            caller.post(&stack, "/v1/jobs", &job).await.expect(201);
        }
        let notices = eventually(SOON, "the notices of both arrive", async || {
            let arrived = sink.arrivals();
            let notices: Vec<_> = arrived.iter().filter(|one| one.path == "/dead").cloned().collect();
            if notices.len() == 4 { Ok(notices) } else { Err(arrived.len()) }
        })
        .await;
        let calls: Vec<_> = sink.arrivals().into_iter().filter(|one| one.path == "/fails").collect();
        assert_eq!(calls.len(), 2, "{calls:?}");
        let mut ids = Vec::new();
        for call in &calls {
            let tenant = call.header("x-tenant").expect("the header of the policy").to_owned();
            let body: Value = serde_json::from_slice(&call.body).expect("JSON");
            assert_eq!(body["of"], tenant);
            assert_eq!(call.header("ringback-topic"), Some("shared"));
            ids.push(call.header("webhook-id").expect("an id").to_owned());
        }
        assert_ne!(ids[0], ids[1]);
        // Each notice is signed with the secret of its tenant's topic.
        for secret in &secrets {
            let signed =
                notices.iter().filter(|notice| super::super::signatures::is_signed_by(notice, &[secret]));
            assert_eq!(signed.count(), 2);
        }
        for (_, caller) in &callers {
            let topics = caller.get(&stack, "/v1/topics").await.expect(200).to_string();
            assert!(topics.contains("ringback.on-dead") && topics.contains("ringback.on-done"), "{topics}");
        }
    }
}
