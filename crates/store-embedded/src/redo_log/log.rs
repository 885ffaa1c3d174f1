//! Writes the file of the redo log. It begins with a block that names its generation and the checkpoint that its frames
//! follow; frames come after it. Its last block is an end mark, so that a file that was cut is not taken for a complete
//! one. After each checkpoint it is written from the start again, so that its blocks exist already and a sync writes
//! data only. The numbers of the frames separate new frames from old ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ringback_core::crash_point;

use super::frame::{self, BLOCK, Frame};
use crate::files::{private_file, sync_directory};

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
        let mut log = Self { disk: wrap(file), generation, at: BLOCK as u64, length: 0 };
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
        self.at - BLOCK as u64
    }

    /// Adds a frame and syncs it. After an error the contents of the file are not known, and the log
    /// must not be written any more.
    pub(crate) fn append(&mut self, frame: &mut Frame, sequence: u64) -> io::Result<()> {
        let bytes = frame.seal(self.generation, sequence);
        let end = self.at + bytes.len() as u64;
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
        Ok(())
    }

    /// Lets the next frame be written at the start. To be called when all frames up to the checkpoint `base` are in the
    /// tables. The new base is synced before a frame is overwritten, so a log whose frames end before the checkpoint of
    /// its database is an older copy.
    pub(crate) fn restart(&mut self, base: u64) -> io::Result<()> {
        self.at = BLOCK as u64;
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
