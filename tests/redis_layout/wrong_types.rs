//! Keys of a shard in Redis that hold another type than they should: a call that meets one may fail, and the counts
//! are right afterwards. One of nine pairs of a key and a call is tried; all with `RINGBACK_TEST_WRONG_TYPES`.

use std::collections::{BTreeMap, BTreeSet};

use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use ringback_core::job::{Due, IfExists, JobKey, NewJob};
use ringback_core::store_types::{DamageKind, Lease, Repair};
use ringback_testkit::variable;

use crate::contract::job_builders::{BRIEF, LONG, With as _, bury, ms, release, retry};
use crate::contract::workbench::{Workbench, at_most, until};
use crate::prelude::*;
use crate::redis_layout::keys;

/// A delay so long that the job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);
/// A lane and a topic of its own.
const OTHER: &str = "other";
/// One of this many pairs of a key and a call is tried.
const STEP: usize = 9;

/// The calls that change jobs.
const TRANSITIONS: [&str; 18] = [
    "submit",
    "submit to a new topic",
    "replace",
    "cancel delayed",
    "cancel ready",
    "cancel far",
    "reschedule",
    "run",
    "revive",
    "purge",
    "promote",
    "reserve",
    "complete",
    "retry",
    "bury",
    "exchange",
    "recover",
    "evict",
];

/// Jobs for one round.
struct Round {
    near: JobKey,
    far: JobKey,
    ready: JobKey,
    dead: JobKey,
    leases: Vec<Lease>,
}

async fn take_all(bench: &Workbench) -> Vec<Lease> {
    let mut all = Vec::new();
    loop {
        let reserved = bench.reserve(&bench.ask(500)).await;
        all.extend(reserved.leases);
        if !reserved.more {
            return all;
        }
    }
}

impl Round {
    async fn new(bench: &Workbench, n: usize) -> Self {
        // Ends the jobs that earlier rounds have left.
        bench.promote(500).await;
        let left: Vec<_> =
            take_all(bench).await.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        bench.settle_all(left).await;
        let key = |name: &str| format!("{name}-{n}");
        let accepted =
            [bench.job(&key("dead")), bench.job(&key("a")).timeout(BRIEF), bench.job_of(OTHER, &key("b"))];
        bench.submit(&accepted).await;
        let (dead, leases): (Vec<_>, Vec<_>) =
            take_all(bench).await.into_iter().partition(|lease| lease.key.id.as_str().starts_with("dead"));
        let ended = dead.into_iter().map(|lease| (lease, bury())).collect();
        bench.settle_all(ended).await;
        let jobs = [
            bench.job(&key("near")).after(ms(1)),
            bench.job_of(OTHER, &key("near")).after(ms(1)),
            bench.job(&key("far")).after(HOURS).tags("customer:42"),
            bench.job(&key("ready")),
            bench.job_of(OTHER, &key("ready")),
        ];
        let made = bench.submit(&jobs).await;
        until(made[1].job.due).await;
        let [near, _, far, ready, _] = jobs.map(|job| job.key);
        Self { near, far, ready, dead: accepted[0].key.clone(), leases }
    }

    /// Makes one call on the jobs of the round. The call may fail.
    async fn call(self, bench: &Workbench, transition: &str, n: usize) {
        let (store, shard, epoch, token) = (bench.store(), bench.shard(), bench.epoch(), bench.token());
        let new = |name: &str| format!("{name}-{n}");
        let settle = async |outcome: fn() -> Outcome, leases: Vec<Lease>| {
            let items = leases.into_iter().map(|lease| (lease, outcome())).collect();
            drop(store.settle(shard, items).await);
        };
        match transition {
            "submit" => {
                let jobs = [
                    bench.job(&new("new")),
                    bench.job(&new("new-near")).after(LONG),
                    bench.job(&new("new-far")).after(HOURS).tags("customer:42"),
                ];
                drop(store.submit(shard, &jobs).await);
            }
            "submit to a new topic" => {
                let topic = format!("topic-{n}");
                let jobs = [bench.job_of(&topic, "new"), bench.job_of(&topic, "later").after(HOURS)];
                drop(store.submit(shard, &jobs).await);
            }
            "replace" => {
                let of = |key: &JobKey| NewJob {
                    if_exists: IfExists::Replace { token },
                    ..crate::contract::job_builders::new_job(key.clone()).content(7).after(LONG)
                };
                drop(
                    store
                        .submit(shard, &[of(&self.near), of(&self.far), of(&self.ready), of(&self.dead)])
                        .await,
                );
            }
            "cancel delayed" => drop(store.cancel(&self.near).await),
            "cancel ready" => drop(store.cancel(&self.ready).await),
            "cancel far" => drop(store.cancel(&self.far).await),
            "reschedule" => drop(store.reschedule(&self.far, Due::In(LONG), token).await),
            "run" => drop(store.run(&self.far, token).await),
            "revive" => drop(store.revive(&self.dead, token).await),
            "purge" => drop(store.purge(&self.dead).await),
            "promote" => drop(store.promote(shard, epoch, at_most(500)).await),
            "reserve" => drop(store.reserve(shard, &bench.ask(500)).await),
            "complete" => settle(|| Outcome::Complete, self.leases).await,
            "retry" => settle(|| retry(LONG), self.leases).await,
            "bury" => settle(bury, self.leases).await,
            "exchange" => {
                let items = self.leases.into_iter().map(|lease| (lease, release(Duration::ZERO))).collect();
                drop(store.exchange(shard, items, &bench.ask(500)).await);
            }
            "recover" => drop(store.recover(shard, epoch, at_most(500)).await),
            "evict" => drop(store.evict(shard, epoch, at_most(500)).await),
            other => panic!("no such call: {other}"),
        }
    }
}

/// All keys of the bench's shard.
async fn keys_of(redis: &mut MultiplexedConnection) -> BTreeSet<Vec<u8>> {
    let base = keys::key(redis, "").await;
    let pattern = format!("{base}*");
    let all: Vec<Vec<u8>> = redis.keys(pattern).await.expect("KEYS");
    all.into_iter().collect()
}

#[tokio::test]
async fn whatever_key_holds_another_type_the_counts_are_right_after_each_call() {
    let (bench, mut redis) = keys::bench().await;
    Round::new(&bench, 0).await;
    let (mut n, mut wrong) = (1, BTreeMap::<String, Vec<&str>>::new());
    let every = if variable::<String>("RINGBACK_TEST_WRONG_TYPES").is_some() { 1 } else { STEP };
    for (row, key) in keys_of(&mut redis).await.into_iter().enumerate() {
        for (_, transition) in
            TRANSITIONS.into_iter().enumerate().filter(|(column, _)| (row + column) % every == 0)
        {
            let round = Round::new(&bench, n).await;
            let kind: String = redis::cmd("TYPE").arg(&key).query_async(&mut redis).await.expect("TYPE");
            let aside = [b"aside:", &key[..]].concat();
            if kind != "none" {
                keys::run(&mut redis, &[b"RENAME", &key, &aside]).await;
            }
            let (command, value): (&[u8], &[&[u8]]) =
                if kind == "string" { (b"RPUSH", &[b"x"]) } else { (b"SET", &[b"x"]) };
            keys::run(&mut redis, &[&[command, &key][..], value].concat()).await;
            round.call(&bench, transition, n).await;
            keys::run(&mut redis, &[b"DEL", &key]).await;
            if kind != "none" {
                keys::run(&mut redis, &[b"RENAME", &aside, &key]).await;
            }
            let check = bench.store().check(Repair::No).await.expect("check");
            let counts = [DamageKind::Ledger, DamageKind::LaneCount, DamageKind::Topic];
            if counts.iter().any(|kind| check.found.contains_key(kind)) {
                wrong.entry(String::from_utf8_lossy(&key).into_owned()).or_default().push(transition);
            }
            // Index entries that a call could not write are put right too.
            bench.store().check(Repair::Yes).await.expect("check");
            n += 1;
        }
    }
    assert!(n > 200 / every, "only {n} rounds");
    assert_eq!(wrong, BTreeMap::new());
}
