//! Reading a log again: which frames are to be carried out, and whether it is whole. What was
//! being written when the process ended is cut off; nobody was answered for it.

use ringback_core::contract::StoreError;

use super::BLOCK;
use super::frame::{self, Row, Whole};

/// What a log holds.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) generation: u64,
    /// Frames that follow each other, and the one that the checkpoint was made at.
    frames: Vec<Whole<'a>>,
    /// The number of the last one, or that of the checkpoint.
    pub(crate) sequence: u64,
}

/// Why a log cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// Its first block is not that of a log.
    #[error("it is damaged at byte 0")]
    Head,
    /// There is something wrong before frames that are whole.
    #[error("it is damaged at byte {0}")]
    At(usize),
}

/// Reads the bytes of a log beside a database that has all up to the frame `checkpoint`.
pub(crate) fn read(file: &[u8], checkpoint: u64) -> Result<Found<'_>, Damage> {
    let generation = frame::generation(file).ok_or(Damage::Head)?;
    let at = |offset: usize, above| Whole::parse(file.get(offset..)?, generation, above);
    let (mut frames, mut offset, mut last) = (Vec::new(), BLOCK, None);
    while let Some(frame) = at(offset, 0).filter(|f| last.is_none_or(|last| f.sequence == last + 1)) {
        // What is in the tables already stays there until it is written over.
        if frame.sequence > checkpoint {
            frames.push(frame);
        }
        (last, offset) = (Some(frame.sequence), offset + frame.room());
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
    /// Whether there is nothing to be carried out.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Carries out the rows of all frames, in order.
    pub(crate) fn each_row(
        &self,
        mut redo: impl FnMut(Row<'a>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for frame in &self.frames {
            let mut rest = frame.rows;
            while !rest.is_empty() {
                let (row, behind) = frame::row(rest).ok_or(StoreError::Unreadable("a row of the log"))?;
                redo(row)?;
                rest = behind;
            }
        }
        Ok(())
    }
}
