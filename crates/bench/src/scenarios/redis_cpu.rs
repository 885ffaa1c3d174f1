//! CPU of Redis for one job from submit to done (submit, promote, reserve, complete): with fixed numbers of jobs per
//! call, and with all roles while jobs are submitted and delivered at the same time.

use std::time::Duration;

use futures_util::future::join;
use ringback_core::job::NewJob;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{Epoch, PassLimits, Reserve, Shard, Waiting};
use ringback_store::Store;
use serde_json::json;

use crate::backlog::{settled, submit};
use crate::figure::{Spread, report};
use crate::fill::by_shard;
use crate::generator::{Load, Pace, Request, generate};
use crate::job::{URL, job, parse};
use crate::receiver::{Channel, Receiver};
use crate::setup::{Profile, Setup, api_address};
use crate::usage::cpu_seconds;

pub(crate) const NAME: &str = "redis-cpu";
/// Single submits per second while a backlog is delivered.
const RATE: usize = 2_000;

pub(crate) async fn run(setup: &Setup) {
    for &profile in &setup.profiles {
        for batch in [50, 8, 1] {
            let jobs = setup.size.pick(30_000, 1_000) * batch.min(10) / 10;
            let rounds = setup.repeat(async || lives(setup, profile, jobs, batch).await).await;
            let with = json!({ "jobs": jobs, "batch": batch, "appendfsync": profile });
            report(NAME, "per-life", Spread::of(rounds), "us", &with);
        }
        under_load(setup, profile).await;
    }
}

/// Measures Redis with all roles: single submits at an even pace beside batches, of jobs that are due a second later.
/// The CPU time of Redis from the first submit to the last settle is divided by the number of jobs.
async fn under_load(setup: &Setup, profile: Profile) {
    let receiver = Receiver::start().await;
    let stack = setup.stack(profile).start().await;
    let (single, batched) = setup.size.pick((5 * RATE, 50_000), (500, 2_000));
    let jobs = single + batched;
    receiver.expect(0..jobs);
    let (url, soon, address) = (receiver.url(Channel::Main), json!({ "delay": 1 }), api_address(&stack));
    let before = cpu_seconds(stack.redis().pid());
    let singles = generate(Load {
        address,
        request: Request::one(address, &url, &soon),
        connections: 32,
        pace: Pace::Even { rate: RATE as f64, requests: single },
        first: 0,
    });
    let (sent, _) = join(singles, submit(&stack, single..jobs, &url, &soon)).await;
    receiver.wait_for(jobs, Duration::from_secs(120)).await;
    settled(&stack, jobs).await;
    let micros = (cpu_seconds(stack.redis().pid()) - before) * 1e6 / jobs as f64;
    let with = json!({
        "jobs": jobs, "single": single, "rate": RATE, "appendfsync": profile,
        "submit_p99_ms": sent.latencies.millis(0.99),
    });
    report(NAME, "under-load", micros, "us", &with);
}

/// Measures the CPU time of Redis in µs per job from submit to done, with `batch` jobs per call, one call at a time.
async fn lives(setup: &Setup, profile: Profile, jobs: usize, batch: usize) -> f64 {
    let server = profile.redis().start().await;
    let store = setup.open(&server).await;
    let new: Vec<_> = (0..jobs).map(|n| parse(&job(n, URL, &json!({ "delay": 0.001 })))).collect();
    let before = cpu_seconds(server.pid());
    begin(&store, new, batch).await;
    for shard in store.shards() {
        let epoch = store.take_shard(shard, "bench").await.expect("the store answers");
        finish(&store, shard, &epoch, batch).await;
    }
    let micros = (cpu_seconds(server.pid()) - before) * 1e6 / jobs as f64;
    let done = store.stats().await.expect("the store answers").states.done;
    assert_eq!(done, jobs as u64, "every job was done");
    micros
}

/// Submits jobs in calls of `batch`, shard by shard.
async fn begin(store: &Store, jobs: Vec<NewJob>, batch: usize) {
    for (shard, jobs) in by_shard(store, jobs, |job| &job.key) {
        for call in jobs.chunks(batch) {
            store.submit(shard, call).await.expect("the store accepts");
        }
    }
}

/// Promotes, reserves and completes all jobs of a shard, `batch` per call.
async fn finish(store: &Store, shard: Shard, epoch: &Epoch, batch: usize) {
    let mut sequence = 0;
    loop {
        let limit = u32::try_from(batch).unwrap_or(u32::MAX);
        store
            .promote(
                shard,
                epoch,
                PassLimits { jobs: limit, max_sleep: Duration::from_secs(5), may_leave: false },
            )
            .await
            .expect("the store answers");
        sequence += 1;
        let ask = Reserve {
            caller: "bench",
            sequence,
            limit: batch,
            lane_limit: batch,
            lane_limits: Vec::new(),
            admitted: Vec::new(),
            origin_limit: usize::MAX,
            tenant_limit: usize::MAX,
            group_limits: Vec::new(),
            bits: [7; 8],
            waiting: Waiting::No,
            margin: Duration::from_secs(10),
        };
        let leases = store.reserve(shard, &ask).await.expect("the store answers").leases;
        if leases.is_empty() {
            return;
        }
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        store.settle(shard, items).await.expect("the store answers");
    }
}
