//! Dead jobs over HTTP: listed by reason and time, purged, and revived in bulk by a carrier, also after it was killed.

use std::collections::BTreeSet;

use http::Method;
use ringback_testkit::{Reply, Role, now};

use super::bulk::{begun, ended, location, progress, survives_kills};
use crate::prelude::*;
use crate::sample_jobs::time;

/// Where dead jobs of the usual topic are revived.
const REVIVE: &str = "/v1/topics/e2e/dead/revive";

/// A line of an import with a dead job.
fn dead(topic: &str, id: &str, reason: &str) -> Value {
    json!({"topic": topic, "id": id, "url": "http://127.0.0.1:9/", "state": "dead", "reason": reason,
        "attempts": 4, "failures": 3})
}

/// `count` dead jobs of the usual topic.
fn many(count: usize, reason: &str) -> Vec<Value> {
    (0..count).map(|n| dead(TOPIC, &format!("{reason}-{n}"), reason)).collect()
}

/// Makes a request below the usual topic, without a body.
async fn call(stack: &Stack, method: Method, path: &str) -> Reply {
    stack.request(method, &format!("/v1/topics/{TOPIC}{path}"), None).await
}

/// All dead jobs that a query finds, over all pages.
async fn listed(stack: &Stack, query: &str) -> Vec<Value> {
    stack.pages(&format!("/v1/topics/{TOPIC}/dead?{query}")).await.concat()
}

/// Starts a bulk revive, and returns the path of its progress.
async fn revive(stack: &Stack, ask: Value) -> String {
    let reply = stack.post(REVIVE, &ask).await;
    let answer = reply.expect(202);
    assert_eq!((&answer["filter"]["topic"], &answer["rate"]), (&json!(TOPIC), &ask["rate"]));
    location(&reply)
}

#[tokio::test]
async fn dead_jobs_are_listed_by_why_and_when_they_died() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let began = now();
        stack.import(&many(30, "gone")).await;
        stack
            .import(&[dead("other", "x", "gone"), json!({"topic": TOPIC, "id": "y", "url": "http://h/"})])
            .await;
        eventually(SOON, "a millisecond passes", async || {
            let at = now();
            if at > began + Duration::from_millis(3) { Ok(()) } else { Err(at) }
        })
        .await;
        let between = now();
        stack.import(&many(5, "lost")).await;
        let all = listed(&stack, "limit=7").await;
        assert_eq!(all.len(), 35);
        let times: Vec<_> = all.iter().map(|job| time(&job["died_at"])).collect();
        assert!(times.is_sorted() && times[0] >= began - Duration::from_millis(1), "{times:?}");
        let ids: BTreeSet<_> = all.iter().map(|job| job["id"].as_str().expect("an id")).collect();
        assert_eq!(ids.len(), 35);
        let first = &all[0];
        let (_, known) = stack.job(TOPIC, first["id"].as_str().expect("an id")).await;
        assert_eq!(*first, with(known, "died_at", first["died_at"].clone()));
        assert_eq!((&first["reason"], &first["state"]), (&json!("gone"), &json!("dead")));
        let between = format!("{between:.3}");
        for (query, count) in [
            ("reason=lost".to_owned(), 5),
            ("reason=exhausted".to_owned(), 0),
            (format!("died_before={between}"), 30),
            (format!("died_after={between}"), 5),
            (format!("died_after={between}&reason=gone&limit=1000"), 0),
        ] {
            assert_eq!(listed(&stack, &query).await.len(), count, "{query}");
        }
    }
}

#[tokio::test]
async fn dead_jobs_are_purged_by_filter_and_by_name() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        stack.import(&many(1200, "gone")).await;
        stack.import(&[many(3, "lost"), vec![dead("other", "x", "gone")]].concat()).await;
        stack.import(&[dead(TOPIC, "revive", "lost")]).await;
        let (mut purged, mut next) = (0, String::new());
        loop {
            let reply = call(&stack, Method::DELETE, &format!("/dead?reason=gone{next}")).await;
            let answer = reply.json();
            assert_eq!(reply.status, 200, "{answer}");
            purged += answer["purged"].as_u64().expect("a number");
            let Some(cursor) = answer["next"].as_str() else { break };
            next = format!("&cursor={cursor}");
        }
        assert_eq!((purged, listed(&stack, "").await.len()), (1200, 4));
        let again = call(&stack, Method::DELETE, "/dead?reason=gone").await.json();
        assert_eq!(again, json!({"purged": 0, "next": null}));

        let (_, known) = stack.job(TOPIC, "lost-1").await;
        let reply = call(&stack, Method::DELETE, "/dead/lost-1").await;
        assert_eq!((reply.status, reply.json()), (200, known));
        assert_eq!(call(&stack, Method::DELETE, "/dead/lost-1").await.status, 404);
        assert_eq!(call(&stack, Method::DELETE, "/dead/revive").await.json()["id"], "revive");
        stack.accept(&json!({"topic": TOPIC, "id": "ready", "url": "http://127.0.0.1:9/"})).await;
        let refused = call(&stack, Method::DELETE, "/dead/ready").await;
        refused.refused(409, "is ready, not dead");
        assert_eq!((stack.count_in("dead").await, stack.count_in("purged").await), (3, 1202));
    }
}

#[tokio::test]
async fn many_dead_jobs_are_revived_at_their_rate_and_delivered() {
    for options in [Stack::options(), Stack::options().in_one_process().store("embedded:./data")] {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let jobs: Vec<_> =
            many(400, "gone").into_iter().map(|job| with(job, "url", sink.url("/hook"))).collect();
        stack.import(&[jobs, many(3, "lost")].concat()).await;
        let began = now();
        let location = revive(&stack, json!({"reason": "gone", "rate": 400})).await;
        let done = ended(&stack, &location).await;
        assert!(now() >= began + Duration::from_millis(900), "400 at 400 a second take a second: {done}");
        assert_eq!((&done["changed"], &done["filter"]["reason"]), (&json!(400), &json!("gone")));
        assert!(time(&done["ended_at"]) >= time(&done["started_at"]));
        sink.wait_for(400, SOON).await;
        let counts = sink.counts();
        assert!(counts.len() == 400 && counts.values().all(|count| *count == 1));
        let arrival = sink.arrivals_of("gone-7").remove(0);
        assert_eq!(arrival.attempt(), Some(5), "attempts go on");
        let done_job = stack.wait_state(TOPIC, "gone-7", "done", SOON).await;
        assert_eq!(done_job["failures"], 0, "{done_job}");
        assert_eq!(stack.count_in("dead").await, 3);
        let list = stack.get("/v1/bulk").await.json();
        assert_eq!(list["items"], json!([done]));
    }
}

#[tokio::test]
async fn what_dies_after_the_call_is_not_revived_and_nothing_is_twice() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    // All jobs are in one shard, and they are more than are read at a time.
    let jobs: Vec<_> = many(800, "gone")
        .into_iter()
        .map(|job| {
            let id = format!("one~{}", job["id"].as_str().expect("an id"));
            with(with(job, "url", sink.url("/hook")), "id", id)
        })
        .collect();
    stack.import(&jobs).await;
    let location = revive(&stack, json!({"rate": 1000})).await;
    // Each revived job dies again at once, while the bulk operation goes on.
    assert_eq!(ended(&stack, &location).await["changed"], 800);
    stack.wait_count("dead", 800, SOON).await;
    assert_eq!(sink.seen(), 800);
}

#[tokio::test]
async fn a_bulk_revive_waits_for_a_carrier() {
    let mut stack = StackOptions::api_only().start().await;
    stack.import(&many(50, "gone")).await;
    let location = revive(&stack, json!({"rate": 1000})).await;
    let still = progress(&stack, &location).await;
    assert_eq!((&still["state"], &still["changed"]), (&json!("running"), &json!(0)));
    stack.add(Role::Carrier).await;
    assert_eq!(ended(&stack, &location).await["changed"], 50);
    assert_eq!(stack.count_in("ready").await, 50);
    stack.carriers[0]
        .wait_metric(r#"ringback_carrier_changed_jobs_total{action="revive"}"#, 50.0, SOON)
        .await;
}

#[tokio::test]
async fn a_carrier_killed_in_the_middle_is_followed_by_another_and_each_job_is_revived_once() {
    let options = Stack::options().count(Role::Carrier, 2).lock_ttl("500ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    let jobs: Vec<_> =
        many(1500, "gone").into_iter().map(|job| with(job, "url", sink.url("/hook"))).collect();
    stack.import(&jobs).await;
    let location = revive(&stack, json!({"rate": 300})).await;
    survives_kills(&mut stack, &sink, &location, 1500).await;
}

#[tokio::test]
async fn a_bulk_revive_goes_on_after_its_process_was_killed_and_started_again() {
    let options = Stack::options().in_one_process().store("embedded:./data").lock_ttl("3s");
    let mut stack = options.start().await;
    stack
        .import(&many(900, "gone").into_iter().map(|job| with(job, "url", Value::Null)).collect::<Vec<_>>())
        .await;
    let location = revive(&stack, json!({"rate": 300})).await;
    begun(&stack, &location, 900).await;
    stack.ups[0].restart();
    stack.ready(SOON).await;
    assert_eq!(ended(&stack, &location).await["changed"], 900);
    assert_eq!((stack.count_in("ready").await, stack.count_in("dead").await), (900, 0));
}

#[tokio::test]
async fn a_stopped_bulk_operation_revives_no_more_and_several_go_on_at_once() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    stack.import(&[many(500, "gone"), many(500, "lost")].concat()).await;
    let slow = revive(&stack, json!({"reason": "gone", "rate": 50})).await;
    let fast = revive(&stack, json!({"reason": "lost", "rate": 5000})).await;
    begun(&stack, &slow, 500).await;
    let stopped = stack.delete(&slow).await.json();
    assert_eq!(stopped["state"], "stopped");
    let revived = stopped["changed"].as_u64().expect("a number");
    assert_eq!(ended(&stack, &fast).await["changed"], 500);
    assert_eq!(progress(&stack, &slow).await, stopped);
    assert_eq!(stack.count_in("dead").await, 500 - revived);
    // Another revive takes the jobs that are left.
    let rest = revive(&stack, json!({"reason": "gone", "rate": 5000})).await;
    assert_eq!(ended(&stack, &rest).await["changed"], 500 - revived);
    assert_eq!(stack.delete(&fast).await.json()["state"], "done");
}

#[tokio::test]
async fn too_many_bulk_operations_and_wrong_fields_are_refused() {
    let stack = StackOptions::api_only().start().await;
    for _ in 0..16 {
        revive(&stack, json!({"rate": 1})).await;
    }
    let refused = stack.post(REVIVE, &json!({"rate": 1})).await;
    refused.refused(409, "16 bulk operations are already running");
    let empty = stack.post_empty(REVIVE).await;
    assert_eq!(empty.status, 409, "a call without a body is one for all");

    let bad = async |body: Value| stack.post(REVIVE, &body).await.status;
    assert_eq!(bad(json!({"rate": 0})).await, 422);
    assert_eq!(bad(json!({"rate": 10, "colour": "red"})).await, 422);
    assert_eq!(bad(json!([])).await, 400);
    let topic = stack.post_empty("/v1/topics/a%20b/dead/revive").await;
    assert_eq!(topic.status, 422);
    let id = stack.get("/v1/bulk").await.json()["items"][0]["id"].clone();
    let id = id.as_str().expect("an id");
    for path in ["/v1/bulk/x", "/v1/bulk/0123456789abcdef", &format!("/v1/bulk/{}0", id.to_uppercase())] {
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(stack.request(method, path, None).await.status, 404, "{path}");
        }
    }
    assert_eq!(stack.get(&format!("/v1/bulk/{id}")).await.json()["state"], "running");
    for (path, field) in [
        ("/dead?reason=a%20b", "reason"),
        ("/dead?died_after=yesterday", "died_after"),
        ("/dead?cursor=0-0-0", "cursor"),
        ("/dead?limit=1001", "limit"),
        ("/dead?state=dead", "state"),
    ] {
        let reply = call(&stack, Method::GET, path).await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!(field)), "{path}");
    }
    assert_eq!(call(&stack, Method::DELETE, "/dead?limit=5").await.status, 422);
    assert_eq!(call(&stack, Method::DELETE, "/dead?cursor=zz").await.status, 422);
}

#[tokio::test]
async fn a_job_that_died_by_itself_is_listed_with_its_last_answer() {
    let (stack, sink) = (Stack::options().retry("10ms").start().await, Sink::start().await);
    sink.answer(Answer::status(503));
    stack.accept(&job(&sink, "broken")).await;
    stack.wait_state(TOPIC, "broken", "dead", SOON).await;
    let all = listed(&stack, "").await;
    assert_eq!(
        (all.len(), &all[0]["last"]["status"], &all[0]["reason"]),
        (1, &json!(503), &json!("exhausted"))
    );
    assert!(time(&all[0]["died_at"]) >= time(&all[0]["last"]["at"]), "{all:?}");
}
