//! Cancelling a job in each of its states.

use ringback_testkit::{Answer, Role, Sink, Stack, StackOptions};
use serde_json::json;

use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

#[tokio::test]
async fn a_job_cancelled_before_it_is_due_never_arrives() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let sent = with(job(&sink, "gone"), "delay", "1500ms");
    stack.accept(&sent).await;
    let cancelled = json!({"topic": TOPIC, "id": "gone", "state": "cancelled"});
    assert_eq!(stack.cancel(TOPIC, "gone").await, (200, cancelled.clone()));
    assert_eq!(stack.cancel(TOPIC, "gone").await, (200, cancelled), "the same call again");

    // Due after the cancelled job would have been.
    stack.accept(&with(job(&sink, "after"), "delay", "1600ms")).await;
    sink.wait_for_job("after", 1, SOON).await;
    assert!(sink.arrivals_of("gone").is_empty());

    let (status, shown) = stack.job(TOPIC, "gone").await;
    assert_eq!((status, &shown["state"]), (200, &json!("cancelled")), "{shown}");
    let (status, problem) = stack.submit(&sent).await;
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert_eq!(status, 409, "it is not sent, so it is not accepted: {problem}");
    assert!(detail.contains("cancelled") && detail.contains("if_exists"), "{problem}");
    assert_eq!(stack.count_in("cancelled").await, 1);
}

#[tokio::test]
async fn a_ready_job_that_is_cancelled_never_arrives() {
    let (mut stack, sink) = (Stack::options().count(Role::Notifier, 0).start().await, Sink::start().await);
    stack.accept(&job(&sink, "gone")).await;
    stack.accept(&job(&sink, "stays")).await;
    assert_eq!(stack.cancel(TOPIC, "gone").await.0, 200);
    stack.add(Role::Notifier).await;
    sink.wait_for_job("stays", 1, SOON).await;
    sentinel(&stack, &sink, "after").await;
    assert!(sink.arrivals_of("gone").is_empty());
}

#[tokio::test]
async fn an_unknown_job_cannot_be_cancelled() {
    let stack = StackOptions::api_only().start().await;
    let (status, problem) = stack.cancel(TOPIC, "nobody").await;
    assert_eq!((status, &problem["status"]), (404, &json!(404)), "{problem}");
}

#[tokio::test]
async fn a_success_in_flight_still_ends_as_done() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("flies", Answer::status(200).held());
    in_flight(&stack, &sink, "flies").await;
    sink.release();
    stack.wait_state(TOPIC, "flies", "done", SOON).await;
    assert_eq!((stack.count_in("done").await, stack.count_in("cancelled").await), (1, 0));
}

#[tokio::test]
async fn a_failure_in_flight_ends_as_cancelled_and_is_not_tried_again() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("flies", Answer::status(500).held());
    in_flight(&stack, &sink, "flies").await;
    sink.release();
    stack.wait_state(TOPIC, "flies", "cancelled", SOON).await;
    // Later than the first tier of this stack, 100 ms.
    sentinel(&stack, &sink, "after").await;
    assert_eq!(sink.arrivals_of("flies").len(), 1);
}

#[tokio::test]
async fn a_job_that_is_done_cannot_be_cancelled() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    stack.accept(&job(&sink, "done")).await;
    stack.wait_state(TOPIC, "done", "done", SOON).await;
    let (status, problem) = stack.cancel(TOPIC, "done").await;
    assert_eq!((status, &problem["status"]), (409, &json!(409)), "{problem}");
}

#[tokio::test]
async fn a_dead_job_can_be_cancelled() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    stack.accept(&job(&sink, "dead")).await;
    stack.wait_state(TOPIC, "dead", "dead", SOON).await;
    assert_eq!(stack.cancel(TOPIC, "dead").await.0, 200);
    assert_eq!((stack.count_in("dead").await, stack.count_in("cancelled").await), (0, 1));
}

#[tokio::test]
async fn a_job_between_two_attempts_can_be_cancelled() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("fails", Answer::status(500));
    stack.accept(&with(job(&sink, "fails"), "retry", json!({"delays": ["1500ms"], "jitter": 0}))).await;
    stack.wait_state(TOPIC, "fails", "delayed", SOON).await;
    assert_eq!(stack.cancel(TOPIC, "fails").await.0, 200);
    stack.accept(&with(job(&sink, "after"), "delay", "1600ms")).await;
    sink.wait_for_job("after", 1, SOON).await;
    assert_eq!(sink.arrivals_of("fails").len(), 1);
}

/// Has a job on its way and asks for its cancellation.
async fn in_flight(stack: &Stack, sink: &Sink, id: &str) {
    stack.accept(&job(sink, id)).await;
    sink.wait_for_job(id, 1, SOON).await;
    let answer = json!({"topic": TOPIC, "id": id, "state": "reserved", "in_flight": true});
    assert_eq!(stack.cancel(TOPIC, id).await, (202, answer));
}
