//! A backlog of due jobs, one notifier, a receiver that only counts; beside it BullMQ, and a bare HTTP client.

use std::time::Duration;

use serde_json::{Value, json};

use super::backlog::{Drained, drain};
use super::figure::{Figure, skipped};
use super::receiver::{Channel, Receiver};
use super::setup::{Profile, Setup};
use super::spread::Spread;
use super::yardstick::bullmq::{Bullmq, SHAPES, Shape};
use super::yardstick::reqwest_loop;
use crate::RedisServer;

const NAME: &str = "drain";
/// BullMQ has handed all over within this.
const BULLMQ_WITHIN: Duration = Duration::from_secs(120);

pub(super) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(100_000, 3_000);
    let bare = bare(setup, jobs).await;
    for &profile in &setup.profiles {
        let rounds = ours(setup, profile, jobs).await;
        let value = Spread::of(rounds.iter().map(|round| round.rate));
        let mut with = rounds.last().map_or(Value::Null, |round| round.with.clone());
        with["appendfsync"] = profile.name().into();
        let figure = |measure, rates, with| {
            let yardstick = Some((measure, rates));
            Figure { scenario: NAME, name: "handed-over", unit: "jobs/s", value, yardstick, with }.report();
        };
        figure("bare reqwest", bare, with.clone());
        match bullmq(setup, profile, jobs).await {
            Ok((rates, tried)) => {
                with["bullmq_tried"] = tried;
                figure("BullMQ", rates, with);
            }
            Err(reason) => skipped(NAME, "BullMQ", &reason),
        }
    }
}

async fn ours(setup: &Setup, profile: Profile, jobs: usize) -> Vec<Drained> {
    let receiver = Receiver::start().await;
    let mut stack = setup.stack(profile).start().await;
    // The first one warms up.
    let mut next = jobs / 10;
    drain(&mut stack, &receiver, 0..next, 0).await;
    let mut rounds = Vec::new();
    for _ in 0..setup.rounds() {
        rounds.push(drain(&mut stack, &receiver, next..next + jobs, next).await);
        next += jobs;
    }
    rounds
}

async fn bare(setup: &Setup, jobs: usize) -> Spread {
    let receiver = Receiver::start().await;
    reqwest_loop::run(&receiver, jobs / 10).await;
    let mut rates = Vec::new();
    for _ in 0..setup.rounds() {
        rates.push(reqwest_loop::run(&receiver, jobs).await);
    }
    Spread::of(rates)
}

/// The rounds of the best shape, and what each of them came to in a smaller one.
async fn bullmq(setup: &Setup, profile: Profile, jobs: usize) -> Result<(Spread, Value), String> {
    let bullmq = Bullmq::get(setup).await?;
    let receiver = Receiver::start().await;
    let server = profile.redis().start().await;
    let mut bench = Bench { bullmq, receiver, server, next: 0 };
    let (mut tried, mut best) = (Vec::new(), (0.0, SHAPES[0]));
    for shape in SHAPES {
        let rate = bench.round(shape, jobs / 5).await?;
        tried.push(shape.json(rate));
        if rate > best.0 {
            best = (rate, shape);
        }
    }
    let mut rates = Vec::new();
    for _ in 0..setup.rounds() {
        rates.push(bench.round(best.1, jobs).await?);
    }
    Ok((Spread::of(rates), tried.into()))
}

/// BullMQ, its server and its receiver.
struct Bench {
    bullmq: Bullmq,
    receiver: Receiver,
    server: RedisServer,
    next: usize,
}

impl Bench {
    async fn round(&mut self, shape: Shape, jobs: usize) -> Result<f64, String> {
        self.receiver.expect(self.next..self.next + jobs);
        let more = json!({ "url": self.receiver.url(Channel::Main) });
        self.bullmq.fill(&self.server, self.next, jobs, &more).await?;
        self.next += jobs;
        let _workers = self.bullmq.work(&self.server, shape);
        self.receiver.arrive(jobs, BULLMQ_WITHIN).await?;
        Ok(self.receiver.board().rate())
    }
}
