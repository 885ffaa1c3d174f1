//! A tenant whose receivers fail at once: its attempts are limited while another tenant has callbacks; its other
//! receivers and the other tenant get theirs in time.

use tokio::time::Instant;

use super::{Caller, stacks};
use crate::prelude::*;

/// How long attempts are counted.
const PERIOD: Duration = Duration::from_secs(4);

/// Submits a job and waits until it arrives.
async fn deliver(stack: &Stack, caller: &Caller, sink: &Sink, id: &str) {
    let job = json!({"topic": "good", "id": id, "url": sink.url("/good")});
    caller.post(stack, "/v1/jobs", &job).await.expect(201);
    sink.wait_for_job(id, 1, SOON).await;
}

#[tokio::test]
async fn a_tenant_whose_receivers_fail_leaves_time_to_the_others_and_to_its_own() {
    for options in stacks() {
        let (stack, sink, failing) = (options.start().await, Sink::start().await, Sink::counting().await);
        failing.answer(Answer::status(500));
        let (greedy, other) = (Caller::of(&stack, "greedy").await, Caller::of(&stack, "other").await);
        deliver(&stack, &other, &sink, "first").await;
        let retry = json!({"delays": ["10ms"], "max": -1, "jitter": 0});
        let jobs: Vec<_> = (0..300)
            .map(|n| json!({"topic": "bad", "id": n.to_string(), "url": failing.url("/"), "retry": retry}))
            .collect();
        let (began, before) = (Instant::now(), failing.seen());
        greedy.post(&stack, "/v1/jobs/batch", &json!(jobs)).await.expect(200);
        for n in 0.. {
            deliver(&stack, &other, &sink, &format!("other-{n}")).await;
            deliver(&stack, &greedy, &sink, &format!("greedy-{n}")).await;
            if began.elapsed() > PERIOD {
                break;
            }
        }
        // A hundred at once and a hundred a second, one for each success, and those that were in flight.
        let successes = sink.seen();
        let (attempts, seconds) = (failing.seen() - before, began.elapsed().as_secs_f64());
        let most = 100.0 + 100.0 * seconds + successes as f64 + 256.0;
        assert!((attempts as f64) < most, "{attempts} attempts in {seconds} s beside {successes} successes");
        assert!(attempts > 150, "{attempts} attempts");

        // Once callbacks succeed, all jobs are delivered.
        failing.answer(Answer::status(200));
        greedy.wait_get(&stack, "/v1/topics/bad", |topic| topic["states"]["done"] == 300).await;
    }
}
