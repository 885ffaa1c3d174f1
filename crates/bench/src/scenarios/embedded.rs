//! The embedded store: durable submits one per call, beside bare redb with the same bytes in groups of the same
//! size; the memory and the disk space of a million pending jobs; and the time to open their file after kill -9.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redb::{Database, TableDefinition};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::embedded_store::{far, open};
use crate::figure::{Figure, Spread, report};
use crate::latencies::Latencies;
use crate::setup::Setup;
use crate::usage::resident_mib;

pub(crate) const NAME: &str = "embedded";
/// Submits in flight at a time.
const CALLERS: usize = 64;

/// The variants of bare redb, and their names in the report.
const YARDSTICKS: [(Repair, Names); 3] =
    [(Repair::Quick, Names::Indexed), (Repair::Quick, Names::NotIndexed), (Repair::Slow, Names::NotIndexed)];
const NAMES: [&str; 3] = ["bare redb, quick repair, names", "bare redb, quick repair", "bare redb, neither"];
const SHARDS: [u16; 2] = [1, 4];

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(100_000, 5_000);
    let rounds = setup.size.pick(3, 1);
    // The rounds are interleaved, so that a pause of the disk slows all variants alike.
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
                scenario: NAME,
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

/// Submits jobs one by one from [`CALLERS`] callers, and reports the waits. Returns jobs per second.
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
    report(NAME, "submit-waits-at-most", max, "ms", &with);
    rate
}

/// Whether redb saves its allocator state at each commit, so that it opens fast after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Quick,
    Slow,
}

/// Whether jobs can be looked up by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    NotIndexed,
    Indexed,
}

/// Writes as many bytes per job as the store to bare redb, in transactions of [`CALLERS`] jobs. Returns jobs per second.
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
    report(NAME, "submits-in-batches", jobs as f64 / seconds, "jobs/s", &with);
    report(NAME, "memory", resident_mib(child.id()), "MiB", &with);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    let size = directory.path().join("ringback.redb").metadata().expect("the file").len();
    report(NAME, "file", size as f64 / jobs as f64, "B/job", &with);
    let started = Instant::now();
    let store = open(directory.path(), 4).await;
    let delayed = store.stats().await.expect("it answers").states.delayed;
    report(NAME, "open-after-kill", started.elapsed().as_secs_f64() * 1000.0, "ms", &with);
    assert_eq!(delayed, jobs as u64, "nothing is lost");
}
