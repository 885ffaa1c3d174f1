//! The time from due to arrival of jobs that are due evenly, one after the other; beside it BullMQ with the same jobs.

use std::time::Duration;

use serde_json::json;

use crate::figure::{Figure, Spread, yardstick};
use crate::latencies::Latencies;
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::train::{LEADS, Train, ahead, lateness};
use crate::yardstick::bullmq::{Bullmq, SHAPES};
use ringback_testkit::{Role, now};

pub(crate) const NAME: &str = "lateness";
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
pub(crate) async fn run(setup: &Setup) {
    for rate in setup.size.pick(vec![1_000, 5_000], vec![300]) {
        let train = Train { first: 0, jobs: setup.size.pick(10 * rate, 600), rate };
        let ours = ours(setup, train).await;
        let bullmq = yardstick(NAME, "BullMQ", bullmq(setup, train).await);
        let with = json!({ "rate": rate, "jobs": train.jobs, "appendfsync": setup.profile() });
        for (name, q) in QUANTILES {
            let spread = |rounds: &[Latencies]| Spread::of(rounds.iter().map(|round| round.millis(q)));
            let yardstick = bullmq.as_ref().map(|(name, rounds)| (*name, spread(rounds)));
            let (value, with) = (spread(&ours), with.clone());
            Figure { scenario: NAME, name, unit: "ms", value, yardstick, with }.report();
        }
    }
}

async fn ours(setup: &Setup, mut train: Train) -> Vec<Latencies> {
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let mut warm_up = Train { jobs: train.jobs / 10, ..train };
    lateness(&mut warm_up, &stack, &receiver).await;
    train.first = warm_up.first;
    setup.repeat(async || lateness(&mut train, &stack, &receiver).await).await
}

async fn bullmq(setup: &Setup, train: Train) -> Result<Vec<Latencies>, String> {
    let bullmq = Bullmq::get(setup).await?;
    let receiver = Receiver::start().await;
    let server = setup.profile().redis().start().await;
    let _workers = bullmq.work(&server, SHAPES[1]);
    let mut rounds = Vec::new();
    for round in 0..=setup.rounds() {
        // The first round warms up.
        let jobs = if round == 0 { train.jobs / 10 } else { train.jobs };
        let (first, lead) = (round * train.jobs, Duration::from_secs(LEADS[1]));
        receiver.expect(first..first + jobs);
        let start = ahead(lead);
        let more = json!({
            "url": receiver.url(Channel::Main), "from": start.as_millisecond(), "rate": train.rate,
        });
        bullmq.run("fill", &server, first, jobs, &more).await?;
        if now() >= start {
            return Err("its jobs took too long to submit".to_owned());
        }
        receiver.arrive(jobs, lead + train.within()).await?;
        rounds.push(receiver.board().lateness(Channel::Main).clone());
    }
    Ok(rounds.split_off(1))
}
