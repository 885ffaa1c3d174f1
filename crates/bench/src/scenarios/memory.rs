//! Bytes of Redis memory per pending job, beside BullMQ, and per job with a realistic body, beside that body.

use serde_json::json;

use crate::figure::{Figure, yardstick};
use crate::fill;
use crate::job::URL;
use crate::setup::Setup;
use crate::yardstick::bullmq::Bullmq;
use ringback_testkit::RedisServer;

pub(crate) const NAME: &str = "memory";
/// BullMQ and realistic bodies get this many times fewer jobs, because a million takes long. It is a power of two, so
/// that hash tables are equally full.
const FEWER: usize = 4;
/// Milliseconds over which the jobs of BullMQ are spread: a day.
const DAY: u64 = 86_400_000;

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(1_000_000, 20_000);
    let server = setup.profile().redis().start().await;
    let store = setup.open(&server).await;
    let before = server.used_memory().await;
    fill::far(&store, 0..jobs).await;
    assert_eq!(fill::delayed(&store).await, jobs as u64, "every job is there");
    let value = per_job(&server, before, jobs).await;
    let with = json!({ "jobs": jobs, "shards": store.shards().count() });
    drop((store, server));
    let bullmq = bullmq(setup, jobs / FEWER).await;
    let yardstick = yardstick(NAME, "BullMQ", bullmq.map(Into::into));
    Figure { scenario: NAME, name: "pending-job", unit: "B", value: value.into(), yardstick, with }.report();
    realistic(setup, jobs / FEWER).await;
}

async fn realistic(setup: &Setup, jobs: usize) {
    let server = setup.profile().redis().start().await;
    let store = setup.open(&server).await;
    let before = server.used_memory().await;
    let bytes = fill::far_realistic(&store, 0..jobs).await;
    assert_eq!(fill::delayed(&store).await, jobs as u64, "every job is there");
    let value = per_job(&server, before, jobs).await.into();
    let yardstick = Some(("its body as sent", (bytes as f64 / jobs as f64).into()));
    let with = json!({ "jobs": jobs, "shards": store.shards().count() });
    Figure { scenario: NAME, name: "pending-realistic-job", unit: "B", value, yardstick, with }.report();
}

async fn bullmq(setup: &Setup, jobs: usize) -> Result<f64, String> {
    let bullmq = Bullmq::get(setup).await?;
    let server = setup.profile().redis().start().await;
    let before = server.used_memory().await;
    bullmq.run("fill", &server, 0, jobs, &json!({ "url": URL, "spread": DAY })).await?;
    Ok(per_job(&server, before, jobs).await)
}

async fn per_job(server: &RedisServer, before: u64, jobs: usize) -> f64 {
    server.used_memory().await.saturating_sub(before) as f64 / jobs as f64
}
