//! Submits of 1,000 jobs per request; beside them redis-benchmark that stores one job per script call, pipelined.

use serde_json::json;

use crate::figure::{Figure, Spread, yardstick};
use crate::generator::{Load, Pace, Request, generate};
use crate::job::URL;
use crate::setup::{Profile, Setup, api_address};
use crate::yardstick::redis_benchmark;
use ringback_testkit::Role;

pub(crate) const NAME: &str = "submit-batch";
const PER_REQUEST: usize = 1000;
/// Requests in flight at a time.
const CONNECTIONS: usize = 2;
/// The delay of all jobs: a day, so that nothing is delivered meanwhile.
const DELAY_SECONDS: u64 = 86_400;

pub(crate) async fn run(setup: &Setup) {
    for &profile in &setup.profiles {
        let requests = setup.size.pick(200, 5);
        let value = ours(setup, profile, requests).await;
        let bare = bare(setup, profile, requests * PER_REQUEST).await;
        let yardstick = yardstick(NAME, "redis-benchmark", bare);
        let with = json!({
            "appendfsync": profile, "per_request": PER_REQUEST, "connections": CONNECTIONS,
            "jobs": requests * PER_REQUEST,
        });
        Figure { scenario: NAME, name: "submits", unit: "jobs/s", value, yardstick, with }.report();
    }
}

async fn ours(setup: &Setup, profile: Profile, requests: usize) -> Spread {
    let stack = setup.stack(profile).count(Role::Notifier, 0).start().await;
    let address = api_address(&stack);
    let request = Request::batch(address, PER_REQUEST, URL, &json!({ "delay": DELAY_SECONDS }));
    let load = |requests, first| {
        let (request, pace) = (request.clone(), Pace::Count(requests));
        generate(Load { address, request, connections: CONNECTIONS, pace, first })
    };
    let mut sent = load(requests / 5, 0).await.jobs;
    let rates = setup.repeat(async || {
        let round = load(requests, sent).await;
        sent += round.jobs;
        round.rate()
    });
    let rates = rates.await;
    assert_eq!(stack.count_in("delayed").await, sent as u64, "every accepted job is there");
    Spread::of(rates)
}

async fn bare(setup: &Setup, profile: Profile, jobs: usize) -> Result<Spread, String> {
    let program = redis_benchmark::find().ok_or("it is neither beside redis-server nor on PATH")?;
    let server = profile.redis().start().await;
    redis_benchmark::run(&program, &server, jobs / 5).await?;
    setup.try_repeat(async || redis_benchmark::run(&program, &server, jobs).await).await.map(Spread::of)
}
