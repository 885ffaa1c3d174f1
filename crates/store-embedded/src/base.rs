//! The database at its last checkpoint, and the log of what came after: opening both, one
//! frame per group, checkpoints, and letting the log go at the end. A store in memory has no
//! log and is committed after each group.
//!
//! The database says which log belongs to it, from before that is written to until all of it
//! is in the tables. So a log that is missing is noticed, and one that is left over is not
//! carried out.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, WriteTransaction};
use ringback_core::contract::StoreError;
use tokio::time::{Duration, Instant};

use super::log::{self, Log};
use super::place::{self, Place};
use super::tables::{self, Format, Journal, Mark, Tables};

/// A checkpoint is made once the log has so many bytes. More of them would make the stall of
/// a checkpoint rarer, and opening after a crash longer.
const LONG: u64 = 16 * 1024 * 1024;
/// Or once its first frame is so old,
const OLD: Duration = Duration::from_secs(10);
/// or when nothing was asked for so long.
const QUIET: Duration = Duration::from_millis(100);

pub(crate) struct Base {
    database: Database,
    log: Option<Log>,
    path: Option<PathBuf>,
    /// The number of the last frame.
    sequence: u64,
    /// When the first frame since the last checkpoint was written.
    since: Option<Instant>,
}

impl Base {
    /// Opens the database and carries out what its log has; and the number of shards. A new
    /// database gets `shards`.
    pub(crate) fn open(place: &Place, shards: u16) -> Result<(Self, u16), StoreError> {
        let path = place.log();
        if let Some(path) = &path {
            place.check_pair(path)?;
        }
        let database = place.database()?;
        let Format { shards, mark, is_counted } =
            tables::format(&database, shards).map_err(|error| place.name(error))?;
        let mut base = Self { database, log: None, path, sequence: mark.sequence, since: None };
        if let Some(path) = base.path.clone() {
            base.catch_up(&path, mark)?;
            if !is_counted {
                base.count()?;
            }
            base.log = Some(base.new_log(place, &path)?);
        }
        Ok((base, shards))
    }

    /// Carries out what the log has, if the database needs one, and takes it away.
    fn catch_up(&mut self, path: &Path, mark: Mark) -> Result<(), StoreError> {
        let file = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && mark.log == 0 => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(path)),
            file => file.map_err(redb::Error::Io)?,
        };
        if mark.log == 0 {
            leftover(path, &file, mark)?;
        } else if file.is_empty() {
            tracing::warn!(file = %path.display(), "the log is empty: going on without what it held");
            self.let_go()?;
        } else {
            self.replay(path, &file, mark)?;
        }
        log::remove(path).map_err(|error| redb::Error::Io(error).into())
    }

    fn replay(&mut self, path: &Path, file: &[u8], mark: Mark) -> Result<(), StoreError> {
        let found = log::read(file, mark.sequence).map_err(|damage| unusable(path, &damage.to_string()))?;
        if found.generation != mark.log {
            return Err(unusable(path, "it belongs to another database, or to this one at another time"));
        }
        let (write, journal) = (self.begin()?, Journal::new());
        let mut tables = Tables::open(&write, &journal)?;
        found.each_row(|row| tables.redo(row))?;
        drop(tables);
        let frames = found.sequence - mark.sequence;
        if frames > 0 {
            tracing::info!(frames, bytes = file.len(), "what was in the log is in the tables");
        }
        self.sequence = found.sequence;
        self.commit(write, Mark { sequence: self.sequence, log: 0 })
    }

    /// Counts the jobs of a database from before they were counted by lane.
    fn count(&self) -> Result<(), StoreError> {
        let (write, journal) = (self.begin()?, Journal::new());
        Tables::open(&write, &journal)?.recount()?;
        tables::counted(&write)?;
        self.commit(write, Mark { sequence: self.sequence, log: 0 })
    }

    /// Begins a log, and has the database say that it needs it.
    fn new_log(&self, place: &Place, path: &Path) -> Result<Log, StoreError> {
        let generation = place::draw()?;
        let log = Log::create(path, generation, |file| place.disk(file)).map_err(redb::Error::Io)?;
        self.commit(self.begin()?, Mark { sequence: self.sequence, log: generation })?;
        Ok(log)
    }

    pub(crate) fn begin(&self) -> Result<WriteTransaction, StoreError> {
        self.database.begin_write().map_err(|error| redb::Error::from(error).into())
    }

    /// What was committed last.
    pub(crate) fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        self.database.begin_read().map_err(|error| redb::Error::from(error).into())
    }

    /// Writes what a group has changed to the log. Without a log only a checkpoint makes it
    /// safe: then the answer is false.
    pub(crate) fn keep(&mut self, journal: &Journal) -> Result<bool, StoreError> {
        if journal.bytes() == 0 {
            return Ok(true);
        }
        self.since = self.since.or_else(|| Some(Instant::now()));
        let Some(log) = &mut self.log else { return Ok(false) };
        self.sequence += 1;
        let kept = journal.drain(|frame| log.append(frame, self.sequence));
        kept.map(|()| true).map_err(|error| redb::Error::Io(error).into())
    }

    /// After how long without a call a checkpoint is due, zero for at once; none when nothing
    /// was written since the last one.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let (since, log) = (self.since?, self.log.as_ref()?);
        let left = if log.bytes() < LONG { OLD.saturating_sub(since.elapsed()) } else { Duration::ZERO };
        Some(left.min(QUIET))
    }

    /// Ends the open transaction: what was written in it is in the tables for good, and the
    /// log begins anew.
    pub(crate) fn checkpoint(&mut self, write: WriteTransaction) -> Result<(), StoreError> {
        if self.since.is_none() {
            return write.abort().map_err(StoreError::from);
        }
        self.commit(write, self.mark())?;
        self.since = None;
        if let Some(log) = &mut self.log {
            log.restart();
        }
        Ok(())
    }

    /// Ends the open transaction, so that a snapshot has what was written in it. That is safe
    /// in the log; nothing is synced, and a checkpoint is still to come.
    pub(crate) fn show(&mut self, mut write: WriteTransaction) -> Result<(), StoreError> {
        if self.log.is_none() || self.since.is_none() {
            return self.checkpoint(write);
        }
        let set = write.set_durability(Durability::None);
        debug_assert!(set.is_ok(), "there are no savepoints");
        self.commit(write, self.mark())
    }

    fn mark(&self) -> Mark {
        Mark { sequence: self.sequence, log: self.log.as_ref().map_or(0, Log::generation) }
    }

    fn commit(&self, mut write: WriteTransaction, mark: Mark) -> Result<(), StoreError> {
        write.set_quick_repair(self.path.is_some());
        mark.set(&write)?;
        write.commit().map_err(|error| redb::Error::from(error).into())
    }

    /// The database needs no log from here on.
    fn let_go(&self) -> Result<(), StoreError> {
        self.commit(self.begin()?, Mark { sequence: self.sequence, log: 0 })
    }

    /// Leaves the database alone in its directory, with all that was written.
    pub(crate) fn close(mut self) -> Result<(), StoreError> {
        let (Some(path), Some(log)) = (self.path.take(), self.log.take()) else { return Ok(()) };
        drop(log);
        self.let_go()?;
        log::remove(&path).map_err(|error| redb::Error::Io(error).into())
    }
}

/// A log that the database does not need: all of it is in the tables, or it knows more than
/// the database, which is an older copy then.
fn leftover(path: &Path, file: &[u8], mark: Mark) -> Result<(), StoreError> {
    match log::read(file, mark.sequence) {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(_) | Err(log::Damage::At(_)) => Err(StoreError::Unfit(format!(
            "the file {} holds jobs that the database beside it knows nothing of, as after one of the two was restored alone; restore both, or move this file away",
            path.display()
        ))),
        // It was being begun.
        Err(log::Damage::Head) => Ok(()),
    }
}

fn missing(path: &Path) -> StoreError {
    StoreError::Unfit(format!(
        "the file {} is missing, which holds jobs that were accepted last; put it back, or make an empty file there to go on without them",
        path.display()
    ))
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Unfit(format!(
        "the file {} cannot be used: {why}; restore it together with the database beside it, or put an empty file in its place to go on without what was accepted last",
        path.display()
    ))
}
