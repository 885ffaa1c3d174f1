//! CPU of Redis for one job from submit to done at modest, even rates of single submits, where calls share little: with
//! one process of each role, beside BullMQ, and with many.

use std::time::Duration;

use futures_util::future::join_all;
use ringback_testkit::{Role, Stack, StackOptions};
use serde_json::json;

use crate::backlog::settled;
use crate::figure::{Figure, Spread, yardstick};
use crate::generator::{Load, Pace, Request, generate};
use crate::receiver::{Channel, Receiver};
use crate::setup::{Setup, address_of};
use crate::usage::cpu_seconds;
use crate::yardstick::bullmq::{Bullmq, SHAPES};

pub(crate) const NAME: &str = "modest";
/// APIs, carriers and notifiers.
pub(super) const ONE: [usize; 3] = [1, 1, 1];
const MANY: [usize; 3] = [4, 2, 8];
/// After its submit a job is due so much later.
pub(super) const DELAY: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 32;
/// The limit from the last submit until all jobs have arrived.
pub(super) const WITHIN: Duration = Duration::from_secs(60);

/// A load of single submits.
#[derive(Clone, Copy)]
pub(super) struct Singles {
    /// Submits per second.
    pub(super) rate: usize,
    pub(super) jobs: usize,
}

pub(crate) async fn run(setup: &Setup) {
    for rate in setup.size.pick(vec![500, 2_000, 6_000], vec![300]) {
        let load = Singles { rate, jobs: rate * setup.size.pick(10, 1) };
        let one = ours(setup, load, ONE).await;
        let many = ours(setup, load, MANY).await;
        let bullmq = yardstick(NAME, "BullMQ", bullmq(setup, load).await);
        let report = |name, value, yardstick, [apis, carriers, notifiers]: [usize; 3]| {
            let with = json!({
                "rate": rate, "jobs": load.jobs, "apis": apis, "carriers": carriers, "notifiers": notifiers,
                "appendfsync": setup.profile(),
            });
            Figure { scenario: NAME, name, unit: "us", value, yardstick, with }.report();
        };
        report("per-life", one, bullmq, ONE);
        report("per-life-of-many", many, Some(("one process of each role", one)), MANY);
    }
}

/// Sets how many APIs, carriers and notifiers there are.
pub(super) fn processes(options: StackOptions, [apis, carriers, notifiers]: [usize; 3]) -> StackOptions {
    options.count(Role::Api, apis).count(Role::Carrier, carriers).count(Role::Notifier, notifiers)
}

async fn ours(setup: &Setup, load: Singles, counts: [usize; 3]) -> Spread {
    let receiver = Receiver::start().await;
    let stack = processes(setup.stack(setup.profile()), counts).start().await;
    let mut done = 0;
    // The first jobs warm up.
    lives(&stack, &receiver, Singles { jobs: load.jobs / 10, ..load }, &mut done).await;
    Spread::of(setup.repeat(async || lives(&stack, &receiver, load, &mut done).await).await)
}

/// Submits jobs through all APIs at an even pace, waits until all are done, and returns the CPU time of Redis in µs per
/// job.
pub(super) async fn lives(stack: &Stack, receiver: &Receiver, load: Singles, done: &mut usize) -> f64 {
    let (url, later, urls) =
        (receiver.url(Channel::Main), json!({ "delay": DELAY.as_secs() }), stack.api_urls());
    let jobs = load.jobs / urls.len() * urls.len();
    receiver.expect(*done..*done + jobs);
    let before = cpu_seconds(stack.redis().pid());
    let loads = urls.iter().enumerate().map(|(n, api)| {
        let (address, requests) = (address_of(api), jobs / urls.len());
        generate(Load {
            address,
            request: Request::one(address, &url, &later),
            connections: CONNECTIONS / urls.len(),
            pace: Pace::Even { rate: load.rate as f64 / urls.len() as f64, requests },
            first: *done + n * requests,
        })
    });
    join_all(loads).await;
    receiver.wait_for(jobs, WITHIN).await;
    *done += jobs;
    settled(stack, *done).await;
    (cpu_seconds(stack.redis().pid()) - before) * 1e6 / jobs as f64
}

async fn bullmq(setup: &Setup, load: Singles) -> Result<Spread, String> {
    let bullmq = Bullmq::get(setup).await?;
    let receiver = Receiver::start().await;
    let server = setup.profile().redis().start().await;
    let _workers = bullmq.work(&server, SHAPES[1]);
    let mut rounds = Vec::new();
    for round in 0..=setup.rounds() {
        // The first round warms up.
        let jobs = if round == 0 { load.jobs / 10 } else { load.jobs };
        let first = round * load.jobs;
        receiver.expect(first..first + jobs);
        let more = json!({
            "url": receiver.url(Channel::Main), "rate": load.rate, "delay": DELAY.as_millis() as u64,
        });
        let before = cpu_seconds(server.pid());
        bullmq.run("pace", &server, first, jobs, &more).await?;
        receiver.arrive(jobs, WITHIN).await?;
        rounds.push((cpu_seconds(server.pid()) - before) * 1e6 / jobs as f64);
    }
    Ok(Spread::of(rounds.split_off(1)))
}
