//! `ringback compact`: the file of a store becomes smaller and keeps its jobs, also when the command is killed. A
//! store in use or a missing one is refused.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use ringback_core::job::JobKey;
use ringback_store::Store;
use tempfile::tempdir;

use super::{Filler, job, open, submit};
use crate::cli::{ringback, spec};
use crate::contract::audit;
use crate::contract::job_builders::{LONG, With};
use crate::contract::workbench::SOON;
use crate::prelude::*;

/// The jobs that are cancelled, and the bytes of the body of each.
const ENDED: usize = 300;
const BODY: usize = 100_000;
const STAY: usize = 50;

fn named(name: &str, n: usize) -> JobKey {
    job(&format!("{name}-{n}")).key
}

/// Fills a store and cancels most of its jobs. Returns the length of its file.
async fn drained(directory: &Path) -> u64 {
    let store = open(directory).await;
    for n in 0..ENDED {
        let mut large = job(&format!("ended-{n}")).after(LONG);
        large.delivery.body.bytes = noise(b'x', BODY).into();
        submit(&store, large).await.expect("submit");
        if n % (ENDED / STAY) == 0 {
            submit(&store, job(&format!("stays-{}", n / (ENDED / STAY))).after(LONG)).await.expect("submit");
        }
    }
    for n in 0..ENDED {
        store.cancel(&named("ended", n)).await.expect("cancel");
    }
    drop(store);
    length(directory)
}

fn length(directory: &Path) -> u64 {
    fs::metadata(directory.join("ringback.redb")).expect("a file").len()
}

/// Asserts that the jobs of [`drained`] are as they were.
async fn check(store: &Store) {
    for n in 0..STAY {
        let found = store.get(&named("stays", n)).await.expect("get").map(|job| job.state);
        assert_eq!(found, Some(State::Delayed), "stays-{n}");
    }
    let ended = store.get(&named("ended", 0)).await.expect("get").map(|job| job.state);
    assert_eq!(ended, Some(State::Cancelled));
    let stats = store.stats().await.expect("stats").states;
    assert_eq!((stats.delayed, stats.cancelled), (STAY as u64, ENDED as u64));
    audit::tables(store).await;
}

#[tokio::test]
async fn a_drained_store_becomes_small_and_keeps_its_jobs() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let before = drained(directory.path()).await;
    // The last ones may have ended before a checkpoint.
    assert!(before > (ENDED * BODY * 3 / 4) as u64, "{before}");
    let run = ringback("http://127.0.0.1:9", &["compact", path, "--json"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let result: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!((&result["before"], &result["after"]), (&before.into(), &length(directory.path()).into()));
    assert!(length(directory.path()) < before / 10, "{result}");
    check(&open(directory.path()).await).await;
    let run = ringback("http://127.0.0.1:9", &["compact", path]).await;
    assert!(run.code == Some(0) && run.out.contains("ringback.redb: "), "{run:?}");
}

#[tokio::test]
async fn a_store_in_use_or_missing_is_not_compacted() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let run = ringback("http://127.0.0.1:9", &["compact", path]).await;
    assert!(run.code == Some(2) && run.err.contains("there is no store"), "{run:?}");
    assert_eq!(fs::read_dir(directory.path()).expect("it").count(), 0);
    let mut filler = Filler::start(directory.path(), "3");
    while filler.line().is_some_and(|line| line != "all") {}
    let run = ringback("http://127.0.0.1:9", &["compact", path]).await;
    assert!(run.code == Some(2) && run.err.contains("is in use by another process"), "{run:?}");
    // The log that is left after kill -9 is replayed first.
    filler.kill();
    let run = ringback("http://127.0.0.1:9", &["compact", path]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(open(directory.path()).await.stats().await.expect("stats").accepted, 3);
    let run = ringback("http://127.0.0.1:9", &["compact", path, "--prefix", "other"]).await;
    assert!(run.code == Some(2) && run.err.contains("there is no store"), "{run:?}");
}

#[tokio::test]
async fn a_compaction_that_is_killed_leaves_a_good_store() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let before = drained(directory.path()).await;
    for _ in 0..5 {
        let mut command = spec("http://127.0.0.1:9", &["compact", path]).command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (mut child, begun) = (command.spawn().expect("it starts"), length(directory.path()));
        // Once the file has changed its length, the command is compacting it or about to end.
        eventually(SOON, "the file changes or the command ends", async || {
            let has_ended = child.try_wait().expect("a child").is_some();
            if has_ended || length(directory.path()) != begun { Ok(()) } else { Err("neither") }
        })
        .await;
        child.kill().ok();
        child.wait().expect("it ends");
        check(&open(directory.path()).await).await;
    }
    assert_eq!(ringback("http://127.0.0.1:9", &["compact", path]).await.code, Some(0));
    assert!(length(directory.path()) < before / 10);
    check(&open(directory.path()).await).await;
}
