//! Dead-letter notices (`on_dead`): each dead job has one notice, with the content that the API shows. Notices are
//! retried, and survive times without a carrier.

mod faults;

use std::collections::BTreeSet;

use ringback_testkit::{Answer, Arrival, RedisServer, Role, Script, Sink, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

const NOTICES: &str = "ringback.on-dead";

/// A job that dies at its first failure and has its notice sent to `/dead`.
fn doomed(sink: &Sink, id: &str) -> Value {
    let job = with(job(sink, id), "retry", json!({"preset": "none"}));
    with(with(job, "on_dead", sink.url("/dead")), "context", json!({"tenant": "a7"}))
}

/// The notices that arrived at a path, once there are at least `wanted`.
async fn notices(sink: &Sink, path: &str, wanted: usize) -> Vec<Arrival> {
    eventually(SOON, &format!("{wanted} notices at {path}"), async || {
        let came: Vec<_> = sink.arrivals().into_iter().filter(|arrival| arrival.path == path).collect();
        if came.len() >= wanted { Ok(came) } else { Err(came.len()) }
    })
    .await
}

pub(super) fn body(arrival: &Arrival) -> Value {
    serde_json::from_slice(&arrival.body).expect("a notice is JSON")
}

/// Asserts that a notice agrees with the job as the API shows it.
fn assert_reports(notice: &Arrival, job: &Value) {
    let body = body(notice);
    assert_eq!(body["type"], "job.dead", "{body}");
    let mut data = body["data"].clone();
    let context = data.as_object_mut().expect("an object").remove("context");
    assert_eq!((&data, context), (job, Some(json!({"tenant": "a7"}))));
    let died = body["timestamp"].as_str().expect("a time");
    assert!(died >= job["created_at"].as_str().expect("a time"), "{body}");
    assert_eq!(notice.header("content-type"), Some("application/json"));
    assert_eq!(notice.header("ringback-topic"), Some(NOTICES));
    assert_eq!(notice.header("ringback-context-tenant"), Some("a7"));
    assert!(notice.header("webhook-id").is_some());
}

/// The number of jobs of a topic in a state.
async fn count(stack: &Stack, topic: &str, state: &str) -> u64 {
    stack.get(&format!("/v1/topics/{topic}")).await.json()["states"][state].as_u64().unwrap_or(0)
}

/// Waits until exactly this many notices are pending.
async fn wait_pending(stack: &Stack, deaths: u64) {
    stack.wait_get("/v1/stats", SOON, |stats| stats["outbox"]["deaths"] == deaths).await;
}

pub(super) async fn outbox_is_empty(stack: &Stack) {
    wait_pending(stack, 0).await;
}

#[tokio::test]
async fn the_notice_of_a_dead_job_agrees_with_what_the_api_shows() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("exhausted", Answer::status(500));
        sink.answer_job("gone", Answer::status(410));
        for (n, id) in ["exhausted", "gone"].into_iter().enumerate() {
            let mut doomed = doomed(&sink, id);
            doomed["retry"] = json!({"delays": ["10ms"]});
            stack.accept(&doomed).await;
            let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
            assert_eq!((&dead["reason"], &dead["id"]), (&json!(id), &json!(id)));
            let notice = notices(&sink, "/dead", n + 1).await.remove(n);
            assert_reports(&notice, &dead);
        }
        outbox_is_empty(&stack).await;
        assert_eq!(notices(&sink, "/dead", 2).await.len(), 2, "one notice each");
        let relay = stack.carriers.first().or(stack.ups.first()).expect("a carrier runs");
        assert_eq!(relay.metric("ringback_carrier_notices_published_total").await, Some(2.0));
        assert_eq!(stack.count_in("dead").await, 2);
    }
}

#[tokio::test]
async fn pull_jobs_that_die_have_notices() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let reserve = async |ttr: &str| stack.reserve_one(TOPIC, &json!({"ttr": ttr, "wait": "10s"})).await;
        let pull = |id| {
            let mut job = doomed(&sink, id);
            job.as_object_mut().expect("a job").remove("url");
            job
        };
        stack.accept(&pull("buried")).await;
        let why = json!({"reason": "unwanted", "error": "no paper"});
        assert_eq!(stack.settle(&reserve("1m").await, "bury", &why).await.status, 200);
        let notice = notices(&sink, "/dead", 1).await.remove(0);
        assert_reports(&notice, &stack.job(TOPIC, "buried").await.1);
        assert_eq!(body(&notice)["data"]["last"]["error"], "no paper");

        stack.accept(&pull("expired")).await;
        reserve("100ms").await;
        let dead = stack.wait_state(TOPIC, "expired", "dead", SOON).await;
        assert_reports(&notices(&sink, "/dead", 2).await[1], &dead);
    }
}

#[tokio::test]
async fn a_job_that_no_notifier_survives_has_a_notice() {
    let options = Stack::options().lease_margin("200ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer_job("poison", Answer::status(200).held());
    stack.accept(&with(doomed(&sink, "poison"), "timeout", "300ms")).await;
    for attempt in 1..=5 {
        sink.wait_for_job("poison", attempt, SOON).await;
        stack.notifiers[0].restart();
    }
    let dead = stack.wait_state(TOPIC, "poison", "dead", SOON).await;
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("lost"), &json!(5)));
    assert_reports(&notices(&sink, "/dead", 1).await[0], &dead);
}

#[tokio::test]
async fn the_job_s_on_dead_overrides_that_of_its_topic() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Script::always(Answer::status(500)));
        sink.answer_path("/dead", Answer::status(200));
        sink.answer_path("/topic", Answer::status(200));
        // The job is there before its topic has a policy.
        let mut bare = with(doomed(&sink, "bare"), "delay", "1s");
        bare.as_object_mut().expect("a job").remove("on_dead");
        stack.accept(&bare).await;
        let mut nobody = bare.clone();
        (nobody["id"], nobody["topic"], nobody["delay"]) = (json!("nobody"), json!("other"), json!(0));
        stack.accept(&nobody).await;
        stack.set_policy(TOPIC, &json!({"on_dead": sink.url("/topic")})).await;
        stack.accept(&doomed(&sink, "own")).await;
        let dead = stack.wait_state(TOPIC, "bare", "dead", SOON).await;
        assert_reports(&notices(&sink, "/topic", 1).await[0], &dead);
        assert_reports(&notices(&sink, "/dead", 1).await[0], &stack.job(TOPIC, "own").await.1);
        outbox_is_empty(&stack).await;
        assert_eq!(stack.count_in("dead").await, 3);
        let came = (notices(&sink, "/topic", 1).await.len(), notices(&sink, "/dead", 1).await.len());
        assert_eq!((came, count(&stack, NOTICES, "ready").await), ((1, 1), 0), "the third has no notice");
    }
}

#[tokio::test]
async fn a_notice_is_retried_by_its_topic_s_policy_and_has_no_notice_of_its_own() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(500));
        let policy = json!({"retry": {"delays": ["10ms"], "jitter": 0}, "headers": {"x-from": "us"}});
        stack.set_policy(NOTICES, &policy).await;
        let reply = stack.put(&format!("/v1/topics/{NOTICES}"), &json!({"on_dead": "http://h/"})).await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!("on_dead")));
        let (status, problem) = stack.submit(&with(doomed(&sink, "no"), "topic", NOTICES)).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_dead")), "{problem}");

        // After the delay the notifier knows the policy.
        stack.accept(&with(doomed(&sink, "a"), "delay", "1s")).await;
        let tried = notices(&sink, "/dead", 2).await;
        assert_eq!(tried[0].header("x-from"), Some("us"));
        assert_eq!((tried[0].attempt(), tried[1].attempt()), (Some(1), Some(2)));
        assert_eq!(tried[0].header("webhook-id"), tried[1].header("webhook-id"));
        eventually(SOON, "the notice is a dead letter", async || {
            match count(&stack, NOTICES, "dead").await {
                1 => Ok(()),
                n => Err(n),
            }
        })
        .await;
        outbox_is_empty(&stack).await;
        sentinel_through(&stack, &sink).await;
        assert_eq!(count(&stack, NOTICES, "dead").await, 1);
        assert_eq!(notices(&sink, "/dead", 2).await.len(), 2, "that one has no notice");
    }
}

/// Submits a later job, which is answered 200, and waits for its arrival, by when all earlier notices must have come.
async fn sentinel_through(stack: &Stack, sink: &Sink) {
    sink.answer_job("sentinel", Answer::status(200));
    sentinel(stack, sink, "sentinel").await;
}

#[tokio::test]
async fn deaths_while_no_carrier_ran_have_notices_by_the_next_one() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    stack.carriers[0].kill();
    let mut as_they_died = Vec::new();
    for n in 0..20 {
        let id = format!("job-{n}");
        let large = with(doomed(&sink, &id), "body", "x".repeat(if n % 5 == 0 { 10_000 } else { 10 }));
        stack.accept(&large).await;
        as_they_died.push(stack.wait_state(TOPIC, &id, "dead", SOON).await);
    }
    wait_pending(&stack, 20).await;
    let gone = stack.delete(&format!("/v1/topics/{TOPIC}/dead")).await;
    assert_eq!(gone.status, 200, "{:?}", gone.body);
    stack.add(Role::Carrier).await;
    let received = notices(&sink, "/dead", 20).await;
    for job in &as_they_died {
        let notice = received.iter().find(|notice| body(notice)["data"]["id"] == job["id"]);
        assert_reports(notice.unwrap_or_else(|| panic!("no notice of {job}")), job);
    }
    outbox_is_empty(&stack).await;
    assert_eq!(notices(&sink, "/dead", 20).await.len(), 20);
}

#[tokio::test]
async fn notices_are_delivered_on_a_cluster() {
    let options = Stack::options().cluster(RedisServer::options()).count(Role::Carrier, 2);
    let (stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    let jobs: Vec<Value> = (0..50).map(|n| doomed(&sink, &format!("job-{n}"))).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 50);
    let received = notices(&sink, "/dead", 50).await;
    let ids: BTreeSet<String> =
        received.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    assert_eq!((ids.len(), received.len()), (50, 50));
    outbox_is_empty(&stack).await;
}
