//! Tests of files that are removed, moved or replaced while a store has them open.

use std::fs;
use std::path::PathBuf;

use super::*;

/// The files of a store, in a directory of their own.
struct Files {
    top: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { top: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    async fn open(&self) -> EmbeddedStore {
        let store = on_disk(&self.path("data"), &Arc::default()).await;
        store.submit(Shard(0), &[job(0)]).await.unwrap();
        store
    }

    /// Copies the files from one directory to another one. The log comes first, so that a checkpoint in between does no
    /// harm.
    fn copy(&self, from: &str, to: &str) {
        fs::create_dir_all(self.path(to)).unwrap();
        for file in ["ringback.redo", "ringback.redb"] {
            fs::copy(self.path(from).join(file), self.path(to).join(file)).unwrap();
        }
    }
}

/// Waits until the store notices that a file is gone or replaced.
async fn is_noticed(store: &EmbeddedStore) {
    let noticed = async { while store.ping().await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(10), noticed).await.expect("it is noticed");
}

async fn is_refused(store: &EmbeddedStore, n: usize) {
    let looks =
        [store.submit(Shard(0), &[job(n)]).await.map(drop), store.ping().await, store.prepare().await];
    for look in looks {
        let error = look.expect_err("a file is gone");
        assert!(matches!(error, StoreError::Removed(_)) && error.is_transient(), "{error:?}");
    }
}

#[tokio::test]
async fn nothing_is_accepted_for_files_that_were_removed_and_no_empty_store_takes_their_place() {
    let remove: [fn(&Files); 3] = [
        |files| fs::remove_dir_all(files.path("data")).unwrap(),
        |files| fs::remove_file(files.path("data/ringback.redb")).unwrap(),
        |files| fs::remove_file(files.path("data/ringback.redo")).unwrap(),
    ];
    for remove in remove {
        let files = Files::new();
        let store = files.open().await;
        remove(&files);
        is_noticed(&store).await;
        // None of these calls creates an empty store, which would accept jobs.
        for n in 1..4 {
            let error = store.submit(Shard(0), &[job(n)]).await.expect_err("its file is gone");
            assert!(matches!(error, StoreError::Removed(_) | StoreError::Unfit(_)), "{error:?}");
            store.ping().await.expect_err("its file is gone");
            store.prepare().await.expect_err("its file is gone");
        }
    }
}

#[tokio::test]
async fn files_that_were_moved_away_are_taken_back_once_they_are_there_again() {
    let files = Files::new();
    let store = files.open().await;
    fs::rename(files.path("data"), files.path("away")).unwrap();
    is_noticed(&store).await;
    is_refused(&store, 1).await;
    is_refused(&store, 1).await;
    fs::rename(files.path("away"), files.path("data")).unwrap();
    store.prepare().await.unwrap();
    assert!(is_known(&store, 0).await, "job-0 was accepted");
    assert_ne!(store.submit(Shard(0), &[job(1)]).await.unwrap()[0].answer, SubmitResult::Conflict);
    no_findings(&store).await;
}

#[tokio::test]
async fn an_older_copy_is_not_taken_for_the_files_that_were_removed() {
    let files = Files::new();
    let store = files.open().await;
    files.copy("data", "older");
    store.submit(Shard(0), &[job(1)]).await.unwrap();
    files.copy("data", "right");
    for (copy, is_right) in [("older", false), ("right", true)] {
        fs::remove_dir_all(files.path("data")).unwrap();
        is_noticed(&store).await;
        is_refused(&store, 2).await;
        files.copy(copy, "data");
        if is_right {
            store.prepare().await.unwrap();
            assert!(is_known(&store, 1).await, "job-1 was accepted");
        } else {
            is_refused(&store, 2).await;
        }
    }
}
