//! The log: what groups have written since the last checkpoint, one frame per group, each
//! synced before the group is answered. The file begins with a block that names its
//! generation; it is written from the start again after each checkpoint, so that its blocks
//! are there already and a sync has only data to write. What stands in it is told apart from
//! what stood there before by the numbers of the frames.
//!
//! Frames are in `frame`, reading them again is in `read`.

mod frame;
mod read;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

pub(crate) use self::frame::{Frame, Row};
pub(crate) use self::read::{Damage, read};

/// Frames begin at multiples of it, so that writing one never touches the block of another.
const BLOCK: usize = 4096;
/// A new log has so many bytes; it grows to twice as many when it is too short.
const FIRST: u64 = 256 * 1024;
/// It does not grow by more at a time.
const GROWTH: u64 = 8 * 1024 * 1024;

/// What a log is written to.
pub(crate) trait Disk: Send {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Afterwards all that was written is safe.
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

/// A log that is written to.
pub(crate) struct Log {
    disk: Box<dyn Disk>,
    generation: u64,
    /// Where the next frame goes.
    at: u64,
    length: u64,
}

impl Log {
    /// A new and empty one in place of any other; it is there after a power cut. `wrap` stands
    /// between it and the file.
    pub(crate) fn create(
        path: &Path,
        generation: u64,
        wrap: impl FnOnce(File) -> Box<dyn Disk>,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let mut log = Self { disk: wrap(file), generation, at: BLOCK as u64, length: 0 };
        log.grow(FIRST)?;
        log.disk.write(&frame::head(generation), 0)?;
        log.disk.sync()?;
        sync_directory(path)?;
        Ok(log)
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// How many bytes of frames it has.
    pub(crate) const fn bytes(&self) -> u64 {
        self.at - BLOCK as u64
    }

    /// Adds a frame, and syncs. After an error it is not known what the file holds: it is to
    /// be written no more.
    pub(crate) fn append(&mut self, frame: &mut Frame, sequence: u64) -> io::Result<()> {
        let bytes = frame.seal(self.generation, sequence);
        let end = self.at + bytes.len() as u64;
        if end > self.length {
            self.grow(end)?;
        }
        self.disk.write(bytes, self.at)?;
        self.disk.sync()?;
        self.at = end;
        Ok(())
    }

    /// All frames are in the tables: the next one goes to the start.
    pub(crate) fn restart(&mut self) {
        self.at = BLOCK as u64;
    }

    /// Zeros are written, since a hole would have to be filled at each sync.
    fn grow(&mut self, end: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let wanted = end.max(self.length + self.length.min(GROWTH));
        while self.length < wanted {
            self.disk.write(&ZEROS, self.length)?;
            self.length += ZEROS.len() as u64;
        }
        Ok(())
    }
}

/// Takes a log away that is needed no more.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_directory(path),
    }
}

/// So that a file is found again, or is still gone, after a power cut.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
