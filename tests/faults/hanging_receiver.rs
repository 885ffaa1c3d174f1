//! A receiver that accepts calls and answers none, under many topics or many host names: it uses a bounded part of a
//! notifier's places, and other jobs are delivered meanwhile.

use std::net::{IpAddr, Ipv4Addr};

use ringback_testkit::{NameServer, Role};

use crate::prelude::*;

/// The places of the notifier, and those that one origin may have while it is alone.
const PLACES: usize = 512;
const MOST: usize = 448;
/// A timeout longer than the test.
const HANGS: &str = "55s";
/// The wait of a job for a place, if all of them were held.
const WHILE_IT_HANGS: Duration = Duration::from_secs(30);

fn one_notifier() -> StackOptions {
    Stack::options().count(Role::Notifier, 1).count(Role::Api, 1)
}

async fn submit(stack: &Stack, jobs: &[Value]) {
    for jobs in jobs.chunks(500) {
        let answer = eventually(SOON, "the jobs are accepted", async || match stack.batch(jobs).await {
            (200, answer) if answer["refused"] == 0 => Ok(()),
            (status, answer) => Err(format!("{status}: {answer}")),
        });
        answer.await;
    }
}

/// Submits jobs of another topic one by one, and waits for each while the receiver hangs.
async fn others_are_delivered(stack: &Stack, sink: &Sink) {
    for n in 0..30 {
        let id = format!("other-{n}");
        stack.accept(&with_all(job(sink, &id), &json!({"topic": "other"}))).await;
        sink.wait_for_job(&id, 1, WHILE_IT_HANGS).await;
    }
}

#[tokio::test]
async fn under_a_hundred_topics_it_leaves_places_for_another_receiver() {
    let (stack, hole, sink) = (one_notifier().start().await, Sink::start().await, Sink::start().await);
    hole.answer(Answer::status(200).held());
    let jobs: Vec<Value> = (0..1_000)
        .map(|n| {
            let members = json!({"topic": format!("topic-{}", n % 100), "timeout": HANGS});
            with_all(job(&hole, &n.to_string()), &members)
        })
        .collect();
    submit(&stack, &jobs).await;
    eventually(WHILE_IT_HANGS, "it holds what it may", async || match hole.seen() {
        seen if seen >= MOST / 2 => Ok(()),
        seen => Err(format!("{seen} calls")),
    })
    .await;
    others_are_delivered(&stack, &sink).await;
    let seen = hole.seen();
    assert!(seen <= MOST, "{seen} of {PLACES} places are held by a receiver that hangs");
    assert_eq!(hole.hung_up(), 0, "no attempt has ended meanwhile");
}

#[tokio::test]
async fn under_many_names_it_gets_few_new_calls_once_it_is_known_and_all_of_them_again_when_it_answers() {
    let (names, hole, sink) = (NameServer::start(60), Sink::start().await, Sink::start().await);
    hole.answer(Answer::status(200).held());
    let stack = one_notifier().env("RINGBACK_NAME_SERVERS", &names.address().to_string()).start().await;
    let jobs: Vec<Value> = (0..4_000)
        .map(|n| {
            let name = format!("name-{}.example", n % 300);
            names.knows(&name, &[IpAddr::V4(Ipv4Addr::LOCALHOST)]);
            let url = hole.url("/hook").replace("127.0.0.1", &name);
            let retry = json!({"delays": ["200ms"], "max": 100, "jitter": 0});
            let members = json!({"url": url, "timeout": "1500ms", "retry": retry});
            with_all(job(&hole, &n.to_string()), &members)
        })
        .collect();
    submit(&stack, &jobs).await;
    // Thousands of jobs of the receiver are ready or due soon, but only few hold a place.
    let few = PLACES / 4;
    let mut calm = 0;
    eventually(WHILE_IT_HANGS, "it has few places", async || {
        let held = in_flight(&stack).await;
        calm = if held <= few { calm + 1 } else { 0 };
        if calm >= 20 { Ok(()) } else { Err(format!("{held} places are held")) }
    })
    .await;
    others_are_delivered(&stack, &sink).await;

    hole.answer(Answer::status(200));
    hole.release();
    let ids: Vec<String> = (0..4_000).map(|n| n.to_string()).collect();
    let all = ids.len() as u64 + 30;
    stack.wait_get("/v1/stats", Duration::from_secs(60), |stats| stats["states"]["done"] == all).await;
}

/// The places that the notifier uses, by its metric.
async fn in_flight(stack: &Stack) -> usize {
    stack.notifiers[0].metric("ringback_notifier_in_flight_jobs").await.expect("the gauge") as usize
}
