//! Index entries in Redis that name no job, or a job in another state, time or lane: no transition acts on them.

use ringback_core::store_types::{BulkStart, BulkStep, BulkTarget, DeadFilter, Filter, SettleResult};

use crate::contract::job_builders::{LONG, With};
use crate::prelude::*;
use crate::redis_layout::keys::{self, bench, entry, key, lane, plant_due, plant_ready, run};

#[tokio::test]
async fn index_entries_without_their_job_are_dropped_when_met() {
    let (bench, mut redis) = bench().await;
    let nobody = b"nobody's job\0\0\0\0\0\x01";
    plant_ready(&mut redis, b"RPUSH", nobody).await;
    for (name, member) in [("leases", b"a number".as_slice()), ("dead", &nobody[..12])] {
        let key = key(&mut redis, name).await;
        run(&mut redis, &[b"ZADD", key.as_bytes(), b"1", member]).await;
    }
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_lease), (0, 0, None));
    let pass = bench.evict(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_dead), (0, 0, None));
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert!(reserved.leases.is_empty() && !reserved.more);
    bench.check().await;

    plant_due(&mut redis, nobody).await;
    let pass = bench.promote(10).await;
    assert_eq!(pass.next_due, None);
    assert!(bench.take(10).await.is_empty());
    let left: Vec<Vec<u8>> = keys::all(&mut redis, "[rd]*e*:*").await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn entries_of_dead_jobs_that_are_not_dead_are_neither_listed_nor_revived_nor_purged() {
    let (bench, mut redis) = bench().await;
    let ready = bench.job_in(State::Ready, bench.job("ready")).await;
    let dead = key(&mut redis, "dead").await;
    let nobody = [b"nobody's job".as_slice(), &lane()].concat();
    let entry = [&ready.key.locator().0[..], &lane()].concat();
    for entry in [&nobody, &entry] {
        run(&mut redis, &[b"ZADD", dead.as_bytes(), b"5", entry]).await;
    }
    let filter =
        DeadFilter { topic: "store".parse().expect("a topic"), reason: None, after: None, before: None };
    let page = bench.store().dead(&filter, None, 10).await.expect("a page");
    assert_eq!((page.items, page.next), (Vec::new(), None));
    let cursors = bench.store().dead_cursors(bench.shard(), &filter, None, 10).await.expect("a page").items;
    assert_eq!(cursors.len(), 2);
    let BulkStart::Bulk(bulk) =
        bench.store().start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 1).await.expect("begin")
    else {
        panic!("one is not too many")
    };
    let revived = bench.store().revive_many(bench.shard(), bulk.id, &cursors).await.expect("revive");
    assert_eq!(revived, BulkStep::Jobs(0));
    assert_eq!(bench.store().purge_many(bench.shard(), &cursors).await.expect("purge"), 0);
    assert_eq!(bench.get(&ready.key).await, ready);
    bench.evict(10).await;
    run(&mut redis, &[b"DEL", dead.as_bytes()]).await;
    bench.check().await;
}

#[tokio::test]
async fn an_entry_of_an_earlier_due_time_does_not_make_a_job_early() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a").after(LONG)).await;
    plant_due(&mut redis, &[&job.key.locator().0, &[0, 0, 0, 0, 0, 1][..]].concat()).await;
    bench.promote(10).await;
    assert!(bench.take(10).await.is_empty());
    assert_eq!(bench.get(&job.key).await, job);
}

#[tokio::test]
async fn a_due_time_of_a_job_that_is_not_delayed_hands_it_over_no_second_time() {
    let (bench, mut redis) = bench().await;
    for state in [State::Reserved, State::Dead, State::Done] {
        let job = bench.job_in(state, bench.job(state.into())).await;
        plant_due(&mut redis, &entry(&job)).await;
        bench.promote(10).await;
        assert!(bench.take(10).await.is_empty(), "{state}");
        assert_eq!(bench.get(&job.key).await, job);
    }
    let job = bench.job_in(State::Ready, bench.job("ready")).await;
    plant_due(&mut redis, &entry(&job)).await;
    bench.promote(10).await;
    assert_eq!(bench.take(10).await.len(), 1);
}

#[tokio::test]
async fn an_entry_of_a_job_that_is_not_ready_gives_no_lease() {
    let (bench, mut redis) = bench().await;
    for state in [State::Reserved, State::Dead, State::Done, State::Cancelled] {
        let job = bench.job_in(state, bench.job(state.into())).await;
        plant_ready(&mut redis, b"RPUSH", &entry(&job)).await;
        assert!(bench.take(10).await.is_empty(), "{state}");
        assert_eq!(bench.get(&job.key).await, job);
    }
    bench.check().await;
}

#[tokio::test]
async fn a_job_twice_in_its_queue_is_reserved_once() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a")).await;
    plant_ready(&mut redis, b"RPUSH", &entry(&job)).await;
    let mut leases = bench.take(10).await;
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].attempt, 1);
    assert_eq!(bench.settle(leases.remove(0), Outcome::Complete).await, SettleResult::Applied);
    assert!(bench.take(10).await.is_empty());
    bench.check().await;
}

#[tokio::test]
async fn an_entry_of_another_due_time_gives_its_job_no_earlier_turn() {
    let (bench, mut redis) = bench().await;
    let first = bench.accept(bench.job("a")).await;
    let second = bench.accept(bench.job("b")).await;
    plant_ready(&mut redis, b"LPUSH", &[&second.key.locator().0, &[0, 0, 0, 0, 0, 1][..]].concat()).await;
    bench.take_one(&first.key).await;
    bench.take_one(&second.key).await;
    bench.check().await;
}

#[tokio::test]
async fn an_entry_of_an_earlier_deadline_takes_no_lease_away() {
    let (bench, mut redis) = bench().await;
    let lease = bench.reserved(bench.job("a").timeout(LONG)).await;
    let leases = key(&mut redis, "leases").await;
    let numbers: Vec<Vec<u8>> = keys::members(&mut redis, &leases).await;
    assert_eq!(numbers.len(), 1);
    run(&mut redis, &[b"ZADD", leases.as_bytes(), b"1", &numbers[0]]).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_lease.is_some()), (0, 0, true));
    // The entry was put right.
    bench.check().await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
}

#[tokio::test]
async fn a_job_that_cannot_be_read_does_not_hide_the_others() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a")).await;
    let pool = key(&mut redis, "pool").await;
    run(&mut redis, &[b"HSET", pool.as_bytes(), b"too short", b"\x01\x00"]).await;
    let unreadable = [&[1_u8; 25][..], &lane(), &[4, 0xff, 0xff, 0xff, 0xff]].concat();
    run(&mut redis, &[b"HSET", pool.as_bytes(), b"twelve bytes", &unreadable]).await;
    let (mut met, mut from) = (Vec::new(), None);
    loop {
        let page = bench.store().page_stored(&Filter::default(), from, 10).await.expect("page");
        met.extend(page.items.into_iter().map(|kept| kept.job));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(met, [job]);
}

#[tokio::test]
async fn a_job_in_the_queue_of_another_lane_goes_to_its_own_origin_alone() {
    let (bench, mut redis) = bench().await;
    bench.accept(bench.job("a")).await;
    let job = bench.accept(bench.job("b").to("http://other.example")).await;
    plant_ready(&mut redis, b"LPUSH", &entry(&job)).await;
    let leases = bench.take(10).await;
    assert_eq!(leases.len(), 2);
    let lease = leases.into_iter().find(|lease| lease.key == job.key).expect("it is delivered");
    assert_eq!(lease.delivery.callback.origin(), "http://other.example");
    bench.check().await;
}
