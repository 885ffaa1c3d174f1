//! The consistency check in Redis finds each kind of damage made by hand and repairs it if possible, and jobs go on.

mod counts;
mod expired_leases;
mod leases;
mod missing;
mod topics;
mod under_load;

use redis::aio::MultiplexedConnection;
use ringback_core::job::{Job, NewJob};
use ringback_core::store_types::{Check, DamageKind, MAX_FINDINGS, Options, Repair, StoreError};
use ringback_store::{Store, settings};
use ringback_testkit::{RedisServer, add_to_shard_field, set_shard_field};

use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, ms, retry};
use crate::contract::workbench::Workbench;
use crate::prelude::*;
use crate::redis_layout::keys::{bench, entry, key, key_of, lane, lane_of, plant_due, plant_ready, run};

/// A delay so long that the job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);
const WIDTH: u64 = 600_000;
const LATE: &[u8] = b"9999999999999";
const LATE_MS: i64 = 9_999_999_999_999;

/// A bench with a job of every kind.
struct Ground {
    bench: Workbench,
    redis: MultiplexedConnection,
    near: Job,
    far: Job,
    large: Job,
    retried: Job,
    dead: Job,
    reserved: Job,
    pull: Job,
    ready: Job,
}

impl Ground {
    async fn new() -> Self {
        let (bench, redis) = bench().await;
        let near = bench.accept(bench.job("near").after(LONG)).await;
        let far = bench.accept(bench.job("far").after(HOURS)).await;
        let large = bench.accept(bench.job("large").after(HOURS).body(noise(1, 5000).into_bytes())).await;
        let lease = bench.reserved(bench.job("retried")).await;
        let of_retried = lease.key.clone();
        bench.settle(lease, retry(LONG)).await;
        let retried = bench.get(&of_retried).await;
        let dead = bench.job_in(State::Dead, bench.job("dead")).await;
        bench.job_in(State::Done, bench.job("done")).await;
        bench.job_in(State::Cancelled, bench.job("cancelled")).await;
        let reserved = bench.job_in(State::Reserved, bench.job("reserved").timeout(LONG)).await;
        let pull = bench.accept(bench.pull_job("pull")).await;
        let ready = bench.accept(bench.job("ready")).await;
        bench.check().await;
        Self { bench, redis, near, far, large, retried, dead, reserved, pull, ready }
    }

    async fn run(&mut self, words: &[&[u8]]) {
        run(&mut self.redis, words).await;
    }

    /// Adds to a number of the shard.
    async fn count(&mut self, shard: &[u8], name: &str, more: i64) {
        add_to_shard_field(&mut self.redis, shard, name, more).await;
    }

    /// Sets a number of the shard.
    async fn set(&mut self, shard: &[u8], name: &str, number: i64) {
        set_shard_field(&mut self.redis, shard, name, number).await;
    }

    async fn key(&mut self, name: &str) -> Vec<u8> {
        key(&mut self.redis, name).await.into_bytes()
    }

    async fn of(&mut self, name: &str, end: &[u8]) -> Vec<u8> {
        key_of(&mut self.redis, name, end).await
    }

    async fn check(&self, repair: Repair) -> Check {
        self.bench.store().check(repair).await.expect("check")
    }

    /// Asserts that the check finds exactly these kinds and changes nothing, and a repair mends all. Audits the store.
    async fn mended(&mut self, damage: &str, kinds: &[DamageKind]) {
        let found = self.check(Repair::No).await;
        let found_kinds: Vec<_> = found.found.keys().copied().collect();
        assert_eq!(found_kinds, kinds, "{damage}: {found:#?}");
        assert!(!found.is_clean() && found.repaired == 0, "{damage}: {found:#?}");
        assert_eq!(self.check(Repair::No).await.found, found.found, "{damage}: looking changes nothing");
        let repaired = self.check(Repair::Yes).await;
        assert!(repaired.total() > 0 && repaired.is_clean(), "{damage}: {repaired:#?}");
        assert!(repaired.findings.iter().all(|finding| finding.is_repaired), "{damage}: {repaired:#?}");
        let left = self.check(Repair::No).await;
        assert!(left.total() == 0 && left.compared == left.shards, "{damage}: {left:#?}");
        self.bench.check().await;
    }

    async fn mended_nothing(&self) {
        let check = self.check(Repair::Yes).await;
        assert_eq!((check.total(), check.stale), (0, 0), "{check:#?}");
    }

    async fn read(&mut self, hash: &[u8], field: &[u8]) -> Vec<u8> {
        redis::cmd("HGET").arg(hash).arg(field).query_async(&mut self.redis).await.expect("HGET")
    }

    /// Asserts that the check finds a kind which a repair cannot mend. Returns the check before the repair.
    async fn kept(&mut self, damage: &str, kind: DamageKind) -> Check {
        let found = self.check(Repair::No).await;
        assert!(found.found.contains_key(&kind), "{damage}: {found:#?}");
        let repaired = self.check(Repair::Yes).await;
        assert!(repaired.found.contains_key(&kind) && !repaired.is_clean(), "{damage}: {repaired:#?}");
        found
    }
}

fn named(check: &Check, job: &Job) -> bool {
    check.findings.iter().any(|finding| {
        finding.topic.as_deref() == Some(job.key.topic.as_str())
            && finding.id.as_deref() == Some(job.key.id.as_str())
    })
}

fn pull_lane() -> Vec<u8> {
    lane_of(&format!("{TOPIC} "))
}

/// A lane's row in the hash of its shard, with counts and a name.
fn row(counts: [u32; 4], words: &str) -> Vec<u8> {
    [&counts.map(u32::to_be_bytes).concat(), &[0; 12][..], words.as_bytes()].concat()
}

fn slot_of(job: &Job) -> String {
    (job.due.as_millis() / WIDTH).to_string()
}

#[tokio::test]
async fn a_job_that_lost_its_due_time_is_found_and_linked_again() {
    let mut ground = Ground::new().await;
    for job in [ground.near.clone(), ground.retried.clone()] {
        let due = ground.of("due:", &lane()).await;
        ground.run(&[b"ZREM", &due, &entry(&job)]).await;
        let found = ground.check(Repair::No).await;
        assert!(named(&found, &job) && found.total() == 1, "{found:#?}");
        ground.mended("no due time", &[DamageKind::Unindexed]).await;
        assert_eq!(ground.bench.get(&job.key).await, job);
    }
}

#[tokio::test]
async fn a_job_that_lost_its_entry_in_a_slot_is_found_and_linked_again() {
    let mut ground = Ground::new().await;
    for job in [ground.far.clone(), ground.large.clone()] {
        let slot = ground.of("slot:", slot_of(&job).as_bytes()).await;
        let item = [entry(&job), lane()].concat();
        ground.run(&[b"LREM", &slot, b"0", &item]).await;
        ground.mended("no place in its slot", &[DamageKind::Unindexed]).await;
        let void = ground.of("cancelled:", slot_of(&job).as_bytes()).await;
        ground.run(&[b"SADD", &void, &item]).await;
        let found = ground.check(Repair::No).await;
        assert!(named(&found, &job) && found.total() == 1, "{found:#?}");
        let repaired = ground.check(Repair::Yes).await;
        assert!(repaired.is_clean() && repaired.total() == 1, "{repaired:#?}");
        ground.bench.check().await;
        assert_eq!(ground.bench.get(&job.key).await, job);
    }
}

#[tokio::test]
async fn a_job_that_lost_its_entry_in_a_queue_is_found_and_delivered() {
    let mut ground = Ground::new().await;
    let (ready, pull) = (ground.ready.clone(), ground.pull.clone());
    let (queue, pulls) = (ground.of("ready:", &lane()).await, ground.of("ready:", &pull_lane()).await);
    ground.run(&[b"LREM", &queue, b"0", &entry(&ready)]).await;
    ground.run(&[b"LREM", &pulls, b"0", &entry(&pull)]).await;
    let found = ground.check(Repair::No).await;
    assert!(named(&found, &ready) && named(&found, &pull) && found.total() == 2, "{found:#?}");
    ground.mended("no place in the queue", &[DamageKind::Unindexed]).await;
    ground.bench.take_one(&ready.key).await;
    ground.bench.pull_one(&pull.key, LONG).await;
    ground.bench.check().await;
}

#[tokio::test]
async fn a_lease_that_nobody_would_look_at_is_found_and_runs_out_again() {
    let mut ground = Ground::new().await;
    let (leases, batches) = (ground.key("leases").await, ground.key("batches").await);
    // A job that was reserved alone has no entry in `batches` before the first repair.
    for (damage, words) in [
        ("no lease", vec![b"DEL".as_slice(), &leases]),
        ("no batch", vec![b"DEL", &batches]),
        ("neither", vec![b"DEL", &leases, &batches]),
    ] {
        ground.run(&words).await;
        let found = ground.check(Repair::No).await;
        assert!(named(&found, &ground.reserved), "{damage}: {found:#?}");
        ground.mended(damage, &[DamageKind::Unindexed]).await;
    }
    let brief = ground.bench.accept(ground.bench.job("brief").timeout(BRIEF)).await;
    assert_eq!(ground.bench.take(2).await.len(), 2);
    ground.run(&[b"DEL", &leases, &batches]).await;
    assert!(ground.check(Repair::Yes).await.is_clean());
    ground.bench.recover_until(&brief.key, State::Ready).await;
}

#[tokio::test]
async fn a_dead_job_that_would_never_be_evicted_is_found_and_linked_again() {
    let mut ground = Ground::new().await;
    let dead = ground.key("dead").await;
    ground.run(&[b"DEL", &dead]).await;
    let found = ground.check(Repair::No).await;
    assert!(named(&found, &ground.dead), "{found:#?}");
    ground.mended("no dead letter", &[DamageKind::Unindexed]).await;
    assert_eq!(ground.bench.get(&ground.dead.key).await, ground.dead);
}

#[tokio::test]
async fn lanes_and_slots_without_an_index_entry_are_found_and_linked_again() {
    let mut ground = Ground::new().await;
    let slot = slot_of(&ground.far);
    let (lanes, pulls) = (ground.key("lanes").await, ground.key("pulls").await);
    let (turns, slots) = (ground.key("due_lanes").await, ground.key("slots").await);
    ground.run(&[b"DEL", &lanes]).await;
    ground.mended("no turn", &[DamageKind::Schedule]).await;
    ground.run(&[b"DEL", &pulls]).await;
    ground.mended("no turn for pull", &[DamageKind::Schedule]).await;
    ground.run(&[b"DEL", &turns]).await;
    ground.mended("no turn with the carrier", &[DamageKind::Schedule]).await;
    ground.run(&[b"ZADD", &turns, LATE, &lane()]).await;
    ground.mended("a turn that is too late", &[DamageKind::Schedule]).await;
    ground.run(&[b"ZREM", &slots, slot.as_bytes()]).await;
    ground.mended("a slot that is not listed", &[DamageKind::Unindexed, DamageKind::WakeAt]).await;
    let taken: Vec<_> = ground.bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert_eq!(taken, [ground.ready.key.clone()]);
}

#[tokio::test]
async fn wrong_next_times_are_found_and_repaired() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    for field in ["lease_at", "dead_at", "next_notice_at", "slot"] {
        for wrong in [LATE_MS, 0] {
            ground.set(&shard, field, wrong).await;
            ground.mended(field, &[DamageKind::WakeAt]).await;
        }
    }
}

#[tokio::test]
async fn wrong_counts_are_found_and_repaired_where_they_can_be_derived() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    ground.count(&shard, "delayed", 1).await;
    ground.mended("one delayed too many", &[DamageKind::Ledger]).await;
    ground.count(&shard, "ready", -3).await;
    ground.mended("counts below nothing", &[DamageKind::Ledger]).await;
    ground.count(&shard, "delayed", -1).await;
    ground.count(&shard, "reserved", 1).await;
    ground.mended("one in another state", &[DamageKind::Ledger]).await;
    let words = format!("{TOPIC} http://receiver.example");
    // Counts with one job more in one state and one fewer in another.
    for counts in [[99, 1, 1, 1], [5, 0, 1, 1], [4, 1, 0, 2], [4, 2, 1, 0], [0, 0, 0, 0]] {
        let row = row(counts, &words);
        ground.run(&[b"HSET", &shard, &lane(), &row]).await;
        ground.mended(&format!("a lane with {counts:?}"), &[DamageKind::LaneCount]).await;
    }
    let row = row([2, 1, 0, 6], "other http://receiver.example");
    ground.run(&[b"HSET", &shard, b"\x011234567", &row]).await;
    ground.mended("a lane that has none", &[DamageKind::LaneCount, DamageKind::Topic]).await;

    let before = ground.bench.stats().await;
    ground.count(&shard, "done", 1).await;
    ground.mended("one done too many", &[DamageKind::Ledger]).await;
    assert_eq!(ground.bench.stats().await.accepted, before.accepted + 1);
}

#[tokio::test]
async fn damage_that_cannot_be_repaired_is_reported_and_stays() {
    let mut ground = Ground::new().await;
    let body = ground.of("body:", &ground.large.key.locator().0).await;
    ground.run(&[b"DEL", &body]).await;
    let found = ground.kept("no body", DamageKind::Body).await;
    assert!(named(&found, &ground.large), "{found:#?}");

    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    ground.run(&[b"HDEL", &shard, &lane()]).await;
    let found = ground.kept("no words for its lane", DamageKind::Lane).await;
    assert!(
        found.findings.iter().any(|f| f.id.as_deref() == Some(ground.near.key.id.as_str())),
        "{found:#?}"
    );

    let mut ground = Ground::new().await;
    let (pool, runs) = (ground.key("pool").await, ground.key("states").await);
    ground.run(&[b"HSET", &pool, b"too short", b"\x01\x00"]).await;
    ground.run(&[b"HSET", &runs, &ground.near.key.locator().0, b"\x01\x00"]).await;
    assert_eq!(ground.kept("unreadable", DamageKind::Unreadable).await.found[&DamageKind::Unreadable], 2);
}

#[tokio::test]
async fn due_times_that_lead_to_no_delayed_job_are_removed_by_a_repair() {
    let mut ground = Ground::new().await;
    plant_due(&mut ground.redis, &entry(&ground.ready)).await;
    plant_due(&mut ground.redis, b"nobody's job\0\0\0\0\0\x01").await;
    let slot = ground.of("slot:", slot_of(&ground.far).as_bytes()).await;
    for item in [[entry(&ground.near), lane()].concat(), [b"nobody's job\0\0\0\0\0\x01", &*lane()].concat()] {
        ground.run(&[b"RPUSH", &slot, &item]).await;
    }
    let before = ground.bench.stats().await;
    assert!(ground.check(Repair::Yes).await.is_clean());
    assert_eq!(ground.bench.promote(10).await.moved, 0, "nothing is due");
    let far = ground.far.key.clone();
    ground.bench.store().run(&far, ground.bench.token()).await.expect("run");
    ground.bench.check().await;
    let after = ground.bench.stats().await.states;
    assert_eq!((after.delayed, after.ready), (before.states.delayed - 1, before.states.ready + 1));
}

#[tokio::test]
async fn what_is_left_of_a_job_without_a_record_is_found_and_removed() {
    let mut ground = Ground::new().await;
    let runs = ground.key("states").await;
    ground.run(&[b"HSET", &runs, b"nobody's job", &[1; 67]]).await;
    ground.mended("a run of no job", &[DamageKind::StateRecord]).await;
}

#[tokio::test]
async fn entries_that_lead_nowhere_are_counted_and_are_no_findings() {
    let mut ground = Ground::new().await;
    plant_due(&mut ground.redis, b"nobody's job\0\0\0\0\0\x01").await;
    plant_ready(&mut ground.redis, b"RPUSH", b"nobody's job\0\0\0\0\0\x01").await;
    plant_ready(&mut ground.redis, b"LPUSH", &entry(&ground.near)).await;
    let dead = ground.key("dead").await;
    let nobody = [b"nobody's job".as_slice(), &lane()].concat();
    ground.run(&[b"ZADD", &dead, LATE, &nobody]).await;
    // With these jobs, most entries of the queue count.
    for n in 0..5 {
        ground.bench.accept(ground.bench.job(&format!("job-{n}"))).await;
    }
    let before = ground.check(Repair::No).await;
    assert_eq!((before.total(), before.stale), (0, 4), "{before:#?}");
    // So the entry of a cancelled job stays until it is met.
    ground.bench.cancel(&ground.ready.key).await;
    assert_eq!(ground.check(Repair::No).await.stale, 5);
}

#[tokio::test]
async fn of_very_many_findings_the_first_are_listed_and_all_are_repaired() {
    let mut ground = Ground::new().await;
    let jobs: Vec<NewJob> = (0..1200).map(|n| ground.bench.job(&format!("job-{n}"))).collect();
    for part in jobs.chunks(400) {
        ground.bench.submit(part).await;
    }
    let queue = ground.of("ready:", &lane()).await;
    ground.run(&[b"DEL", &queue]).await;
    let found = ground.check(Repair::No).await;
    assert_eq!((found.total(), found.findings.len()), (1201, MAX_FINDINGS));
    assert_eq!(found.checked, 8 + 1200);
    let repaired = ground.check(Repair::Yes).await;
    assert!(repaired.is_clean() && repaired.repaired == 1201, "{repaired:#?}");
    ground.bench.check().await;
    let mut taken = 0;
    while let leases = ground.bench.take(500).await
        && !leases.is_empty()
    {
        taken += leases.len();
    }
    assert_eq!(taken, 1201);
}

#[tokio::test]
async fn a_store_that_is_away_cannot_be_checked() {
    let mut server = RedisServer::start().await;
    let options = Options { url: server.url(), ..settings::defaults(ms(500)) };
    let store = Store::open(options).expect("a store");
    assert!(matches!(store.check(Repair::No).await, Err(StoreError::Unprepared)));
    store.prepare().await.expect("the store is fit");
    server.kill();
    let error = store.check(Repair::No).await.expect_err("nobody answers");
    assert!(error.is_transient(), "{error}");
}
