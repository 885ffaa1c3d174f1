//! Ids of lanes: that of another lane is not taken, and lanes from before ids had a key keep theirs.

use std::collections::{BTreeMap, HashSet};

use redis::aio::MultiplexedConnection;
use ringback_core::contract::{Reserve, Settled, SubmitResult};
use ringback_core::job::{IfExists, NewJob};
use ringback_core::outcome::Outcome;
use sha2::{Digest as _, Sha256};

use crate::contract::jobs::{LONG, With};
use crate::contract::workbench::Workbench;
use crate::redis_layout::keys::{ask, bench, key, key_of, lane, lane_of, run};

const PUSH: &str = "store http://receiver.example";
const PULL: &str = "store ";

/// Gives an id to a lane of somebody else, which has one job: the one with the id that a lane would have.
async fn taken(bench: &Workbench, redis: &mut MultiplexedConnection, id: &[u8], other: &str) {
    bench.accept(bench.job_of("another", "first").after(LONG)).await;
    let (shard, index) = (key(redis, "shard").await, key(redis, "index").await);
    let row = [&1_u32.to_be_bytes()[..], &[0; 24], other.as_bytes()].concat();
    run(redis, &[b"HSET", shard.as_bytes(), id, &row]).await;
    let topic = other.split(' ').next().expect("a topic");
    run(redis, &[b"ZADD", index.as_bytes(), b"0", &[topic.as_bytes(), b" ", id].concat()]).await;
}

/// The ids of the lanes with a name.
async fn ids(redis: &mut MultiplexedConnection, name: &str) -> Vec<Vec<u8>> {
    let shard = key(redis, "shard").await;
    let rows: BTreeMap<Vec<u8>, Vec<u8>> = ask(redis, &[b"HGETALL", shard.as_bytes()]).await;
    let named = |row: &[u8]| row.len() > 28 && &row[28..] == name.as_bytes();
    rows.into_iter().filter(|(id, row)| id.len() == 8 && named(row)).map(|(id, _)| id).collect()
}

/// The id that a lane had before ids had a key.
fn unkeyed(name: &str) -> Vec<u8> {
    let mut id = Sha256::digest(name)[..8].to_vec();
    if name.ends_with(' ') {
        id[0] |= 0x80;
    } else {
        id[0] &= 0x7f;
    }
    id
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
        assert_eq!(bench.settle(lease, Outcome::Complete).await, Settled::Applied);
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
    assert_eq!(bench.settle_receipt(pulled.receipt, Outcome::Complete).await, Settled::Applied);
    assert_eq!(ids(&mut redis, "theirs ").await, [lane_of(PULL)]);
}

#[tokio::test]
async fn lanes_from_before_there_was_a_key_are_emptied_under_their_limits() {
    let (bench, mut redis) = bench().await;
    for job in [bench.job("a"), bench.job("b")] {
        bench.accept(job).await;
    }
    let first = bench.accept(bench.pull_job("first")).await.key.id;
    // As the layout before left it.
    for name in [PUSH, PULL] {
        let keyed = ids(&mut redis, name).await.remove(0);
        renamed(&mut redis, &keyed, &unkeyed(name)).await;
    }
    let install = format!("{}:{{meta}}:install", bench.options().prefix);
    run(&mut redis, &[b"HDEL", install.as_bytes(), b"lane_key"]).await;
    run(&mut redis, &[b"HSET", install.as_bytes(), b"layout", b"7"]).await;
    bench.store().prepare().await.expect("an earlier layout");
    bench.accept(bench.job("c")).await;
    let second = bench.accept(bench.pull_job("second")).await.key.id;
    assert_eq!((ids(&mut redis, PUSH).await.len(), ids(&mut redis, PULL).await.len()), (2, 2));
    bench.audit().await;

    let pulled = bench.pull(10, LONG).await;
    let ids_of_jobs: HashSet<_> = pulled.jobs.iter().map(|job| job.key.id.clone()).collect();
    assert_eq!(ids_of_jobs, HashSet::from([first, second]));
    for job in pulled.jobs {
        assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, Settled::Applied);
    }
    let closed = Reserve { lane_limits: vec![(PUSH.to_owned(), 0)], ..bench.ask(10) };
    assert!(bench.reserve(&closed).await.leases.is_empty(), "both lanes are closed");
    let leases = bench.take(10).await;
    assert_eq!(leases.len(), 3);
    for lease in leases {
        assert_eq!(bench.settle(lease, Outcome::Complete).await, Settled::Applied);
    }
    bench.audit().await;
    assert!(ids(&mut redis, PUSH).await.is_empty() && ids(&mut redis, PULL).await.is_empty());
}

/// Gives the lane `from`, which has ready jobs only, another id.
async fn renamed(redis: &mut MultiplexedConnection, from: &[u8], to: &[u8]) {
    let (shard, index, pool) =
        (key(redis, "shard").await, key(redis, "index").await, key(redis, "pool").await);
    let row: Vec<u8> = ask(redis, &[b"HGET", shard.as_bytes(), from]).await;
    run(redis, &[b"HSET", shard.as_bytes(), to, &row]).await;
    run(redis, &[b"HDEL", shard.as_bytes(), from]).await;
    let listed = |id: &[u8]| [b"store ", id].concat();
    run(redis, &[b"ZREM", index.as_bytes(), &listed(from)]).await;
    run(redis, &[b"ZADD", index.as_bytes(), b"0", &listed(to)]).await;
    let queues = (key_of(redis, "ready:", from).await, key_of(redis, "ready:", to).await);
    run(redis, &[b"RENAME", &queues.0, &queues.1]).await;
    let turns = key(redis, if from[0] < 0x80 { "lanes" } else { "pulls" }).await;
    run(redis, &[b"ZREM", turns.as_bytes(), from]).await;
    run(redis, &[b"ZADD", turns.as_bytes(), b"1", to]).await;
    let records: BTreeMap<Vec<u8>, Vec<u8>> = ask(redis, &[b"HGETALL", pool.as_bytes()]).await;
    for (locator, mut record) in records {
        if record[25..33] == *from {
            record[25..33].copy_from_slice(to);
            run(redis, &[b"HSET", pool.as_bytes(), &locator, &record]).await;
        }
    }
}
