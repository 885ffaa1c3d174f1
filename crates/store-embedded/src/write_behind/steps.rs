//! The steps of redb that its file does not have yet: which come next, and what reads see of them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// The most bytes that are written between two syncs, so that a sync of the redo log waits for no more than these. One
/// page of redb can be longer.
pub(super) const PIECE: usize = 1024 * 1024;

/// The length of most writes, and how many of their buffers are kept to be used again: fresh memory has to be zeroed by
/// the kernel, which took half of the time of a commit.
const PAGE: usize = 4096;
const BUFFERS: usize = 8192;

/// One thing that redb does to its file.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(u64, Arc<[u8]>),
    SetLength(u64),
    Sync,
}

impl Step {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Write(_, bytes) => bytes.len(),
            Self::SetLength(_) | Self::Sync => 0,
        }
    }
}

/// The steps that are not done yet. They are numbered from 1 on, in the order in which redb has made them.
#[derive(Debug, Default)]
pub(super) struct Steps {
    waiting: VecDeque<Step>,
    /// The writes that are not in the file yet, by offset and number of the step.
    writes: BTreeMap<(u64, u64), Arc<[u8]>>,
    /// Buffers of [`PAGE`] bytes that nobody uses.
    buffers: Vec<Arc<[u8]>>,
    /// No write among them is longer, in bytes.
    longest: u64,
    /// The bytes of all writes that are not done.
    pub(super) bytes: usize,
    /// How many steps are waiting that are not writes.
    others: usize,
    /// How many changes of the file's length are not done.
    resizes: usize,
    /// The length of the file after all steps; `None` until somebody asks for it.
    pub(super) length: Option<u64>,
    /// How many steps were added, and how many of them are done.
    added: u64,
    pub(super) done: u64,
    /// The number of the last sync.
    pub(super) last_sync: u64,
    /// Whether a sync of redb returns before it is done.
    pub(super) is_behind: bool,
    pub(super) is_closed: bool,
    pub(super) failed: Option<Arc<io::Error>>,
}

impl Steps {
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some(error) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            None => Ok(()),
        }
    }

    /// Adds a step and returns its number.
    pub(super) fn add(&mut self, step: Step) -> u64 {
        self.bytes += step.bytes();
        self.added += 1;
        match &step {
            Step::Write(at, bytes) => {
                self.longest = self.longest.max(bytes.len() as u64);
                self.writes.insert((*at, self.added), Arc::clone(bytes));
            }
            Step::SetLength(length) => {
                self.length = Some(*length);
                self.resizes += 1;
                self.others += 1;
            }
            Step::Sync => {
                self.last_sync = self.added;
                self.others += 1;
            }
        }
        self.waiting.push_back(step);
        self.added
    }

    /// Whether there is enough to do: writes alone can wait until they are a piece.
    pub(super) fn is_piece(&self) -> bool {
        self.bytes >= PIECE || self.others > 0
    }

    /// Takes the next steps that are done at once: writes of about [`PIECE`], or another step.
    pub(super) fn piece(&mut self) -> Vec<Step> {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while let Some(step) = self.waiting.front() {
            let is_write = matches!(step, Step::Write(..));
            if !piece.is_empty() && (!is_write || bytes + step.bytes() > PIECE) {
                break;
            }
            bytes += step.bytes();
            piece.extend(self.waiting.pop_front());
            if !is_write {
                self.others -= 1;
                break;
            }
        }
        piece
    }

    /// Returns a copy of what is written, in a buffer that was used before if there is one.
    pub(super) fn copy(&mut self, data: &[u8]) -> Arc<[u8]> {
        if data.len() == PAGE
            && let Some(mut buffer) = self.buffers.pop()
            && let Some(bytes) = Arc::get_mut(&mut buffer)
        {
            bytes.copy_from_slice(data);
            return buffer;
        }
        data.into()
    }

    /// Records that the steps of a piece are done.
    pub(super) fn finish(&mut self, piece: Vec<Step>) {
        for step in piece {
            self.done += 1;
            self.bytes -= step.bytes();
            match step {
                Step::Write(at, bytes) => {
                    self.writes.remove(&(at, self.done));
                    if bytes.len() == PAGE && self.buffers.len() < BUFFERS {
                        self.buffers.push(bytes);
                    }
                }
                Step::SetLength(_) => self.resizes -= 1,
                Step::Sync => {}
            }
        }
        if self.writes.is_empty() {
            self.longest = 0;
        }
    }

    /// Whether the file may have another length than it will have.
    pub(super) const fn is_resized(&self) -> bool {
        self.resizes > 0
    }

    /// Returns the writes in a range that are not in the file yet, with their offsets, in the order of their steps.
    pub(super) fn within(&self, start: u64, end: u64) -> Vec<(u64, Arc<[u8]>)> {
        let found = self.writes.range((start.saturating_sub(self.longest), 0)..(end, 0));
        let mut found: Vec<_> = found.filter(|((at, _), bytes)| at + bytes.len() as u64 > start).collect();
        found.sort_by_key(|((_, number), _)| *number);
        found.into_iter().map(|((at, _), bytes)| (*at, Arc::clone(bytes))).collect()
    }
}
