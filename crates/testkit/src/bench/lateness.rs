//! Jobs due evenly, one after the other: how late each arrives. Beside it BullMQ with the same jobs.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::figure::{Figure, skipped};
use super::job::job;
use super::latencies::Latencies;
use super::receiver::{Channel, Receiver};
use super::setup::Setup;
use super::spread::Spread;
use super::yardstick::bullmq::{Bullmq, SHAPES};
use crate::{Role, Stack, now};

const NAME: &str = "lateness";
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// How far ahead the first job is due, in seconds: all must be in before. The next one where that was too little.
pub(super) const LEADS: [u64; 4] = [3, 8, 20, 60];
/// Jobs of a request.
const PER_REQUEST: usize = 1000;

/// Jobs that are due one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// The number of the first one.
    pub(super) first: usize,
    pub(super) jobs: usize,
    /// How many a second.
    pub(super) rate: usize,
}

pub(super) async fn run(setup: &Setup) {
    for rate in setup.size.pick(vec![1_000, 5_000], vec![300]) {
        let train = Train { first: 0, jobs: setup.size.pick(10 * rate, 600), rate };
        let ours = ours(setup, train).await;
        let bullmq = bullmq(setup, train).await;
        if let Err(reason) = &bullmq {
            skipped(NAME, "BullMQ", reason);
        }
        let with = json!({ "rate": rate, "jobs": train.jobs, "appendfsync": setup.profile().name() });
        for (name, q) in QUANTILES {
            let spread = |rounds: &[Latencies]| Spread::of(rounds.iter().map(|round| round.millis(q)));
            let yardstick = bullmq.as_ref().ok().map(|rounds| ("BullMQ", spread(rounds)));
            let (value, with) = (spread(&ours), with.clone());
            Figure { scenario: NAME, name, unit: "ms", value, yardstick, with }.report();
        }
    }
}

async fn ours(setup: &Setup, mut train: Train) -> Vec<Latencies> {
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    // The first one warms up.
    let mut rounds = vec![one(&stack, &receiver, Train { jobs: train.jobs / 10, ..train }).await];
    train.first += train.jobs;
    for _ in 0..setup.rounds() {
        rounds.push(one(&stack, &receiver, train).await);
        train.first += LEADS.len() * train.jobs;
    }
    rounds.split_off(1)
}

/// Submits a train and waits until it has arrived. Where submitting took longer than the first job was ahead, it
/// is done again with more time, under further numbers.
///
/// # Panics
/// When a job is lost or early.
pub(super) async fn one(stack: &Stack, receiver: &Receiver, mut train: Train) -> Latencies {
    for lead in LEADS.map(Duration::from_secs) {
        receiver.expect(train.first..train.first + train.jobs);
        let start = ahead(lead);
        submit(stack, train, &receiver.url(Channel::Main), start).await;
        let in_time = now() < start;
        let within = lead + Duration::from_secs(60 + (train.jobs / train.rate) as u64);
        receiver.wait_for(train.jobs, within).await;
        if in_time {
            return receiver.board().lateness(Channel::Main).clone();
        }
        train.first += train.jobs;
    }
    panic!("this machine takes longer to submit {} jobs than any time it was given", train.jobs);
}

/// A full millisecond, about so far from now.
pub(super) fn ahead(lead: Duration) -> Timestamp {
    let millis = (now() + SignedDuration::try_from(lead).unwrap_or_default()).as_millisecond();
    Timestamp::from_millisecond(millis).expect("the near future can be told")
}

/// Submits a train whose first job is due at `start`.
///
/// # Panics
/// When a job is refused.
pub(super) async fn submit(stack: &Stack, train: Train, url: &str, start: Timestamp) {
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / train.rate) as i64);
    let one = |n: usize| job(train.first + n, url, &json!({ "at": due(n).to_string() }));
    let all: Vec<Value> = (0..train.jobs).map(one).collect();
    batches(stack, &all).await;
}

/// Submits jobs in batches.
///
/// # Panics
/// When a job is refused.
pub(super) async fn batches(stack: &Stack, jobs: &[Value]) {
    for batch in jobs.chunks(PER_REQUEST) {
        let (status, answer) = stack.batch(batch).await;
        assert_eq!((status, answer["refused"].as_u64()), (200, Some(0)), "a batch was refused");
    }
}

async fn bullmq(setup: &Setup, train: Train) -> Result<Vec<Latencies>, String> {
    let bullmq = Bullmq::get(setup).await?;
    let receiver = Receiver::start().await;
    let server = setup.profile().redis().start().await;
    let _workers = bullmq.work(&server, SHAPES[1]);
    let mut rounds = Vec::new();
    for round in 0..=setup.rounds() {
        // The first one warms up.
        let jobs = if round == 0 { train.jobs / 10 } else { train.jobs };
        let (first, lead) = (round * train.jobs, Duration::from_secs(LEADS[1]));
        receiver.expect(first..first + jobs);
        let start = ahead(lead);
        let more = json!({
            "url": receiver.url(Channel::Main), "from": start.as_millisecond(), "rate": train.rate,
        });
        bullmq.fill(&server, first, jobs, &more).await?;
        if now() >= start {
            return Err("its jobs took too long to submit".to_owned());
        }
        let within = lead + Duration::from_secs(60 + (jobs / train.rate) as u64);
        receiver.arrive(jobs, within).await?;
        rounds.push(receiver.board().lateness(Channel::Main).clone());
    }
    Ok(rounds.split_off(1))
}
