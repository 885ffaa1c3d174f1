//! `ringback up` on every kind of store: delayed, failing and cancelled jobs in one process with all roles.

mod output;
mod shutdown;

use crate::prelude::*;
use crate::sample_jobs::{between, time};

/// The stores that each test runs on: a private redis-server, and a file in the process's own directory.
const STORES: [&str; 2] = ["redis", "embedded:./data"];

/// The options of one `ringback up` on a store.
fn options(store: &str) -> StackOptions {
    let options = Stack::options().in_one_process();
    if store == "redis" { options } else { options.store(store) }
}

#[tokio::test]
async fn a_delayed_job_arrives_and_never_early() {
    for store in STORES {
        let (stack, sink) = (options(store).start().await, Sink::start().await);
        let accepted = stack.accept(&with(job(&sink, "late"), "delay", "300ms")).await;
        let (created, due) = (time(&accepted["created_at"]), time(&accepted["due_at"]));
        assert!(between(created, due) >= Duration::from_millis(300), "{store}: {accepted}");
        let arrival = &sink.wait_for_job("late", 1, SOON).await[0];
        assert!(arrival.at >= due, "{store}: due {due}, arrived {}", arrival.at);
        stack.wait_state(TOPIC, "late", "done", SOON).await;
        assert_eq!(sink.seen(), 1, "{store}");
        let stats = stack.stats().await;
        assert_eq!(stats["store"]["kind"], store.split(':').next().unwrap_or_default(), "{stats}");
    }
}

#[tokio::test]
async fn a_job_that_fails_to_the_end_is_dead() {
    for store in STORES {
        let (stack, sink) = (options(store).start().await, Sink::start().await);
        sink.answer_job("broken", Answer::status(500));
        stack.accept(&job(&sink, "broken")).await;
        let dead = stack.wait_state(TOPIC, "broken", "dead", SOON).await;
        assert_eq!((&dead["attempts"], &dead["reason"]), (&json!(4), &json!("exhausted")), "{store}: {dead}");
        assert_eq!(sink.seen(), 4, "{store}");
    }
}

#[tokio::test]
async fn a_cancelled_job_never_arrives() {
    for store in STORES {
        let (stack, sink) = (options(store).start().await, Sink::start().await);
        stack.accept(&with(job(&sink, "cancelled"), "delay", "1500ms")).await;
        assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200, "{store}");
        stack.accept(&with(job(&sink, "after"), "delay", "1600ms")).await;
        sink.wait_for_job("after", 1, SOON).await;
        assert_eq!(sink.seen(), 1, "{store}");
    }
}
