//! Writes the file of the redo log. It begins with a block that names its generation and the checkpoint that its frames
//! follow; frames come after it. Its last block is an end mark, so that a file that was cut is not taken for a complete
//! one. The frames of a checkpoint that is safe are written over, so that blocks exist already and a sync writes data
//! only. The numbers of the frames separate new frames from old ones.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ringback_core::crash_point;

use super::frame::{self, BLOCK, Frame};
use crate::files::{private_file, sync_directory};

/// Where the first frame begins.
const START: u64 = BLOCK as u64;
/// The length of a new log. The length doubles whenever it is too short.
const FIRST: u64 = 256 * 1024;
/// The most by which a log doubles. A frame that needs more makes it grow by more.
const GROWTH: u64 = 8 * 1024 * 1024;

/// A file that a log is written to; tests replace it.
pub(crate) trait Disk: Send {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Makes everything that was written survive a power cut.
    fn sync(&self) -> io::Result<()>;
}

impl Disk for File {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A log that is open for writing.
pub(crate) struct Log {
    disk: Box<dyn Disk>,
    generation: u64,
    /// The offset of the next frame.
    at: u64,
    /// Where the frames since the last checkpoint begin.
    first: u64,
    /// The length of these frames, in bytes.
    bytes: u64,
    /// Where the frames of a checkpoint are that is not safe yet: they must not be overwritten.
    kept: Option<Range<u64>>,
    /// The length of the file, with the end mark.
    length: u64,
}

impl Log {
    /// Creates an empty log that follows the checkpoint `base`, in place of any other, and syncs it. `wrap` makes the
    /// disk of its file. The first block is written once the end mark is safe, so that no power cut leaves a log without
    /// an end.
    pub(crate) fn create(
        path: &Path,
        generation: u64,
        base: u64,
        wrap: impl FnOnce(File) -> Box<dyn Disk>,
    ) -> io::Result<Self> {
        let file = private_file().truncate(true).open(path)?;
        let mut log =
            Self { disk: wrap(file), generation, at: START, first: START, bytes: 0, kept: None, length: 0 };
        log.grow(FIRST)?;
        log.follow(base)?;
        sync_directory(path)?;
        Ok(log)
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the length of the frames since the last checkpoint, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a frame and syncs it. After an error the contents of the file are not known, and the log
    /// must not be written any more.
    pub(crate) fn append(&mut self, frame: &mut Frame, sequence: u64) -> io::Result<()> {
        let bytes = frame.seal(self.generation, sequence);
        let length = bytes.len() as u64;
        if let Some(kept) = &self.kept
            && self.at <= kept.start
            && self.at + length > kept.start
        {
            self.at = kept.end;
        }
        let end = self.at + length;
        let needed = end + BLOCK as u64;
        if needed > self.length {
            self.grow(needed)?;
        }
        crash_point!("embedded.before_append");
        self.disk.write(bytes, self.at)?;
        crash_point!("embedded.after_write");
        self.disk.sync()?;
        crash_point!("embedded.after_sync");
        self.at = end;
        self.bytes += length;
        Ok(())
    }

    /// Begins a checkpoint, which takes over all frames. They are kept until it is finished: the next frames are written
    /// before them if there is room, else behind them.
    pub(crate) fn begin_checkpoint(&mut self) {
        let kept = self.first..self.at;
        if kept.start > START {
            self.at = START;
        }
        (self.first, self.bytes, self.kept) = (self.at, 0, Some(kept));
    }

    /// Lets the frames up to the checkpoint `base` be overwritten. To be called when its database is safe. The new base
    /// is synced before a frame is overwritten, so a log whose frames end before the checkpoint of its database is an
    /// older copy.
    pub(crate) fn finish_checkpoint(&mut self, base: u64) -> io::Result<()> {
        if self.bytes == 0 {
            (self.at, self.first) = (START, START);
        }
        self.kept = None;
        self.follow(base)
    }

    /// Writes and syncs the first block, with the checkpoint that the next frame follows.
    fn follow(&self, base: u64) -> io::Result<()> {
        self.disk.write(&frame::head(self.generation, base), 0)?;
        self.disk.sync()
    }

    /// Makes the log at least `needed` bytes long. It writes zeros, since a sync would have to fill a
    /// hole, and a new end mark, and syncs both: the frame that comes next may overwrite the former mark.
    fn grow(&mut self, needed: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let wanted = needed.max(self.length + self.length.min(GROWTH));
        while self.length < wanted {
            self.disk.write(&ZEROS, self.length)?;
            self.length += ZEROS.len() as u64;
        }
        self.disk.write(&frame::end_mark(self.generation), self.length - BLOCK as u64)?;
        self.disk.sync()
    }
}

/// Removes the file of a log, if there is one, and syncs its directory.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_directory(path),
    }
}
