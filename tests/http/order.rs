//! Ordered topics over HTTP with real notifiers: policies, keys of submits, the order of deliveries, what jobs wait
//! for, keys that dead jobs hold, and what is refused.

use ringback_testkit::Script;

use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};

/// A job of the key `order-7`.
fn of_key(sink: &Sink, name: &str) -> Value {
    with(job(sink, &format!("order-7~{name}")), "key", "order-7")
}

fn path(id: &str) -> String {
    format!("/v1/jobs/{TOPIC}/{id}")
}

fn topic(below: &str) -> String {
    format!("/v1/topics/{TOPIC}{below}")
}

async fn ordered(stack: &Stack, policy: &Value) {
    let put = stack.put(&topic(""), policy).await.expect(201);
    assert_eq!(put["policy"], *policy);
}

/// Waits until a job waits for those of its key, and returns what its answer says of that, without `since`.
async fn waiting(stack: &Stack, id: &str) -> Value {
    let mut job = stack.wait_get(&path(id), SOON, |job| job["waiting"]["for"] == "order").await;
    let since = job["waiting"].as_object_mut().expect("an object").remove("since");
    assert_eq!((since.as_ref(), &job["state"]), (Some(&job["due_at"]), &json!("ready")), "{job}");
    job["waiting"].take()
}

/// The ends of the ids of the jobs that arrived, in order.
fn arrived(sink: &Sink) -> Vec<String> {
    let end = |id: &str| id.rsplit('~').next().unwrap_or_default().to_owned();
    sink.arrivals().iter().map(|arrival| end(arrival.job_id())).collect()
}

#[tokio::test]
async fn jobs_of_a_key_arrive_one_at_a_time_in_the_order_of_their_submits() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        ordered(&stack, &json!({"order": "key"})).await;
        let shown = stack.wait_get(&topic(""), SOON, |topic| topic["order"]["since"].is_string()).await;
        assert_eq!((&shown["order"]["by"], &shown["order"]["on_dead"]), (&json!("key"), &json!("next")));
        sink.answer_job("order-7~1", Answer::status(200).held());
        for name in ["1", "2"] {
            stack.accept(&of_key(&sink, name)).await;
        }
        let made = stack.accept(&with(with(of_key(&sink, ""), "id", Value::Null), "key", "order-7")).await;
        let made = made["id"].as_str().expect("an id").to_owned();
        assert!(made.starts_with("order-7~") && made.len() == "order-7~".len() + 26, "{made}");
        sink.wait_for_job("order-7~1", 1, SOON).await;
        // Another key is not held up.
        stack.accept(&with(job(&sink, "order-8~1"), "key", "order-8")).await;
        sink.wait_for_job("order-8~1", 1, SOON).await;
        let behind =
            |before| json!({"for": "order", "key": "order-7", "behind": "order-7~1", "before": before});
        assert_eq!(waiting(&stack, "order-7~2").await, behind(1));
        assert_eq!(waiting(&stack, &made).await, behind(2));
        sink.release();
        stack.wait_state(TOPIC, &made, "done", SOON).await;
        let last = made.rsplit('~').next().unwrap_or_default();
        assert_eq!(arrived(&sink), ["1", "1", "2", last]);
    }
}

#[tokio::test]
async fn jobs_of_a_key_wait_for_a_retry_of_the_first() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.retry("1h").start().await, Sink::start().await);
        ordered(&stack, &json!({"order": "key"})).await;
        sink.answer_job("order-7~1", Script::first(1, Answer::status(503)));
        stack.accept(&of_key(&sink, "1")).await;
        sink.wait_for_job("order-7~1", 1, SOON).await;
        stack.accept(&of_key(&sink, "2")).await;
        assert_eq!(waiting(&stack, "order-7~2").await["behind"], "order-7~1");
        stack.wait_state(TOPIC, "order-7~1", "delayed", SOON).await;
        stack.post_empty(&format!("{}/run", path("order-7~1"))).await.expect(200);
        stack.wait_state(TOPIC, "order-7~2", "done", SOON).await;
        assert_eq!(arrived(&sink), ["1", "1", "2"]);
    }
}

#[tokio::test]
async fn a_dead_job_holds_its_key_until_it_is_unblocked() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        ordered(&stack, &json!({"order": "key", "order_on_dead": "hold"})).await;
        sink.answer_job("order-7~1", Answer::status(410));
        for name in ["1", "2", "3"] {
            stack.accept(&of_key(&sink, name)).await;
        }
        stack.wait_state(TOPIC, "order-7~1", "dead", SOON).await;
        let held = |before| json!({"for": "order", "key": "order-7", "behind": "order-7~1", "held": true, "before": before});
        assert_eq!(waiting(&stack, "order-7~2").await, held(1));
        assert_eq!(waiting(&stack, "order-7~3").await, held(2));

        let unblock = topic("/keys/order-7/unblock");
        let answer = |unblocked: bool| json!({"topic": TOPIC, "key": "order-7", "unblocked": unblocked});
        let other = stack.post_empty(&topic("/keys/order-8/unblock")).await.expect(200);
        assert_eq!(other["unblocked"], false);
        assert_eq!(stack.post_empty(&unblock).await.expect(200), answer(true));
        stack.wait_state(TOPIC, "order-7~3", "done", SOON).await;
        assert_eq!(stack.post_empty(&unblock).await.expect(200), answer(false));
        assert_eq!(arrived(&sink), ["1", "2", "3"]);
        assert_eq!(stack.topic(TOPIC).await["states"]["dead"], 1);
        // Only the call that changed something leaves an entry.
        let path = "/v1/audit-log?operation=unblock";
        let log = stack.wait_get(path, SOON, |log| log["items"][0].is_object()).await;
        let items = log["items"].as_array().expect("items");
        let target = json!({"topic": TOPIC, "order_key": "order-7"});
        assert_eq!((items.len(), &items[0]["target"]), (1, &target), "{log}");
    }
}

#[tokio::test]
async fn jobs_that_wait_go_at_once_when_the_order_is_removed() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        ordered(&stack, &json!({"order": "key", "order_on_dead": "hold"})).await;
        sink.answer_job("order-7~1", Answer::status(200).held());
        for name in ["1", "2", "3"] {
            stack.accept(&of_key(&sink, name)).await;
        }
        waiting(&stack, "order-7~3").await;
        let without = stack.patch(&topic(""), &json!({"order": null})).await.expect(200);
        let mut dropped: Vec<_> =
            without["dropped"].as_array().expect("names").iter().map(ToString::to_string).collect();
        dropped.sort();
        assert_eq!(dropped, ["\"order\"", "\"order_on_dead\""]);
        sink.wait_for_jobs(&["order-7~2", "order-7~3"], 1, SOON).await;
        assert_eq!(stack.topic(TOPIC).await["order"], Value::Null);
        sink.release();
    }
}

#[tokio::test]
async fn batches_imports_and_idempotency_keys_take_keys() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let far =
            |key: &str| json!({"topic": TOPIC, "key": key, "delay": "1h", "url": "http://127.0.0.1:9/"});
        let (_, batch) = stack.batch(&[far("a"), with(far("a"), "id", "b~1")]).await;
        let results = &batch["results"];
        assert!(results[0]["job"]["id"].as_str().is_some_and(|id| id.starts_with("a~")), "{batch}");
        assert_eq!(
            (&results[1]["status"], &results[1]["problem"]["errors"][0]["field"]),
            (&json!(422), &json!("id"))
        );

        let headers = [JSON, ("Idempotency-Key", "once")];
        let submit = async || raw_post(stack.url("/v1/jobs"), &headers, far("a").to_string()).await.parts();
        let ((first, made), (second, again)) = (submit().await, submit().await);
        assert_eq!((first, second, &made["id"]), (201, 200, &again["id"]));
        assert!(made["id"].as_str().is_some_and(|id| id.starts_with("a~key-")), "{made}");

        stack.import(&[with(far("c"), "id", "c~1"), far("c")]).await;
    }
}

#[tokio::test]
async fn wrong_keys_ids_and_policies_are_refused_with_what_is_allowed() {
    let stack = StackOptions::api_only().start().await;
    let job = json!({"topic": TOPIC, "url": "http://127.0.0.1:9/"});
    let every = |key: &str| json!({"every": "1h", "job": with(job.clone(), "key", key)});
    for (status, (answered, problem), field, allowed) in [
        (422, stack.post("/v1/jobs", &with(job.clone(), "key", "a~b")).await.parts(), "key", "1 to 101 of"),
        (
            422,
            stack.post("/v1/jobs", &with(with(job.clone(), "key", "a"), "id", "ab")).await.parts(),
            "id",
            "a, or an id that begins with a~, or no id",
        ),
        (422, stack.put("/v1/schedules/s", &every("a")).await.parts(), "job.key", "no key"),
        (422, stack.put(&topic(""), &json!({"order": "id"})).await.parts(), "order", "\"key\""),
        (
            422,
            stack.put(&topic(""), &json!({"order": "key", "order_on_dead": "stop"})).await.parts(),
            "order_on_dead",
            "\"next\" or \"hold\"",
        ),
        (
            422,
            stack.patch(&topic(""), &json!({"order_on_dead": "hold"})).await.parts(),
            "order_on_dead",
            "only together with",
        ),
        (422, stack.post_empty(&topic("/keys/a~b/unblock")).await.parts(), "key", "1 to 101 of"),
        (422, stack.post_empty("/v1/topics/a%20b/keys/a/unblock").await.parts(), "topic", "1 to 64 of"),
    ] {
        let error = &problem["errors"][0];
        assert_eq!((answered, &error["field"]), (status, &json!(field)), "{problem}");
        assert!(error["allowed"].as_str().is_some_and(|text| text.contains(allowed)), "{problem}");
    }
    ordered(&stack, &json!({"order": "key"})).await;
    let changed = stack.patch(&topic(""), &json!({"order_on_dead": "hold"})).await.expect(200);
    assert_eq!(changed["policy"], json!({"order": "key", "order_on_dead": "hold"}));
    let effective = stack.topic(TOPIC).await;
    assert_eq!(effective["order"]["on_dead"], "hold", "{effective}");
}
