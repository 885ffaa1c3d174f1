//! The embedded store: durable submits one per call, beside bare redb with the same bytes in
//! groups of the same size; and what a million pending jobs take, and how soon they are back
//! after kill -9.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redb::{Database, TableDefinition};
use ringback_core::contract::Options;
use ringback_core::job::NewJob;
use ringback_store::{Store, settings};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::figure::Figure;
use super::latencies::Latencies;
use super::memory::{URL, parse};
use super::spread::Spread;
use super::usage::resident_mib;
use super::{Setup, job, report};

/// Submits under way at a time.
const CALLERS: usize = 64;

/// What bare redb does beside it, and what that is called.
const YARDSTICKS: [(Repair, Names); 3] =
    [(Repair::Quick, Names::Indexed), (Repair::Quick, Names::Left), (Repair::Slow, Names::Left)];
const NAMES: [&str; 3] = ["bare redb, quick repair, names", "bare redb, quick repair", "bare redb, neither"];
const SHARDS: [u16; 2] = [1, 4];

/// All figures of the embedded store.
pub(super) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(100_000, 5_000);
    let rounds = setup.size.pick(3, 1);
    // In turn, so that what the disk does meets all alike.
    let (mut bares, mut ours) = ([const { Vec::new() }; 3], [const { Vec::new() }; 2]);
    for _ in 0..rounds {
        for (rates, (repair, names)) in bares.iter_mut().zip(YARDSTICKS) {
            rates.push(bare(jobs, repair, names));
        }
        for (rates, shards) in ours.iter_mut().zip(SHARDS) {
            rates.push(submits(jobs, shards).await);
        }
    }
    for (rates, shards) in ours.into_iter().zip(SHARDS) {
        for (bare, name) in bares.iter().zip(NAMES) {
            Figure {
                scenario: "embedded",
                name: "submits",
                unit: "jobs/s",
                value: Spread::of(rates.clone()),
                yardstick: Some((name, Spread::of(bare.clone()))),
                with: json!({ "jobs": jobs, "callers": CALLERS, "group": CALLERS, "shards": shards }),
            }
            .report();
        }
    }
    reopen(setup.size.pick(1_000_000, 20_000)).await;
}

fn options(directory: &Path, shards: u16) -> Options {
    let url = format!("embedded:{}", directory.display());
    Options { url, shards, ..settings::defaults(Duration::from_secs(60)) }
}

/// Opens the store of a directory.
///
/// # Panics
/// When it cannot be used.
pub(super) async fn open(directory: &Path, shards: u16) -> Store {
    let store = Store::open(options(directory, shards)).expect("the URL is good");
    store.prepare().await.expect("the directory is fit");
    store
}

/// Submits jobs, `size` per call, `callers` at a time, and tells of each call that was
/// accepted: its first number.
pub(super) async fn submit(
    store: &Store,
    jobs: usize,
    size: usize,
    callers: usize,
    tell: impl Fn(usize) + Send + Sync + 'static,
) {
    let (next, tell) = (Arc::new(AtomicUsize::new(0)), Arc::new(tell));
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let (store, next, tell) = (store.clone(), Arc::clone(&next), Arc::clone(&tell));
        running.spawn(async move {
            loop {
                let first = next.fetch_add(size, Ordering::Relaxed);
                if first >= jobs {
                    return;
                }
                call(&store, first..jobs.min(first + size)).await;
                tell(first);
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("the store accepts");
    }
}

async fn call(store: &Store, numbers: std::ops::Range<usize>) {
    let mut waiting: Vec<Vec<_>> = store.shards().map(|_| Vec::new()).collect();
    for n in numbers {
        let job = far(n);
        waiting[usize::from(store.shard_of(&job.key).number())].push(job);
    }
    for (shard, jobs) in store.shards().zip(waiting).filter(|(_, jobs)| !jobs.is_empty()) {
        store.submit(shard, &jobs).await.expect("the store accepts");
    }
}

/// A job that is due within a day, an hour from now at least.
fn far(n: usize) -> NewJob {
    parse(&job(n, URL, &json!({ "delay": 3600.0 + (n * 7919 % 86_400) as f64 })))
}

/// Jobs a second.
async fn submits(jobs: usize, shards: u16) -> f64 {
    let directory = tempfile::tempdir_in("target").expect("a directory");
    let store = open(directory.path(), shards).await;
    let new: Arc<Vec<_>> = Arc::new((0..jobs).map(far).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..CALLERS {
        let (store, new, next) = (store.clone(), Arc::clone(&new), Arc::clone(&next));
        running.spawn(async move {
            let mut waits = Latencies::new();
            while let Some(job) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (shard, asked) = (store.shard_of(&job.key), Instant::now());
                store.submit(shard, std::slice::from_ref(job)).await.expect("the store accepts");
                waits.record(asked.elapsed());
            }
            waits
        });
    }
    let mut waits = Latencies::new();
    running.join_all().await.iter().for_each(|some| waits.add(some));
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|q| waits.millis(q));
    let with = json!({ "p50": p50, "p99": p99, "p99.9": p999, "shards": shards });
    report("embedded", "submit-waits-at-most", max, "ms", &with);
    rate
}

/// What redb saves at each commit so that it opens fast after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Quick,
    Slow,
}

/// Whether jobs can be found by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Left,
    Indexed,
}

/// The same bytes under consecutive numbers, in groups of as many as there are callers.
fn bare(jobs: usize, repair: Repair, names: Names) -> f64 {
    const TABLE: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("jobs");
    const INDEX: TableDefinition<'static, [u8; 12], u64> = TableDefinition::new("names");
    let locators: Vec<_> = (0..jobs).map(|n| far(n).key.locator().0).collect();
    let directory = tempfile::tempdir_in("target").expect("a directory");
    let database = Database::create(directory.path().join("bare.redb")).expect("a database");
    let value = vec![7; 217 + 49 + 22 + 10 + 80];
    let started = Instant::now();
    for first in (0..jobs).step_by(CALLERS) {
        let mut txn = database.begin_write().expect("a transaction");
        txn.set_quick_repair(repair == Repair::Quick);
        {
            let mut table = txn.open_table(TABLE).expect("a table");
            let mut index = txn.open_table(INDEX).expect("a table");
            for (n, locator) in locators.iter().enumerate().skip(first).take(CALLERS) {
                table.insert(n as u64, value.as_slice()).expect("it takes it");
                if names == Names::Indexed {
                    index.insert(locator, n as u64).expect("it takes it");
                }
            }
        }
        txn.commit().expect("it commits");
    }
    jobs as f64 / started.elapsed().as_secs_f64()
}

async fn reopen(jobs: usize) {
    let directory = tempfile::tempdir_in("target").expect("a directory");
    let beside = std::env::current_exe().expect("this program knows its path").with_file_name("store-child");
    let mut child = Command::new(beside)
        .args([directory.path().as_os_str(), jobs.to_string().as_ref(), "500".as_ref(), "4".as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("store-child is built");
    let started = Instant::now();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("a pipe")));
    lines.map_while(Result::ok).find(|line| line == "all").expect("all are accepted");
    let seconds = started.elapsed().as_secs_f64();
    let with = json!({ "jobs": jobs, "per_call": 500 });
    report("embedded", "submits-in-batches", jobs as f64 / seconds, "jobs/s", &with);
    report("embedded", "memory", resident_mib(child.id()), "MiB", &with);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    let size = directory.path().join("ringback.redb").metadata().expect("the file").len();
    report("embedded", "file", size as f64 / jobs as f64, "B/job", &with);
    let started = Instant::now();
    let store = open(directory.path(), 4).await;
    let delayed = store.stats().await.expect("it answers").states.delayed;
    report("embedded", "open-after-kill", started.elapsed().as_secs_f64() * 1000.0, "ms", &with);
    assert_eq!(delayed, jobs as u64, "nothing is lost");
}

/// What the program `store-child` does: `store-child <directory> <jobs> <per call> <callers>`.
/// It prints the first number of each call that was accepted, then `all`, and stays until it
/// is killed.
///
/// # Panics
/// When the words are wrong or the store fails.
#[expect(clippy::print_stdout, reason = "whoever started it reads what was accepted")]
pub async fn store_child(words: &[String]) {
    let [directory, numbers @ ..] = words else { panic!("a directory is missing") };
    let numbers: Vec<usize> = numbers.iter().map(|word| word.parse().expect("a number")).collect();
    let [jobs, size, callers] = numbers[..] else { panic!("jobs, per call, callers") };
    let store = open(Path::new(directory), 4).await;
    submit(&store, jobs, size, callers, |first| println!("{first}")).await;
    println!("all");
    std::future::pending::<()>().await;
}
