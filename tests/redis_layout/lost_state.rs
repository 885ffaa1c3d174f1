//! State that Redis loses by a fail-over, a restart or `FUNCTION FLUSH` (counters, functions, cursors, lane rows): the
//! store goes on without it.

use redis::aio::MultiplexedConnection;

use ringback_core::store_types::{
    ArchiveSettings, EndedStates, Filter, Options, Renewed, SettleResult, StoreError, TakeEntries, WhenFull,
};
use ringback_store::Store;
use ringback_testkit::{Persistence, RedisServer, set_shard_field, shard_field};

use crate::contract::job_builders::{BRIEF, LONG, With, bury, ms, release, retry};
use crate::contract::workbench::{SOON, Server, Workbench};
use crate::prelude::*;
use crate::redis_layout::keys::{ask, bench, key, lane, run};

/// Beyond every lease number that a clock gives for the next hundred years.
const FAR: u64 = 5_000_000_000_000_000;

#[tokio::test]
async fn epochs_and_leases_still_grow_after_their_counters_are_lost() {
    let (bench, mut redis) = bench().await;
    let stale = bench.stale_lease(bench.job("a")).await;
    let shard = key(&mut redis, "shard").await;
    run(&mut redis, &[b"HDEL", shard.as_bytes(), b"lease"]).await;
    let current = bench.take_one(&stale.key).await;
    assert_eq!(bench.settle(stale, retry(ms(0))).await, SettleResult::Stale);
    assert_eq!(bench.settle(current, Outcome::Complete).await, SettleResult::Applied);

    set_shard_field(&mut redis, &shard, "epoch", 0).await;
    run(&mut redis, &[b"HDEL", shard.as_bytes(), b"carrier"]).await;
    let epoch = bench.store().take_shard(bench.shard(), "another").await.expect("claim");
    assert_ne!(epoch, *bench.epoch());
    bench.check().await;
}

#[tokio::test]
async fn leases_still_grow_while_the_clock_is_behind_the_last_number() {
    let (bench, mut redis) = bench().await;
    let shard = key(&mut redis, "shard").await;
    set_shard_field(&mut redis, &shard, "lease", FAR as i64).await;
    for (name, number) in [("a", FAR + 1), ("b", FAR + 2)] {
        bench.reserved(bench.job(name)).await;
        assert_eq!(shard_field(&mut redis, &shard, "lease").await, number as i64);
    }
    bench.check().await;
}

/// All keys, each with its dumped value.
async fn dump(redis: &mut MultiplexedConnection) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut dumped = Vec::new();
    for key in ask::<Vec<Vec<u8>>>(redis, &[b"KEYS", b"*"]).await {
        let value = ask(redis, &[b"DUMP", &key]).await;
        dumped.push((key, value));
    }
    dumped
}

/// Replaces all data by the dumped keys.
async fn go_back(redis: &mut MultiplexedConnection, dumped: &[(Vec<u8>, Vec<u8>)]) {
    run(redis, &[b"FLUSHDB"]).await;
    for (key, value) in dumped {
        run(redis, &[b"RESTORE", key, b"0", value]).await;
    }
}

/// A settle counts the jobs of a batch that were settled, and cannot know which of these counts were lost.
#[tokio::test]
async fn a_job_whose_settle_is_lost_is_recovered_though_the_rest_of_its_batch_is_settled() {
    for outcome in [Outcome::Complete, retry(LONG)] {
        let (bench, mut redis) = bench().await;
        for name in ["a", "b", "c"] {
            bench.accept(bench.job(name).timeout(BRIEF)).await;
        }
        let mut leases = bench.take(3).await;
        bench.settle(leases.remove(0), Outcome::Complete).await;
        let dumped = dump(&mut redis).await;
        let lost = leases[0].key.clone();
        assert_eq!(bench.settle(leases.remove(0), outcome.clone()).await, SettleResult::Applied);
        go_back(&mut redis, &dumped).await;
        assert_eq!(bench.settle(leases.remove(0), outcome).await, SettleResult::Applied);
        bench.recover_until(&lost, State::Ready).await;
        bench.check().await;
    }
}

#[tokio::test]
async fn functions_that_are_flushed_before_every_call_are_not_missed() {
    let (bench, mut redis) = bench().await;
    let mut flush = async || run(&mut redis, &[b"FUNCTION", b"FLUSH"]).await;
    for (name, outcome, state) in [
        ("a", Outcome::Complete, State::Done),
        ("b", bury(), State::Dead),
        ("c", retry(LONG), State::Delayed),
        ("d", release(LONG), State::Delayed),
    ] {
        flush().await;
        let job = bench.accept(bench.job(name).after(ms(1))).await;
        flush().await;
        bench.promote_until(1).await;
        flush().await;
        let mut lease = bench.take_one(&job.key).await;
        flush().await;
        assert_eq!(bench.store().renew(&mut lease, LONG).await.expect("renew"), Renewed::Extended);
        flush().await;
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
        flush().await;
        assert_eq!(bench.state(&job.key).await, Some(state));
    }
    let expired = bench.reserved(bench.job("e").timeout(BRIEF)).await;
    flush().await;
    bench.recover_until(&expired.key, State::Ready).await;
    flush().await;
    bench.cancel(&expired.key).await;
    flush().await;
    assert_eq!(bench.stats().await.accepted, 5);
    flush().await;
    bench.store().heartbeat("carrier", LONG).await.expect("members");
    bench.check().await;
}

#[tokio::test]
async fn a_place_in_the_jobs_means_nothing_to_a_server_that_was_restarted() {
    let mut server = RedisServer::options().persistence(Persistence::Always).start().await;
    let bench = Workbench::new(std::sync::Arc::new(Server::Redis(RedisServer::start().await)), "place").await;
    let store = Store::open(Options { url: server.url(), shards: 1, ..bench.options() }).expect("a store");
    store.prepare().await.expect("the store is fit");
    let shard = store.shards().next().expect("a shard");
    let jobs: Vec<_> = (0..200).map(|n| bench.job(&format!("job-{n}")).after(LONG)).collect();
    store.submit(shard, &jobs).await.expect("submit");
    let first = store.page(&Filter::default(), None, 20).await.expect("page");
    assert!(first.next.is_some());
    store.page(&Filter::default(), first.next, 20).await.expect("the place still means something");

    server.restart().await;
    let error = eventually(SOON, "the server answers", async || {
        match store.page(&Filter::default(), first.next, 20).await.expect_err("another run") {
            error if error.is_transient() => Err(error),
            error => Ok(error),
        }
    })
    .await;
    assert!(matches!(error, StoreError::Outdated), "{error:?}");
    let again = store.page(&Filter::default(), None, 1000).await.expect("from the start");
    assert_eq!((again.items.len(), again.next), (200, None));
}

#[tokio::test]
async fn a_lane_that_nothing_is_known_of_keeps_its_jobs_until_it_is_known_again() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a")).await;
    let shard = key(&mut redis, "shard").await;
    run(&mut redis, &[b"HDEL", shard.as_bytes(), &lane()]).await;
    assert!(bench.take(10).await.is_empty());
    bench.accept(bench.job("b")).await;
    let taken: Vec<_> = bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert!(taken.len() == 2 && taken.contains(&job.key), "{taken:?}");
}

#[tokio::test]
async fn a_receipt_of_the_same_number_and_other_bits_is_stale() {
    let (bench, mut redis) = bench().await;
    let shard = key(&mut redis, "shard").await;
    set_shard_field(&mut redis, &shard, "lease", FAR as i64).await;
    let mut before = bench.stale_lease(bench.job("a")).await;
    set_shard_field(&mut redis, &shard, "lease", FAR as i64).await;
    let after = bench.take_one(&before.key).await;
    let job = bench.get(&after.key).await;

    assert_eq!(bench.store().renew(&mut before, LONG).await.expect("renew"), Renewed::Stale);
    assert_eq!(bench.settle(before, retry(ms(0))).await, SettleResult::Stale);
    assert_eq!(bench.get(&job.key).await, job);
    assert_eq!(bench.settle(after, Outcome::Complete).await, SettleResult::Applied);
    bench.check().await;
}

#[tokio::test]
async fn ends_that_have_the_numbers_of_others_after_a_loss_are_not_removed_from_the_archive_outbox() {
    let (bench, mut redis) = bench().await;
    let (states, when_full) = (EndedStates::all(), WhenFull::Stall);
    let settings = ArchiveSettings { states, with_bodies: true, bound: 1 << 20, when_full };
    bench.store().attach_archive(Some(settings)).await.expect("attach");
    let mut leases = Vec::new();
    for name in ["a", "b", "c"] {
        leases.push(bench.reserved(bench.job(name)).await);
    }
    let mut leases = leases.into_iter();
    let mut end = async || {
        let lease = leases.next().expect("a lease");
        assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    };
    end().await;
    let dumped = dump(&mut redis).await;
    end().await;
    let taken = bench.store().take_ended(bench.shard(), "archiver", SOON, 10).await.expect("take");
    let TakeEntries::Taken(taken) = taken else { panic!("nobody else has them") };
    assert_eq!(taken.part.count, 2);
    go_back(&mut redis, &dumped).await;
    end().await;
    let left = bench.store().remove_ended(bench.shard(), "archiver", &taken.part).await.expect("remove");
    assert_eq!(left, 2, "the second one is another end now");
}
