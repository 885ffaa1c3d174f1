//! The archive in PostgreSQL: lateness with it and without it at 1,000 jobs/s, and how fast ended jobs that have waited
//! for the database get there.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ringback_core::store_types::{ArchiveSettings, EndedStates, WhenFull};
use ringback_store::Store;
use ringback_testkit::{PostgresServer, Role, Stack};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::figure::{Figure, Spread};
use crate::fill;
use crate::job::{URL, job, parse};
use crate::latencies::Latencies;
use crate::receiver::Receiver;
use crate::setup::Setup;
use crate::train::{Train, lateness};

pub(crate) const NAME: &str = "archive";
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
/// Calls that cancel jobs at a time.
const CALLS: usize = 64;

pub(crate) async fn run(setup: &Setup) {
    beside(setup).await;
    catch_up(setup).await;
}

/// Measures how late jobs arrive while all ended jobs are archived, beside a stack without an archive.
async fn beside(setup: &Setup) {
    let rate = setup.size.pick(1_000, 200);
    let mut train = Train { first: 0, jobs: setup.size.pick(10 * rate, 200), rate };
    let (receiver, database) = (Receiver::start().await, PostgresServer::durable().await);
    let without = setup.stack(setup.profile()).start().await;
    let archived =
        setup.stack(setup.profile()).count(Role::Archiver, 1).env("RINGBACK_ARCHIVE", &database.url());
    let with = archived.start().await;
    wait_until_attached(&with).await;
    let mut rounds: [Vec<Latencies>; 2] = Default::default();
    for stack in [&without, &with] {
        let mut warm_up = Train { jobs: train.jobs / 10, ..train };
        lateness(&mut warm_up, stack, &receiver).await;
        train.first = warm_up.first;
    }
    setup
        .repeat(async || {
            for (stack, rounds) in [&without, &with].into_iter().zip(&mut rounds) {
                rounds.push(lateness(&mut train, stack, &receiver).await);
            }
        })
        .await;
    let [without, with] = rounds;
    let circumstances = circumstances(setup, &json!({ "rate": rate, "jobs": train.jobs }));
    for (name, q) in QUANTILES {
        let spread = |rounds: &[Latencies]| Spread::of(rounds.iter().map(|round| round.millis(q)));
        let (value, yardstick) = (spread(&with), Some(("without an archive", spread(&without))));
        Figure { scenario: NAME, name, unit: "ms", value, yardstick, with: circumstances.clone() }.report();
    }
}

async fn wait_until_attached(stack: &Stack) {
    while stack.get("/v1/archive").await.expect(200)["attached"] != true {
        sleep(Duration::from_millis(50)).await;
    }
}

/// Measures how fast ended jobs that wait in the store are written to the archive.
async fn catch_up(setup: &Setup) {
    let ends = setup.size.pick(100_000, 1_000);
    let rates = setup.repeat(async || round(setup, ends).await).await;
    let (value, with) = (Spread::of(rates), circumstances(setup, &json!({ "states": ends })));
    Figure { scenario: NAME, name: "catch-up", unit: "ends/s", value, yardstick: None, with }.report();
}

async fn round(setup: &Setup, ends: usize) -> f64 {
    let database = PostgresServer::durable().await;
    let options =
        setup.stack(setup.profile()).count(Role::Api, 1).count(Role::Carrier, 0).count(Role::Notifier, 0);
    let stack = options.env("RINGBACK_ARCHIVE", &database.url()).start().await;
    let store = setup.open(stack.redis()).await;
    let settings = ArchiveSettings {
        states: EndedStates::all(),
        with_bodies: true,
        bound: 1 << 30,
        when_full: WhenFull::Stall,
    };
    store.attach_archive(Some(settings)).await.expect("the store answers");
    fill::far(&store, 0..ends).await;
    let cancels = stream::iter(0..ends).map(|number| cancel(&store, number));
    cancels.buffer_unordered(CALLS).collect::<()>().await;
    let pending = async || store.archive_status().await.expect("the store answers").pending;
    assert_eq!(pending().await, ends as u64);

    let _archiver = stack.spec(Role::Archiver).start();
    while pending().await == ends as u64 {
        sleep(Duration::from_millis(5)).await;
    }
    let (begun, left) = (Instant::now(), pending().await);
    while pending().await > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    left as f64 / begun.elapsed().as_secs_f64()
}

async fn cancel(store: &Store, number: usize) {
    let key = parse(&job(number, URL, &json!({}))).key;
    store.cancel(&key).await.expect("the store answers");
}

fn circumstances(setup: &Setup, more: &Value) -> Value {
    let mut with = json!({ "appendfsync": setup.profile(), "fsync of PostgreSQL": "on" });
    for (name, value) in more.as_object().into_iter().flatten() {
        with[name] = value.clone();
    }
    with
}
