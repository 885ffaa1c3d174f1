//! A backlog of due jobs that is handed over: what several scenarios do, and what it came to.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};

use super::generator::{Load, Pace, Request, generate};
use super::receiver::{Channel, Receiver};
use super::setup::api_address;
use super::usage::cpu_seconds;
use crate::{Stack, eventually};

/// Jobs of a request.
const PER_REQUEST: usize = 1000;
/// All are handed over within this, on a slow machine and from a debug build too.
const WITHIN: Duration = Duration::from_secs(300);
/// Leases are settled soon after the last arrival.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// One backlog, handed over.
#[derive(Clone, Debug)]
pub(super) struct Drained {
    /// Jobs per second, from the first arrival to the last.
    pub(super) rate: f64,
    /// CPU of Redis per job, from before the first hand-over to after the last settle.
    pub(super) redis_us: f64,
    /// What else was seen.
    pub(super) with: Value,
}

/// Submits jobs in large batches; `more` says when they are due. How many a second it was.
///
/// # Panics
/// When one is refused.
pub(super) async fn submit(stack: &Stack, numbers: Range<usize>, url: &str, more: &Value) -> f64 {
    let (address, per_request) = (api_address(stack), PER_REQUEST.min(numbers.len()));
    assert_eq!(numbers.len() % per_request, 0, "jobs come in whole batches");
    let request = Request::batch(address, per_request, url, more);
    let pace = Pace::Count(numbers.len() / per_request);
    generate(Load { address, request, connections: 2, pace, first: numbers.start }).await.rate()
}

/// Fills a backlog while no notifier runs, starts one, and waits until all is done. `done` is how many jobs were
/// done before.
///
/// # Panics
/// When a job is lost, early, or never settled.
pub(super) async fn drain(
    stack: &mut Stack,
    receiver: &Receiver,
    numbers: Range<usize>,
    done: usize,
) -> Drained {
    let jobs = numbers.len();
    stack.notifiers[0].term();
    stack.notifiers[0].wait_exit(Duration::from_secs(60)).await;
    receiver.expect(numbers.clone());
    submit(stack, numbers, &receiver.url(Channel::Main), &json!({})).await;

    let calls = script_calls(stack).await;
    let (redis, own) = (cpu_seconds(stack.redis().pid()), receiver.cpu_seconds());
    stack.notifiers[0].restart();
    receiver.wait_for(jobs, WITHIN).await;
    settled(stack, done + jobs).await;

    let micros = |seconds: f64| (seconds * 1e7 / jobs as f64).round() / 10.0;
    let redis_us = micros(cpu_seconds(stack.redis().pid()) - redis);
    let with = json!({
        "jobs": jobs,
        "jobs_per_script_call": (jobs as f64 * 10.0 / (script_calls(stack).await - calls) as f64).round() / 10.0,
        "redis_cpu_us": redis_us,
        "notifier_cpu_us": micros(cpu_seconds(stack.notifiers[0].pid())),
        "receiver_cpu_us": micros(receiver.cpu_seconds() - own),
        "duplicates": receiver.board().duplicates(),
    });
    Drained { rate: receiver.board().rate(), redis_us, with }
}

/// Waits until so many jobs are done.
///
/// # Panics
/// When they are not within half a minute.
pub(super) async fn settled(stack: &Stack, jobs: usize) {
    eventually(SETTLED_WITHIN, &format!("{jobs} jobs are done"), async || {
        let done = stack.count_in("done").await;
        if done == jobs as u64 { Ok(()) } else { Err(format!("{done} are done")) }
    })
    .await;
}

async fn script_calls(stack: &Stack) -> u64 {
    let calls = stack.redis().command_calls().await;
    ["evalsha", "fcall"].iter().filter_map(|name| calls.get(*name)).sum()
}
