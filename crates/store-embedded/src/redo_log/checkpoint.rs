//! [`CheckpointedDb`]: the database at its last checkpoint, together with the redo log of the changes after it. Opens
//! and closes both, appends a frame per group, and makes checkpoints. A store in memory has no log, and commits after
//! each group.
//!
//! Before a log is written to, the database records which log belongs to it, until all frames are in
//! the tables. So a missing log is noticed, and a leftover log is not replayed.

use std::path::{Path, PathBuf};

use rand::TryRng as _;
use rand::rngs::SysRng;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, WriteTransaction};
use ringback_core::crash_point;
use tokio::time::{Duration, Instant};

use super::log::{self, Log};
use super::replay::{catch_up, detach};
use crate::error::Result;
use crate::location::StoreLocation;
use crate::open_files::OpenFiles;
use crate::tables::{Checkpoint, Format, Journal, format};
use crate::write_behind::WriteBehind;

/// A checkpoint is due once the log has frames of this many bytes. A commit holds the writer in proportion to them, and
/// with fewer more pages are written in all.
pub(crate) const MAX_LOG: u64 = 4 * 1024 * 1024;
/// A checkpoint is due once the first frame after the last one is this old.
const MAX_AGE: Duration = Duration::from_secs(10);
/// A checkpoint is due once there are frames and no call came for this long.
const QUIET: Duration = Duration::from_millis(100);
/// Frames of this many bytes wait until the checkpoint before is safe.
pub(crate) const TOO_MUCH: u64 = 2 * MAX_LOG;
/// It is logged if the disk holds the writer for this long.
const LONG: Duration = Duration::from_secs(1);

pub(crate) struct CheckpointedDb {
    database: Database,
    log: Option<Log>,
    /// `None` for memory.
    behind: Option<WriteBehind>,
    /// The checkpoint that is being written to the file.
    pending: Option<Pending>,
    path: Option<PathBuf>,
    /// The number of the last frame.
    sequence: u64,
    /// The number of the last frame that is safe.
    acknowledged: u64,
    /// When the first frame since the last checkpoint was written.
    since: Option<Instant>,
    /// `None` for memory.
    files: Option<OpenFiles>,
}

/// A checkpoint that is committed, and not yet safe.
struct Pending {
    /// The number of its last frame.
    sequence: u64,
    /// The sync of the file that makes it safe.
    sync: u64,
}

impl CheckpointedDb {
    /// Opens the database, replays its log and begins a new one. Also returns the number of shards, which is `shards`
    /// for a new database. Fails if the database, or a log that it needs, is missing, in use or unusable.
    pub(crate) fn open(location: &StoreLocation, shards: u16) -> Result<(Self, u16)> {
        let path = location.log_path();
        if let Some(path) = &path {
            location.check_pair(path)?;
        }
        let (database, behind) = location.open_database()?;
        let Format { shards, checkpoint } =
            format::read_or_create(&database, shards).map_err(|error| location.named(error))?;
        let sequence = checkpoint.sequence;
        let mut db = Self {
            database,
            log: None,
            behind,
            pending: None,
            path,
            sequence,
            acknowledged: sequence,
            since: None,
            files: None,
        };
        if let Some(path) = db.path.clone() {
            crash_point!("embedded.before_replay");
            db.sequence = catch_up(&db.database, &path, checkpoint)?;
            crash_point!("embedded.after_replay");
            db.acknowledged = db.sequence;
            db.log = Some(db.create_log(location, &path)?);
            db.files = location.open_files()?;
            db.behind.iter().for_each(WriteBehind::begin);
        }
        Ok((db, shards))
    }

    /// Creates a log, and records in the database that it needs this log.
    fn create_log(&self, location: &StoreLocation, path: &Path) -> Result<Log> {
        // A generation of 0 means that there is no log.
        let generation = SysRng.try_next_u64().map_err(std::io::Error::other)?.max(1);
        let log = Log::create(path, generation, self.sequence, |file| location.disk(file))?;
        crash_point!("embedded.after_create_log");
        Checkpoint { sequence: self.sequence, log: generation }.commit(self.begin()?, true)?;
        crash_point!("embedded.after_note_log");
        Ok(log)
    }

    pub(crate) fn begin(&self) -> Result<WriteTransaction> {
        Ok(self.database.begin_write()?)
    }

    /// Returns a snapshot of the last commit.
    pub(crate) fn snapshot(&self) -> Result<ReadTransaction> {
        Ok(self.database.begin_read()?)
    }

    /// Appends the changes of a group to the log and syncs it. Returns false if there are changes and no log: then the
    /// next checkpoint makes them durable. Also fails if a file was removed, moved or replaced, since what is written to
    /// such a file is lost when the process ends.
    pub(crate) fn append(&mut self, journal: &Journal) -> Result<bool> {
        self.finish_checkpoint()?;
        if journal.bytes() > 0 {
            self.since = self.since.or_else(|| Some(Instant::now()));
            self.wait_for_disk()?;
            let Some(log) = &mut self.log else { return Ok(false) };
            self.sequence += 1;
            journal.drain(|frame| log.append(frame, self.sequence))?;
        }
        self.files.as_mut().map_or(Ok(()), OpenFiles::check)?;
        self.acknowledged = self.sequence;
        Ok(true)
    }

    /// Waits if the disk is slower than the calls, since the next checkpoint must not grow without limit.
    fn wait_for_disk(&self) -> Result<()> {
        let (Some(log), Some(behind), Some(pending)) = (&self.log, &self.behind, &self.pending) else {
            return Ok(());
        };
        if log.bytes() >= MAX_LOG {
            let begun = Instant::now();
            if log.bytes() < TOO_MUCH {
                behind.wait_for_piece(pending.sync);
            } else {
                behind.wait_for(pending.sync)?;
            }
            log_wait(begun);
        }
        Ok(())
    }

    /// Returns the number of the last frame that is durable, so that its calls may be answered.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns how long to wait for a call until a checkpoint is due, zero if it is due now; `None` if nothing was
    /// written since the last one, or there is no log.
    pub(crate) fn until_checkpoint(&self) -> Option<Duration> {
        if self.pending.is_some() {
            return Some(QUIET);
        }
        let (since, log) = (self.since?, self.log.as_ref()?);
        let left =
            if log.bytes() < MAX_LOG { MAX_AGE.saturating_sub(since.elapsed()) } else { Duration::ZERO };
        Some(left.min(QUIET))
    }

    /// Commits the open transaction as a checkpoint, which is written to the file behind the writer: the log keeps its
    /// frames until that is done. If the former checkpoint is still being written, commits as [`Self::publish`] does. If
    /// nothing was written since the last checkpoint, only aborts the transaction.
    pub(crate) fn checkpoint(&mut self, txn: WriteTransaction) -> Result<()> {
        self.finish_checkpoint()?;
        if self.since.is_none() {
            return Ok(txn.abort()?);
        }
        if self.pending.is_some() {
            return self.commit_unsynced(txn);
        }
        crash_point!("embedded.before_checkpoint");
        let begun = Instant::now();
        self.commit(txn)?;
        log_wait(begun);
        crash_point!("embedded.after_commit");
        self.since = None;
        if let (Some(log), Some(behind)) = (&mut self.log, &self.behind) {
            log.begin_checkpoint();
            self.pending = Some(Pending { sequence: self.sequence, sync: behind.last_sync() });
        }
        Ok(())
    }

    /// Frees the frames of a checkpoint in the log, once the file has it.
    fn finish_checkpoint(&mut self) -> Result<()> {
        let (Some(behind), Some(log)) = (&self.behind, &mut self.log) else { return Ok(()) };
        // Also without a checkpoint: what cannot be written to the file must not be answered.
        let sync = self.pending.as_ref().map_or(0, |pending| pending.sync);
        if behind.has_done(sync)?
            && let Some(Pending { sequence, .. }) = self.pending.take()
        {
            crash_point!("embedded.after_checkpoint");
            log.finish_checkpoint(sequence)?;
        }
        Ok(())
    }

    /// Commits the open transaction so that snapshots see its changes. The log keeps them safe, so nothing is synced,
    /// and a checkpoint is still due. Without a log or changes it is a checkpoint.
    pub(crate) fn publish(&mut self, txn: WriteTransaction) -> Result<()> {
        if self.log.is_none() || self.since.is_none() {
            return self.checkpoint(txn);
        }
        self.commit_unsynced(txn)
    }

    fn commit_unsynced(&self, mut txn: WriteTransaction) -> Result<()> {
        let set = txn.set_durability(Durability::None);
        debug_assert!(set.is_ok(), "there are no savepoints");
        self.commit(txn)
    }

    fn commit(&self, txn: WriteTransaction) -> Result<()> {
        let log = self.log.as_ref().map_or(0, Log::generation);
        Checkpoint { sequence: self.sequence, log }.commit(txn, self.path.is_some())
    }

    /// Records in the database that it needs no log, removes the log, and closes the database.
    pub(crate) fn close(mut self) -> Result<()> {
        self.close_log()
    }

    /// Makes the file of the database as small as its contents allow, and closes it without a log.
    pub(crate) fn compact(mut self) -> Result<()> {
        self.close_log()?;
        crash_point!("compact.before_moving");
        self.database.compact()?;
        crash_point!("compact.after_moving");
        Ok(())
    }

    fn close_log(&mut self) -> Result<()> {
        let (Some(path), Some(log)) = (self.path.take(), self.log.take()) else { return Ok(()) };
        drop(log);
        self.behind.as_ref().map_or(Ok(()), WriteBehind::end)?;
        detach(&self.database, self.sequence)?;
        crash_point!("embedded.after_detach");
        Ok(log::remove(&path)?)
    }
}

/// Logs that the disk has held the writer, and with it all calls, if it was for long.
fn log_wait(begun: Instant) {
    let waited = begun.elapsed();
    if waited >= LONG {
        tracing::warn!(
            waited_ms = waited.as_millis(),
            "calls of the embedded store wait for its disk, which writes a checkpoint"
        );
    }
}
