//! Append-only files of Redis that end in the middle of a transaction, as kill -9 or a power cut leaves them. Redis
//! 7.0.15 leaves the first commands of such a transaction in the file, and runs them at its second start.
//!
//! `RINGBACK_TEST_CUTS` is the number of places at which the file is cut, or `all`.

mod cuts;
mod workload;

use std::collections::HashSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use ringback_core::job::{DEFAULT_TTR, IfExists, JobKey, NewJob};
use ringback_core::store_types::{Filter, FoundJob, Options, Pull, Repair, SubmitResult};
use ringback_store::Store;
use ringback_testkit::{Persistence, RedisServer, seed, variable};

use self::cuts::{Cut, Files};
use self::workload::{Recorded, TOPICS};
use crate::contract::job_builders::{BRIEF, LONG, With, ms, retry};
use crate::contract::workbench::{SOON, Server, Workbench, at_most};
use crate::prelude::*;

/// The installation, which all servers of these tests share.
const NAME: &str = "torn-file";
/// How many places are cut unless more are asked for.
const CUTS: usize = 20;

async fn server() -> RedisServer {
    RedisServer::options().persistence(Persistence::Always).start().await
}

/// Forbids rewrites, so that a process cannot rewrite the file after the start.
async fn forbid_rewrites(server: &RedisServer) {
    let mut rules = redis::cmd("ACL");
    rules.arg(&["SETUSER", "default", "-bgrewriteaof"]);
    rules.exec_async(&mut server.client().await).await.expect("ACL SETUSER");
}

/// A server, and a bench of the shared installation on it.
async fn opened(server: RedisServer) -> (Arc<Server>, Workbench) {
    let server = Arc::new(Server::Redis(server));
    let bench = Workbench::new(Arc::clone(&server), NAME).await;
    (server, bench)
}

/// Drops the bench of [`opened`] and returns its server.
fn closed(server: Arc<Server>, bench: Workbench) -> RedisServer {
    drop(bench);
    match Arc::into_inner(server) {
        Some(Server::Redis(server)) => server,
        _ => panic!("the bench had a single server, and is gone"),
    }
}

/// Starts a server twice on a file that is cut, with a submit in between.
async fn started_twice(mut server: RedisServer, files: &Files, cut: &Cut) -> RedisServer {
    server.kill();
    files.write(server.directory(), cut.at);
    server.restart().await;
    forbid_rewrites(&server).await;
    let (shared, bench) = opened(server).await;
    bench.accept(bench.job("between").timeout(BRIEF)).await;
    let mut server = closed(shared, bench);
    server.restart().await;
    forbid_rewrites(&server).await;
    server
}

#[tokio::test]
async fn every_job_before_a_torn_end_is_found_after_a_repair() {
    let source = server().await;
    forbid_rewrites(&source).await;
    let (shared, bench) = opened(source).await;
    let recorded = workload::run(&shared, &bench).await;
    let source = closed(shared, bench);
    let files = Files::read(source.directory());
    drop(source);

    let mut cuts = cuts::all(&files.last);
    let wanted = variable::<String>("RINGBACK_TEST_CUTS");
    let wanted = match wanted.as_deref() {
        Some("all") => cuts.len(),
        Some(number) => number.parse().expect("a number of cuts"),
        None => CUTS,
    };
    let seed = seed("RINGBACK_TEST_SEED");
    cuts.shuffle(&mut StdRng::seed_from_u64(seed));
    let mut server = server().await;
    let mut damaged = 0;
    for cut in &cuts[..wanted.min(cuts.len())] {
        server = started_twice(server, &files, cut).await;
        let at = format!("seed {seed}, cut at {} in {}", cut.at, cut.command);
        let (shared, bench) = opened(server).await;
        damaged += usize::from(check(&bench, &recorded, cut, &at).await);
        server = closed(shared, bench);
    }
    // Valkey drops a half transaction, and nothing is damaged.
    let replays = server.info_field("server", "valkey_version").await.is_empty();
    assert!(!replays || damaged > 0, "seed {seed}: no cut has done any damage");
}

/// Repairs the store, asserts that no job from before the cut is gone unless it was purged, and ends all jobs. Returns
/// whether anything was damaged.
async fn check(bench: &Workbench, recorded: &Recorded, cut: &Cut, at: &str) -> bool {
    let store = bench.store();
    let found = store.check(Repair::No).await.expect("check");
    let repaired = store.check(Repair::Yes).await.expect("repair");
    assert!(repaired.is_clean(), "{at}: {repaired:#?}");
    clean(store, at).await;
    let mut gone = 0;
    for key in recorded.before(cut.at) {
        let job = store.get(key).await.expect("get");
        assert!(job.is_some() || recorded.purged.contains(key), "{at}: {key} is gone");
        gone += u64::from(job.is_none());
    }
    // Half a purge leaves nothing of its jobs; any other end of a job leaves a tombstone.
    assert!(repaired.missing <= gone, "{at}: {} missing, {gone} gone: {repaired:#?}", repaired.missing);
    drain(bench, at).await;
    for key in recorded.before(cut.at).filter(|key| !recorded.purged.contains(*key)) {
        let state = bench.state(key).await;
        assert!(matches!(state, Some(State::Done | State::Cancelled)), "{at}: {key} is {state:?}");
    }
    clean(store, at).await;
    found.total() > 0
}

async fn clean(store: &Store, at: &str) {
    let check = store.check(Repair::No).await.expect("check");
    assert!(check.total() == 0 && check.compared == check.shards, "{at}: {check:#?}");
}

/// Moves all jobs until each has ended. Panics after [`SOON`].
async fn drain(bench: &Workbench, at: &str) {
    let (store, shard) = (bench.store(), bench.shard());
    for topic in TOPICS {
        store.resume(&topic.parse().expect("a topic")).await.expect("resume");
    }
    eventually(SOON, &format!("{at}: every job ends"), async || {
        bench.promote(500).await;
        let expired = store.recover(shard, bench.epoch(), at_most(500)).await.expect("recover").expired;
        let expired: Vec<_> = expired.iter().map(|lease| (lease.receipt, retry(ms(0)))).collect();
        store.settle_expired(shard, &expired).await.expect("settle");
        let done = bench.take(100).await.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        bench.settle_all(done).await;
        for topic in TOPICS {
            pull_all(bench, topic).await;
        }
        let (mut left, mut from) = (Vec::new(), None);
        loop {
            let page = store.page(&Filter::default(), from, 1000).await.expect("page");
            left.extend(page.items);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        for job in &left {
            match job.state {
                State::Delayed => drop(store.run(&job.key, bench.token()).await.expect("run")),
                State::Dead => drop(store.revive(&job.key, bench.token()).await.expect("revive")),
                _ => {}
            }
        }
        let left: Vec<_> = left.into_iter().map(|job| (job.key.to_string(), job.state)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

async fn pull_all(bench: &Workbench, topic: &str) {
    let topic = topic.parse().expect("a topic");
    let token = bench.token().0;
    let ask = Pull {
        caller: "drain",
        sequence: u64::from_le_bytes(token),
        topic: &topic,
        limit: 100,
        ttr: Some(LONG),
        default_ttr: DEFAULT_TTR,
        bits: token,
    };
    let pulled = bench.store().pull(bench.shard(), &ask).await.expect("pull").jobs;
    let done: Vec<_> = pulled.into_iter().map(|job| (job.receipt, Outcome::Complete)).collect();
    bench.store().settle_receipts(bench.shard(), &done).await.expect("settle");
}

/// Replaces jobs with large bodies in one call. Returns their keys, the files, and the places to cut in that call.
async fn replaced_large(server: &Arc<Server>, bench: &Workbench) -> (Vec<JobKey>, Files, Vec<Cut>) {
    let Server::Redis(redis) = &**server else { panic!("a single server") };
    let job = |name: &str, letter, length| bench.job(name).timeout(BRIEF).body(vec![letter; length]);
    bench.job_in(State::Dead, job("dead", b'a', 5_000)).await;
    for (name, delay) in [("far", 100 * LONG), ("near", LONG), ("ready", ms(0))] {
        bench.accept(job(name, b'a', 5_000).after(delay)).await;
    }
    let before = Files::size(redis.directory());
    let new = [("far", 9_000), ("near", 5_000), ("ready", 3_000), ("dead", 5_000)].map(|(name, length)| {
        let if_exists = IfExists::Replace { token: bench.token() };
        NewJob { if_exists, ..job(name, b'b', length) }
    });
    let answers = bench.submit(&new).await;
    assert!(answers.iter().all(|new| new.answer == SubmitResult::Replaced), "{answers:?}");
    let files = Files::read(redis.directory());
    let cuts = cuts::all(&files.last).into_iter().filter(|cut| cut.at > before).collect();
    (new.map(|new| new.key).to_vec(), files, cuts)
}

#[tokio::test]
async fn a_large_job_whose_replacement_is_torn_has_its_former_or_its_new_body() {
    let source = server().await;
    forbid_rewrites(&source).await;
    let (shared, bench) = opened(source).await;
    let (keys, files, cuts) = replaced_large(&shared, &bench).await;
    drop(closed(shared, bench));
    let mut server = server().await;
    let mut found = HashSet::new();
    for cut in &cuts {
        server = started_twice(server, &files, cut).await;
        let at = format!("cut at {} in {}", cut.at, cut.command);
        let (shared, bench) = opened(server).await;
        let store = bench.store();
        let repaired = store.check(Repair::Yes).await.expect("repair");
        assert!(repaired.is_clean(), "{at}: {repaired:#?}");
        for key in &keys {
            let stored = store.get_stored(key).await;
            let Ok(Some(FoundJob::Stored(job))) = stored else { panic!("{at}: {key} is {stored:?}") };
            let body = job.delivery.body.bytes;
            assert!(body.iter().all(|byte| *byte == body[0]), "{at}: {key} has parts of both");
            found.insert(body[0]);
        }
        drain(&bench, &at).await;
        for key in &keys {
            assert_eq!(bench.state(key).await, Some(State::Done), "{at}: {key}");
        }
        clean(store, &at).await;
        server = closed(shared, bench);
    }
    // Valkey drops a half transaction.
    let replays = server.info_field("server", "valkey_version").await.is_empty();
    assert_eq!(found.len(), if replays { 2 } else { 1 }, "{} cuts", cuts.len());
}

/// The number of rewrites that a server has made, once no rewrite is under way.
async fn rewrites(server: &RedisServer) -> String {
    eventually(SOON, "no rewrite is under way", async || {
        let (runs, is_planned) = (
            server.info_field("persistence", "aof_rewrite_in_progress").await,
            server.info_field("persistence", "aof_rewrite_scheduled").await,
        );
        if (&*runs, &*is_planned) == ("0", "0") { Ok(()) } else { Err(runs + &is_planned) }
    })
    .await;
    server.info_field("persistence", "aof_rewrites").await
}

/// The number of rewrites after a start of this server, by its version.
async fn expected(server: &RedisServer) -> &'static str {
    let version = server.info_field("server", "valkey_version").await;
    let version: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    if version.as_slice() < [9, 1, 2].as_slice() { "1" } else { "0" }
}

#[tokio::test]
async fn a_file_that_is_rewritten_after_a_start_replays_no_half() {
    let source = server().await;
    forbid_rewrites(&source).await;
    let (shared, bench) = opened(source).await;
    let key = bench.accept(bench.job("before").after(LONG)).await.key;
    let options = bench.options();
    bench.submit(&[bench.job("a"), bench.job("b").to("http://other.example")]).await;
    let source = closed(shared, bench);
    let files = Files::read(source.directory());
    drop(source);

    // Cuts the last submit before its end.
    let cuts = cuts::all(&files.last);
    let cut = cuts.iter().rfind(|cut| cut.command == "HSET").expect("it writes hashes");
    let mut server = server().await;
    server.kill();
    files.write(server.directory(), cut.at);
    server.restart().await;
    let url = server.url();
    let open =
        || Store::open(Options { url: url.clone(), ..options.clone() }).expect("the options are right");
    let [a, b, c, d, e] = [(); 5].map(|()| open());
    let prepared = tokio::join!(a.prepare(), b.prepare(), c.prepare(), d.prepare(), e.prepare());
    assert!(matches!(prepared, (Ok(()), Ok(()), Ok(()), Ok(()), Ok(()))), "{prepared:?}");
    assert_eq!(rewrites(&server).await, expected(&server).await, "of five processes one asks");
    for store in [&a, &b, &c, &d, &e] {
        store.prepare().await.expect("it is fit");
    }
    assert_eq!(rewrites(&server).await, expected(&server).await, "the others find it noted");
    server.restart().await;
    eventually(SOON, "the store is fit again", async || a.prepare().await).await;
    let check = a.check(Repair::No).await.expect("check");
    assert_eq!((check.total(), check.checked), (0, 1), "{check:#?}");
    assert!(a.get(&key).await.expect("get").is_some());
}

async fn until_it_answers(store: &Store) {
    eventually(SOON, "the store answers", async || store.clone().answers().await).await;
}

#[tokio::test]
async fn a_start_that_a_process_outlives_is_noticed() {
    let server = server().await;
    let (shared, bench) = opened(server).await;
    let store = bench.store().clone();
    let mut server = closed(shared, bench);
    assert_eq!(rewrites(&server).await, expected(&server).await);
    until_it_answers(&store).await;
    assert_eq!(rewrites(&server).await, expected(&server).await, "one start leads to one rewrite");
    server.restart().await;
    assert_eq!(rewrites(&server).await, "0");
    until_it_answers(&store).await;
    assert_eq!(rewrites(&server).await, expected(&server).await);
}

#[tokio::test]
async fn a_rewrite_that_is_not_allowed_is_asked_for_by_the_next_process() {
    let server = server().await;
    forbid_rewrites(&server).await;
    let (shared, bench) = opened(server).await;
    let store = bench.store().clone();
    let server = closed(shared, bench);
    assert_eq!(rewrites(&server).await, "0");
    let mut rules = redis::cmd("ACL");
    rules.arg(&["SETUSER", "default", "+bgrewriteaof"]);
    rules.exec_async(&mut server.client().await).await.expect("ACL SETUSER");
    store.prepare().await.expect("it is fit");
    assert_eq!(rewrites(&server).await, expected(&server).await);
}
