//! Redis whose clock was set back by an hour: times that were stored before (of locks, leases, notices, turns,
//! tombstones) delay nothing by that hour.

use redis::aio::MultiplexedConnection;

use ringback_core::clock::Timestamp;
use ringback_core::job::Job;
use ringback_core::limits::{MAX_LOCK_TTL, MAX_NOTICE_DELAY};
use ringback_core::store_types::{
    AckResult, BulkStart, BulkTarget, DeadFilter, FeedHold, FeedLease, MAX_FEED_LEASE, OutboxAck,
    SettleResult, TakenBulk, WorkerId,
};
use ringback_testkit::{set_shard_field, shard_field};

use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, ms};
use crate::contract::workbench::{FLOOR, SOON, now, until};
use crate::prelude::*;
use crate::redis_layout::keys::{all, ask, bench, key, lane, members, run};

/// How far the clock went back.
const STEP: Duration = Duration::from_secs(3600);
/// After this time a batch of leases is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Raises the score of a member of a sorted set by `by`.
async fn move_ahead(redis: &mut MultiplexedConnection, key: &str, member: &[u8], by: u128) {
    run(redis, &[b"ZINCRBY", key.as_bytes(), by.to_string().as_bytes(), member]).await;
}

async fn set(redis: &mut MultiplexedConnection, field: &str, value: u128) {
    let shard = key(redis, "shard").await;
    set_shard_field(redis, &shard, field, value as i64).await;
}

async fn of_installation(redis: &mut MultiplexedConnection, name: &str) -> String {
    all(redis, name).await.pop().expect("the key is there")
}

#[tokio::test]
async fn a_carrier_that_died_before_counts_as_alive_for_one_lock() {
    let (bench, mut redis) = bench().await;
    let store = bench.store();
    store.heartbeat("ghost", ms(200)).await.expect("heartbeat");
    let carriers = of_installation(&mut redis, "carriers").await;
    move_ahead(&mut redis, &carriers, b"ghost", STEP.as_millis()).await;
    let live = store.heartbeat("live", LONG).await.expect("heartbeat");
    assert_eq!(live.carriers, ["ghost", "live"]);
    assert!(live.next_change.is_some_and(|next| next <= ms(200)), "{live:?}");
    eventually(SOON, "the one that died is left out", async || {
        let carriers = store.heartbeat("live", LONG).await.expect("heartbeat").carriers;
        if carriers == ["live"] { Ok(()) } else { Err(carriers.join(" ")) }
    })
    .await;
    let locks = of_installation(&mut redis, "locks").await;
    let left: Vec<String> = ask(&mut redis, &[b"HKEYS", locks.as_bytes()]).await;
    assert_eq!(left, ["live"]);
}

#[tokio::test]
async fn a_carrier_whose_lock_is_not_known_counts_as_alive_for_the_longest_lock() {
    let (bench, mut redis) = bench().await;
    bench.store().heartbeat("ghost", ms(200)).await.expect("heartbeat");
    let (carriers, locks) =
        (of_installation(&mut redis, "carriers").await, of_installation(&mut redis, "locks").await);
    move_ahead(&mut redis, &carriers, b"ghost", STEP.as_millis()).await;
    run(&mut redis, &[b"HDEL", locks.as_bytes(), b"ghost"]).await;
    let live = bench.store().heartbeat("live", ms(500)).await.expect("heartbeat");
    assert_eq!(live.next_change, Some(MAX_LOCK_TTL));
}

/// Moves the only batch of leases and its job an hour ahead, as if granted before the clock was set back.
async fn move_lease_ahead(redis: &mut MultiplexedConnection, job: &Job) {
    let (leases, runs) = (key(redis, "leases").await, key(redis, "states").await);
    let names: Vec<Vec<u8>> = members(redis, &leases).await;
    let [name] = names.as_slice() else { panic!("{names:?}") };
    let (number, alone) =
        name.split_first_chunk().expect("a number, and the locator of a notifier's only job");
    let locator = job.key.locator().0;
    let later = (u64::from_be_bytes(*number) + STEP.as_micros() as u64).to_be_bytes();
    let at: f64 = ask(redis, &[b"ZSCORE", leases.as_bytes(), name]).await;
    let at = at as u128 + STEP.as_millis();
    let mut state: Vec<u8> = ask(redis, &[b"HGET", runs.as_bytes(), &locator]).await;
    state[17..25].copy_from_slice(&later);
    let deadline = state[33..39].iter().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    state[33..39].copy_from_slice(&(deadline + STEP.as_millis() as u64).to_be_bytes()[2..]);
    if alone.is_empty() {
        let batches = key(redis, "batches").await;
        run(redis, &[b"HDEL", batches.as_bytes(), number]).await;
        run(redis, &[b"HSET", batches.as_bytes(), &later, &locator]).await;
    }
    for words in [
        [b"ZREM".as_slice(), leases.as_bytes(), name].as_slice(),
        &[b"ZADD", leases.as_bytes(), at.to_string().as_bytes(), &[&later, alone].concat()],
        &[b"HSET", runs.as_bytes(), &locator, &state],
    ] {
        run(redis, words).await;
    }
    set(redis, "lease_at", at).await;
    set(redis, "lease", u64::from_be_bytes(later).into()).await;
}

/// The stored deadline of a reserved job.
async fn deadline(redis: &mut MultiplexedConnection, job: &Job) -> Timestamp {
    let runs = key(redis, "states").await;
    let state: Vec<u8> = ask(redis, &[b"HGET", runs.as_bytes(), &job.key.locator().0]).await;
    Timestamp::from_millis(state[33..39].iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

#[tokio::test]
async fn a_lease_that_was_granted_before_runs_out_after_its_own_length() {
    let (bench, mut redis) = bench().await;
    let lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    move_lease_ahead(&mut redis, &bench.get(&lease.key).await).await;
    assert_eq!(bench.promote(10).await.next_lease, Some(Duration::ZERO), "it is looked at at once");
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (0, 0), "it begins anew");
    assert!(pass.next_lease.is_some_and(|next| next < 2 * BRIEF), "{pass:?}");
    bench.check().await;
    bench.recover_until(&lease.key, State::Ready).await;
}

#[tokio::test]
async fn a_long_lease_that_was_granted_before_is_not_cut_short() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.pull_job("a")).await;
    let granted = now();
    bench.pull_one(&job.key, 2 * STEP).await;
    move_lease_ahead(&mut redis, &job).await;
    let pass = bench.recover(10).await;
    assert!(pass.next_lease.is_some_and(|next| next > LOOK_AGAIN / 2 && next <= LOOK_AGAIN), "{pass:?}");
    let lasts = deadline(&mut redis, &job).await.since(granted);
    assert!(lasts >= 2 * STEP && lasts < 2 * STEP + SOON, "{lasts:?}");
    bench.check().await;
}

#[tokio::test]
async fn a_lease_that_was_granted_before_is_renewed_as_if_it_were_granted_now() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.pull_job("a")).await;
    let mut receipt = bench.pull_one(&job.key, ms(200)).await.receipt;
    move_lease_ahead(&mut redis, &job).await;
    receipt.lease.number += STEP.as_micros() as u64;
    bench.recover(10).await;
    let deadline = bench.store().renew_receipt(&receipt, STEP, LONG).await.expect("renew");
    assert!(deadline.is_some_and(|deadline| deadline <= now().plus(LONG)), "{deadline:?}");
}

#[tokio::test]
async fn a_dead_letter_notice_that_was_stored_before_is_due() {
    let (bench, mut redis) = bench().await;
    bench.job_in(State::Dead, bench.job("a")).await;
    let outbox = key(&mut redis, "outbox").await;
    let entries: Vec<Vec<u8>> = members(&mut redis, &outbox).await;
    move_ahead(&mut redis, &outbox, &entries[0], STEP.as_millis()).await;
    let at: f64 = ask(&mut redis, &[b"ZSCORE", outbox.as_bytes(), &entries[0]]).await;
    set(&mut redis, "next_notice_at", at as u128).await;
    assert_eq!(bench.promote(10).await.next_notice, Some(Duration::ZERO));
    let (store, shard) = (bench.store(), bench.shard());
    let found = store.outbox(shard, 10).await.expect("outbox").pending;
    assert_eq!(found.len(), 1);
    let later = OutboxAck { later: vec![(found[0].id.clone(), MAX_NOTICE_DELAY)], ..OutboxAck::default() };
    let held = store.acknowledge(shard, bench.epoch(), &later).await.expect("acknowledge");
    assert!(matches!(held, AckResult::Held(Some(wait)) if wait > MAX_NOTICE_DELAY / 2), "{held:?}");
    assert!(
        store.outbox(shard, 10).await.expect("outbox").pending.is_empty(),
        "it waits for as long as it may"
    );
}

#[tokio::test]
async fn a_bulk_revive_whose_carrier_died_before_is_taken_after_the_longest_claim() {
    let (bench, mut redis) = bench().await;
    let store = bench.store();
    let filter =
        DeadFilter { topic: TOPIC.parse().expect("a topic"), reason: None, after: None, before: None };
    let begun = store.start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 1).await.expect("begin");
    let BulkStart::Bulk(bulk) = begun else { panic!("{begun:?}") };
    store.take_bulk(WorkerId([1; 8]), ms(200)).await.expect("take");
    let running = of_installation(&mut redis, "reviving").await;
    move_ahead(&mut redis, &running, &bulk.id.0, STEP.as_millis()).await;
    let taken = store.take_bulk(WorkerId([2; 8]), ms(200)).await.expect("take");
    assert!(matches!(taken, TakenBulk::Later(wait) if wait <= MAX_LOCK_TTL), "{taken:?}");
    move_ahead(&mut redis, &running, &bulk.id.0, STEP.as_millis()).await;
    let next = store.heartbeat("live", ms(200)).await.expect("heartbeat").next_bulk;
    assert!(next.is_some_and(|wait| wait <= MAX_LOCK_TTL), "{next:?}");
}

#[tokio::test]
async fn a_lane_that_had_its_turn_before_comes_after_the_next_turn_of_another() {
    let (bench, mut redis) = bench().await;
    let waits = bench.accept(bench.job("a")).await;
    let lanes = key(&mut redis, "lanes").await;
    move_ahead(&mut redis, &lanes, &lane(), STEP.as_micros()).await;
    set(&mut redis, "lease", u128::from(now().as_millis()) * 1000 + STEP.as_micros() * 2).await;
    for name in ["b", "c"] {
        bench.accept(bench.job(name).to("http://other.example")).await;
    }
    assert_ne!(bench.take(1).await[0].key, waits.key);
    assert_eq!(bench.take(1).await[0].key, waits.key, "the other lane has had its turn");
}

#[tokio::test]
async fn a_due_lane_that_went_behind_others_before_is_promoted() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a").after(ms(1))).await;
    until(job.due).await;
    let (turns, later) =
        (key(&mut redis, "due_lanes").await, u128::from(now().as_millis()) + 2 * FLOOR.as_millis());
    run(&mut redis, &[b"ZADD", turns.as_bytes(), later.to_string().as_bytes(), &lane()]).await;
    set(&mut redis, "next", later).await;
    assert_eq!(bench.promote(10).await.moved, 1);
}

#[tokio::test]
async fn a_tombstone_segment_that_began_before_begins_now() {
    let (bench, mut redis) = bench().await;
    bench.job_in(State::Done, bench.job("a")).await;
    set(&mut redis, "segment_at", u128::from(now().as_millis()) + STEP.as_millis()).await;
    let lease = bench.reserved(bench.job("b")).await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    let shard = key(&mut redis, "shard").await;
    let began = shard_field(&mut redis, &shard, "segment_at").await;
    assert!(began as u64 <= now().as_millis(), "{began}");
}

#[tokio::test]
async fn a_feed_whose_process_died_before_is_free_after_the_longest_lease() {
    let (bench, mut redis) = bench().await;
    let (store, name) = (bench.store(), "orders".parse().expect("a name"));
    let hold = |worker: u8, lasts| FeedHold { worker: WorkerId([worker; 8]), lasts, step: None };
    store.hold_feed(&name, hold(1, MAX_FEED_LEASE)).await.expect("hold");
    let feed = of_installation(&mut redis, "feed:orders").await;
    let until = now().plus(STEP).as_millis().to_string();
    run(&mut redis, &[b"HSET", feed.as_bytes(), b"until", until.as_bytes()]).await;
    let before = now();
    let left = store.hold_feed(&name, hold(2, MAX_FEED_LEASE)).await.expect("hold");
    assert!(matches!(left, FeedLease::Free(left) if left <= MAX_FEED_LEASE), "{left:?}");
    let stored: u64 = ask(&mut redis, &[b"HGET", feed.as_bytes(), b"until"]).await;
    assert!(stored >= before.as_millis() && stored <= now().plus(MAX_FEED_LEASE).as_millis() + 1, "{stored}");
}
