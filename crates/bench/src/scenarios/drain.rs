//! Delivery of a backlog of due jobs by one notifier to a receiver that only counts; beside it BullMQ, and a bare
//! HTTP client.

use std::time::Duration;

use serde_json::{Value, json};

use crate::backlog::{Drained, drain};
use crate::figure::{Figure, Spread, skipped};
use crate::receiver::{Channel, Receiver};
use crate::setup::{Profile, Setup};
use crate::yardstick::bullmq::{Bullmq, SHAPES, Shape};
use crate::yardstick::reqwest_loop;
use ringback_testkit::RedisServer;

pub(crate) const NAME: &str = "drain";
/// BullMQ delivers all jobs of a round within this.
const BULLMQ_WITHIN: Duration = Duration::from_secs(120);

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(100_000, 3_000);
    let bare = bare(setup, jobs).await;
    for &profile in &setup.profiles {
        let rounds = ours(setup, profile, jobs).await;
        let value = Spread::of(rounds.iter().map(|round| round.rate));
        let mut with = rounds.last().map_or(Value::Null, |round| round.with.clone());
        with["appendfsync"] = json!(profile);
        let figure = |measure, rates, with| {
            let yardstick = Some((measure, rates));
            Figure { scenario: NAME, name: "delivered", unit: "jobs/s", value, yardstick, with }.report();
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
    // The first round warms up.
    let mut next = jobs / 10;
    drain(&mut stack, &receiver, 0..next, 0).await;
    let rounds = setup.repeat(async || {
        next += jobs;
        drain(&mut stack, &receiver, next - jobs..next, next - jobs).await
    });
    rounds.await
}

async fn bare(setup: &Setup, jobs: usize) -> Spread {
    let receiver = Receiver::start().await;
    reqwest_loop::run(&receiver, jobs / 10).await;
    Spread::of(setup.repeat(async || reqwest_loop::run(&receiver, jobs).await).await)
}

/// Measures BullMQ: rounds of the fastest shape, and each shape in a smaller round. Fails if BullMQ cannot be used.
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
    let rates = setup.try_repeat(async || bench.round(best.1, jobs).await).await?;
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
        self.bullmq.run("fill", &self.server, self.next, jobs, &more).await?;
        self.next += jobs;
        let _workers = self.bullmq.work(&self.server, shape);
        self.receiver.arrive(jobs, BULLMQ_WITHIN).await?;
        Ok(self.receiver.board().rate())
    }
}
