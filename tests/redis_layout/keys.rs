//! Helpers for tests on Redis: the names and packing of keys and entries of the layout, to read and change them by hand.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, ToRedisArgs, cmd};
use ringback_core::job::Job;
use ringback_store::Store;
use ringback_testkit::RedisServer;
use sha2::{Digest as _, Sha256};

use crate::contract::workbench::{Server, Workbench};

pub(crate) async fn bench() -> (Workbench, MultiplexedConnection) {
    let server = RedisServer::start().await;
    let mut client = server.client().await;
    let bench = Workbench::new(Arc::new(Server::Redis(server)), "by-hand").await;
    know_lanes(&mut client, bench.store(), &bench.options().prefix).await;
    (bench, client)
}

/// The key of lane ids in these tests.
const LANE_KEY: [u8; 32] = [0xab; 32];

/// Gives an installation without jobs a key of lane ids that these tests know, and prepares the store again.
pub(crate) async fn know_lanes(redis: &mut MultiplexedConnection, store: &Store, prefix: &str) {
    let install = format!("{prefix}:{{meta}}:install");
    run(redis, &[b"HSET", install.as_bytes(), b"lane_key", "ab".repeat(LANE_KEY.len()).as_bytes()]).await;
    store.prepare().await.expect("the store is fit");
}

/// Runs a command, given as its arguments.
pub(crate) async fn run(redis: &mut MultiplexedConnection, words: &[&[u8]]) {
    ask::<()>(redis, words).await;
}

/// The answer to a command, given as its arguments.
pub(crate) async fn ask<T: FromRedisValue>(redis: &mut MultiplexedConnection, words: &[&[u8]]) -> T {
    let mut command = cmd(std::str::from_utf8(words[0]).expect("a command"));
    words[1..].iter().for_each(|word| {
        command.arg(word);
    });
    command.query_async(redis).await.expect("redis answers")
}

/// A key of the bench's shard, which must be the only shard with data.
pub(crate) async fn key(redis: &mut MultiplexedConnection, name: &str) -> String {
    let shards: Vec<String> = all(redis, "shard").await;
    assert_eq!(shards.len(), 1, "{shards:?}");
    shards[0].replace(":shard", &format!(":{name}"))
}

/// A key of the bench's shard whose name ends with bytes, such as the id of a lane.
pub(crate) async fn key_of(redis: &mut MultiplexedConnection, name: &str, end: &[u8]) -> Vec<u8> {
    [key(redis, name).await.as_bytes(), end].concat()
}

/// The id of the lane of the bench's jobs, as in keys.
pub(crate) fn lane() -> Vec<u8> {
    lane_of("store http://receiver.example")
}

pub(crate) fn lane_of(name: &str) -> Vec<u8> {
    let digest = Sha256::new().chain_update(LANE_KEY).chain_update([0]).chain_update(name).finalize();
    let mut lane = digest[..8].to_vec();
    if name.ends_with(' ') {
        lane[0] |= 0x80;
    } else {
        lane[0] &= 0x7f;
    }
    lane
}

/// The entry of a job in an index: its locator and its due time.
pub(crate) fn entry(job: &Job) -> Vec<u8> {
    [&job.key.locator().0, &job.due.as_millis().to_be_bytes()[2..]].concat()
}

/// Adds a due time and its lane's turn, which no transition has written.
pub(crate) async fn plant_due(redis: &mut MultiplexedConnection, entry: &[u8]) {
    let (due, turns) = (key_of(redis, "due:", &lane()).await, key(redis, "due_lanes").await);
    run(redis, &[b"ZADD", &due, b"1", entry]).await;
    run(redis, &[b"ZADD", turns.as_bytes(), b"1", &lane()]).await;
}

/// Adds an entry to the ready queue of the bench's lane, and a turn for the lane. `push` is the Redis command.
pub(crate) async fn plant_ready(redis: &mut MultiplexedConnection, push: &[u8], entry: &[u8]) {
    let (queue, lanes) = (key_of(redis, "ready:", &lane()).await, key(redis, "lanes").await);
    run(redis, &[push, &queue, entry]).await;
    run(redis, &[b"ZADD", lanes.as_bytes(), b"1", &lane()]).await;
}

/// The members of a sorted set, in order.
pub(crate) async fn members<T: FromRedisValue>(
    redis: &mut MultiplexedConnection,
    key: impl ToRedisArgs,
) -> Vec<T> {
    cmd("ZRANGE").arg(key).arg(0).arg(-1).query_async(redis).await.expect("ZRANGE")
}

/// Removes all tombstones, so that ended jobs are unknown.
pub(crate) async fn remove_tombstones(redis: &mut MultiplexedConnection) {
    for segment in all::<Vec<u8>>(redis, "done:*").await {
        run(redis, &[b"DEL", &segment]).await;
    }
}

/// The keys of this name in all shards and installations; `*` matches any characters.
pub(crate) async fn all<T: FromRedisValue>(redis: &mut MultiplexedConnection, name: &str) -> Vec<T> {
    cmd("KEYS").arg(format!("*:{name}")).query_async(redis).await.expect("redis answers")
}

/// The bytes of memory that all keys of these names take.
pub(crate) async fn memory(redis: &mut MultiplexedConnection, names: &[&str]) -> i64 {
    let mut sum = 0;
    for name in names {
        for key in all::<Vec<u8>>(redis, name).await {
            let bytes: Option<i64> = ask(redis, &[b"MEMORY", b"USAGE", &key, b"SAMPLES", b"0"]).await;
            sum += bytes.unwrap_or(0);
        }
    }
    sum
}

/// The number of entries in all ready queues.
pub(crate) async fn queued(redis: &mut MultiplexedConnection) -> usize {
    let mut sum = 0;
    for name in ["front:*", "ready:*"] {
        for key in all::<Vec<u8>>(redis, name).await {
            sum += ask::<usize>(redis, &[b"LLEN", &key]).await;
        }
    }
    sum
}
