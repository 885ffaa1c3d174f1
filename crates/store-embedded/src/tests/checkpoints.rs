//! Tests of checkpoints that are written while calls go on: none waits for the disk of the database, and nothing is lost
//! if the process ends meanwhile.

use std::fs;

use super::*;
use crate::redo_log::checkpoint::{MAX_LOG, TOO_MUCH};
use crate::redo_log::frame::BLOCK;

/// Waits until something has come about.
async fn until(what: &str, has_come: impl Fn() -> bool) {
    let comes = async {
        while !has_come() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), comes).await.unwrap_or_else(|_| panic!("no {what}"));
}

/// Waits until a checkpoint waits for a sync of the database, whose gate the caller holds.
async fn checkpoint_waits(database: &Fault) {
    let waits = || database.syncs.load(Ordering::SeqCst) > database.passed.load(Ordering::SeqCst);
    until("checkpoint", waits).await;
}

/// Copies one of the files of a store.
fn copy(file: &str, from: &Path, to: &Path) {
    fs::copy(from.join(file), to.join(file)).unwrap();
}

async fn has_accepted(directory: &Path, jobs: u64) {
    let store = on_disk(directory, &Arc::default()).await;
    no_findings(&store).await;
    assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, jobs);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_and_safe_while_the_disk_writes_a_checkpoint() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disks(directory.path(), &Arc::default(), &database).await;
    let mut accepted = 0;
    for round in 0..3 {
        let (former, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let gate = database.gate.lock().await;
        copy("ringback.redb", directory.path(), former.path());
        store.submit(Shard(0), &[job(accepted)]).await.unwrap();
        checkpoint_waits(&database).await;
        // Frames stand in the log before and behind those of the checkpoint.
        for n in 1..=20 {
            store.submit(Shard(0), &[job(accepted + n)]).await.unwrap();
        }
        no_findings(&store).await;
        accepted += 21;
        for (file, to) in [("ringback.redo", &former), ("ringback.redo", &killed), ("ringback.redb", &killed)]
        {
            copy(file, directory.path(), to.path());
        }
        drop(gate);
        has_accepted(killed.path(), accepted as u64).await;
        has_accepted(former.path(), accepted as u64).await;
        assert!(is_known(&store, 0).await, "round {round}");
        settled(directory.path()).await;
    }
    drop(store);
    has_accepted(directory.path(), accepted as u64).await;
}

/// Returns the number of the checkpoint that the log of a store follows, and number and length of each of its frames.
fn frames(directory: &Path) -> (u64, Vec<(u64, u64)>) {
    let log = fs::read(directory.join("ringback.redo")).unwrap();
    let number = |at: usize| u64::from_le_bytes(log[at..at + 8].try_into().unwrap());
    let begins = (BLOCK..log.len()).step_by(BLOCK).filter(|at| log[at + 20..at + 24] == *b"RBFR");
    let rows = |at: usize| u64::from(u32::from_le_bytes(log[at + 16..at + 20].try_into().unwrap()));
    let frames = begins.map(|at| (number(at + 8), (24 + rows(at)).next_multiple_of(BLOCK as u64)));
    (number(24), frames.collect())
}

/// Returns the number of the last frame.
fn last_frame(directory: &Path) -> u64 {
    frames(directory).1.into_iter().map(|(number, _)| number).max().unwrap_or(0)
}

/// Waits until the log needs none of its frames.
async fn settled(directory: &Path) {
    until("checkpoint that is safe", || last_frame(directory) <= frames(directory).0).await;
}

/// How long a commit holds the writer depends on the frames that it takes over.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_too_slow_holds_calls_and_the_next_checkpoint_stays_small() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disks(directory.path(), &Arc::default(), &database).await;
    let gate = database.gate.lock().await;
    store.submit(Shard(0), &[job(0)]).await.unwrap();
    checkpoint_waits(&database).await;
    let taken_over = last_frame(directory.path());
    let mut accepted = 1;
    while let Ok(answer) =
        tokio::time::timeout(Duration::from_millis(300), store.submit(Shard(0), &[job(accepted)])).await
    {
        answer.unwrap();
        accepted += 1;
    }
    let later = frames(directory.path()).1.into_iter().filter(|(number, _)| *number > taken_over);
    let bytes = later.map(|(_, length)| length).sum::<u64>();
    assert!((MAX_LOG..TOO_MUCH + 64 * 1024).contains(&bytes), "{bytes} after {accepted} jobs");
    drop(gate);
    assert_ne!(store.submit(Shard(0), &[job(accepted)]).await.unwrap()[0].answer, SubmitResult::Conflict);
    no_findings(&store).await;
    assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, accepted as u64 + 1);
}

/// The copies have all that was written before a sync of the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_sync_of_its_checkpoints_loses_nothing() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disks(directory.path(), &Arc::default(), &database).await;
    let mut gate = database.gate.lock().await;
    for accepted in 1..=10 {
        store.submit(Shard(0), &[job(accepted)]).await.unwrap();
        checkpoint_waits(&database).await;
        let killed = tempfile::tempdir().unwrap();
        copy("ringback.redo", directory.path(), killed.path());
        copy("ringback.redb", directory.path(), killed.path());
        has_accepted(killed.path(), accepted as u64).await;
        // The next one to have the gate is the checkpoint, and it goes on to its next sync.
        drop(gate);
        gate = database.gate.lock().await;
    }
    drop(gate);
    settled(directory.path()).await;
    drop(store);
    has_accepted(directory.path(), 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_or_sync_of_a_checkpoint_that_fails_once_loses_nothing() {
    let parts: [fn(&Fault) -> &AtomicBool; 2] = [|fault| &fault.write, |fault| &fault.sync];
    for part in parts {
        let (directory, database) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
        let store = on_disks(directory.path(), &Arc::default(), &database).await;
        part(&database).store(true, Ordering::SeqCst);
        let mut accepted = 0;
        // The file is opened again by a call after the one that fails, or after the writer has noticed it by itself.
        while database.files.load(Ordering::SeqCst) == 1 {
            match store.submit(Shard(0), &[job(accepted)]).await {
                Ok(_) => accepted += 1,
                Err(error) => assert!(matches!(error, StoreError::Disk(_)), "{error:?}"),
            }
        }
        assert!(!part(&database).load(Ordering::SeqCst), "it has failed");
        for n in 0..accepted {
            assert!(is_known(&store, n).await, "job-{n} was accepted");
        }
        no_findings(&store).await;
        assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, accepted as u64);
        assert_eq!(database.misused.load(Ordering::SeqCst), 0, "the failed file was used again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_checkpoints_cannot_be_written_accepts_nothing_until_they_can() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Arc::<Fault>::default());
    let store = on_disks(directory.path(), &Arc::default(), &database).await;
    database.all.store(true, Ordering::SeqCst);
    let mut accepted = 0;
    let error = loop {
        match store.submit(Shard(0), &[job(accepted)]).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    for error in [error, store.ping().await.expect_err("nothing can be written")] {
        assert!(matches!(error, StoreError::Disk(_)) && error.is_transient(), "{error:?}");
    }
    database.all.store(false, Ordering::SeqCst);
    store.ping().await.unwrap();
    for n in 0..accepted {
        assert!(is_known(&store, n).await, "job-{n} was accepted");
    }
    no_findings(&store).await;
    assert_eq!(store.stats(Shard(0)).await.unwrap().accepted, accepted as u64);
    assert_eq!(database.misused.load(Ordering::SeqCst), 0, "the failed file was used again");
}
