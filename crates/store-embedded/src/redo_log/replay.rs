//! Reads a redo log when its database is opened, and replays its frames into the tables, or refuses a
//! log that does not fit. A last frame that is not whole was being written when the process ended; it
//! is dropped, since no caller was answered for it. A log without an end mark behind its frames was
//! cut, and is refused.

use std::io::ErrorKind;
use std::path::Path;

use redb::Database;
use ringback_core::store_types::StoreError;

use super::frame::{self, BLOCK, Head, Row, Whole};
use super::log;
use crate::error::Result;
use crate::tables::{Checkpoint, ReplayTables};

/// Replays the log if the database needs one, and removes its file. Returns the number of the last
/// frame that is in the tables.
pub(crate) fn catch_up(database: &Database, path: &Path, checkpoint: Checkpoint) -> Result<u64> {
    let file = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && checkpoint.log == 0 => {
            return Ok(checkpoint.sequence);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = format!(
                "the file {} is missing, which holds jobs that were accepted last; put it back, or make an empty file there to go on without them",
                path.display()
            );
            return Err(StoreError::Unfit(why).into());
        }
        file => file?,
    };
    let sequence = if checkpoint.log == 0 {
        check_leftover(path, &file, checkpoint)?;
        checkpoint.sequence
    } else if file.is_empty() {
        tracing::warn!(file = %path.display(), "the redo log is empty: its jobs are lost");
        detach(database, checkpoint.sequence)?;
        checkpoint.sequence
    } else {
        replay(database, path, &file, checkpoint)?
    };
    log::remove(path)?;
    Ok(sequence)
}

/// Notes that the database needs no log.
pub(crate) fn detach(database: &Database, sequence: u64) -> Result<()> {
    Checkpoint { sequence, log: 0 }.commit(database.begin_write()?, true)
}

fn replay(database: &Database, path: &Path, file: &[u8], checkpoint: Checkpoint) -> Result<u64> {
    if Head::parse(file).is_some_and(|head| head.generation != checkpoint.log) {
        return Err(unusable(path, "it belongs to another database, or to this one at another time").into());
    }
    let found = read(file, checkpoint.sequence).map_err(|damage| unusable(path, &damage.to_string()))?;
    let write = database.begin_write()?;
    let mut tables = ReplayTables::open(&write)?;
    found.each_row(|row| tables.replay(row.table, row.key, row.value))?;
    drop(tables);
    Checkpoint { sequence: found.sequence, log: 0 }.commit(write, true)?;
    let frames = found.sequence - checkpoint.sequence;
    if frames > 0 {
        tracing::info!(frames, bytes = file.len(), "the redo log was replayed");
    }
    Ok(found.sequence)
}

/// Checks a log that the database does not need. If it has frames that are not in the database, the
/// database is an older copy.
fn check_leftover(path: &Path, file: &[u8], checkpoint: Checkpoint) -> Result<(), StoreError> {
    match read(file, checkpoint.sequence) {
        Ok(found) if found.frames.is_empty() => Ok(()),
        // The process ended while it created the log; or all of it is in the database, and more.
        Err(Damage::At(0) | Damage::IsOlder) => Ok(()),
        Err(Damage::NoEnd) => Err(unusable(path, &Damage::NoEnd.to_string())),
        Ok(_) | Err(Damage::At(_) | Damage::DatabaseIsOlder) => Err(StoreError::Unfit(format!(
            "the file {} holds jobs that the database beside it does not know, as after one of the two was restored alone; restore both, or move this file away",
            path.display()
        ))),
    }
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Unfit(format!(
        "the file {} cannot be used: {why}; restore it together with the database beside it, or put an empty file in its place to go on without what was accepted last",
        path.display()
    ))
}

/// The contents of a log.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The frames after the checkpoint, without gaps.
    frames: Vec<Whole<'a>>,
    /// The number of the last frame, or that of the checkpoint.
    pub(crate) sequence: u64,
}

/// Why a log cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// The offset of what cannot be read: 0 if the log does not begin as one, else that of damage before
    /// frames that are whole.
    #[error("it is damaged at byte {0}")]
    At(usize),
    /// There is no end mark behind the frames.
    #[error("its end is missing, and with it perhaps jobs that were accepted")]
    NoEnd,
    /// The database has more than all of it: what was accepted since is in another log.
    #[error("it is older than the database, so jobs that were accepted last are missing")]
    IsOlder,
    /// It follows a later checkpoint than the last one of the database.
    #[error("it is newer than the database, so jobs between the two are missing")]
    DatabaseIsOlder,
}

/// Reads the bytes of a log whose frames up to the number `checkpoint` are in the database.
pub(crate) fn read(file: &[u8], checkpoint: u64) -> Result<Found<'_>, Damage> {
    let Head { generation, base } = Head::parse(file).ok_or(Damage::At(0))?;
    if base > checkpoint {
        return Err(Damage::DatabaseIsOlder);
    }
    let at = |offset: usize, above| Whole::parse(file.get(offset..)?, generation, above);
    let (mut frames, mut offset, mut last) = (Vec::new(), BLOCK, None);
    while let Some(frame) = at(offset, 0).filter(|f| last.is_none_or(|last| f.sequence == last + 1)) {
        // Frames from before the checkpoint stay in the file until they are written over.
        if frame.sequence > checkpoint {
            frames.push(frame);
        }
        (last, offset) = (Some(frame.sequence), offset + frame.file_length());
    }
    if let Some(first) = frames.first()
        && first.sequence != checkpoint + 1
    {
        return Err(Damage::At(BLOCK));
    }
    // The log of this database has all frames up to a checkpoint until it names it.
    let is_older = base < checkpoint && last.is_none_or(|last| last < checkpoint);
    let sequence = last.unwrap_or(0).max(checkpoint);
    let mut behind = (offset..file.len()).step_by(BLOCK);
    if behind.clone().any(|later| at(later, sequence).is_some()) {
        return Err(Damage::At(offset));
    }
    let end = frame::end_mark(generation);
    if !behind.any(|later| file[later..].starts_with(&end)) {
        return Err(Damage::NoEnd);
    }
    if is_older {
        return Err(Damage::IsOlder);
    }
    Ok(Found { frames, sequence })
}

impl<'a> Found<'a> {
    /// Calls `replay` with the rows of all frames, in order.
    pub(crate) fn each_row(&self, mut replay: impl FnMut(Row<'a>) -> Result<()>) -> Result<()> {
        for frame in &self.frames {
            let mut rest = frame.rows;
            while !rest.is_empty() {
                let (row, behind) = frame::row(rest).ok_or(StoreError::Unreadable("a row of the log"))?;
                replay(row)?;
                rest = behind;
            }
        }
        Ok(())
    }
}
