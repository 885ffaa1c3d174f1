//! One process on the embedded store, over HTTP: single submits from many connections, each
//! durable before it is answered, and then a backlog handed over.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::backlog::settled;
use super::figure::Figure;
use super::generator::{CONNECTIONS, Load, Pace, Request, generate};
use super::job::URL;
use super::receiver::{Channel, Receiver};
use super::setup::{Setup, api_address};
use super::spread::Spread;
use super::usage::{cpu_seconds, resident_mib};
use crate::Stack;

const NAME: &str = "up";
/// Longer than everything takes: nothing is handed over meanwhile.
const DELAY_SECONDS: u64 = 86_400;
const PER_REQUEST: usize = 1000;

pub(super) async fn run(setup: &Setup) {
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).store("embedded:./data").in_one_process().start().await;
    let jobs = setup.size.pick(60_000, 3_000);
    let (mut submitted, mut handed_over) = (Vec::new(), Vec::new());
    for round in 0..setup.rounds() {
        submitted.push(submit(&stack, jobs, round * jobs).await);
    }
    figure(&stack, "submits", &submitted, json!({ "jobs": jobs, "connections": CONNECTIONS }));
    let first = setup.rounds() * jobs;
    for round in 0..setup.rounds() {
        handed_over
            .push(hand_over(&stack, &receiver, first + round * jobs..first + (round + 1) * jobs).await);
        settled(&stack, (round + 1) * jobs).await;
    }
    figure(
        &stack,
        "submitted-handed-over",
        &handed_over,
        json!({ "jobs": jobs, "per_request": PER_REQUEST }),
    );
    assert_eq!(stack.count_in("delayed").await, first as u64, "every far job is there");
}

/// Jobs per second, one per request.
async fn submit(stack: &Stack, jobs: usize, first: usize) -> f64 {
    let address = api_address(stack);
    let request = Request::one(address, URL, &json!({ "delay": DELAY_SECONDS }));
    let pace = Pace::Count(jobs);
    generate(Load { address, request, connections: CONNECTIONS, pace, first }).await.rate()
}

/// Jobs that are due are handed over while the others come in, so the rate is that of both.
async fn hand_over(stack: &Stack, receiver: &Receiver, numbers: Range<usize>) -> f64 {
    let (address, jobs) = (api_address(stack), numbers.len());
    receiver.expect(numbers.clone());
    let request = Request::batch(address, PER_REQUEST, &receiver.url(Channel::Main), &json!({}));
    let pace = Pace::Count(jobs / PER_REQUEST);
    let started = Instant::now();
    generate(Load { address, request, connections: 1, pace, first: numbers.start }).await;
    receiver.wait_for(jobs, Duration::from_secs(300)).await;
    jobs as f64 / started.elapsed().as_secs_f64()
}

fn figure(stack: &Stack, name: &str, rates: &[f64], mut with: Value) {
    let pid = stack.ups[0].pid();
    with["cpu_s"] = cpu_seconds(pid).into();
    with["resident_mib"] = resident_mib(pid).into();
    let value = Spread::of(rates.iter().copied());
    Figure { scenario: NAME, name, unit: "jobs/s", value, yardstick: None, with }.report();
}
