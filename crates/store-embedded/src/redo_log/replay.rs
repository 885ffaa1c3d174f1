//! Reads a redo log when its database is opened, and replays its frames into the tables, or refuses a log that does not
//! belong to the database as it is. A last frame that is not whole was being written when the process ended; it is
//! dropped, since no caller was answered for it. A log without an end mark behind its frames was cut, and is refused.

use std::io::ErrorKind;
use std::path::Path;

use redb::Database;
use ringback_core::store_types::StoreError;

use super::frame::{self, BLOCK, Head, Row, Whole};
use super::log;
use crate::error::Result;
use crate::tables::{Checkpoint, ReplayTables};

/// Replays the log if the database needs one, and removes its file. Returns the number of the last frame that is in the
/// tables. An empty file in place of a needed log is accepted, with a warning. Fails with `Unfit` if a needed log is
/// missing or unusable, or a log that is not needed has frames that the database lacks.
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

/// Records in the database that it needs no log, and has all frames up to `sequence`.
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

/// Checks a log that the database does not need. Fails if the log has frames that are not in the database, which is then
/// an older copy, or if it was cut.
fn check_leftover(path: &Path, file: &[u8], checkpoint: Checkpoint) -> Result<(), StoreError> {
    match read(file, checkpoint.sequence) {
        Ok(found) if found.frames.is_empty() => Ok(()),
        // The process ended while it created the log; or the database has all of the log, and more.
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
    /// The offset of the damage: 0 if the file does not begin as a log, else a place before further whole frames.
    #[error("it is damaged at byte {0}")]
    At(usize),
    /// There is no end mark behind the frames.
    #[error("its end is missing, and with it perhaps jobs that were accepted")]
    NoEnd,
    /// All frames of the log are in the database, and later ones too, which are missing in the log.
    #[error("it is older than the database, so jobs that were accepted last are missing")]
    IsOlder,
    /// The log follows a later checkpoint than the last one of the database.
    #[error("it is newer than the database, so jobs between the two are missing")]
    DatabaseIsOlder,
}

/// Reads the bytes of a log whose frames up to the number `checkpoint` are in the database. Returns the frames after it,
/// without an incomplete last one.
pub(crate) fn read(file: &[u8], checkpoint: u64) -> Result<Found<'_>, Damage> {
    let Head { generation, base } = Head::parse(file).ok_or(Damage::At(0))?;
    if base > checkpoint {
        return Err(Damage::DatabaseIsOlder);
    }
    let mut placed = whole_frames(file, generation);
    let end = frame::end_mark(generation);
    let behind = placed.iter().map(|(frame, at)| at + frame.file_length()).max().unwrap_or(BLOCK);
    if !(behind..file.len()).step_by(BLOCK).any(|block| file[block..].starts_with(&end)) {
        return Err(Damage::NoEnd);
    }
    // The right log keeps all frames up to a checkpoint until its first block names that checkpoint.
    placed.sort_by_key(|(frame, _)| frame.sequence);
    if base < checkpoint && placed.last().is_none_or(|(last, _)| last.sequence < checkpoint) {
        return Err(Damage::IsOlder);
    }
    // Frames from before the checkpoint stay in the file until they are written over.
    let (mut frames, mut sequence, mut next) = (Vec::new(), checkpoint, BLOCK);
    for &(frame, at) in &placed {
        if frame.sequence > sequence + 1 {
            // The missing one stood right before this one, or else behind the one before it.
            let ends = placed.iter().map(|(other, at)| at + other.file_length());
            let gap = ends.filter(|end| *end <= at).max().unwrap_or(BLOCK);
            return Err(Damage::At(if gap < at { gap } else { next }));
        }
        if frame.sequence == sequence + 1 {
            sequence += 1;
            frames.push(frame);
        }
        next = at + frame.file_length();
    }
    Ok(Found { frames, sequence })
}

/// Returns all whole frames of a log with their offsets, in the order of these.
fn whole_frames(file: &[u8], generation: u64) -> Vec<(Whole<'_>, usize)> {
    let (mut frames, mut at) = (Vec::new(), BLOCK);
    while at < file.len() {
        let frame = Whole::parse(&file[at..], generation);
        frames.extend(frame.map(|frame| (frame, at)));
        at += frame.map_or(BLOCK, |frame| frame.file_length());
    }
    frames
}

impl<'a> Found<'a> {
    /// Calls `replay` with the rows of all frames, in order. Fails at a row that cannot be read.
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
