//! Settings of a Redis server that the store refuses, users with fewer rights, and a server whose memory is full.

use std::sync::Arc;

use ringback_core::job::{History, IfExists, ImportJob, NewJob};
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, Cancelled, Filter, LogResult, Profile, Renewed, SettleResult, StoreError,
};
use ringback_store::Store;
use ringback_testkit::{Persistence, RedisServer};

use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry};
use crate::contract::workbench::{SOON, Server, Workbench, now};
use crate::prelude::*;

async fn bench() -> (Workbench, Arc<Server>) {
    let server = Arc::new(Server::Redis(RedisServer::start().await));
    (Workbench::new(Arc::clone(&server), "servers").await, server)
}

async fn set(server: &Server, name: &str, value: &str) {
    let Server::Redis(redis) = server else { panic!("a single server") };
    let mut config = redis::cmd("CONFIG");
    config.arg("SET").arg(name).arg(value);
    config.exec_async(&mut redis.client().await).await.expect("CONFIG SET");
}

/// Sets the memory limit below what is used, so that nothing more fits.
async fn fill_up(server: &Server) {
    let Server::Redis(redis) = server else { panic!("a single server") };
    let limit = redis.used_memory().await - 256 * 1024;
    set(server, "maxmemory", &limit.to_string()).await;
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_whatever_it_evicts() {
    let (bench, server) = bench().await;
    for policy in [
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        set(&server, "maxmemory-policy", policy).await;
        let store = Store::open(bench.options()).expect("the options are right");
        let error = store.prepare().await.expect_err(policy);
        assert!(matches!(&error, StoreError::Unfit(why) if why.contains(policy)), "{error}");
        assert!(matches!(store.stats().await, Err(StoreError::Unprepared)));
    }
    set(&server, "maxmemory-policy", "noeviction").await;
    bench.store().prepare().await.expect("fit again");
}

#[tokio::test]
async fn the_profile_is_that_of_the_worst_moments_of_a_server() {
    let always = RedisServer::options().persistence(Persistence::Always).start().await;
    let server = Arc::new(Server::Redis(always));
    let bench = Workbench::new(Arc::clone(&server), "servers").await;
    let profile = async || {
        bench.store().prepare().await.expect("it is fit");
        bench.store().profile()
    };
    assert_eq!(profile().await, Profile::Disk);
    for fsync in ["always", "everysec"] {
        set(&server, "appendfsync", fsync).await;
        set(&server, "no-appendfsync-on-rewrite", "yes").await;
        assert_eq!(profile().await, Profile::Memory, "{fsync}");
        set(&server, "no-appendfsync-on-rewrite", "no").await;
    }
    assert_eq!(profile().await, Profile::Everysec);
    set(&server, "appendfsync", "no").await;
    assert_eq!(profile().await, Profile::Memory);
    set(&server, "appendfsync", "always").await;
    let Server::Redis(redis) = &*server else { panic!("a single server") };
    let mut rules = redis::cmd("ACL");
    rules.arg(&["SETUSER", "default", "-config"]);
    rules.exec_async(&mut redis.client().await).await.expect("ACL SETUSER");
    assert_eq!(profile().await, Profile::Unknown);
}

#[tokio::test]
async fn a_user_who_may_not_publish_events_does_all_else() {
    let (bench, server) = bench().await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    let Server::Redis(redis) = &*server else { panic!("a single server") };
    let mut rules = redis::cmd("ACL");
    rules.arg(&["SETUSER", "default", "resetchannels", "&*:wake", "&*:policies"]);
    rules.exec_async(&mut redis.client().await).await.expect("ACL SETUSER");
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.state(&key).await, Some(State::Done));
    bench.check().await;
}

#[tokio::test]
async fn a_full_store_takes_no_job_and_drains_until_it_does_again() {
    let (bench, server) = bench().await;
    let jobs: Vec<NewJob> = (0..2000)
        .map(|n| {
            let job = bench.job(&format!("job-{n}")).body(noise(b'x', 1500).into());
            if n % 2 == 0 { job.after(ms(1)) } else { job }
        })
        .collect();
    for batch in jobs.chunks(500) {
        bench.submit(batch).await;
    }
    fill_up(&server).await;

    let before = bench.stats().await;
    let refused = bench.job("refused");
    for job in [refused.clone(), refused.clone().after(LONG)] {
        let error = bench.store().submit(bench.shard(), &[job]).await.expect_err("there is no room");
        assert!(matches!(error, StoreError::Full), "{error:?}");
    }
    let history = Some(History { attempts: 1, ..History::default() });
    let imported = ImportJob { job: refused.clone(), history };
    let error = bench.store().import(bench.shard(), &[imported]).await.expect_err("there is no room");
    assert!(matches!(error, StoreError::Full), "{error:?}");
    bench.store().page(&Filter::default(), None, 100).await.expect("reading takes no room");
    assert_eq!(bench.stats().await, before);
    assert_eq!(bench.state(&refused.key).await, None);

    bench.store().take_shard(bench.shard(), "another").await.expect("claim");
    let bench = restarted(&bench).await;
    bench.promote_until(1000).await;
    let mut done = 0;
    while done < 2000 {
        let leases = bench.take(100).await;
        assert!(!leases.is_empty(), "{done} of 2000 jobs are drained, and no more is given");
        done += leases.len();
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        assert!(bench.settle_all(items).await.iter().all(|settled| *settled == SettleResult::Applied));
    }
    eventually(SOON, "a job is taken again", async || {
        bench.store().submit(bench.shard(), std::slice::from_ref(&refused)).await
    })
    .await;
    assert_eq!(bench.state(&refused.key).await, Some(State::Ready));
    bench.check().await;
}

#[tokio::test]
async fn every_transition_but_submit_goes_on_while_memory_is_full() {
    let (bench, server) = bench().await;
    let kept = bench.job_in(State::Dead, bench.job_of("other", "dead")).await;
    let names = ["late", "retried", "buried", "released", "renewed", "held", "waiting"];
    for name in names {
        let job = bench.job(name).body(noise(b'x', 100_000).into());
        bench.accept(if name == "held" { job.timeout(BRIEF) } else { job }).await;
    }
    fill_up(&server).await;
    let token = bench.token();
    let replacing = NewJob { if_exists: IfExists::Replace { token }, ..bench.job_of("other", "dead") };
    for new in [bench.job("new"), replacing] {
        let error = bench.store().submit(bench.shard(), &[new]).await.expect_err("no room");
        assert!(matches!(error, StoreError::Full), "{error:?}");
    }
    assert_eq!(bench.get(&kept.key).await, kept);

    let mut leases = bench.take(names.len()).await.into_iter();
    let mut next = || leases.next().expect("all are given");
    let late = next();
    for (lease, outcome) in [(next(), retry(ms(0))), (next(), bury()), (next(), release(ms(0)))] {
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
    }
    let mut renewed = next();
    assert_eq!(bench.store().renew(&mut renewed, LONG).await.expect("renew"), Renewed::Extended);
    bench.recover_until(&next().key, State::Ready).await;
    bench.promote_until(1).await;
    let requested = Cancelled::Requested { in_flight_unknown: false };
    assert_eq!(bench.cancel(&next().key).await, requested);
    assert_eq!(bench.cancel(&kept.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.evict(10).await.moved, 0);
    bench.store().heartbeat("carrier", LONG).await.expect("members");
    bench.check().await;
}

#[tokio::test]
async fn a_full_store_takes_no_notes_and_shows_those_it_has() {
    let (bench, server) = bench().await;
    let mut lease = bench.reserved(bench.job("a").body(noise(b'x', 400_000).into())).await;
    let attempt = Attempt { at: now(), status: Some(500), answer: "no".into(), ..Attempt::default() };
    let mut note = || {
        let note = AttemptLogEntry::of(&lease, attempt.clone());
        lease.attempt += 1;
        [note]
    };
    // This call checks the memory, and the result counts for a second.
    assert_eq!(bench.store().log_attempts(bench.shard(), &note()).await.expect("note"), LogResult::Kept);
    fill_up(&server).await;
    let refused = bench.store().log_attempts(bench.shard(), &note()).await;
    assert_eq!(refused, Some(LogResult::Full));
    let restarted = restarted(&bench).await;
    assert_eq!(
        restarted.store().log_attempts(restarted.shard(), &note()).await.expect("a look"),
        LogResult::Full
    );
    let key = bench.key(TOPIC, "a");
    assert_eq!(bench.store().attempts(&key).await.expect("attempts").expect("known").len(), 1);
    set(&server, "maxmemory", "0").await;
    eventually(SOON, "attempts are noted again", async || {
        let noted = restarted.store().log_attempts(restarted.shard(), &note()).await.expect("note");
        if noted == LogResult::Kept { Ok(()) } else { Err("there is no room") }
    })
    .await;
    bench.check().await;
}

/// A bench on the same installation, as a process that has just started.
async fn restarted(bench: &Workbench) -> Workbench {
    let prefix = bench.options().prefix;
    bench.with(|options| options.prefix = prefix).await
}
