//! Fills an embedded store with jobs that are far from due; the program `store-child` does so until it is killed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringback_core::job::NewJob;
use ringback_core::store_types::Options;
use ringback_store::{Store, settings};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fill::by_shard;
use crate::job::{URL, job, parse};

pub(crate) async fn open(directory: &Path, shards: u16) -> Store {
    let store = Store::open(options(directory, shards)).expect("the URL is good");
    store.prepare().await.expect("the directory is fit");
    store
}

/// The job of a number. Its delay is between 1 and 25 hours.
pub(crate) fn far(n: usize) -> NewJob {
    parse(&job(n, URL, &json!({ "delay": 3600.0 + (n * 7919 % 86_400) as f64 })))
}

/// Runs `store-child <directory> <jobs> <jobs per call> <callers>`. It prints the first number of each call that the
/// store has accepted, then `all`, and waits to be killed.
#[expect(clippy::print_stdout, reason = "the process that started it reads which jobs were accepted")]
pub async fn store_child(args: &[String]) {
    let [directory, numbers @ ..] = args else { panic!("a directory is missing") };
    let numbers: Vec<usize> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let [jobs, size, callers] = numbers[..] else { panic!("jobs, jobs per call, callers") };
    let store = open(Path::new(directory), 4).await;
    submit(&store, jobs, size, callers, |first| println!("{first}")).await;
    println!("all");
    std::future::pending::<()>().await;
}

/// Submits jobs, `size` per call from `callers` callers. Calls `accepted` with the first number of each accepted call.
async fn submit(
    store: &Store,
    jobs: usize,
    size: usize,
    callers: usize,
    accepted: impl Fn(usize) + Send + Sync + 'static,
) {
    let (next, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(accepted));
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let (store, next, accepted) = (store.clone(), Arc::clone(&next), Arc::clone(&accepted));
        running.spawn(async move {
            loop {
                let first = next.fetch_add(size, Ordering::Relaxed);
                if first >= jobs {
                    return;
                }
                for (shard, jobs) in
                    by_shard(&store, (first..jobs.min(first + size)).map(far), |job| &job.key)
                {
                    if !jobs.is_empty() {
                        store.submit(shard, &jobs).await.expect("the store accepts");
                    }
                }
                accepted(first);
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("the store accepts");
    }
}

fn options(directory: &Path, shards: u16) -> Options {
    let url = format!("embedded:{}", directory.display());
    Options { url, shards, ..settings::defaults(Duration::from_secs(60)) }
}
