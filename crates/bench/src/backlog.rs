//! Fills a backlog of due jobs and measures its delivery; several scenarios use it.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};

use crate::generator::{Load, Pace, Request, generate};
use crate::receiver::{Channel, Receiver};
use crate::setup::api_address;
use crate::usage::cpu_seconds;
use ringback_testkit::Stack;

const PER_REQUEST: usize = 1000;
/// The limit for the delivery of a backlog, on a slow machine and from a debug build too.
const WITHIN: Duration = Duration::from_secs(300);
/// The limit from the last arrival until all leases are settled.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// The delivery of one backlog.
#[derive(Clone, Debug)]
pub(crate) struct Drained {
    /// Jobs per second, from the first arrival to the last.
    pub(crate) rate: f64,
    /// CPU of Redis per job in microseconds, from before the first delivery to after the last settle.
    pub(crate) redis_us: f64,
    /// The circumstances, and what else was seen.
    pub(crate) with: Value,
}

/// Submits jobs in large batches and returns their rate per second. The fields of `more`, such as a due time, are
/// added to each. The number of jobs must be a multiple of the batch.
pub(crate) async fn submit(stack: &Stack, numbers: Range<usize>, url: &str, more: &Value) -> f64 {
    let (address, per_request) = (api_address(stack), PER_REQUEST.min(numbers.len()));
    assert_eq!(numbers.len() % per_request, 0, "jobs come in whole batches");
    let request = Request::batch(address, per_request, url, more);
    let pace = Pace::Count(numbers.len() / per_request);
    generate(Load { address, request, connections: 2, pace, first: numbers.start }).await.rate()
}

/// Stops the notifier, submits a backlog, starts the notifier again, and waits until all jobs are done, of which `done`
/// were done before. Returns the rate of the deliveries and the CPU times.
pub(crate) async fn drain(
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

/// Waits until `jobs` jobs are done in all.
pub(crate) async fn settled(stack: &Stack, jobs: usize) {
    stack.wait_count("done", jobs as u64, SETTLED_WITHIN).await;
}

async fn script_calls(stack: &Stack) -> u64 {
    let calls = stack.redis().command_calls().await;
    ["evalsha", "fcall"].iter().filter_map(|name| calls.get(*name)).sum()
}
