//! Reads a redo log and finds the frames that must be replayed. A last frame that is not whole was
//! being written when the process ended; it is dropped, since no caller was answered for it.

use ringback_core::contract::StoreError;

use super::frame::{self, BLOCK, Row, Whole};
use crate::error::Result;

/// The contents of a log.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) generation: u64,
    /// The frames after the checkpoint, without gaps.
    frames: Vec<Whole<'a>>,
    /// The number of the last frame, or that of the checkpoint.
    pub(crate) sequence: u64,
}

/// Why a log cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// The first block is not that of a log.
    #[error("it is damaged at byte 0")]
    Head,
    /// Something is wrong before frames that are whole.
    #[error("it is damaged at byte {0}")]
    At(usize),
}

/// Reads the bytes of a log whose frames up to the number `checkpoint` are in the database.
pub(crate) fn read(file: &[u8], checkpoint: u64) -> Result<Found<'_>, Damage> {
    let generation = frame::generation(file).ok_or(Damage::Head)?;
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
    let sequence = last.unwrap_or(0).max(checkpoint);
    if (offset..file.len()).step_by(BLOCK).any(|later| at(later, sequence).is_some()) {
        return Err(Damage::At(offset));
    }
    Ok(Found { generation, frames, sequence })
}

impl<'a> Found<'a> {
    /// Whether there is nothing to replay.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

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
