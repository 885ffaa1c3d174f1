//! Content of Redis that no transition of this version writes (another layout, epochs and times of long ago), and more
//! topics and lanes than fit.

use std::collections::BTreeMap;

use redis::cmd;
use ringback_core::store_types::{
    AckResult, BulkStart, BulkTarget, DeadFilter, Lateness, Limit, OutboxAck, SettleResult, StoreError,
    SubmitResult, WorkerId,
};
use ringback_store::Store;
use ringback_testkit::set_shard_field;

use crate::contract::job_builders::{LONG, With, ms, retry};
use crate::contract::workbench::now;
use crate::prelude::*;
use crate::redis_layout::keys::{self, ask, bench, key, key_of, lane, run};

#[tokio::test]
async fn a_store_of_another_layout_is_refused_and_left_alone() {
    let (bench, mut redis) = bench().await;
    let install = format!("{}:{{meta}}:install", bench.options().prefix);
    run(&mut redis, &[b"HSET", install.as_bytes(), b"layout", b"99"]).await;
    // A store of another layout may know nothing of it.
    run(&mut redis, &[b"HDEL", install.as_bytes(), b"lane_key"]).await;
    let before: BTreeMap<String, String> = ask(&mut redis, &[b"HGETALL", install.as_bytes()]).await;
    let store = Store::open(bench.options()).expect("the options are right");
    let error = store.prepare().await.expect_err("another layout");
    let says = "the store has layout 99, and this build reads layout 6; set another RINGBACK_PREFIX, or use the build that wrote it";
    assert!(matches!(&error, StoreError::Unfit(why) if why == says), "{error}");
    let after: BTreeMap<String, String> = ask(&mut redis, &[b"HGETALL", install.as_bytes()]).await;
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_notice_time_that_is_too_early_is_corrected_by_the_next_read() {
    let (bench, mut redis) = bench().await;
    let key = bench.accept(bench.job("a")).await.key;
    let shard = key_of(&mut redis, "shard", b"").await;
    set_shard_field(&mut redis, &shard, "next_notice_at", 1).await;
    assert_eq!(bench.promote(10).await.next_notice, Some(Duration::ZERO));
    let outbox = bench.store().outbox(bench.shard(), 10).await.expect("outbox");
    assert!(outbox.pending.is_empty(), "{outbox:?}");
    let result = bench.store().acknowledge(bench.shard(), bench.epoch(), &OutboxAck::default()).await;
    assert_eq!(result.expect("acknowledge"), AckResult::Held(None));
    assert_eq!(bench.promote(10).await.next_notice, None);
    bench.cancel(&key).await;
}

#[tokio::test]
async fn a_missed_heartbeat_lets_another_carrier_take_a_bulk_revive() {
    let (bench, _redis) = bench().await;
    let heartbeat = async || bench.store().heartbeat("a", LONG).await.expect("members").next_bulk;
    assert_eq!(heartbeat().await, None);
    let filter =
        DeadFilter { topic: "store".parse().expect("a topic"), reason: None, after: None, before: None };
    let begun =
        bench.store().start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 1).await.expect("begin");
    assert_eq!(heartbeat().await, Some(ms(0)));
    let holder = WorkerId([1; 8]);
    bench.store().take_bulk(holder, LONG).await.expect("take");
    assert!(heartbeat().await.is_some_and(|wait| wait > LONG / 2 && wait <= LONG));
    let BulkStart::Bulk(bulk) = begun else { panic!("{begun:?}") };
    bench.store().finish_bulk(bulk.id, holder).await.expect("finish");
    assert_eq!(heartbeat().await, None);
}

#[tokio::test]
async fn lateness_is_kept_for_some_minutes() {
    let (bench, mut redis) = bench().await;
    let mut lateness = Lateness::default();
    lateness.record(ms(3));
    bench.store().add_lateness(bench.shard(), &lateness).await.expect("it is added");
    let kept: Vec<String> = keys::all(&mut redis, "late:*").await;
    let left: i64 = cmd("PTTL").arg(&kept[0]).query_async(&mut redis).await.expect("PTTL");
    assert!((300_000..=420_000).contains(&left), "{left} ms");
}

#[tokio::test]
async fn a_job_that_ends_while_delayed_leaves_no_due_time_behind() {
    let (bench, mut redis) = bench().await;
    bench.job_in(State::Cancelled, bench.job("a")).await;
    let late = bench.stale_lease(bench.job("b")).await;
    let current = bench.take_one(&late.key).await;
    bench.settle(current, retry(LONG)).await;
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    let due = key_of(&mut redis, "due:", &lane()).await;
    let left: bool = cmd("EXISTS").arg(&due).query_async(&mut redis).await.expect("EXISTS");
    assert!(!left);
    bench.check().await;
}

#[tokio::test]
async fn ended_jobs_evicted_early_are_counted() {
    let (bench, mut redis) = bench().await;
    let bench = bench.with(|options| options.keep_done_mib = 0).await;
    let prefix = bench.options().prefix;
    let names = ["a", "b", "c", "d"];
    for name in names {
        assert_eq!(bench.stats().await.evicted_early, 0);
        bench.job_in(State::Done, bench.job(name)).await;
        // Makes earlier ends two minutes old.
        let shards: Vec<String> =
            cmd("KEYS").arg(format!("{prefix}:*:shard")).query_async(&mut redis).await.expect("KEYS");
        let earlier = now().as_millis().saturating_sub(120_000);
        set_shard_field(&mut redis, &shards[0], "segment_at", earlier as i64).await;
    }
    assert_eq!(bench.stats().await.evicted_early, 1);
    let held = vec![(bench.shard(), bench.epoch().clone())];
    let (_, gauges) = bench.store().gauges(held, &[]).await.remove(0);
    assert_eq!(gauges.expect("it answers").expect("it is held").evicted_early, 1);
    let mut states = Vec::new();
    for name in names {
        states.push(bench.state(&bench.job(name).key).await);
    }
    assert_eq!(states, [None, Some(State::Done), Some(State::Done), Some(State::Done)]);
    bench.check().await;
}

#[tokio::test]
async fn ended_jobs_evicted_after_their_time_are_not_counted() {
    let (bench, mut redis) = bench().await;
    let bench = bench.with(|options| options.keep_done_mib = 0).await;
    let shard = format!("{}:*:shard", bench.options().prefix);
    for name in ["a", "b", "c", "d", "e"] {
        bench.job_in(State::Done, bench.job(name)).await;
        let shards: Vec<String> = cmd("KEYS").arg(&shard).query_async(&mut redis).await.expect("KEYS");
        let earlier = now().as_millis() - 2 * 3_600_000;
        set_shard_field(&mut redis, &shards[0], "segment_at", earlier as i64).await;
    }
    assert_eq!(bench.state(&bench.job("a").key).await, None);
    assert_eq!(bench.stats().await.evicted_early, 0);
    bench.check().await;
}

#[tokio::test]
async fn of_very_many_topics_without_jobs_the_latest_are_known() {
    let (bench, mut redis) = bench().await;
    bench.accept(bench.job("a")).await;
    let (topics, index) = (key(&mut redis, "topics").await, key(&mut redis, "index").await);
    let shard = key(&mut redis, "shard").await;
    let (mut by_hour, mut by_name, mut rows) = (cmd("ZADD"), cmd("ZADD"), cmd("HSET"));
    by_hour.arg(&topics);
    by_name.arg(&index);
    rows.arg(&shard);
    for n in 0..9_999 {
        by_hour.arg(1).arg(format!("topic-{n:05}"));
        by_name.arg(0).arg(format!("topic-{n:05} "));
        rows.arg(format!("topic:topic-{n:05}")).arg([&b"\0\0\0\0\0\0\0\x01"[..], &[0; 13]].concat());
    }
    // A topic that has jobs stays, however long ago the last came.
    by_hour.arg(0).arg("store");
    for command in [by_hour, by_name, rows] {
        command.exec_async(&mut redis).await.expect("redis answers");
    }
    bench.accept(bench.job_of("other", "b")).await;
    let counted = bench.stats().await.topics;
    assert_eq!(counted.len(), 10_000);
    assert!(counted.contains("store") && !counted.contains("topic-00000"));
    bench.check().await;
}

#[tokio::test]
async fn an_exchange_that_cannot_reserve_has_settled_and_counted_all_the_same() {
    let (bench, mut redis) = bench().await;
    let key_of_job = bench.accept(bench.job("a")).await.key;
    let [lease, same] = bench.take_twice(&key_of_job).await;
    let lanes = key(&mut redis, "lanes").await;
    run(&mut redis, &[b"SET", lanes.as_bytes(), b"no sorted set"]).await;
    let (ask, items) = (bench.ask(5), vec![(lease, Outcome::Complete)]);
    let unsettled = bench.store().exchange(bench.shard(), items, &ask).await;
    let unsettled = unsettled.expect_err("nothing can be reserved");
    assert!(matches!(unsettled.error, StoreError::Away(_)), "{:?}", unsettled.error);
    assert_eq!(unsettled.items.len(), 1);
    run(&mut redis, &[b"DEL", lanes.as_bytes()]).await;
    bench.check().await;
    assert_eq!(bench.settle_all(unsettled.items).await, [SettleResult::Replayed]);
    assert_eq!(bench.settle(same, Outcome::Complete).await, SettleResult::Replayed);
    bench.accept(bench.job("b")).await;
    assert_eq!(bench.reserve(&ask).await.leases.len(), 1);
}

#[tokio::test]
async fn a_lane_too_many_is_refused_and_those_that_are_there_go_on() {
    let (bench, mut redis) = bench().await;
    bench.accept(bench.job("a")).await;
    let shard = key(&mut redis, "shard").await;
    set_shard_field(&mut redis, &shard, "lanes", 99_999).await;
    let to = |name: &str, origin: &str| bench.job(name).to(origin);
    let batch = [
        to("b", "http://b.example"),
        to("c", "http://c.example"),
        bench.job("d"),
        to("e", "http://b.example"),
    ];
    let answers: Vec<_> = bench.submit(&batch).await.into_iter().map(|answer| answer.answer).collect();
    let full = SubmitResult::Full(Limit::Lanes);
    assert_eq!(answers, [SubmitResult::Created, full, SubmitResult::Created, SubmitResult::Created]);
    // A lane that has no job left makes room.
    bench.cancel(&batch[0].key).await;
    bench.cancel(&batch[3].key).await;
    assert_eq!(bench.submit(&batch[1..2]).await[0].answer, SubmitResult::Created);
    set_shard_field(&mut redis, &shard, "lanes", 2).await;
    bench.check().await;
}
