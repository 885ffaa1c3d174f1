//! One process on the embedded store, over HTTP: single submits from many connections, each durable before it is
//! answered; then jobs that are delivered while more come in.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::backlog::settled;
use crate::figure::{Spread, report};
use crate::generator::{CONNECTIONS, Load, Pace, Request, generate};
use crate::job::URL;
use crate::receiver::{Channel, Receiver};
use crate::setup::{Setup, api_address};
use crate::usage::{cpu_seconds, resident_mib};
use ringback_testkit::Stack;

pub(crate) const NAME: &str = "up";
/// The delay of the single submits: a day, so that none is delivered meanwhile.
const DELAY_SECONDS: u64 = 86_400;
const PER_REQUEST: usize = 1000;

pub(crate) async fn run(setup: &Setup) {
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).store("embedded:./data").in_one_process().start().await;
    let jobs = setup.size.pick(60_000, 3_000);
    let mut next = 0;
    let submitted = setup.repeat(async || {
        next += jobs;
        submit(&stack, jobs, next - jobs).await
    });
    let submitted = submitted.await;
    figure(&stack, "submits", submitted, json!({ "jobs": jobs, "connections": CONNECTIONS }));
    let first = next;
    let delivered = setup.repeat(async || {
        next += jobs;
        let rate = deliver(&stack, &receiver, next - jobs..next).await;
        settled(&stack, next - first).await;
        rate
    });
    let delivered = delivered.await;
    figure(&stack, "submitted-delivered", delivered, json!({ "jobs": jobs, "per_request": PER_REQUEST }));
    assert_eq!(stack.count_in("delayed").await, first as u64, "every far job is there");
}

/// Submits jobs, one per request. Returns jobs per second.
async fn submit(stack: &Stack, jobs: usize, first: usize) -> f64 {
    let address = api_address(stack);
    let request = Request::one(address, URL, &json!({ "delay": DELAY_SECONDS }));
    let pace = Pace::Count(jobs);
    generate(Load { address, request, connections: CONNECTIONS, pace, first }).await.rate()
}

/// Submits due jobs in batches, which are delivered while more come in. Returns jobs per second until the last delivery.
async fn deliver(stack: &Stack, receiver: &Receiver, numbers: Range<usize>) -> f64 {
    let (address, jobs) = (api_address(stack), numbers.len());
    receiver.expect(numbers.clone());
    let request = Request::batch(address, PER_REQUEST, &receiver.url(Channel::Main), &json!({}));
    let pace = Pace::Count(jobs / PER_REQUEST);
    let started = Instant::now();
    generate(Load { address, request, connections: 1, pace, first: numbers.start }).await;
    receiver.wait_for(jobs, Duration::from_secs(300)).await;
    jobs as f64 / started.elapsed().as_secs_f64()
}

fn figure(stack: &Stack, name: &str, rates: Vec<f64>, mut with: Value) {
    let pid = stack.ups[0].pid();
    with["cpu_s"] = cpu_seconds(pid).into();
    with["resident_mib"] = resident_mib(pid).into();
    report(NAME, name, Spread::of(rates), "jobs/s", &with);
}
