//! A whole stack on a cluster of three masters.

use std::time::Duration;

use ringback_testkit::{Answer, RedisServer, Role, Script, Sink, Stack, eventually};
use serde_json::{Value, json};

use crate::sample::{SOON, TOPIC, job, with};

/// Leases and locks of killed processes run out meanwhile.
const RECOVERY: Duration = Duration::from_secs(60);

async fn start() -> (Stack, Sink) {
    let options = Stack::options().cluster(RedisServer::options());
    let options = options.count(Role::Carrier, 2).count(Role::Notifier, 2);
    (options.start().await, Sink::start().await)
}

#[tokio::test]
async fn every_edge_of_a_job_works_on_a_cluster() {
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
    let cancelled = with(job(&sink, "cancelled"), "delay", "700ms");
    stack.accept(&cancelled).await;
    assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
    for (job, ..) in &jobs {
        stack.accept(job).await;
        assert_eq!(stack.submit(job).await.0, 200, "{job} again");
    }
    stack.accept(&with(job(&sink, "after"), "delay", "900ms")).await;
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
    eventually(RECOVERY, "every job is done", async || match stack.count_in("done").await {
        600 => Ok(()),
        done => Err(format!("{done} are")),
    })
    .await;
}
