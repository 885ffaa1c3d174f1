//! The write-ahead log of the embedded store after kill -9, a clean end or changes by hand: which frames are replayed,
//! dropped or refused, and when checkpoints empty the log.

use std::ops::Range;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase as _, TableDefinition};
use ringback_core::job::JobKey;
use ringback_core::store_types::{Cancelled, SubmitResult};
use tempfile::{TempDir, tempdir};

use super::{Filler, audit, job, open, refused, submit};
use crate::prelude::*;

const FORMAT: TableDefinition<'static, &str, u64> = TableDefinition::new("format");
const BLOCK: usize = 4096;

fn database(directory: &Path) -> PathBuf {
    directory.join("ringback.redb")
}

fn log(directory: &Path) -> PathBuf {
    directory.join("ringback.redo")
}

/// The files of a store that was killed while it took in jobs, and a job that was accepted.
struct Killed {
    files: TempDir,
    accepted: u64,
}

impl Killed {
    /// Kills stores, up to ten, until one has more than two frames in its log: a checkpoint may precede the kill.
    fn new() -> Self {
        let mut fresh = std::iter::repeat_with(Self::once).take(10);
        fresh.find(|killed| killed.frames().len() > 2).expect("frames in the log")
    }

    fn once() -> Self {
        let files = tempdir().expect("a directory");
        let mut filler = Filler::start(files.path(), "1000000");
        let accepted = (0..300).map(|_| filler.line().expect("it goes on")).last().expect("a line");
        filler.kill();
        Self { files, accepted: accepted.parse().expect("a number") }
    }

    /// A copy of the database to work on, with this log or none.
    fn with(&self, file: Option<&[u8]>) -> TempDir {
        let copy = tempdir().expect("a directory");
        std::fs::copy(database(self.files.path()), database(copy.path())).expect("copied");
        if let Some(file) = file {
            std::fs::write(log(copy.path()), file).expect("written");
        }
        copy
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(log(self.files.path())).expect("the log is there")
    }

    /// The byte ranges of the log's frames that are not in the tables yet, in order.
    fn frames(&self) -> Vec<Range<usize>> {
        let file = self.log();
        let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"));
        let copy = self.with(None);
        let from = format_number(&database(copy.path()), "sequence").expect("the format has it");
        let begins = |at: &usize| file[at + 20..at + 24] == *b"RBFR" && number(at + 8) > from;
        let mut frames: Vec<_> = (BLOCK..file.len()).step_by(BLOCK).filter(begins).collect();
        // Those after a checkpoint may stand before older ones.
        frames.sort_by_key(|at| number(at + 8));
        let rows = |at: usize| u32::from_le_bytes(file[at + 16..at + 20].try_into().expect("4 bytes"));
        frames.into_iter().map(|at| at..at + 24 + rows(at) as usize).collect()
    }
}

/// A number in the metadata of a closed store; `None` without one of this name.
fn format_number(file: &Path, name: &str) -> Option<u64> {
    let database = Database::open(file).expect("it opens");
    let read = database.begin_read().expect("a transaction");
    let format = read.open_table(FORMAT).expect("the table");
    format.get(name).expect("it is read").map(|value| value.value())
}

/// The number of jobs that a store has accepted. Asserts that nothing is wrong with its tables.
async fn accepted(directory: &Path) -> u64 {
    let store = open(directory).await;
    audit::tables(&store).await;
    let accepted = store.stats().await.expect("stats").accepted;
    drop(store);
    accepted
}

/// The log with its last frame zeroed from `at` on, as if it was written only in part.
fn torn(file: &[u8], at: usize, last: &Range<usize>) -> Vec<u8> {
    let mut torn = file.to_vec();
    torn[at..last.end].fill(0);
    torn
}

#[tokio::test]
async fn a_last_frame_that_was_not_written_to_its_end_leaves_what_stood_before_it() {
    let killed = Killed::new();
    let (file, last) = (killed.log(), killed.frames().pop().expect("a frame"));
    let before = accepted(killed.with(Some(&torn(&file, last.start, &last))).path()).await;
    let all = accepted(killed.with(Some(&file)).path()).await;
    assert!(before < all, "the last frame has jobs: {before} and {all}");
    for at in (last.start..last.end).step_by(last.len() / 12 + 1) {
        let copy = killed.with(Some(&torn(&file, at, &last)));
        assert_eq!(accepted(copy.path()).await, before, "written up to byte {at} of {last:?}");
        assert_eq!(accepted(copy.path()).await, before, "and opened once more");
    }
}

#[tokio::test]
async fn a_log_that_was_cut_is_refused_and_left_alone() {
    let killed = Killed::new();
    let (file, frames) = (killed.log(), killed.frames());
    let last = frames.last().expect("a frame");
    for cut in [BLOCK, frames[1].start, last.start, last.start + 30, last.end, file.len() - BLOCK] {
        let copy = killed.with(Some(&file[..cut]));
        let message = refused(copy.path()).await;
        let says = ["ringback.redo", "its end is missing", "put an empty file in its place"];
        assert!(says.iter().all(|part| message.contains(part)), "cut at byte {cut}: {message}");
        assert_eq!(refused(copy.path()).await, message, "it stays as it is");
        assert!(std::fs::read(log(copy.path())).expect("read") == file[..cut], "the log has changed");
    }
    let copy = killed.with(Some(&[]));
    assert!(accepted(copy.path()).await < accepted(killed.with(Some(&file)).path()).await);
}

#[tokio::test]
async fn a_log_that_its_database_does_not_need_is_removed_unless_it_was_cut() {
    let file = Killed::new().log();
    let (head, end) = (&file[..BLOCK], &file[file.len() - BLOCK..]);
    let zeros = [0; 8 * BLOCK];
    let directory = tempdir().expect("a directory");
    drop(open(directory.path()).await);
    // Logs as the creation of a log can leave them: empty, in part, and whole.
    for whole in [vec![], zeros.to_vec(), [&zeros, end].concat(), [head, &zeros, end].concat()] {
        std::fs::write(log(directory.path()), &whole).expect("written");
        assert_eq!(accepted(directory.path()).await, 0, "{} bytes", whole.len());
        assert!(!log(directory.path()).exists());
    }
    for cut in [&file[..BLOCK], &[head, &zeros].concat()] {
        std::fs::write(log(directory.path()), cut).expect("written");
        let message = refused(directory.path()).await;
        assert!(message.contains("ringback.redo") && message.contains("its end is missing"), "{message}");
    }
}

#[tokio::test]
async fn a_changed_bit_is_cut_off_at_the_end_and_refused_before_it() {
    let killed = Killed::new();
    let (whole, frames) = (killed.log(), killed.frames());
    let flipped = |frame: &Range<usize>| {
        let mut file = whole.clone();
        file[frame.start + frame.len() / 2] ^= 4;
        killed.with(Some(&file))
    };
    let (first, last) = (&frames[0], &frames[frames.len() - 1]);
    let before = accepted(killed.with(Some(&torn(&whole, last.start, last))).path()).await;
    assert_eq!(accepted(flipped(last).path()).await, before);

    let damaged = flipped(first);
    let message = refused(damaged.path()).await;
    let place = format!("damaged at byte {}", first.start);
    assert!(message.contains("ringback.redo") && message.contains(&place), "{message}");
    assert_eq!(refused(damaged.path()).await, message, "it stays as it is");

    // The remedy that the message names.
    std::fs::write(log(damaged.path()), "").expect("written");
    assert!(accepted(damaged.path()).await < before);
}

#[tokio::test]
async fn a_log_or_a_database_that_is_missing_is_refused() {
    let killed = Killed::new();
    let without = killed.with(None);
    let message = refused(without.path()).await;
    assert!(message.contains("ringback.redo is missing"), "{message}");
    std::fs::write(log(without.path()), "").expect("written");
    assert!(accepted(without.path()).await < accepted(killed.with(Some(&killed.log())).path()).await);

    let alone = tempdir().expect("a directory");
    std::fs::write(log(alone.path()), killed.log()).expect("written");
    let message = refused(alone.path()).await;
    assert!(message.contains("ringback.redb is missing"), "{message}");
    assert!(!database(alone.path()).exists(), "an empty store was made beside the log");
}

#[tokio::test]
async fn a_log_of_another_database_or_another_time_is_refused() {
    let (killed, other) = (Killed::new(), Killed::new());
    let message = refused(killed.with(Some(&other.log())).path()).await;
    assert!(message.contains("belongs to another database"), "{message}");

    let younger = tempdir().expect("a directory");
    drop(open(younger.path()).await);
    std::fs::write(log(younger.path()), killed.log()).expect("written");
    let message = refused(younger.path()).await;
    assert!(message.contains("restore both"), "{message}");
}

#[tokio::test]
async fn what_a_checkpoint_has_taken_over_is_not_carried_out_again() {
    let killed = Killed::new();
    let copy = killed.with(Some(&killed.log()));
    let key = JobKey {
        topic: "pay.notify".parse().expect("a topic"),
        id: format!("order-{:016}", killed.accepted).parse().expect("an id"),
    };
    let store = open(copy.path()).await;
    let cancelled = store.cancel(&key).await.expect("cancel");
    assert!(matches!(cancelled, Cancelled::Cancelled { .. }), "{cancelled:?}");
    let all = store.stats().await.expect("stats").accepted;
    drop(store);

    // The log as it was before the job was cancelled, as if the process had ended after it was needed.
    std::fs::write(log(copy.path()), killed.log()).expect("written");
    let store = open(copy.path()).await;
    let state = store.get(&key).await.expect("get").map(|job| job.state);
    assert_eq!(state, Some(State::Cancelled), "the log was carried out again");
    assert_eq!(store.stats().await.expect("stats").accepted, all);
    audit::tables(&store).await;
}

#[tokio::test]
async fn a_store_that_is_closed_leaves_its_database_alone() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Created);
    assert!(log(directory.path()).exists());
    drop(store);
    let names: Vec<_> = directory
        .path()
        .read_dir()
        .expect("read")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["ringback.redb"]);
    assert_eq!(format_number(&database(directory.path()), "log"), Some(0));
}

#[tokio::test]
async fn a_checkpoint_is_made_soon_after_the_store_falls_silent() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Created);
    in_the_tables(directory.path(), 1).await;
    // The index is also kept up to date after a snapshot.
    assert_eq!(submit(&store, job("b")).await.expect("submit"), SubmitResult::Created);
    audit::tables(&store).await;
    in_the_tables(directory.path(), 2).await;
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Repeated);
}

/// Waits until the tables have `frames` frames and the log needs none of them, for less time than a busy store needs to
/// make a checkpoint for its age.
async fn in_the_tables(directory: &Path, frames: u64) {
    eventually(Duration::from_secs(5), "the jobs are in the tables", async || {
        let copy = tempdir().expect("a directory");
        std::fs::copy(database(directory), database(copy.path())).map_err(|e| e.to_string())?;
        let log = std::fs::read(log(directory)).map_err(|e| e.to_string())?;
        let base = u64::from_le_bytes(log[24..32].try_into().expect("8 bytes"));
        match format_number(&database(copy.path()), "sequence") {
            Some(sequence) if sequence == frames && base == frames => Ok(()),
            other => Err(format!("{other:?}, and the log follows {base}")),
        }
    })
    .await;
}

#[tokio::test]
async fn what_follows_a_snapshot_or_a_checkpoint_is_carried_out_on_top_of_it() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Created);
    audit::tables(&store).await;
    assert_eq!(submit(&store, job("b")).await.expect("submit"), SubmitResult::Created);
    assert_eq!(accepted(as_after_kill_9(directory.path()).path()).await, 2);

    in_the_tables(directory.path(), 2).await;
    assert_eq!(submit(&store, job("c")).await.expect("submit"), SubmitResult::Created);
    assert_eq!(accepted(as_after_kill_9(directory.path()).path()).await, 3);
}

#[tokio::test]
async fn a_log_that_is_older_than_its_database_is_refused() {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    assert_eq!(submit(&store, job("a")).await.expect("submit"), SubmitResult::Created);
    let older = as_after_kill_9(directory.path());
    in_the_tables(directory.path(), 1).await;
    let older_too = as_after_kill_9(directory.path());
    assert_eq!(submit(&store, job("b")).await.expect("submit"), SubmitResult::Created);
    in_the_tables(directory.path(), 2).await;
    // The following changes are in the log only.
    assert_eq!(submit(&store, job("c")).await.expect("submit"), SubmitResult::Created);
    store.cancel(&job("b").key).await.expect("cancel");
    let newest = as_after_kill_9(directory.path());

    for (of_log, of_database, is) in [
        (&older, &newest, "it is older"),
        (&older_too, &newest, "it is older"),
        (&newest, &older_too, "it is newer"),
    ] {
        let mixed = tempdir().expect("a directory");
        std::fs::copy(log(of_log.path()), log(mixed.path())).expect("copied");
        std::fs::copy(database(of_database.path()), database(mixed.path())).expect("copied");
        let message = refused(mixed.path()).await;
        assert!(message.contains("ringback.redo") && message.contains(is), "{message}");
        assert_eq!(refused(mixed.path()).await, message, "it stays as it is");
    }
    assert_eq!(accepted(newest.path()).await, 3);
}

/// A copy of the files of a running store. The log is copied first, so that a checkpoint in between does no harm.
fn as_after_kill_9(directory: &Path) -> TempDir {
    let copy = tempdir().expect("a directory");
    for file in [log, database] {
        std::fs::copy(file(directory), file(copy.path())).expect("copied");
    }
    copy
}
