//! What a Redis may hold that no edge has written: keys of another version, index entries without a job,
//! counters that a fail-over has rolled back, functions that are gone.

use std::time::Duration;

use redis::cmd;
use ringback_core::contract::{
    AckResult, DeadFilter, Filter, Lateness, Limit, Options, OutboxAck, RedriveStart, Redriven, Renewed,
    Settled, StoreError, SubmitResult, WorkerId,
};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use ringback_store::Store;
use ringback_testkit::{Persistence, RedisServer, eventually};

use super::bench::{Bench, SOON, Server, now};
use super::jobs::{BRIEF, LONG, With, bury, ms, release, retry};
use super::raw::{bench, entry, key, key_of, lane, plant_due, plant_ready, run};

/// Beyond every lease number that a clock gives for the next hundred years.
const FAR: u64 = 5_000_000_000_000_000;

#[tokio::test]
async fn a_store_of_another_layout_is_refused() {
    let (bench, mut redis) = bench().await;
    let install = format!("{}:{{meta}}:install", bench.options().prefix);
    run(&mut redis, &[b"HSET", install.as_bytes(), b"layout", b"99"]).await;
    let store = Store::open(bench.options()).expect("the options are right");
    let error = store.prepare().await.expect_err("another layout");
    assert!(matches!(&error, StoreError::Unfit(why) if why.contains("layout 99")), "{error}");
}

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
    let pass = bench.expire(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_dead), (0, 0, None));
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert!(reserved.leases.is_empty() && !reserved.more);
    bench.audit().await;

    plant_due(&mut redis, nobody).await;
    let pass = bench.promote(10).await;
    assert_eq!(pass.next_due, None);
    assert!(bench.take(10).await.is_empty());
    let left: Vec<Vec<u8>> = cmd("KEYS").arg("*:[rd]*e*:*").query_async(&mut redis).await.expect("KEYS");
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_word_on_when_to_tell_that_is_too_early_is_put_right_by_who_looks() {
    let (bench, mut redis) = bench().await;
    let key = bench.accept(bench.job("a")).await.key;
    let shard = key_of(&mut redis, "shard", b"").await;
    run(&mut redis, &[b"HSET", &shard, b"tell_at", b"1"]).await;
    assert_eq!(bench.promote(10).await.next_notice, Some(Duration::ZERO));
    let outbox = bench.store().outbox(bench.shard(), 10).await.expect("outbox");
    assert!(outbox.pending.is_empty(), "{outbox:?}");
    let told = bench.store().acknowledge(bench.shard(), bench.epoch(), &OutboxAck::default()).await;
    assert_eq!(told.expect("tell"), AckResult::Held(None));
    assert_eq!(bench.promote(10).await.next_notice, None);
    bench.cancel(&key).await;
}

#[tokio::test]
async fn a_heartbeat_tells_when_a_revival_can_be_taken() {
    let (bench, _redis) = bench().await;
    let heartbeat = async || bench.store().heartbeat("a", LONG).await.expect("members").next_redrive;
    assert_eq!(heartbeat().await, None);
    let filter =
        DeadFilter { topic: "store".parse().expect("a topic"), reason: None, after: None, before: None };
    let begun = bench.store().start_redrive(bench.token(), &filter, 1).await.expect("begin");
    assert_eq!(heartbeat().await, Some(ms(0)));
    let holder = WorkerId([1; 8]);
    bench.store().take_redrive(holder, LONG).await.expect("take");
    assert!(heartbeat().await.is_some_and(|wait| wait > LONG / 2 && wait <= LONG));
    let RedriveStart::Redrive(revival) = begun else { panic!("{begun:?}") };
    bench.store().finish_redrive(revival.id, holder).await.expect("finish");
    assert_eq!(heartbeat().await, None);
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
    let places = bench.store().dead_cursors(bench.shard(), &filter, None, 10).await.expect("a page").items;
    assert_eq!(places.len(), 2);
    let RedriveStart::Redrive(revival) =
        bench.store().start_redrive(bench.token(), &filter, 1).await.expect("begin")
    else {
        panic!("one is not too many")
    };
    let revived = bench.store().revive_many(bench.shard(), revival.id, &places).await.expect("revive");
    assert_eq!(revived, Redriven::Jobs(0));
    assert_eq!(bench.store().purge_many(bench.shard(), &places).await.expect("purge"), 0);
    assert_eq!(bench.get(&ready.key).await, ready);
    bench.expire(10).await;
    run(&mut redis, &[b"DEL", dead.as_bytes()]).await;
    bench.audit().await;
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
        let job = bench.job_in(state, bench.job(state.name())).await;
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
        let job = bench.job_in(state, bench.job(state.name())).await;
        plant_ready(&mut redis, b"RPUSH", &entry(&job)).await;
        assert!(bench.take(10).await.is_empty(), "{state}");
        assert_eq!(bench.get(&job.key).await, job);
    }
    bench.audit().await;
}

#[tokio::test]
async fn a_job_twice_in_its_queue_is_reserved_once() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a")).await;
    plant_ready(&mut redis, b"RPUSH", &entry(&job)).await;
    let mut leases = bench.take(10).await;
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].attempt, 1);
    assert_eq!(bench.settle(leases.remove(0), Outcome::Complete).await, Settled::Applied);
    assert!(bench.take(10).await.is_empty());
    bench.audit().await;
}

#[tokio::test]
async fn an_entry_of_another_due_time_gives_its_job_no_earlier_turn() {
    let (bench, mut redis) = bench().await;
    let first = bench.accept(bench.job("a")).await;
    let second = bench.accept(bench.job("b")).await;
    plant_ready(&mut redis, b"LPUSH", &[&second.key.locator().0, &[0, 0, 0, 0, 0, 1][..]].concat()).await;
    bench.take_one(&first.key).await;
    bench.take_one(&second.key).await;
    bench.audit().await;
}

#[tokio::test]
async fn an_entry_of_an_earlier_deadline_takes_no_lease_away() {
    let (bench, mut redis) = bench().await;
    let lease = bench.reserved(bench.job("a").timeout(LONG)).await;
    let leases = key(&mut redis, "leases").await;
    let numbers: Vec<Vec<u8>> =
        cmd("ZRANGE").arg(&leases).arg(0).arg(-1).query_async(&mut redis).await.expect("ZRANGE");
    assert_eq!(numbers.len(), 1);
    run(&mut redis, &[b"ZADD", leases.as_bytes(), b"1", &numbers[0]]).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_lease.is_some()), (0, 0, true));
    // The entry was put right.
    bench.audit().await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, Settled::Applied);
}

#[tokio::test]
async fn a_receipt_of_the_same_number_and_other_bits_is_stale() {
    let (bench, mut redis) = bench().await;
    let shard = key(&mut redis, "shard").await;
    let far = FAR.to_string();
    run(&mut redis, &[b"HSET", shard.as_bytes(), b"lease", far.as_bytes()]).await;
    let mut before = bench.lapsed(bench.job("a")).await;
    run(&mut redis, &[b"HSET", shard.as_bytes(), b"lease", far.as_bytes()]).await;
    let after = bench.take_one(&before.key).await;
    let job = bench.get(&after.key).await;

    assert_eq!(bench.store().renew(&mut before, LONG).await.expect("renew"), Renewed::Stale);
    assert_eq!(bench.settle(before, retry(ms(0))).await, Settled::Stale);
    assert_eq!(bench.get(&job.key).await, job);
    assert_eq!(bench.settle(after, Outcome::Complete).await, Settled::Applied);
    bench.audit().await;
}

#[tokio::test]
async fn epochs_and_leases_still_grow_after_their_counters_are_lost() {
    let (bench, mut redis) = bench().await;
    let stale = bench.lapsed(bench.job("a")).await;
    let shard = key(&mut redis, "shard").await;
    run(&mut redis, &[b"HDEL", shard.as_bytes(), b"lease"]).await;
    let current = bench.take_one(&stale.key).await;
    assert_eq!(bench.settle(stale, retry(ms(0))).await, Settled::Stale);
    assert_eq!(bench.settle(current, Outcome::Complete).await, Settled::Applied);

    run(&mut redis, &[b"HDEL", shard.as_bytes(), b"epoch", b"carrier"]).await;
    let epoch = bench.store().claim(bench.shard(), "another").await.expect("claim");
    assert_ne!(epoch, *bench.epoch());
    bench.audit().await;
}

#[tokio::test]
async fn leases_still_grow_while_the_clock_is_behind_the_last_number() {
    let (bench, mut redis) = bench().await;
    let shard = key(&mut redis, "shard").await;
    run(&mut redis, &[b"HSET", shard.as_bytes(), b"lease", FAR.to_string().as_bytes()]).await;
    for (name, number) in [("a", FAR + 1), ("b", FAR + 2)] {
        bench.reserved(bench.job(name)).await;
        let last: u64 = cmd("HGET").arg(&shard).arg("lease").query_async(&mut redis).await.expect("HGET");
        assert_eq!(last, number);
    }
    bench.audit().await;
}

#[tokio::test]
async fn lateness_is_kept_for_some_minutes() {
    let (bench, mut redis) = bench().await;
    let mut lateness = Lateness::default();
    lateness.record(ms(3));
    let lease = bench.reserved(bench.job("a")).await;
    let items = vec![(lease, Outcome::Complete)];
    bench.store().settle(bench.shard(), items, &lateness).await.expect("settle");
    let kept: Vec<String> = cmd("KEYS").arg("*:late:*").query_async(&mut redis).await.expect("KEYS");
    let left: i64 = cmd("PTTL").arg(&kept[0]).query_async(&mut redis).await.expect("PTTL");
    assert!((300_000..=420_000).contains(&left), "{left} ms");
}

#[tokio::test]
async fn a_job_that_ends_while_delayed_leaves_no_due_time_behind() {
    let (bench, mut redis) = bench().await;
    bench.job_in(State::Cancelled, bench.job("a")).await;
    let late = bench.lapsed(bench.job("b")).await;
    let current = bench.take_one(&late.key).await;
    bench.settle(current, retry(LONG)).await;
    assert_eq!(bench.settle(late, Outcome::Complete).await, Settled::Late);
    let due = key_of(&mut redis, "due:", &lane()).await;
    let left: bool = cmd("EXISTS").arg(&due).query_async(&mut redis).await.expect("EXISTS");
    assert!(!left);
    bench.audit().await;
}

#[tokio::test]
async fn ended_jobs_forgotten_for_lack_of_room_are_counted() {
    let (bench, mut redis) = bench().await;
    let bench = bench.with(|options| options.keep_done_mib = 0).await;
    let prefix = bench.options().prefix;
    let names = ["a", "b", "c", "d"];
    for name in names {
        assert_eq!(bench.stats().await.evicted_early, 0);
        bench.job_in(State::Done, bench.job(name)).await;
        // What has ended before now ended two minutes ago.
        let shards: Vec<String> =
            cmd("KEYS").arg(format!("{prefix}:*:shard")).query_async(&mut redis).await.expect("KEYS");
        let earlier = now().as_millis().saturating_sub(120_000).to_string();
        run(&mut redis, &[b"HSET", shards[0].as_bytes(), b"segment_at", earlier.as_bytes()]).await;
    }
    assert_eq!(bench.stats().await.evicted_early, 1);
    let mut states = Vec::new();
    for name in names {
        states.push(bench.state(&bench.job(name).key).await);
    }
    assert_eq!(states, [None, Some(State::Done), Some(State::Done), Some(State::Done)]);
    bench.audit().await;
}

#[tokio::test]
async fn ended_jobs_forgotten_after_their_time_are_not_counted() {
    let (bench, mut redis) = bench().await;
    let bench = bench.with(|options| options.keep_done_mib = 0).await;
    let shard = format!("{}:*:shard", bench.options().prefix);
    for name in ["a", "b", "c", "d", "e"] {
        bench.job_in(State::Done, bench.job(name)).await;
        let shards: Vec<String> = cmd("KEYS").arg(&shard).query_async(&mut redis).await.expect("KEYS");
        let earlier = (now().as_millis() - 2 * 3_600_000).to_string();
        run(&mut redis, &[b"HSET", shards[0].as_bytes(), b"segment_at", earlier.as_bytes()]).await;
    }
    assert_eq!(bench.state(&bench.job("a").key).await, None);
    assert_eq!(bench.stats().await.evicted_early, 0);
    bench.audit().await;
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
    bench.audit().await;
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
        assert_eq!(bench.settle(lease, outcome).await, Settled::Applied);
        flush().await;
        assert_eq!(bench.state(&job.key).await, Some(state));
    }
    let lapsed = bench.reserved(bench.job("e").timeout(BRIEF)).await;
    flush().await;
    bench.recover_until(&lapsed.key, State::Ready).await;
    flush().await;
    bench.cancel(&lapsed.key).await;
    flush().await;
    assert_eq!(bench.stats().await.accepted, 5);
    flush().await;
    bench.store().heartbeat("carrier", LONG).await.expect("members");
    bench.audit().await;
}

#[tokio::test]
async fn a_place_in_the_jobs_means_nothing_to_a_server_that_was_restarted() {
    let mut server = RedisServer::options().persistence(Persistence::Always).start().await;
    let bench = Bench::new(std::sync::Arc::new(Server::Redis(RedisServer::start().await)), "place").await;
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
        match store.page(&Filter::default(), first.next, 20).await.expect_err("another life") {
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
    let lease = leases.into_iter().find(|lease| lease.key == job.key).expect("it is handed over");
    assert_eq!(lease.delivery.callback.origin(), "http://other.example");
    bench.audit().await;
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
async fn an_exchange_that_cannot_reserve_has_settled_and_counted_all_the_same() {
    let (bench, mut redis) = bench().await;
    let key_of_job = bench.accept(bench.job("a")).await.key;
    let [lease, same] = bench.take_twice(&key_of_job).await;
    let lanes = key(&mut redis, "lanes").await;
    run(&mut redis, &[b"SET", lanes.as_bytes(), b"no sorted set"]).await;
    let (ask, lateness) = (bench.ask(5), Lateness::default());
    let items = vec![(lease, Outcome::Complete)];
    let unsettled = bench.store().exchange(bench.shard(), items, &lateness, &ask).await;
    let unsettled = unsettled.expect_err("nothing can be reserved");
    assert!(matches!(unsettled.error, StoreError::Refused(_)), "{:?}", unsettled.error);
    assert_eq!(unsettled.items.len(), 1);
    run(&mut redis, &[b"DEL", lanes.as_bytes()]).await;
    bench.audit().await;
    assert_eq!(bench.settle_all(unsettled.items).await, [Settled::Replayed]);
    assert_eq!(bench.settle(same, Outcome::Complete).await, Settled::Replayed);
    bench.accept(bench.job("b")).await;
    assert_eq!(bench.reserve(&ask).await.leases.len(), 1);
}

#[tokio::test]
async fn a_lane_too_many_is_refused_and_those_that_are_there_go_on() {
    let (bench, mut redis) = bench().await;
    bench.accept(bench.job("a")).await;
    let shard = key(&mut redis, "shard").await;
    run(&mut redis, &[b"HSET", shard.as_bytes(), b"lanes", b"99999"]).await;
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
    run(&mut redis, &[b"HSET", shard.as_bytes(), b"lanes", b"2"]).await;
    bench.audit().await;
}
