//! A whole stack on a Redis Cluster of three masters: every transition, killed processes, and a node that hangs while
//! consumers wait.

use ringback_testkit::{RedisServer, Role, Script};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};

/// The limit until everything works again; leases and locks of killed processes expire before that.
const RECOVERY: Duration = Duration::from_secs(60);

async fn start() -> (Stack, Sink) {
    let options = Stack::options().cluster(RedisServer::options());
    let options = options.count(Role::Carrier, 2).count(Role::Notifier, 2);
    (options.start().await, Sink::start().await)
}

#[tokio::test]
async fn every_transition_of_a_job_works_on_a_cluster() {
    let (stack, sink) = start().await;
    sink.answer_job("recovers", Script::first(2, Answer::status(500)));
    sink.answer_job("fails", Answer::status(500));
    sink.answer_job("gone", Answer::status(410));
    let one_tier = json!({"delays": ["100ms"], "jitter": 0});
    let jobs = [
        (job(&sink, "now"), 1, "done"),
        (with(job(&sink, "later"), "delay", "500ms"), 1, "done"),
        (job(&sink, "recovers"), 3, "done"),
        (with(job(&sink, "fails"), "retry", one_tier), 2, "dead"),
        (job(&sink, "gone"), 1, "dead"),
    ];
    let cancelled = with(job(&sink, "cancelled"), "delay", "1500ms");
    stack.accept(&cancelled).await;
    assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
    for (job, ..) in &jobs {
        stack.accept(job).await;
        assert_eq!(stack.submit(job).await.0, 200, "{job} again");
    }
    stack.accept(&with(job(&sink, "after"), "delay", "1600ms")).await;
    sink.wait_for_job("after", 1, SOON).await;
    for (job, attempts, state) in &jobs {
        let id = job["id"].as_str().expect("an id");
        let ended = stack.wait_state(TOPIC, id, state, SOON).await;
        assert_eq!(ended["attempts"], *attempts, "{ended}");
        assert_eq!(sink.arrivals_of(id).len(), *attempts, "{id}");
    }
    assert!(sink.arrivals_of("cancelled").is_empty());
    let states = &stack.stats().await["states"];
    assert_eq!((&states["dead"], &states["cancelled"]), (&json!(2), &json!(1)), "{states}");
}

#[tokio::test]
async fn on_a_cluster_kill_9_of_a_carrier_and_a_notifier_loses_no_job() {
    let (mut stack, sink) = start().await;
    let ids: Vec<String> = (0..600).map(|n| format!("job-{n}")).collect();
    let jobs: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| {
            let due = with(job(&sink, id), "delay", format!("{}ms", n * 5));
            with(with(due, "timeout", "1s"), "topic", format!("topic-{}", n % 7))
        })
        .collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(600)), "{answer}");

    sink.wait_for(100, RECOVERY).await;
    stack.carriers[0].kill();
    stack.notifiers[0].kill();
    sink.wait_for(300, RECOVERY).await;
    stack.carriers[0].restart();
    stack.notifiers[0].restart();
    stack.carriers[1].kill();
    stack.notifiers[1].kill();
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    for arrival in sink.arrivals() {
        assert!(arrival.due_at().is_some_and(|due| arrival.at >= due), "{} is early", arrival.job_id());
    }
    stack.wait_count("done", 600, RECOVERY).await;
}

/// A stack without notifiers on a cluster whose nodes may hang one by one, with pull jobs in all shards.
async fn with_jobs_for_pull(count: usize) -> Stack {
    let nodes = RedisServer::options().arg("--cluster-require-full-coverage", "no");
    let options = Stack::options().cluster(nodes).env("RINGBACK_SHARDS", "24");
    let stack = options.count(Role::Notifier, 0).start().await;
    let jobs: Vec<Value> = (0..count).map(|n| json!({"topic": TOPIC, "id": format!("job-{n}")})).collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(count)), "{answer}");
    stack
}

/// Reserves jobs of a topic. Returns how many came, or the status of a refusal.
fn reserve(stack: &Stack, topic: &str, ask: &Value) -> impl Future<Output = Result<usize, u16>> + use<> {
    let request = raw_post(stack.url(&format!("/v1/topics/{topic}/reserve")), &[JSON], ask.to_string());
    async {
        let (status, answer) = request.await.parts();
        answer["jobs"].as_array().map(Vec::len).ok_or(status)
    }
}

/// Submits pull jobs under up to 20 ids until one is accepted, by a shard whose node answers.
async fn accept(stack: &Stack, topic: &str) {
    for n in 0..20 {
        if stack.submit(&json!({"topic": topic, "id": n.to_string()})).await.0 == 201 {
            return;
        }
    }
    panic!("no shard takes a job");
}

#[tokio::test]
async fn a_node_that_hangs_keeps_no_consumer_from_the_jobs_of_the_others() {
    let mut stack = with_jobs_for_pull(400).await;
    stack.cluster_mut().node_mut(0).stop();
    let mut consumers: JoinSet<_> = (0..80).map(|_| reserve(&stack, TOPIC, &json!({}))).collect();
    let mut found = Vec::new();
    while let Some(ended) = consumers.join_next().await {
        found.push(ended.expect("an answer"));
    }
    assert_eq!(found, [Ok(1); 80]);
    // One answer has all jobs that are left on the other nodes.
    let all = reserve(&stack, TOPIC, &json!({"max": 100})).await;
    assert_eq!(all, Ok(100));
    stack.cluster_mut().node_mut(0).cont();
}

/// The wake-up of a topic with new jobs is published over the first node, which hangs.
#[tokio::test]
async fn who_waits_is_given_jobs_of_the_other_nodes_while_the_first_one_hangs() {
    const WAITERS: usize = 8;
    let mut stack = with_jobs_for_pull(0).await;
    let topic = |n: usize| format!("waits-{n}");
    // All shards have answered before, and the first call of each waiter ends before the node hangs.
    assert_eq!(reserve(&stack, &topic(0), &json!({})).await, Ok(0));
    let mut waiters: JoinSet<_> =
        (0..WAITERS).map(|n| reserve(&stack, &topic(n), &json!({"wait": "60s"}))).collect();
    assert!(timeout(Duration::from_secs(2), waiters.join_next()).await.is_err());
    stack.cluster_mut().node_mut(0).stop();
    for n in 0..WAITERS {
        accept(&stack, &topic(n)).await;
    }
    while let Some(waiter) = timeout(SOON, waiters.join_next()).await.expect("in time") {
        let answer = waiter.expect("an answer");
        assert!(matches!(answer, Ok(1..)), "{answer:?}");
    }
    stack.cluster_mut().node_mut(0).cont();
}
