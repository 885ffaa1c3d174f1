//! A tenant, or a caller without one, with so many hanging receivers that they could use all places of a notifier
//! within the limits of an origin and of an address: it uses a bounded part of them, and jobs of others are delivered
//! meanwhile.

use crate::http::tenants::{Caller, stacks};
use crate::prelude::*;

/// The places of the notifier, and those that one tenant may have while it is alone.
const PLACES: usize = 64;
const MOST: usize = 56;
/// The receivers that hang, and the jobs for each.
const HOLES: usize = 24;
const JOBS: usize = 12;
/// A timeout longer than the test.
const HANGS: &str = "55s";
/// The wait of a job for a place, if all of them were held.
const WHILE_IT_HANGS: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_tenant_whose_receivers_hang_leaves_places_for_tenants_and_for_jobs_without_one() {
    for options in stacks() {
        let stack = start(options).await;
        let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
        leaves_places(&stack, &a, [&b, &Caller::root(None)]).await;
    }
}

#[tokio::test]
async fn jobs_without_a_tenant_whose_receivers_hang_leave_places_for_tenants_that_have_keys() {
    for options in stacks() {
        let stack = start(options).await;
        let (a, b) = (Caller::of(&stack, "a").await, Caller::of(&stack, "b").await);
        leaves_places(&stack, &Caller::root(None), [&a, &b]).await;
    }
}

async fn start(options: StackOptions) -> Stack {
    options.env("RINGBACK_CONCURRENCY", &PLACES.to_string()).start().await
}

/// Fills places with hanging jobs of one caller, and asserts that jobs of the others are delivered and that the
/// hanging jobs use at most [`MOST`] places.
async fn leaves_places(stack: &Stack, hostile: &Caller, others: [&Caller; 2]) {
    let sink = Sink::start().await;
    let mut holes = Vec::new();
    for _ in 0..HOLES {
        let hole = Sink::start().await;
        hole.answer(Answer::status(200).held());
        holes.push(hole);
    }
    let jobs: Vec<Value> = (0..HOLES * JOBS)
        .map(|n| with_all(job(&holes[n % HOLES], &n.to_string()), &json!({"timeout": HANGS})))
        .collect();
    accept(stack, hostile, &jobs).await;
    let held = || holes.iter().map(Sink::seen).sum::<usize>();
    eventually(WHILE_IT_HANGS, "it holds what it may", async || match held() {
        held if held >= MOST => Ok(()),
        held => Err(format!("{held} calls")),
    })
    .await;
    for n in 0..20 {
        for (caller, other) in others.into_iter().zip(["one", "two"]) {
            let id = format!("{other}-{n}");
            accept(stack, caller, &[job(&sink, &id)]).await;
            sink.wait_for_job(&id, 1, WHILE_IT_HANGS).await;
        }
    }
    let held = held();
    assert!(held <= MOST, "{held} of {PLACES} places are held by one caller whose receivers hang");
    let hung_up: usize = holes.iter().map(Sink::hung_up).sum();
    assert_eq!(hung_up, 0, "no attempt has ended meanwhile");
}

async fn accept(stack: &Stack, caller: &Caller, jobs: &[Value]) {
    for jobs in jobs.chunks(100) {
        eventually(SOON, "the jobs are accepted", async || {
            let (status, answer) = caller.post(stack, "/v1/jobs/batch", &json!(jobs)).await.parts();
            if status == 200 && answer["refused"] == 0 { Ok(()) } else { Err(format!("{status}: {answer}")) }
        })
        .await;
    }
}
