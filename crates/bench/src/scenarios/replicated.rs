//! Single submits over HTTP that a replica has to have before they are answered, beside submits that are on the disk
//! of the same server only.

use std::time::Duration;

use ringback_testkit::{Role, Stack};
use serde_json::json;

use crate::figure::{Figure, Spread};
use crate::generator::{CONNECTIONS, Load, LoadResult, Pace, Request, generate};
use crate::job::URL;
use crate::setup::{Profile, Setup, api_address};

pub(crate) const NAME: &str = "replicated";
/// The delay of all jobs: a day, so that nothing is delivered meanwhile.
const DELAY_SECONDS: u64 = 86_400;

pub(crate) async fn run(setup: &Setup) {
    let server = async || Profile::Always.redis().copies_at_once().start().await;
    let (master, replica) = (server().await, server().await);
    replica.follow(&master).await;
    let stack = async |durability: &str| {
        let stack = setup.stack(Profile::Always).store(&master.url()).count(Role::Notifier, 0);
        stack.env("RINGBACK_DURABILITY", durability).env("RINGBACK_PREFIX", durability).start().await
    };
    let (disk, replicated) = (stack("disk").await, stack("replicated").await);
    let time = setup.size.pick(Duration::from_secs(5), Duration::from_secs(1));
    let (mut of_disk, mut of_replicated, mut first) = (Vec::new(), Vec::new(), 0);
    // Both stacks are measured in turn on the same machine. The first round warms up.
    for _ in 0..=setup.rounds() {
        of_disk.push(load(&disk, time, &mut first).await);
        of_replicated.push(load(&replicated, time, &mut first).await);
    }
    let rate = |rounds: &[LoadResult]| Spread::of(rounds[1..].iter().map(LoadResult::rate));
    let quantile =
        |rounds: &[LoadResult], q| Spread::of(rounds[1..].iter().map(|round| round.latencies.millis(q)));
    let figure = |name, unit, value, measure| {
        let (yardstick, with) = (Some(("disk", measure)), json!({ "connections": CONNECTIONS }));
        Figure { scenario: NAME, name, unit, value, yardstick, with }.report();
    };
    figure("submits", "jobs/s", rate(&of_replicated), rate(&of_disk));
    for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
        figure(name, "ms", quantile(&of_replicated, q), quantile(&of_disk, q));
    }
}

/// Sends single submits for `time`. `first` is moved past the sent jobs, so that every job has a number of its own.
async fn load(stack: &Stack, time: Duration, first: &mut usize) -> LoadResult {
    let address = api_address(stack);
    let request = Request::one(address, URL, &json!({ "delay": DELAY_SECONDS }));
    let load = Load { address, request, connections: CONNECTIONS, pace: Pace::For(time), first: *first };
    let done = generate(load).await;
    *first += done.jobs;
    done
}
