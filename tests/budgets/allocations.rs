//! Counts the allocations per job of all threads of this process: to submit, to reserve and complete by hand, and of a
//! whole notifier with its HTTP client. Growing an allocation counts as one.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::clock::SystemClock;
use ringback_core::retry::{InstallationRetry, RetryPolicy};
use ringback_core::store_types::Options;
use ringback_egress::Guard;
use ringback_notifier::{Config, Outgoing, Signing};
use ringback_service::{Context, Health, Scrapes, Shutdown, Tasks};
use ringback_store::{Store, settings};
use ringback_testkit::{RedisServer, eventually, http_client};
use stats_alloc::Region;

use crate::life::Life;
use crate::receiver::Receiver;
use crate::table::Table;
use crate::{ALLOCATOR, bounds, sample, turn};

const BATCH: usize = 100;
const ROUNDS: usize = 5;
const SOON: Duration = Duration::from_secs(30);

/// Requests for memory, and how many bytes they were for.
#[derive(Clone, Copy, Debug, Default)]
struct Allocations {
    times: f64,
    bytes: f64,
}

/// Runs `work` on a batch, and returns what it allocated per job.
async fn asked(work: impl Future<Output = ()>) -> Allocations {
    let region = Region::new(ALLOCATOR);
    work.await;
    let change = region.change();
    let times = (change.allocations + change.reallocations) as f64 / BATCH as f64;
    Allocations { times, bytes: change.bytes_allocated as f64 / BATCH as f64 }
}

fn options(server: &RedisServer) -> Options {
    Options { url: server.url(), shards: 1, ..settings::defaults(SOON) }
}

async fn open(server: &RedisServer) -> Life {
    Life::of(Store::open(options(server)).expect("the URL is good")).await
}

/// The JSON texts of one batch of jobs, due in 100 ms.
fn texts(round: usize, url: &str) -> Vec<String> {
    (0..BATCH).map(|n| sample::text(round * BATCH + n, url, 0.1)).collect()
}

/// Promotes the whole batch once it is due. Panics after 30 seconds.
async fn promote(life: &Life) {
    let mut moved = 0;
    eventually(SOON, "a batch is due and promoted", async || {
        moved += life.promote(BATCH).await;
        if moved < BATCH { Err(moved) } else { Ok(()) }
    })
    .await;
}

/// The least of several rounds, which leaves out what comes now and then, such as a buffer that grows.
fn least(rounds: &[Allocations]) -> Allocations {
    let least = |of: fn(&Allocations) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    Allocations { times: least(|asked| asked.times), bytes: least(|asked| asked.bytes) }
}

#[tokio::test]
async fn a_job_asks_for_memory_no_more_often_than_it_may() {
    let _turn = turn().await;
    let server = RedisServer::start().await;
    let mut life = open(&server).await;
    let (mut submits, mut reserve_completes) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let texts = texts(round, sample::URL);
        let submit = async {
            let jobs: Vec<_> = texts.iter().map(|text| sample::parse(text)).collect();
            life.submit(&jobs).await;
        };
        submits.push(asked(submit).await);
        promote(&life).await;
        let reserve_complete = async {
            let leases = life.take(BATCH).await;
            assert_eq!(leases.len(), BATCH, "all jobs are ready");
            life.complete(leases).await;
        };
        reserve_completes.push(asked(reserve_complete).await);
    }
    let (submit, reserve_complete) = (least(&submits), least(&reserve_completes));
    let mut table = Table::default();
    table.row(bounds::SUBMIT_ALLOCATIONS, submit.times);
    table.row(bounds::SUBMIT_BYTES, submit.bytes);
    table.row(bounds::RESERVE_COMPLETE_ALLOCATIONS, reserve_complete.times);
    table.row(bounds::RESERVE_COMPLETE_BYTES, reserve_complete.bytes);
    table.judge();
}

#[tokio::test]
async fn a_notifier_asks_for_memory_no_more_often_than_it_may() {
    let _turn = turn().await;
    let (server, receiver) = (RedisServer::start().await, Receiver::start().await);
    let life = open(&server).await;
    let mut tasks = Tasks::new();
    start_notifier(&server, &life.store, &mut tasks);
    let url = format!("http://{}/hook", receiver.address);
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let jobs: Vec<_> = texts(round, &url).iter().map(|text| sample::parse(text)).collect();
        life.submit(&jobs).await;
        let wanted = (round + 1) * BATCH;
        let arrive = eventually(SOON, "the batch is delivered", async || {
            if receiver.seen() < wanted { Err(receiver.seen()) } else { Ok(()) }
        });
        rounds.push(asked(arrive).await);
    }
    let least = least(&rounds);
    let mut table = Table::default();
    table.row(bounds::NOTIFIER_ALLOCATIONS, least.times);
    table.row(bounds::NOTIFIER_BYTES, least.bytes);
    table.judge();
}

/// Starts a notifier in this process. Its metrics go nowhere.
fn start_notifier(server: &RedisServer, store: &Store, tasks: &mut Tasks) {
    // The client installs the TLS provider that every process sets at its start.
    drop(http_client());
    let shutdown = Shutdown::new(SOON);
    let health = Health::new(&shutdown);
    let (meter, scrapes) = (opentelemetry::global::meter("guard"), Scrapes::default());
    let context = Context { shutdown, health, meter, scrapes, clock: Arc::new(SystemClock) };
    let config = Config {
        store: options(server),
        concurrency: 512,
        // Without a carrier, one reserve of the notifier has to take the whole batch.
        lane_concurrency: 256,
        breakers: true,
        // The receiver is on this machine.
        outgoing: Outgoing { guard: Guard::open(), ..Outgoing::default() },
        signing: Signing::default(),
        retry: InstallationRetry::unlimited(RetryPolicy::preset("default").expect("a preset")),
        lease_margin: Duration::from_secs(60),
    };
    ringback_notifier::start(config, store, &context, tasks).expect("the HTTP client can be made");
}
