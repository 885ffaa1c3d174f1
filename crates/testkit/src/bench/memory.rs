//! What a pending job costs Redis, all in; and the CPU of a whole life, in batches.

use std::time::Duration;

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::job::NewJob;
use ringback_core::outcome::Outcome;
use ringback_core::store::{Epoch, Lateness, Reserve, Shard, Store};
use ringback_core::wire::{Defaults, parse_job};
use serde_json::{Value, json};

use super::usage::cpu_seconds;
use super::{Setup, job, redis, report};
use crate::{Persistence, RedisServer};

pub(super) const URL: &str = "https://merchant.example/pppppppppppppppppppppppp";

/// Bytes per pending job.
pub(super) async fn run(setup: &Setup) {
    pending(setup).await;
}

/// CPU of Redis per life, with and without the cost of syncing each write.
pub(super) async fn run_cpu(setup: &Setup) {
    for (persistence, name) in [(Persistence::EverySec, "everysec"), (Persistence::Always, "always")] {
        for batch in [50, 8, 1] {
            lives(setup, persistence, name, batch).await;
        }
    }
}

async fn open(setup: &Setup, server: &RedisServer) -> Store {
    let store = Store::open(setup.store(server)).expect("the URL is good");
    store.prepare().await.expect("a private server is fit");
    store
}

pub(super) fn parse(job: &Value) -> NewJob {
    let defaults = Defaults {
        now: SystemClock.now(),
        make_id: &mut || unreachable!("every job has an id"),
        trace: None,
    };
    parse_job(job.to_string().as_bytes(), defaults).expect("the measured job is valid")
}

/// Submits jobs in calls of `batch` per shard.
async fn submit(store: &Store, jobs: impl Iterator<Item = NewJob>, batch: usize) {
    let mut waiting: Vec<Vec<NewJob>> = store.shards().map(|_| Vec::new()).collect();
    for job in jobs {
        let shard = store.shard_of(&job.key);
        let list = &mut waiting[usize::from(shard.number())];
        list.push(job);
        if list.len() == batch {
            store.submit(shard, &std::mem::take(list)).await.expect("the store accepts");
        }
    }
    for (shard, list) in store.shards().zip(waiting) {
        if !list.is_empty() {
            store.submit(shard, &list).await.expect("the store accepts");
        }
    }
}

async fn pending(setup: &Setup) {
    let jobs = setup.size.pick(1_000_000, 20_000);
    let server = redis().start().await;
    let store = open(setup, &server).await;
    let before = server.used_memory().await;
    let spread = |n: usize| json!({ "delay": 3600.0 + n as f64 * 86_400.0 / jobs as f64 });
    submit(&store, (0..jobs).map(|n| parse(&job(n, URL, &spread(n)))), 500).await;
    let bytes = server.used_memory().await.saturating_sub(before) as f64 / jobs as f64;
    report("memory", "pending-job", bytes, "B", &json!({ "jobs": jobs, "shards": store.shards().count() }));
}

async fn lives(setup: &Setup, persistence: Persistence, name: &str, batch: usize) {
    let jobs = setup.size.pick(100_000, 2_000) * batch.min(10) / 10;
    let server = RedisServer::options().persistence(persistence).start().await;
    let store = open(setup, &server).await;
    let new: Vec<_> = (0..jobs).map(|n| parse(&job(n, URL, &json!({ "delay": 0.001 })))).collect();
    let before = cpu_seconds(server.pid());
    submit(&store, new.into_iter(), batch).await;
    for shard in store.shards() {
        let epoch = store.claim(shard, "bench").await.expect("the store answers");
        finish(&store, shard, &epoch, batch).await;
    }
    let micros = (cpu_seconds(server.pid()) - before) * 1e6 / jobs as f64;
    let done = store.stats().await.expect("the store answers").states.done;
    assert_eq!(done, jobs as u64, "every job was done");
    let with = json!({ "jobs": jobs, "batch": batch, "appendfsync": name });
    report("redis-cpu", "per-life", micros, "us", &with);
}

/// Promotes, reserves and completes all jobs of a shard.
async fn finish(store: &Store, shard: Shard, epoch: &Epoch, batch: usize) {
    let mut sequence = 0;
    loop {
        let limit = u32::try_from(batch).unwrap_or(u32::MAX);
        store.promote(shard, epoch, limit, Duration::from_secs(5)).await.expect("the store answers");
        sequence += 1;
        let ask = Reserve {
            caller: "bench",
            sequence,
            limit: batch,
            lane_room: batch,
            rooms: Vec::new(),
            bits: [7; 8],
            margin: Duration::from_secs(10),
        };
        let leases = store.reserve(shard, &ask).await.expect("the store answers").leases;
        if leases.is_empty() {
            return;
        }
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        store.settle(shard, items, &Lateness::default()).await.expect("the store answers");
    }
}
