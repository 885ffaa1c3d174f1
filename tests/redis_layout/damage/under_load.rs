//! Consistency checks on both stores while jobs move: they find no damage that is not there, and find lost jobs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_core::clock::SystemClock;
use ringback_core::job::{Callback, Due, IfExists, JobKey, NewJob};
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::store_types::{Epoch, Options, PassLimits, Pull, Repair, Reserve, Shard, Token, Waiting};
use ringback_store::{Memory, Store, settings};
use ringback_testkit::{RedisServer, shard_field};
use tokio::time::Instant;

use super::{HOURS, slot_of};
use crate::contract::job_builders::{BRIEF, LONG, TOPIC, With, ms, new_job, retry};
use crate::redis_layout::keys;

/// Moves jobs through every transition until `is_over`. Returns how many were submitted.
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

/// Submits some jobs, delayed and pull jobs too, and makes each transition of the shard once. Returns their number.
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
    store
        .promote(shard, epoch, PassLimits { jobs: 100, max_sleep: LONG, may_leave: false })
        .await
        .expect("promote");
    let expired = store
        .recover(shard, epoch, PassLimits { jobs: 100, max_sleep: LONG, may_leave: false })
        .await
        .expect("recover")
        .expired;
    let failed = |after| Outcome::Retry { after: ms(after), last: LastAttempt::by_consumer(None) };
    let outcomes: Vec<_> = expired.into_iter().map(|expired| (expired.receipt, failed(1))).collect();
    store.settle_expired(shard, &outcomes).await.expect("settle");
    moves(store, &jobs, round).await;
    changes(store, shard, &jobs, round).await;
    deliver(store, shard, round).await;
    consume(store, shard, round).await;
    store
        .evict(shard, epoch, PassLimits { jobs: 100, max_sleep: LONG, may_leave: false })
        .await
        .expect("evict");
    if round.is_multiple_of(3) {
        pauses(store, round).await;
    }
    jobs.len()
}

/// Pauses a topic, and resumes the one paused before. Some of these topics have no jobs.
async fn pauses(store: &Store, round: u64) {
    let topic = |n: u64| format!("topic-{}", n % 7).parse().expect("a topic");
    store.pause(&topic(round), None).await.expect("pause").expect("there is room");
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

/// Replaces and postpones new jobs and some near the end of the long queue.
async fn changes(store: &Store, shard: Shard, jobs: &[NewJob], round: u64) {
    let waiting = (0..30).map(|n| 9_700 + (round * 13 + n) % 280).map(backlog_job);
    let waiting = waiting.filter(|job| store.shard_of(&job.key) == shard);
    let change = |(n, job): (usize, NewJob)| {
        let token = Token((round << 8 | n as u64).to_be_bytes());
        let max_delay = n.is_multiple_of(4).then_some(ms(4));
        let if_exists = match n % 2 {
            0 => IfExists::Postpone { token, max_delay },
            _ => IfExists::Replace { token },
        };
        let job = job.after(ms([0, 2, 3_600_000, 2, 0][n % 5])).content((n % 3) as u8);
        let job = if n.is_multiple_of(7) { job.to("http://other.example") } else { job };
        NewJob { if_exists, ..job }
    };
    let new: Vec<_> = jobs.iter().step_by(3).cloned().chain(waiting).enumerate().map(change).collect();
    store.submit(shard, &new).await.expect("submit");
}

async fn deliver(store: &Store, shard: Shard, round: u64) {
    let ask = Reserve {
        caller: "notifier",
        sequence: round,
        limit: 60,
        lane_limit: 100,
        lane_limits: Vec::new(),
        admitted: Vec::new(),
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: [1; 8],
        waiting: Waiting::No,
        margin: Duration::ZERO,
    };
    let mut leases = store.reserve(shard, &ask).await.expect("reserve").leases;
    // The leases of the rest expire.
    leases.truncate(leases.len() * 3 / 4);
    let outcome = |n: usize| match n % 4 {
        0 => retry(ms(3)),
        1 => Outcome::Release { after: ms(0) },
        2 => crate::contract::job_builders::bury(),
        _ => Outcome::Complete,
    };
    let items: Vec<_> = leases.into_iter().enumerate().map(|(n, lease)| (lease, outcome(n))).collect();
    let dead: Vec<_> = items.iter().skip(2).step_by(8).map(|(lease, _)| lease.key.clone()).collect();
    store.settle(shard, items).await.expect("settle");
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
    let outcome = |n: usize| match n % 4 {
        0 => Outcome::Retry { after: ms(2), last: LastAttempt::by_consumer(None) },
        1 => Outcome::Release { after: ms(0) },
        2 => Outcome::Bury {
            reason: Reason::Custom("unwanted".to_owned()),
            last: LastAttempt::by_consumer(None),
        },
        _ => Outcome::Complete,
    };
    let outcomes = jobs.into_iter().skip(2).enumerate().map(|(n, job)| (job.receipt, outcome(n)));
    store.settle_receipts(shard, &outcomes.collect::<Vec<_>>()).await.expect("settle");
}

async fn claimed(store: &Store) -> Vec<(Shard, Epoch)> {
    let mut epochs = Vec::new();
    for shard in store.shards() {
        epochs.push((shard, store.take_shard(shard, "carrier").await.expect("claim")));
    }
    epochs
}

fn backlog_job(n: u64) -> NewJob {
    new_job(JobKey { topic: TOPIC.parse().expect("a topic"), id: n.to_string().parse().expect("an id") })
}

/// Fills a queue of 5,000 jobs in each shard, which a check reads in several calls while jobs are reserved.
async fn backlog(store: &Store) {
    for shard in store.shards() {
        let all = (0..20_000).map(backlog_job);
        let jobs: Vec<NewJob> = all.filter(|job| store.shard_of(&job.key) == shard).take(5_000).collect();
        for part in jobs.chunks(500) {
            store.submit(shard, part).await.expect("submit");
        }
    }
}

async fn nothing_is_found_while_everything_moves(store: &Store, repair: Repair) {
    backlog(store).await;
    let is_over = AtomicBool::new(false);
    let checks = async {
        let until = Instant::now() + Duration::from_secs(4);
        let mut checked = 0;
        while Instant::now() < until {
            let check = store.check(repair).await.expect("check");
            assert_eq!(check.total(), 0, "{check:#?}");
            checked += check.checked;
        }
        is_over.store(true, Ordering::Relaxed);
        checked
    };
    let (submitted, checked) = tokio::join!(work(store, &is_over), checks);
    assert!(submitted > 100 && checked > 1000, "{submitted} jobs, looked at {checked} times, are not a load");
    crate::contract::audit::own(store).await;
}

async fn on_redis(repair: Repair) {
    let server = RedisServer::start().await;
    let options = Options { url: server.url(), shards: 2, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::open(options).expect("a store");
    store.prepare().await.expect("the store is fit");
    nothing_is_found_while_everything_moves(&store, repair).await;
}

#[tokio::test]
async fn nothing_is_found_in_a_redis_in_which_everything_moves() {
    on_redis(Repair::No).await;
}

#[tokio::test]
async fn nothing_is_repaired_in_a_redis_in_which_everything_moves() {
    on_redis(Repair::Yes).await;
}

async fn of_one_shard(server: &RedisServer) -> (Store, Shard) {
    let options = Options { url: server.url(), shards: 1, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::open(options).expect("a store");
    store.prepare().await.expect("the store is fit");
    keys::know_lanes(&mut server.client().await, &store, &settings::defaults(Duration::ZERO).prefix).await;
    let shard = store.shards().next().expect("a shard");
    (store, shard)
}

/// Checks and repairs `times` times while `change` is called with growing numbers, and asserts that nothing is found.
/// Returns the number of changes.
async fn checked_while(store: &Store, times: usize, change: impl AsyncFn(u64)) -> u64 {
    let is_over = AtomicBool::new(false);
    let changes = async {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            n += 1;
            change(n).await;
        }
        n
    };
    let checks = async {
        for _ in 0..times {
            let check = store.check(Repair::Yes).await.expect("check");
            assert_eq!(check.total(), 0, "{check:#?}");
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let (changed, ()) = tokio::join!(changes, checks);
    crate::contract::audit::own(store).await;
    changed
}

/// Counts are compared only if no job has moved; this job comes back to the same counts without a lease.
#[tokio::test]
async fn no_count_is_wrong_while_a_job_is_replaced_there_and_back() {
    let server = RedisServer::start().await;
    let (store, shard) = of_one_shard(&server).await;
    let jobs: Vec<_> = (0..450).map(|n| backlog_job(n).after(LONG)).collect();
    store.submit(shard, &jobs).await.expect("submit");
    let replace = async |n: u64| {
        let token = Token(u64::to_be_bytes(n));
        let job = backlog_job(7).after(if n.is_multiple_of(2) { LONG } else { ms(0) });
        let new = NewJob { if_exists: IfExists::Replace { token }, ..job };
        store.submit(shard, &[new]).await.expect("submit");
    };
    let replaced = checked_while(&store, 60, replace).await;
    assert!(replaced > 100, "{replaced} times are not a load");
}

/// A cleaning moves entries in lists that a check reads in several calls.
#[tokio::test]
async fn no_job_is_missed_while_queues_and_slots_are_cleaned() {
    const JOBS: u64 = 3_000;
    let server = RedisServer::start().await;
    let (store, shard) = of_one_shard(&server).await;
    let ready = |n: u64| backlog_job(n % JOBS);
    // Each pass over the far jobs has another order, so that remaining jobs are everywhere in their slot.
    let far = |n: u64| {
        let pass = n / JOBS;
        let factor = [1, 7, 11, 13][pass as usize % 4];
        backlog_job(JOBS + n * factor % JOBS).after(HOURS * (1 + pass as u32 % 2))
    };
    for from in (0..JOBS).step_by(250) {
        let jobs: Vec<_> = (from..from + 250).flat_map(|n| [ready(n), far(n)]).collect();
        store.submit(shard, &jobs).await.expect("submit");
    }
    let replace = async |turn: u64| {
        let from = JOBS + turn * 25;
        let new = |n: u64, job: NewJob, kind: u64| {
            let token = Token((2 * n + kind).to_be_bytes());
            NewJob { if_exists: IfExists::Replace { token }, ..job }
        };
        let jobs: Vec<_> = (from..from + 25).flat_map(|n| [new(n, ready(n), 0), new(n, far(n), 1)]).collect();
        store.submit(shard, &jobs).await.expect("submit");
    };
    checked_while(&store, 6, replace).await;
    let mut redis = server.client().await;
    let shards: Vec<String> = keys::all(&mut redis, "shard").await;
    let cleanings = shard_field(&mut redis, &shards[0], "unqueued").await;
    assert!(cleanings > 50, "{cleanings} cleanings are not a load");
}

/// A cleaning comes during each reading of the lists, so no single reading proves that an entry is missing.
#[tokio::test]
async fn a_lost_job_is_found_while_queues_and_slots_are_cleaned() {
    const JOBS: u64 = 3_000;
    let server = RedisServer::start().await;
    let (store, shard) = of_one_shard(&server).await;
    for from in (0..JOBS).step_by(250) {
        let jobs: Vec<_> = (from..from + 250).map(backlog_job).collect();
        store.submit(shard, &jobs).await.expect("submit");
    }
    let lost =
        store.submit(shard, &[backlog_job(JOBS), backlog_job(JOBS + 1).after(HOURS)]).await.expect("submit");
    let mut redis = server.client().await;
    let queue = keys::key_of(&mut redis, "ready:", &keys::lane()).await;
    let slot = keys::key_of(&mut redis, "slot:", slot_of(&lost[1].job).as_bytes()).await;
    let of_slot = [keys::entry(&lost[1].job), keys::lane()].concat();
    keys::run(&mut redis, &[b"LREM", &queue, b"0", &keys::entry(&lost[0].job)]).await;
    keys::run(&mut redis, &[b"LREM", &slot, b"0", &of_slot]).await;

    let is_over = AtomicBool::new(false);
    let replacements = async {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            let new = |n: u64| {
                let token = Token(n.to_be_bytes());
                NewJob { if_exists: IfExists::Replace { token }, ..backlog_job(n % JOBS) }
            };
            let jobs: Vec<_> = (n..n + 25).map(new).collect();
            store.submit(shard, &jobs).await.expect("submit");
            n += 25;
        }
    };
    let checks = async {
        for _ in 0..3 {
            let check = store.check(Repair::No).await.expect("check");
            let ids: Vec<_> = check.findings.iter().filter_map(|finding| finding.id.clone()).collect();
            let wanted = lost.iter().map(|lost| lost.job.key.id.as_str().to_owned());
            assert!(wanted.into_iter().all(|id| ids.contains(&id)), "{check:#?}");
            assert_eq!((check.total(), check.unverified), (2, 0), "{check:#?}");
        }
        is_over.store(true, Ordering::Relaxed);
    };
    tokio::join!(replacements, checks);
}

#[tokio::test]
async fn nothing_is_found_in_an_embedded_store_in_which_everything_moves() {
    let memory = Memory::new(SystemClock);
    let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
    let store = Store::in_memory(&memory, options);
    store.prepare().await.expect("the store is fit");
    nothing_is_found_while_everything_moves(&store, Repair::Yes).await;
}
