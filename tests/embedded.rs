//! Tests of the embedded store alone: its files and lock, restarts, kill -9, group commits, and clocks that are set.

mod clock;
mod compact;
mod damage;
mod full_disk;
mod removed;
mod wal;

use std::fs::DirEntry;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use redb::{Database, TableDefinition};
use ringback_core::clock::{ManualClock, Timestamp};
use ringback_core::job::{JobKey, NewJob};
use ringback_core::store_types::{
    Epoch, Lease, Options, Pass, Profile, Reserve, SettleResult, Shard, StoreError, SubmitResult, Waiting,
};
use ringback_store::{Memory, Store, settings};
use tempfile::tempdir;

use crate::contract::audit;
use crate::contract::job_builders::{LONG, With, ms, new_job, release, retry};
use crate::contract::workbench::{SOON, at_most};
use crate::prelude::*;

fn options(directory: &Path) -> Options {
    let url = format!("embedded:{}", directory.display());
    Options { url, shards: 4, ..settings::defaults(Duration::from_secs(10)) }
}

async fn open(directory: &Path) -> Store {
    let store = Store::open(options(directory)).expect("the options are right");
    store.prepare().await.expect("the directory is fit");
    store
}

async fn refused(directory: &Path) -> String {
    let store = Store::open(options(directory)).expect("the options are right");
    let error = store.prepare().await.expect_err("the directory is not fit");
    assert!(matches!(error, StoreError::Unfit(_)) && !error.is_transient(), "{error:?}");
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

fn job(name: &str) -> NewJob {
    new_job(JobKey { topic: "store".parse().expect("a topic"), id: name.parse().expect("an id") })
}

async fn submit(store: &Store, job: NewJob) -> Result<SubmitResult, StoreError> {
    let shard = store.shard_of(&job.key);
    Ok(store.submit(shard, &[job]).await?.remove(0).answer)
}

async fn reserve(store: &Store, shard: Shard, sequence: u64) -> Vec<Lease> {
    let ask = Reserve {
        caller: "notifier",
        sequence,
        limit: 10,
        lane_limit: 10,
        lane_limits: Vec::new(),
        admitted: Vec::new(),
        origin_limit: usize::MAX,
        tenant_limit: usize::MAX,
        group_limits: Vec::new(),
        bits: sequence.to_be_bytes(),
        waiting: Waiting::No,
        margin: LONG,
    };
    store.reserve(shard, &ask).await.expect("reserve").leases
}

async fn settle(store: &Store, lease: Lease, outcome: Outcome) -> SettleResult {
    let settled = store.settle(lease.shard(), vec![(lease, outcome)]).await;
    settled.unwrap_or_else(|unsettled| panic!("settle: {:?}", unsettled.error)).remove(0)
}

/// A process that fills a store, one job per call, until it is dropped or killed.
struct Filler {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Filler {
    fn start(directory: &Path, jobs: &str) -> Self {
        let exe = std::env::current_exe().expect("this program knows its own path");
        let beside = exe.ancestors().skip(1).take(2).map(|dir| dir.join("store-child"));
        let program = beside.into_iter().find(|file| file.is_file()).expect("built with cargo build --bins");
        let mut child = Command::new(program)
            .args([directory.as_os_str(), jobs.as_ref(), "1".as_ref(), "16".as_ref()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// The next line that the process prints; `None` when its output has ended.
    fn line(&mut self) -> Option<String> {
        self.lines.next().and_then(Result::ok)
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        // The kill fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_was_accepted_is_there_after_kill_9() {
    let directory = tempdir().expect("a directory");
    for round in 0..3 {
        let mut filler = Filler::start(directory.path(), "1000000");
        let mut accepted: Vec<String> = (0..400).map(|_| filler.line().expect("it goes on")).collect();
        filler.kill();
        // Jobs that were answered just before the kill.
        accepted.extend(std::iter::from_fn(|| filler.line()).filter(|line| line != "all"));
        let store = open(directory.path()).await;
        for number in &accepted {
            let name = format!("order-{:016}", number.parse::<u64>().expect("a number"));
            let key =
                JobKey { topic: "pay.notify".parse().expect("a topic"), id: name.parse().expect("an id") };
            let state = store.get(&key).await.expect("get").map(|job| job.state);
            assert_eq!(state, Some(State::Delayed), "round {round}: {key} was accepted");
        }
        let stats = store.stats().await.expect("stats");
        assert!(
            stats.accepted >= accepted.len() as u64 && stats.accepted == stats.states.delayed,
            "{stats:?}"
        );
        audit::tables(&store).await;
    }
}

#[tokio::test]
async fn a_second_process_is_refused_until_the_first_has_ended() {
    let directory = tempdir().expect("a directory");
    let mut filler = Filler::start(directory.path(), "3");
    while filler.line().is_some_and(|line| line != "all") {}
    let message = refused(directory.path()).await;
    let name = directory.path().display().to_string();
    assert!(message.contains(&name) && message.contains("in use by another process"), "{message}");
    filler.kill();
    assert_eq!(open(directory.path()).await.stats().await.expect("stats").accepted, 3);
}

#[tokio::test]
async fn stores_of_one_process_share_a_directory() {
    let directory = tempdir().expect("a directory");
    let (one, other) = (open(directory.path()).await, open(directory.path()).await);
    assert_eq!(submit(&one, job("a")).await.expect("submit"), SubmitResult::Created);
    assert_eq!(submit(&other, job("a")).await.expect("submit"), SubmitResult::Repeated);
    assert_eq!((one.kind(), one.profile()), ("embedded", Profile::Disk));
    drop(one);
    assert_eq!(submit(&other, job("a")).await.expect("submit"), SubmitResult::Repeated);
}

/// The files hold bodies and headers of jobs.
#[tokio::test]
async fn files_of_a_store_are_readable_by_their_owner_alone() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    submit(&store, job("one")).await.expect("submit");
    let entries = directory.path().read_dir().expect("a directory").map(|entry| entry.expect("an entry"));
    let mode = |entry: &DirEntry| entry.metadata().expect("a file").permissions().mode() & 0o777;
    let modes: Vec<_> = entries.map(|entry| (entry.file_name(), mode(&entry))).collect();
    assert!(modes.len() >= 2 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

#[tokio::test]
async fn a_file_of_another_layout_is_refused() {
    let directory = tempdir().expect("a directory");
    drop(open(directory.path()).await);
    let file = directory.path().join("ringback.redb");
    let database = Database::create(&file).expect("it was closed");
    let write = database.begin_write().expect("a transaction");
    let format = TableDefinition::<&str, u64>::new("format");
    write.open_table(format).expect("the table").insert("version", 99).expect("it takes it");
    write.commit().expect("it commits");
    drop(database);
    let message = refused(directory.path()).await;
    let says = "ringback.redb cannot be used: the store has layout 99, and this build reads layout 4; set another \
        RINGBACK_PREFIX, or use the build that wrote it";
    assert!(message.contains(says), "{message}");
}

#[tokio::test]
async fn a_file_of_something_else_is_refused_and_left_alone() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("ringback.redb");
    let text = b"not a database, and longer than the head of one would be: ".repeat(200);
    std::fs::write(&file, &text).expect("written");
    assert!(refused(directory.path()).await.contains("ringback.redb"));
    assert!(std::fs::read(&file).expect("read") == text, "the file has changed");

    std::fs::remove_file(&file).expect("removed");
    let database = Database::create(&file).expect("a database");
    let write = database.begin_write().expect("a transaction");
    write.open_table(TableDefinition::<u64, u64>::new("theirs")).expect("a table");
    write.commit().expect("it commits");
    drop(database);
    assert!(refused(directory.path()).await.contains("database of something else"));

    let below = file.join("below");
    assert!(refused(&below).await.contains("cannot be made"));
}

#[tokio::test]
async fn leases_replays_tombstones_and_epochs_outlive_the_process() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    let shard = store.shard_of(&job("a").key);
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Created);
    let lease = reserve(&store, shard, 1).await.remove(0);
    let epoch = store.take_shard(shard, "carrier").await.expect("claim");
    drop(store);

    let store = open(directory.path()).await;
    let again = reserve(&store, shard, 1).await.remove(0);
    assert_eq!((&again.key, again.attempt), (&lease.key, 1), "the call is repeated");
    assert_eq!(settle(&store, lease, Outcome::Complete).await, SettleResult::Applied);
    drop(store);

    let store = open(directory.path()).await;
    assert_eq!(settle(&store, again, Outcome::Complete).await, SettleResult::Replayed);
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Repeated);
    let held = store.promote(shard, &epoch, at_most(10)).await.expect("promote");
    assert!(matches!(held, Pass::Held { .. }), "nobody has claimed it since: {held:?}");
    let later = store.take_shard(shard, "carrier").await.expect("claim");
    assert_ne!(later, epoch);
    assert_eq!(store.promote(shard, &epoch, at_most(10)).await.expect("promote"), Pass::Fenced);
    audit::tables(&store).await;
}

#[tokio::test]
async fn a_group_answers_each_of_its_calls() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..300_u64 {
        let store = store.clone();
        calls.spawn(async move {
            // Three submits of each name: a new job, the same again, and another job under this name.
            let content = if n % 3 == 2 { 9 } else { 1 };
            let job = job(&format!("job-{}", n / 3)).content(content).after(LONG);
            let key = job.key.clone();
            let answer = submit(&store, job).await.expect("submit");
            let state = store.get(&key).await.expect("get").expect("its own write is seen").state;
            (key, answer, state)
        });
    }
    let answers = calls.join_all().await;
    let count = |wanted| answers.iter().filter(|(_, answer, _)| *answer == wanted).count();
    assert_eq!(count(SubmitResult::Created), 100, "{answers:?}");
    assert_eq!(count(SubmitResult::Repeated) + count(SubmitResult::Conflict), 200);
    assert!(answers.iter().all(|(_, _, state)| *state == State::Delayed));
    assert_eq!(store.stats().await.expect("stats").accepted, 100);
    audit::tables(&store).await;
}

async fn in_memory(memory: &Memory) -> Store {
    let store = Store::in_memory(memory, options(Path::new("nowhere")));
    store.prepare().await.expect("memory is fit");
    store
}

async fn promoted(store: &Store, shard: Shard, epoch: &Epoch) -> u32 {
    match store.promote(shard, epoch, at_most(10)).await.expect("promote") {
        Pass::Held { moved, .. } => moved,
        Pass::Fenced | Pass::Left(_) => panic!("fenced, or left"),
    }
}

#[tokio::test]
async fn a_job_is_due_to_the_millisecond_by_the_clock_of_the_store() {
    let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
    let store = in_memory(&Memory::new(clock.clone())).await;
    assert_eq!(store.profile(), Profile::Memory);
    let shard = store.shard_of(&job("a").key);
    let epoch = store.take_shard(shard, "carrier").await.expect("claim");
    submit(&store, job("a").after(Duration::from_secs(10))).await.expect("submit");
    clock.advance(ms(9999));
    assert_eq!(promoted(&store, shard, &epoch).await, 0);
    clock.advance(ms(1));
    assert_eq!(promoted(&store, shard, &epoch).await, 1);
}

#[tokio::test]
async fn leases_and_epochs_grow_though_the_clock_is_set_back_and_the_store_opened_again() {
    let clock = ManualClock::at(Timestamp::from_millis(5_000_000));
    let memory = Memory::new(clock.clone());
    let store = in_memory(&memory).await;
    let shard = store.shard_of(&job("a").key);
    let epoch = store.take_shard(shard, "carrier").await.expect("claim");
    submit(&store, job("a")).await.expect("submit");
    let stale = reserve(&store, shard, 1).await.remove(0);
    assert_eq!(settle(&store, stale, release(ms(0))).await, SettleResult::Applied);
    let lost = reserve(&store, shard, 2).await.remove(0);
    drop(store);

    clock.set(Timestamp::from_millis(1_000));
    let store = in_memory(&memory).await;
    assert_ne!(store.take_shard(shard, "carrier").await.expect("claim"), epoch);
    assert_eq!(store.promote(shard, &epoch, at_most(10)).await.expect("promote"), Pass::Fenced);
    let number = lost.grant.receipt.lease.number;
    submit(&store, job("b")).await.expect("submit");
    let created = store.get(&job("b").key).await.expect("get").expect("it is known").created;
    assert_eq!(created, Timestamp::from_millis(1_000), "the store follows the clock");
    let next = reserve(&store, shard, 3).await;
    assert!(next.iter().all(|lease| lease.grant.receipt.lease.number > number), "lease numbers grow");
    assert_eq!(settle(&store, lost, retry(LONG)).await, SettleResult::Applied);
    audit::tables(&store).await;
}

#[tokio::test]
async fn a_store_that_is_dropped_frees_its_file() {
    let directory = tempdir().expect("a directory");
    for _ in 0..5 {
        let store = open(directory.path()).await;
        submit(&store, job("a")).await.expect("submit");
        drop(store);
        eventually(SOON, "the file is free", async || {
            Database::open(directory.path().join("ringback.redb")).map(drop).map_err(|e| e.to_string())
        })
        .await;
    }
}

#[tokio::test]
async fn a_topic_that_is_paused_stays_so_over_a_restart() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    submit(&store, job("a")).await.expect("submit");
    let (topic, shard) = (job("a").key.topic, store.shard_of(&job("a").key));
    store.pause(&topic, None).await.expect("pause").expect("there is room");
    assert!(reserve(&store, shard, 1).await.is_empty());
    drop(store);
    let store = open(directory.path()).await;
    assert!(store.topic(&topic).await.expect("topic").expect("it is known").paused);
    assert!(reserve(&store, shard, 2).await.is_empty());
    audit::tables(&store).await;
    assert!(store.resume(&topic).await.expect("resume"));
    assert_eq!(reserve(&store, shard, 3).await.len(), 1);
    audit::tables(&store).await;
}
