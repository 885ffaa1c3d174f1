//! Cancels over HTTP: a job that is delayed, ready, in delivery, between attempts, dead or done.

use ringback_testkit::{Answer, Role, Sink, Stack};
use serde_json::json;

use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

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
async fn a_job_can_be_cancelled_until_it_is_done() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let delayed = with(job(&sink, "delayed"), "delay", "1500ms");
    stack.accept(&delayed).await;
    for _ in 0..2 {
        let cancelled = json!({"topic": TOPIC, "id": "delayed", "state": "cancelled"});
        assert_eq!(stack.cancel(TOPIC, "delayed").await, (200, cancelled));
    }
    // Between two attempts, and after the last one.
    sink.answer_job("fails", Answer::status(500));
    stack.accept(&with(job(&sink, "fails"), "retry", json!({"delays": ["1500ms"], "jitter": 0}))).await;
    sink.answer_job("dies", Answer::status(410));
    stack.accept(&job(&sink, "dies")).await;
    for (id, state) in [("fails", "delayed"), ("dies", "dead")] {
        stack.wait_state(TOPIC, id, state, SOON).await;
        assert_eq!(stack.cancel(TOPIC, id).await.0, 200, "{id}");
    }
    // During an attempt, which goes on. A failure is not tried again.
    let in_flight = [("succeeds", 200, "done"), ("fails-later", 500, "cancelled")];
    for (id, status, _) in in_flight {
        sink.answer_job(id, Answer::status(status).held());
        stack.accept(&job(&sink, id)).await;
        sink.wait_for_job(id, 1, SOON).await;
        let answer = json!({"topic": TOPIC, "id": id, "state": "reserved", "in_flight": true});
        assert_eq!(stack.cancel(TOPIC, id).await, (202, answer));
    }
    sink.release();
    for (id, _, state) in in_flight {
        stack.wait_state(TOPIC, id, state, SOON).await;
    }

    // This job is due after the cancelled ones would have been.
    stack.accept(&with(job(&sink, "after"), "delay", "1600ms")).await;
    sink.wait_for_job("after", 1, SOON).await;
    stack.wait_state(TOPIC, "after", "done", SOON).await;
    for (id, status) in [("after", 409), ("succeeds", 409), ("nobody", 404)] {
        let (found, problem) = stack.cancel(TOPIC, id).await;
        assert_eq!((found, &problem["status"]), (status, &json!(status)), "{problem}");
    }
    for (id, arrivals) in [("delayed", 0), ("fails", 1), ("dies", 1), ("succeeds", 1), ("fails-later", 1)] {
        assert_eq!(sink.arrivals_of(id).len(), arrivals, "{id}");
    }
    let (status, shown) = stack.job(TOPIC, "delayed").await;
    assert_eq!((status, &shown["state"]), (200, &json!("cancelled")), "{shown}");
    let problem = stack.post("/v1/jobs", &delayed).await.refused(409, "cancelled");
    assert!(problem["detail"].to_string().contains("if_exists"), "{problem}");
    for (state, count) in [("done", 2), ("cancelled", 4), ("dead", 0)] {
        assert_eq!(stack.count_in(state).await, count, "{state}");
    }
}
