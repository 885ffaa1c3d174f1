//! Ids of lanes that collide: a lane whose id another lane has gets another id, and its jobs are found there.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use ringback_core::job::{IfExists, NewJob};
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{SettleResult, SubmitResult};

use crate::contract::job_builders::{LONG, With};
use crate::contract::workbench::Workbench;
use crate::redis_layout::keys::{ask, bench, key, lane, lane_of, run};

const PUSH: &str = "store http://receiver.example";
const PULL: &str = "store ";

/// Adds a row for the lane `other` under an id, as if it had one job: the id that a lane of the bench would get.
async fn taken(bench: &Workbench, redis: &mut MultiplexedConnection, id: &[u8], other: &str) {
    bench.accept(bench.job_of("another", "first").after(LONG)).await;
    let (shard, index) = (key(redis, "shard").await, key(redis, "index").await);
    let row = [&1_u32.to_be_bytes()[..], &[0; 24], other.as_bytes()].concat();
    run(redis, &[b"HSET", shard.as_bytes(), id, &row]).await;
    let topic = other.split(' ').next().expect("a topic");
    run(redis, &[b"ZADD", index.as_bytes(), b"0", &[topic.as_bytes(), b" ", id].concat()]).await;
}

async fn ids(redis: &mut MultiplexedConnection, name: &str) -> Vec<Vec<u8>> {
    let shard = key(redis, "shard").await;
    let rows: BTreeMap<Vec<u8>, Vec<u8>> = ask(redis, &[b"HGETALL", shard.as_bytes()]).await;
    let named = |row: &[u8]| row.len() > 28 && &row[28..] == name.as_bytes();
    rows.into_iter().filter(|(id, row)| id.len() == 8 && named(row)).map(|(id, _)| id).collect()
}

#[tokio::test]
async fn a_job_whose_lane_would_have_the_id_of_another_goes_to_its_own_receiver() {
    let (bench, mut redis) = bench().await;
    taken(&bench, &mut redis, &lane(), "theirs http://theirs.example").await;
    let plain = bench.accept(bench.job("plain")).await;
    let new = NewJob { if_exists: IfExists::Replace { token: bench.token() }, ..bench.job("replacing") };
    assert_eq!(bench.submit(&[new]).await[0].answer, SubmitResult::Created);
    assert_eq!(bench.submit(&[bench.job("plain")]).await[0].answer, SubmitResult::Repeated);
    let own = ids(&mut redis, PUSH).await;
    assert!(own.len() == 1 && own[0] != lane(), "{own:?}");
    for lease in bench.take(10).await {
        assert_eq!(
            (lease.key.topic.as_str(), lease.delivery.callback.origin()),
            ("store", "http://receiver.example")
        );
        assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    }
    assert!(bench.get(&plain.key).await.state.is_terminal());
    assert_eq!(ids(&mut redis, "theirs http://theirs.example").await, [lane()]);
}

#[tokio::test]
async fn a_consumer_finds_its_jobs_where_another_topic_has_the_id_of_their_lane() {
    let (bench, mut redis) = bench().await;
    taken(&bench, &mut redis, &lane_of(PULL), "theirs ").await;
    let job = bench.accept(bench.pull_job("mine")).await;
    let pulled = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.settle_receipt(pulled.receipt, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(ids(&mut redis, "theirs ").await, [lane_of(PULL)]);
}
