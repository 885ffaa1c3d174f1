//! Measures memory of Redis and pages of the embedded store's file, per pending job.

use std::time::Duration;

use redb::Database;
use ringback_core::store_types::Options;
use ringback_store::{Store, settings};
use ringback_testkit::RedisServer;

use crate::table::Table;
use crate::{bounds, sample, turn};

const IN_REDIS: usize = 20_000;
const IN_FILE: usize = 5_000;
const DAY: f64 = 86_400.0;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

async fn open(url: String) -> Store {
    let options = Options { url, ..settings::defaults(CALL_TIMEOUT) };
    let store = Store::open(options).expect("the URL is good");
    store.prepare().await.expect("a private store is fit");
    store
}

/// Submits jobs that are due evenly over a day from an hour on, in batches of 500.
async fn fill(store: &Store, jobs: usize) {
    let mut shards: Vec<_> = store.shards().map(|shard| (shard, Vec::new())).collect();
    for n in 0..jobs {
        let delay = 3600.0 + n as f64 * DAY / jobs as f64;
        let job = sample::parse(&sample::text(n, sample::URL, delay));
        let shard = store.shard_of(&job.key);
        shards[usize::from(shard.number())].1.push(job);
    }
    for (shard, jobs) in shards {
        for batch in jobs.chunks(500) {
            store.submit(shard, batch).await.expect("the store accepts");
        }
    }
}

/// The bytes of used pages per job in a file. The file itself grows by doubling, so its size says little.
async fn in_file() -> f64 {
    let directory = tempfile::tempdir().expect("a temp directory");
    let store = open(format!("embedded:{}", directory.path().display())).await;
    fill(&store, IN_FILE).await;
    drop(store);
    let database = Database::open(directory.path().join("ringback.redb")).expect("it was closed");
    let stats = database.begin_write().and_then(|txn| Ok(txn.stats()?));
    let stats = stats.expect("redb knows its pages");
    (stats.allocated_pages() * stats.page_size() as u64) as f64 / IN_FILE as f64
}

#[tokio::test]
async fn a_pending_job_takes_no_more_room_than_it_may() {
    let _turn = turn().await;
    let server = RedisServer::start().await;
    let store = open(server.url()).await;
    let before = server.used_memory().await;
    fill(&store, IN_REDIS).await;
    let redis = (server.used_memory().await - before) as f64 / IN_REDIS as f64;

    let file = in_file().await;
    let mut table = Table::default();
    table.row(bounds::REDIS_BYTES, redis);
    table.row(bounds::FILE_BYTES, file);
    table.judge();
}
