//! The audit, on damage that was done by hand: each kind is found, told, and put right where that can be done,
//! after which the jobs go their way. And no damage is found where there is none, however much moves.

mod counts;
mod lapsed;
mod leases;
mod topics;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use ringback_core::clock::SystemClock;
use ringback_core::contract::{
    Audit, DamageKind, Epoch, Lateness, MAX_FINDINGS, Options, Pull, PullOutcome, Repair, Reserve, Shard,
    StoreError, Token,
};
use ringback_core::job::{Callback, Due, Job, JobKey, NewJob};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use ringback_store::{Memory, Store, settings};
use ringback_testkit::RedisServer;
use tokio::time::Instant;

use super::bench::Bench;
use super::jobs::{BRIEF, LONG, TOPIC, With, ms, new_job, retry};
use super::raw::{bench, entry, key, key_of, lane, plant_due, plant_ready, run};

/// Far off: in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);
const WIDTH: u64 = 600_000;
const LATE: &[u8] = b"9999999999999";

/// A bench with a job of every kind.
struct Ground {
    bench: Bench,
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
        let large = bench.accept(bench.job("large").after(HOURS).body(vec![b'x'; 5000])).await;
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
        bench.audit().await;
        Self { bench, redis, near, far, large, retried, dead, reserved, pull, ready }
    }

    async fn run(&mut self, words: &[&[u8]]) {
        run(&mut self.redis, words).await;
    }

    async fn key(&mut self, name: &str) -> Vec<u8> {
        key(&mut self.redis, name).await.into_bytes()
    }

    async fn of(&mut self, name: &str, end: &[u8]) -> Vec<u8> {
        key_of(&mut self.redis, name, end).await
    }

    async fn audit(&self, repair: Repair) -> Audit {
        self.bench.store().audit(repair).await.expect("audit")
    }

    /// That something of these kinds is found and can be put right, and that all is well afterwards.
    async fn mended(&mut self, damage: &str, kinds: &[DamageKind]) {
        let found = self.audit(Repair::No).await;
        let told: Vec<_> = found.found.keys().copied().collect();
        assert_eq!(told, kinds, "{damage}: {found:#?}");
        assert!(!found.is_clean() && found.repaired == 0, "{damage}: {found:#?}");
        assert_eq!(self.audit(Repair::No).await.found, found.found, "{damage}: looking changes nothing");
        let repaired = self.audit(Repair::Yes).await;
        assert!(repaired.total() > 0 && repaired.is_clean(), "{damage}: {repaired:#?}");
        assert!(repaired.findings.iter().all(|finding| finding.is_repaired), "{damage}: {repaired:#?}");
        let left = self.audit(Repair::No).await;
        assert!(left.total() == 0 && left.compared == left.shards, "{damage}: {left:#?}");
        self.bench.audit().await;
    }

    async fn mended_nothing(&self) {
        let audit = self.audit(Repair::Yes).await;
        assert_eq!((audit.total(), audit.stale), (0, 0), "{audit:#?}");
    }

    /// A field of a hash.
    async fn read(&mut self, hash: &[u8], field: &[u8]) -> Vec<u8> {
        redis::cmd("HGET").arg(hash).arg(field).query_async(&mut self.redis).await.expect("HGET")
    }

    /// That something is found and cannot be put right.
    async fn kept(&mut self, damage: &str, kind: DamageKind) -> Audit {
        let found = self.audit(Repair::No).await;
        assert!(found.found.contains_key(&kind), "{damage}: {found:#?}");
        let repaired = self.audit(Repair::Yes).await;
        assert!(repaired.found.contains_key(&kind) && !repaired.is_clean(), "{damage}: {repaired:#?}");
        found
    }
}

fn named(audit: &Audit, job: &Job) -> bool {
    audit.findings.iter().any(|finding| {
        finding.topic.as_deref() == Some(job.key.topic.as_str())
            && finding.id.as_deref() == Some(job.key.id.as_str())
    })
}

fn pull_lane() -> Vec<u8> {
    use sha2::Digest as _;
    let mut lane = sha2::Sha256::digest(format!("{TOPIC} "))[..8].to_vec();
    lane[0] |= 0x80;
    lane
}

/// A lane's row in the hash of its shard.
fn row(counts: [u32; 4], words: &str) -> Vec<u8> {
    [&counts.map(u32::to_be_bytes).concat(), &[0; 12][..], words.as_bytes()].concat()
}

fn slot_of(job: &Job) -> String {
    (job.due.as_millis() / WIDTH).to_string()
}

#[tokio::test]
async fn a_job_that_lost_its_due_time_is_found_and_led_to_again() {
    let mut ground = Ground::new().await;
    for job in [ground.near.clone(), ground.retried.clone()] {
        let due = ground.of("due:", &lane()).await;
        ground.run(&[b"ZREM", &due, &entry(&job)]).await;
        let found = ground.audit(Repair::No).await;
        assert!(named(&found, &job) && found.total() == 1, "{found:#?}");
        ground.mended("no due time", &[DamageKind::Unindexed]).await;
        assert_eq!(ground.bench.get(&job.key).await, job);
    }
}

#[tokio::test]
async fn a_job_that_lost_its_place_in_a_slot_is_found_and_led_to_again() {
    let mut ground = Ground::new().await;
    for job in [ground.far.clone(), ground.large.clone()] {
        let slot = ground.of("slot:", slot_of(&job).as_bytes()).await;
        let item = [entry(&job), lane()].concat();
        ground.run(&[b"LREM", &slot, b"0", &item]).await;
        ground.mended("no place in its slot", &[DamageKind::Unindexed]).await;
        let void = ground.of("void:", slot_of(&job).as_bytes()).await;
        ground.run(&[b"SADD", &void, &item]).await;
        let found = ground.audit(Repair::No).await;
        assert!(named(&found, &job) && found.total() == 1, "{found:#?}");
        let repaired = ground.audit(Repair::Yes).await;
        assert!(repaired.is_clean() && repaired.total() == 1, "{repaired:#?}");
        ground.bench.audit().await;
        assert_eq!(ground.bench.get(&job.key).await, job);
    }
}

#[tokio::test]
async fn a_job_that_lost_its_place_in_its_queue_is_found_and_handed_over() {
    let mut ground = Ground::new().await;
    let (ready, pull) = (ground.ready.clone(), ground.pull.clone());
    let (queue, pulls) = (ground.of("ready:", &lane()).await, ground.of("ready:", &pull_lane()).await);
    ground.run(&[b"LREM", &queue, b"0", &entry(&ready)]).await;
    ground.run(&[b"LREM", &pulls, b"0", &entry(&pull)]).await;
    let found = ground.audit(Repair::No).await;
    assert!(named(&found, &ready) && named(&found, &pull) && found.total() == 2, "{found:#?}");
    ground.mended("no place in the queue", &[DamageKind::Unindexed]).await;
    ground.bench.take_one(&ready.key).await;
    ground.bench.pull_one(&pull.key, LONG).await;
    ground.bench.audit().await;
}

#[tokio::test]
async fn a_lease_that_nobody_would_look_at_is_found_and_runs_out_again() {
    let mut ground = Ground::new().await;
    let (leases, batches) = (ground.key("leases").await, ground.key("batches").await);
    for (damage, words) in [
        ("no batch", vec![b"DEL".as_slice(), &batches]),
        ("no lease", vec![b"DEL", &leases]),
        ("neither", vec![b"DEL", &leases, &batches]),
    ] {
        ground.run(&words).await;
        let found = ground.audit(Repair::No).await;
        assert!(named(&found, &ground.reserved), "{damage}: {found:#?}");
        ground.mended(damage, &[DamageKind::Unindexed]).await;
    }
    let brief = ground.bench.accept(ground.bench.job("brief").timeout(BRIEF)).await;
    assert_eq!(ground.bench.take(2).await.len(), 2);
    ground.run(&[b"DEL", &leases, &batches]).await;
    assert!(ground.audit(Repair::Yes).await.is_clean());
    ground.bench.recover_until(&brief.key, State::Ready).await;
}

#[tokio::test]
async fn a_dead_job_that_would_never_expire_is_found_and_led_to_again() {
    let mut ground = Ground::new().await;
    let dead = ground.key("dead").await;
    ground.run(&[b"DEL", &dead]).await;
    let found = ground.audit(Repair::No).await;
    assert!(named(&found, &ground.dead), "{found:#?}");
    ground.mended("no dead letter", &[DamageKind::Unindexed]).await;
    assert_eq!(ground.bench.get(&ground.dead.key).await, ground.dead);
}

#[tokio::test]
async fn lanes_and_slots_that_nothing_leads_to_are_found_and_led_to_again() {
    let mut ground = Ground::new().await;
    let slot = slot_of(&ground.far);
    let (lanes, pulls) = (ground.key("lanes").await, ground.key("pulls").await);
    let (turns, slots) = (ground.key("turns").await, ground.key("slots").await);
    ground.run(&[b"DEL", &lanes]).await;
    ground.mended("no turn", &[DamageKind::Schedule]).await;
    ground.run(&[b"DEL", &pulls]).await;
    ground.mended("no turn for pull", &[DamageKind::Schedule]).await;
    ground.run(&[b"DEL", &turns]).await;
    ground.mended("no turn with the carrier", &[DamageKind::Schedule]).await;
    ground.run(&[b"ZADD", &turns, LATE, &lane()]).await;
    ground.mended("a turn that is too late", &[DamageKind::Schedule]).await;
    ground.run(&[b"ZREM", &slots, slot.as_bytes()]).await;
    ground.mended("a slot that is not told of", &[DamageKind::Unindexed, DamageKind::WakeAt]).await;
    let taken: Vec<_> = ground.bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert_eq!(taken, [ground.ready.key.clone()]);
}

#[tokio::test]
async fn words_on_when_to_look_next_that_are_wrong_are_found_and_put_right() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    for field in [b"lease_at".as_slice(), b"dead_at", b"tell_at", b"slot"] {
        for wrong in [LATE, b"0"] {
            ground.run(&[b"HSET", &shard, field, wrong]).await;
            ground.mended(&field.escape_ascii().to_string(), &[DamageKind::WakeAt]).await;
        }
    }
}

#[tokio::test]
async fn counts_that_are_wrong_are_found_and_put_right_where_they_can_be_told() {
    let mut ground = Ground::new().await;
    let shard = ground.key("shard").await;
    ground.run(&[b"HINCRBY", &shard, b"delayed", b"1"]).await;
    ground.mended("one delayed too many", &[DamageKind::Ledger]).await;
    ground.run(&[b"HINCRBY", &shard, b"ready", b"-3"]).await;
    ground.mended("counts below nothing", &[DamageKind::Ledger]).await;
    ground.run(&[b"HINCRBY", &shard, b"delayed", b"-1"]).await;
    ground.run(&[b"HINCRBY", &shard, b"reserved", b"1"]).await;
    ground.mended("one in another state", &[DamageKind::Ledger]).await;
    let words = format!("{TOPIC} http://receiver.example");
    // One job more in one state, and one fewer in another.
    for counts in [[99, 1, 1, 1], [5, 0, 1, 1], [4, 1, 0, 2], [4, 2, 1, 0], [0, 0, 0, 0]] {
        let row = row(counts, &words);
        ground.run(&[b"HSET", &shard, &lane(), &row]).await;
        ground.mended(&format!("a lane with {counts:?}"), &[DamageKind::LaneCount]).await;
    }
    let row = row([2, 1, 0, 6], "other http://receiver.example");
    ground.run(&[b"HSET", &shard, b"\x011234567", &row]).await;
    ground.mended("a lane that has none", &[DamageKind::LaneCount, DamageKind::Topic]).await;

    ground.run(&[b"HINCRBY", &shard, b"done", b"1"]).await;
    ground.kept("one done too many", DamageKind::Ledger).await;
    ground.run(&[b"HINCRBY", &shard, b"done", b"-1"]).await;
    ground.bench.audit().await;
}

#[tokio::test]
async fn what_cannot_be_put_right_is_told_and_stays() {
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
    let (pool, runs) = (ground.key("pool").await, ground.key("runs").await);
    ground.run(&[b"HSET", &pool, b"too short", b"\x01\x00"]).await;
    ground.run(&[b"HSET", &runs, &ground.near.key.locator().0, b"\x01\x00"]).await;
    assert_eq!(ground.kept("unreadable", DamageKind::Unreadable).await.found[&DamageKind::Unreadable], 2);

    let mut ground = Ground::new().await;
    let pool = ground.key("pool").await;
    let locator = ground.reserved.key.locator().0;
    ground.run(&[b"HDEL", &pool, &locator]).await;
    let found = ground.kept("a record that is gone", DamageKind::Ledger).await;
    assert!(found.found.contains_key(&DamageKind::StateRecord), "{found:#?}");
}

#[tokio::test]
async fn what_is_left_of_a_job_without_a_record_is_found_and_removed() {
    let mut ground = Ground::new().await;
    let runs = ground.key("runs").await;
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
    let before = ground.audit(Repair::No).await;
    assert_eq!((before.total(), before.stale), (0, 4), "{before:#?}");
    // A cancelled job's entry stays in its queue until it is met.
    ground.bench.cancel(&ground.ready.key).await;
    assert_eq!(ground.audit(Repair::No).await.stale, 5);
}

#[tokio::test]
async fn of_very_many_findings_the_first_are_told_and_all_are_put_right() {
    let mut ground = Ground::new().await;
    let jobs: Vec<NewJob> = (0..1200).map(|n| ground.bench.job(&format!("job-{n}"))).collect();
    for part in jobs.chunks(400) {
        ground.bench.submit(part).await;
    }
    let queue = ground.of("ready:", &lane()).await;
    ground.run(&[b"DEL", &queue]).await;
    let found = ground.audit(Repair::No).await;
    assert_eq!((found.total(), found.findings.len()), (1201, MAX_FINDINGS));
    assert_eq!(found.checked, 8 + 1200);
    let repaired = ground.audit(Repair::Yes).await;
    assert!(repaired.is_clean() && repaired.repaired == 1201, "{repaired:#?}");
    ground.bench.audit().await;
    let mut taken = 0;
    while let leases = ground.bench.take(500).await
        && !leases.is_empty()
    {
        taken += leases.len();
    }
    assert_eq!(taken, 1201);
}

#[tokio::test]
async fn a_store_that_is_away_cannot_be_audited() {
    let mut server = RedisServer::start().await;
    let options = Options { url: server.url(), ..settings::defaults(ms(500)) };
    let store = Store::open(options).expect("a store");
    assert!(matches!(store.audit(Repair::No).await, Err(StoreError::Unprepared)));
    store.prepare().await.expect("the store is fit");
    server.kill();
    let error = store.audit(Repair::No).await.expect_err("nobody answers");
    assert!(error.is_transient(), "{error}");
}

/// Moves jobs through every edge until it is told to stop: how many were submitted.
async fn work(store: &Store, is_over: &AtomicBool) -> usize {
    let (epochs, mut round, mut submitted) = (claimed(store).await, 0, 0);
    while !is_over.load(Ordering::Relaxed) {
        for (shard, epoch) in &epochs {
            round += 1;
            submitted += turn(store, *shard, epoch, round).await;
        }
    }
    submitted
}

/// Some jobs more, of which some wait for a time and some for a consumer, and everything one step further.
async fn turn(store: &Store, shard: Shard, epoch: &Epoch, round: u64) -> usize {
    let new = |n: usize| {
        let id = format!("{round}-{n}").parse().expect("an id");
        let topic = format!("topic-{}", n % 5).parse().expect("a topic");
        let delay = [0, 1, 5, 20, 3_600_000][n % 5];
        let mut job = new_job(JobKey { topic, id }).after(ms(delay)).timeout(BRIEF);
        if n.is_multiple_of(3) {
            job.delivery.callback = Callback::pull();
        }
        job
    };
    let jobs: Vec<_> = (0..60).map(new).filter(|job| store.shard_of(&job.key) == shard).collect();
    store.submit(shard, &jobs).await.expect("submit");
    store.promote(shard, epoch, 100, LONG).await.expect("promote");
    let lapsed = store.recover(shard, epoch, 100, LONG).await.expect("recover").expired;
    let failed = |after| PullOutcome::Retry { after: ms(after), error: None };
    let words: Vec<_> = lapsed.into_iter().map(|lapsed| (lapsed.receipt, failed(1))).collect();
    store.settle_expired(shard, &words).await.expect("settle");
    moves(store, &jobs, round).await;
    hand_over(store, shard, round).await;
    consume(store, shard, round).await;
    store.evict(shard, epoch, 100, LONG).await.expect("expire");
    if round.is_multiple_of(3) {
        pauses(store, round).await;
    }
    jobs.len()
}

/// Pauses a topic, and resumes the one that was paused before; some of them have no jobs.
async fn pauses(store: &Store, round: u64) {
    let topic = |n: u64| format!("topic-{}", n % 7).parse().expect("a topic");
    store.pause(&topic(round)).await.expect("pause").expect("there is room");
    store.resume(&topic(round - 3)).await.expect("resume");
}

async fn moves(store: &Store, jobs: &[NewJob], round: u64) {
    for (n, NewJob { key, .. }) in jobs.iter().enumerate() {
        let token = Token((round << 8 | n as u64).to_be_bytes());
        match n % 8 {
            0 => drop(store.cancel(key).await.expect("cancel")),
            1 => drop(store.run(key, token).await.expect("run")),
            2 => drop(store.reschedule(key, Due::In(ms(3)), token).await.expect("reschedule")),
            3 => drop(store.reschedule(key, Due::In(HOURS), token).await.expect("reschedule")),
            4 => drop(store.revive(key, token).await.expect("revive")),
            _ => {}
        }
    }
}

async fn hand_over(store: &Store, shard: Shard, round: u64) {
    let ask = Reserve {
        caller: "notifier",
        sequence: round,
        limit: 60,
        lane_limit: 100,
        lane_limits: Vec::new(),
        bits: [1; 8],
        margin: Duration::ZERO,
    };
    let mut leases = store.reserve(shard, &ask).await.expect("reserve").leases;
    // Some are left to run out.
    leases.truncate(leases.len() * 3 / 4);
    let outcome = |n: usize| match n % 4 {
        0 => retry(ms(3)),
        1 => Outcome::Release { after: ms(0) },
        2 => super::jobs::bury(),
        _ => Outcome::Complete,
    };
    let items: Vec<_> = leases.into_iter().enumerate().map(|(n, lease)| (lease, outcome(n))).collect();
    let dead: Vec<_> = items.iter().skip(2).step_by(8).map(|(lease, _)| lease.key.clone()).collect();
    store.settle(shard, items, &Lateness::default()).await.expect("settle");
    for (n, key) in dead.iter().enumerate() {
        let token = Token((u64::MAX - (round << 8 | n as u64)).to_be_bytes());
        drop(store.revive(key, token).await.expect("revive"));
    }
}

async fn consume(store: &Store, shard: Shard, round: u64) {
    let topic = format!("topic-{}", round % 5).parse().expect("a topic");
    let ask = Pull {
        caller: "consumer",
        sequence: round,
        topic: &topic,
        limit: 9,
        ttr: Some(BRIEF),
        default_ttr: LONG,
        bits: [2; 8],
    };
    let jobs = store.pull(shard, &ask).await.expect("pull").jobs;
    let word = |n: usize| match n % 4 {
        0 => PullOutcome::Retry { after: ms(2), error: None },
        1 => PullOutcome::Release { after: ms(0) },
        2 => PullOutcome::Bury { reason: "unwanted".to_owned(), error: None },
        _ => PullOutcome::Finish,
    };
    let words = jobs.into_iter().skip(2).enumerate().map(|(n, job)| (job.receipt, word(n)));
    store.settle_receipts(shard, &words.collect::<Vec<_>>()).await.expect("settle");
}

async fn claimed(store: &Store) -> Vec<(Shard, Epoch)> {
    let mut epochs = Vec::new();
    for shard in store.shards() {
        epochs.push((shard, store.claim(shard, "carrier").await.expect("claim")));
    }
    epochs
}

/// Long queues, which are read in several calls while jobs are taken from them.
async fn backlog(store: &Store) {
    for shard in store.shards() {
        let of_shard = |n: &u32| {
            let key =
                JobKey { topic: TOPIC.parse().expect("a topic"), id: n.to_string().parse().expect("an id") };
            Some(new_job(key)).filter(|job| store.shard_of(&job.key) == shard)
        };
        let jobs: Vec<NewJob> = (0..20_000).filter_map(|n| of_shard(&n)).take(5_000).collect();
        for part in jobs.chunks(500) {
            store.submit(shard, part).await.expect("submit");
        }
    }
}

async fn nothing_is_found_while_everything_moves(store: &Store, repair: Repair) {
    backlog(store).await;
    let is_over = AtomicBool::new(false);
    let audits = async {
        let until = Instant::now() + Duration::from_secs(4);
        let mut checked = 0;
        while Instant::now() < until {
            let audit = store.audit(repair).await.expect("audit");
            assert_eq!(audit.total(), 0, "{audit:#?}");
            checked += audit.checked;
        }
        is_over.store(true, Ordering::Relaxed);
        checked
    };
    let (submitted, checked) = tokio::join!(work(store, &is_over), audits);
    assert!(submitted > 100 && checked > 1000, "{submitted} jobs, looked at {checked} times, are no load");
    super::audit::own(store).await;
}

#[tokio::test]
async fn nothing_is_found_in_a_redis_in_which_everything_moves() {
    let server = RedisServer::start().await;
    let options = Options { url: server.url(), shards: 2, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::open(options).expect("a store");
    store.prepare().await.expect("the store is fit");
    nothing_is_found_while_everything_moves(&store, Repair::No).await;
}

#[tokio::test]
async fn nothing_is_repaired_in_a_redis_in_which_everything_moves() {
    let server = RedisServer::start().await;
    let options = Options { url: server.url(), shards: 2, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::open(options).expect("a store");
    store.prepare().await.expect("the store is fit");
    nothing_is_found_while_everything_moves(&store, Repair::Yes).await;
}

#[tokio::test]
async fn nothing_is_found_in_an_embedded_store_in_which_everything_moves() {
    let memory = Memory::new(SystemClock);
    let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::in_memory(&memory, options);
    store.prepare().await.expect("the store is fit");
    nothing_is_found_while_everything_moves(&store, Repair::Yes).await;
}
