//! The life of a job without faults: submits, due times, bodies, callback headers, states, repetitions, statistics,
//! and the renewal of a lease. On Redis and, in one test, on a cluster.

use ringback_testkit::{RedisServer, Role, now};

use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{between, sentinel, time};

/// A body that any re-serialising would change.
const ODD_BODY: &str = "{ \"a\" : 1.0e5,\t\"b\":[1 ,2 ] , \"big\":12345678901234567890123,\n \"-0\":-0.0,\
                        \"text\":\"\\u00e9 é 😀 \\/\" , \"a\":2}";

/// Submits with `Idempotency-Key` headers. Returns the status and the answer.
async fn post_with(stack: &Stack, path: &str, keys: &[&str], job: &Value) -> (u16, Value) {
    let keys = keys.iter().map(|key| ("Idempotency-Key", *key));
    raw_post(stack.url(path), &[JSON].into_iter().chain(keys).collect::<Vec<_>>(), job.to_string())
        .await
        .parts()
}

async fn submit_with(stack: &Stack, keys: &[&str], job: &Value) -> (u16, Value) {
    post_with(stack, "/v1/jobs", keys, job).await
}

#[tokio::test]
async fn a_key_in_place_of_an_id_makes_a_submit_repeatable() {
    let stack = StackOptions::api_only().start().await;
    let job = json!({"topic": TOPIC, "delay": "1h", "url": "http://127.0.0.1:9/"});
    let (status, first) = submit_with(&stack, &["order-1-paid"], &job).await;
    assert_eq!(status, 201, "{first}");
    let (status, again) = submit_with(&stack, &["\"order-1-paid\""], &job).await;
    assert_eq!((status, &again), (200, &first), "quoted, as the draft wants it");
    let (status, _) = submit_with(&stack, &["order-1-paid"], &with(job.clone(), "delay", "2h")).await;
    assert_eq!(status, 409);
    let (status, other) = submit_with(&stack, &["order-2-paid"], &job).await;
    assert_eq!(status, 201);
    assert_ne!(first["id"], other["id"]);
    let id = first["id"].as_str().expect("an id");
    assert_eq!(stack.job(TOPIC, id).await.1, first, "it is an id as any other");
    let other_topic = with(job.clone(), "topic", "other");
    assert_eq!(submit_with(&stack, &["order-1-paid"], &other_topic).await.0, 201);

    for (keys, job) in
        [(&["two words"][..], job.clone()), (&["a", "a"], job.clone()), (&["a"], with(job, "id", "mine"))]
    {
        let (status, problem) = submit_with(&stack, keys, &job).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("idempotency-key")), "{problem}");
    }
    let (status, problem) = post_with(&stack, "/v1/jobs/batch", &["a"], &json!([])).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("idempotency-key")), "{problem}");
    assert_eq!(stack.count_in("delayed").await, 3);
}

#[tokio::test]
async fn a_delayed_job_arrives_once_unchanged_and_never_early() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let text = format!(
        r#"{{"topic":"{TOPIC}","id":"odd","delay":"500ms","url":"{}","body": {ODD_BODY} }}"#,
        sink.url("/hook?x=1&y=%20")
    );
    let reply = stack.submit_text(text).await;
    assert_eq!(reply.status, 201, "{:?}", reply.body);
    assert_eq!(reply.header("location"), Some("/v1/jobs/e2e/odd"));
    let accepted = reply.json();
    assert_eq!(accepted["state"], "delayed");
    let due = time(&accepted["due_at"]);
    assert!(between(time(&accepted["created_at"]), due) >= Duration::from_millis(500), "{accepted}");

    let arrival = sink.wait_for_job("odd", 1, SOON).await.remove(0);
    assert!(arrival.at >= due, "due at {due}, arrived at {}", arrival.at);
    assert_eq!(arrival.due_at(), Some(due));
    assert_eq!(str::from_utf8(&arrival.body), Ok(ODD_BODY));
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("POST", "/hook?x=1&y=%20"));

    let done = stack.wait_state(TOPIC, "odd", "done", SOON).await;
    assert_eq!((&done["attempts"], &done["failures"]), (&json!(1), &json!(0)), "{done}");
    sentinel(&stack, &sink, "later").await;
    assert_eq!(sink.arrivals_of("odd").len(), 1);
}

#[tokio::test]
async fn every_way_to_write_a_due_time_is_kept_to() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let at = now() + Duration::from_millis(700);
    let at_text = format!("{at:.3}");
    let jobs = [
        ("number", with(job(&sink, "number"), "delay", 0.3)),
        ("friendly", with(job(&sink, "friendly"), "delay", "300ms")),
        ("zero", with(job(&sink, "zero"), "delay", 0)),
        ("at", with(job(&sink, "at"), "at", at_text.clone())),
        ("past", with(job(&sink, "past"), "at", "2001-02-03T04:05:06Z")),
    ];
    for (id, job) in &jobs {
        let accepted = stack.accept(job).await;
        let wait = between(time(&accepted["created_at"]), time(&accepted["due_at"]));
        match *id {
            "number" | "friendly" => assert!(wait.as_millis().abs_diff(300) <= 1, "{id}: {accepted}"),
            "at" => assert_eq!(accepted["due_at"], at_text, "{accepted}"),
            _ => assert!(wait <= Duration::from_millis(1), "{id}: {accepted}"),
        }
    }
    for arrival in sink.wait_for(jobs.len(), SOON).await {
        let due = arrival.due_at().expect("ringback-due-at");
        assert!(arrival.at >= due, "{} is early: due at {due}, arrived at {}", arrival.job_id(), arrival.at);
    }
}

#[tokio::test]
async fn the_callback_carries_the_headers_that_are_promised() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let mut sent = job(&sink, "headers");
    sent["headers"] = json!({"x-merchant": "88231", "authorization": "Bearer abc"});
    sent["context"] = json!({"key": "value", "order": "17"});
    let accepted = stack.accept(&sent).await;
    let arrival = sink.wait_for_job("headers", 1, SOON).await.remove(0);
    let header =
        |name: &str| arrival.header(name).unwrap_or_else(|| panic!("no {name} in {:?}", arrival.headers));

    assert_eq!(header("content-type"), "application/json");
    assert!(header("user-agent").starts_with("Ringback/"), "{}", header("user-agent"));
    assert_eq!(header("ringback-topic"), TOPIC);
    assert_eq!(header("ringback-job-id"), "headers");
    assert_eq!(header("ringback-attempt"), "1");
    assert_eq!(header("ringback-due-at"), accepted["due_at"]);
    assert!(
        !header("webhook-id").is_empty() && !header("webhook-id").contains('.'),
        "{}",
        header("webhook-id")
    );
    let sent_at: i64 = header("webhook-timestamp").parse().expect("unix seconds");
    assert!(sent_at.abs_diff(arrival.at.as_second()) <= 5, "{sent_at}");
    let trace: Vec<&str> = header("traceparent").split('-').collect();
    assert_eq!(trace.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2], "{trace:?}");

    assert_eq!(header("ringback-context-key"), "value");
    assert_eq!(header("ringback-context-order"), "17");
    assert_eq!(header("x-merchant"), "88231");
    assert_eq!(header("authorization"), "Bearer abc");
}

#[tokio::test]
async fn bodies_and_ids_of_all_kinds_arrive_as_they_are() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let accepted = stack.accept(&job(&sink, "now")).await;
    let arrival = sink.wait_for_job("now", 1, SOON).await.remove(0);
    let late = between(time(&accepted["due_at"]), arrival.at);
    assert!(late < Duration::from_secs(2), "{late:?} late");

    let binary = json!({
        "topic": TOPIC, "id": "binary", "url": sink.url("/hook"),
        "body_base64": "AJ+Slv8KDQ==", "content_type": "application/x-thing; v=1"
    });
    stack.accept(&binary).await;
    let arrival = sink.wait_for_job("binary", 1, SOON).await.remove(0);
    assert_eq!(arrival.body.as_ref(), [0, 159, 146, 150, 255, 10, 13]);
    assert_eq!(arrival.header("content-type"), Some("application/x-thing; v=1"));
    let large = "é".repeat(125_000);
    stack.accept(&with(job(&sink, "large"), "body", large.as_str())).await;
    let arrival = sink.wait_for_job("large", 1, SOON).await.remove(0);
    assert!(arrival.body == format!("\"{large}\""), "{} bytes arrived", arrival.body.len());

    let without_id = json!({"topic": TOPIC, "url": sink.url("/hook"), "body": 1});
    let mut ids = Vec::new();
    for _ in 0..3 {
        let reply = stack.submit_text(without_id.to_string()).await;
        let id = reply.expect(201)["id"].as_str().expect("an id").to_owned();
        assert_eq!(reply.header("location"), Some(format!("/v1/jobs/{TOPIC}/{id}").as_str()));
        ids.push(id);
    }
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?} are not in order, or not unique");
    sink.wait_for_jobs(&ids, 1, SOON).await;

    for topic in ["a", "b.c_D-9"] {
        stack.accept(&with(job(&sink, "same"), "topic", topic)).await;
    }
    let arrivals = sink.wait_for_job("same", 2, SOON).await;
    let mut topics: Vec<_> = arrivals.iter().filter_map(|arrival| arrival.header("ringback-topic")).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["a", "b.c_D-9"]);
    assert_ne!(arrivals[0].header("webhook-id"), arrivals[1].header("webhook-id"));

    let reply = stack.get("/v1/jobs/e2e/nobody").await;
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(reply.expect(404)["status"], 404);
}

#[tokio::test]
async fn a_job_is_shown_in_each_state_it_passes() {
    let options = Stack::options().count(Role::Notifier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    let held = with(job(&sink, "held"), "delay", "1500ms");
    sink.answer_job("held", Answer::status(200).held());
    stack.accept(&held).await;
    let delayed = stack.job(TOPIC, "held").await;
    assert_eq!((delayed.0, &delayed.1["state"]), (200, &json!("delayed")), "{}", delayed.1);
    let ready = stack.wait_state(TOPIC, "held", "ready", SOON).await;

    stack.add(Role::Notifier).await;
    sink.wait_for_job("held", 1, SOON).await;
    let reserved = stack.wait_state(TOPIC, "held", "reserved", SOON).await;
    assert_eq!(reserved["attempts"], 1);
    sink.release();
    let done = stack.wait_state(TOPIC, "held", "done", SOON).await;

    for shown in [&delayed.1, &ready, &reserved, &done] {
        shows_a_job(shown, "held");
        assert_eq!(shown["due_at"], delayed.1["due_at"]);
        assert_eq!(shown["created_at"], delayed.1["created_at"]);
    }
}

#[tokio::test]
async fn the_same_job_twice_is_one_job() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let sent = with(job(&sink, "twice"), "delay", "1500ms");
    let first = stack.accept(&sent).await;
    let (status, second) = stack.submit(&sent).await;
    assert_eq!((status, &second), (200, &first));

    let other = with(sent.clone(), "body", json!({"id": "other"}));
    let (status, conflict) = stack.submit(&other).await;
    assert_eq!((status, &conflict["status"]), (409, &json!(409)), "{conflict}");

    stack.wait_state(TOPIC, "twice", "done", SOON).await;
    let (status, after) = stack.submit(&sent).await;
    assert_eq!((status, &after["state"]), (200, &json!("done")), "{after}");
    assert_eq!(stack.submit(&other).await.0, 409, "other content after the job is done");

    sentinel(&stack, &sink, "later").await;
    let arrivals = sink.arrivals_of("twice");
    assert_eq!(arrivals.len(), 1);
    assert_eq!(arrivals[0].body, sent["body"].to_string(), "the first content counts");
}

#[tokio::test]
async fn the_stats_count_every_job_in_its_state() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for id in ["a", "b", "c"] {
        stack.accept(&job(&sink, id)).await;
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
    stack.accept(&with(job(&sink, "far"), "delay", "1h")).await;
    let stats = eventually(SOON, "a notifier has reported the lateness of its attempts", async || {
        let stats = stack.stats().await;
        if stats["lateness_ms"]["max"].is_number() { Ok(stats) } else { Err(stats) }
    })
    .await;
    let states = json!({"delayed": 1, "ready": 0, "reserved": 0, "done": 3, "dead": 0, "cancelled": 0, "purged": 0, "missing": 0});
    assert_eq!(stats["states"], states);
    assert_eq!(stats["topics"], 1, "{stats}");
    assert_eq!(stats["store"], json!({"kind": "redis", "profile": "memory", "layout": 6}));
    for figure in ["p50", "p99", "max"] {
        let late = &stats["lateness_ms"][figure];
        assert!(late.as_f64().is_some_and(|late| late >= 0.0), "{stats}");
        let decimals = late.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        assert!(decimals <= 3, "{stats}");
    }
}

#[tokio::test]
async fn jobs_arrive_through_a_cluster_as_well() {
    let options = Stack::options().cluster(RedisServer::options()).count(Role::Carrier, 2);
    let (stack, sink) = (options.start().await, Sink::start().await);
    let ids: Vec<String> = (0..60).map(|n| format!("job-{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        stack.accept(&with(job(&sink, id), "delay", format!("{}ms", n * 10))).await;
    }
    sink.wait_for_jobs(&ids, 1, SOON).await;
    for arrival in sink.arrivals() {
        assert!(arrival.due_at().is_some_and(|due| arrival.at >= due), "{} is early", arrival.job_id());
    }
    stack.wait_state(TOPIC, "job-59", "done", SOON).await;
    assert_eq!(stack.stats().await["store"]["kind"], "redis-cluster");
}

#[tokio::test]
async fn a_call_longer_than_its_lease_is_renewed_and_delivered_once() {
    // Leases last 15 s and this margin.
    let (stack, sink) = (Stack::options().lease_margin("1s").start().await, Sink::start().await);
    sink.answer(Answer::status(200).after(Duration::from_secs(18)));
    let slow = with(with(job(&sink, "slow"), "timeout", "30s"), "retry", json!({"preset": "none"}));
    stack.accept(&slow).await;
    let done = stack.wait_state(TOPIC, "slow", "done", Duration::from_secs(40)).await;
    assert_eq!((&done["attempts"], &done["failures"]), (&json!(1), &json!(0)), "{done}");
    assert_eq!((sink.seen(), sink.hung_up()), (1, 0));
}

/// Asserts that an answer has all fields of a job and no unknown one.
fn shows_a_job(shown: &Value, id: &str) {
    let fields = shown.as_object().unwrap_or_else(|| panic!("{shown} is not an object"));
    let always = ["topic", "id", "state", "due_at", "created_at", "attempts", "failures"];
    for name in always {
        assert!(fields.contains_key(name), "no {name} in {shown}");
    }
    for name in fields.keys() {
        assert!(
            always.contains(&name.as_str()) || ["last", "reason", "waiting"].contains(&name.as_str()),
            "{name} in {shown}"
        );
    }
    assert_eq!((&shown["topic"], &shown["id"]), (&json!(TOPIC), &json!(id)));
    assert!(shown["attempts"].is_u64() && shown["failures"].is_u64(), "{shown}");
    time(&shown["due_at"]);
    time(&shown["created_at"]);
}
