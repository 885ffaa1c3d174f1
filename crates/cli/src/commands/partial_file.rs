//! A file that gets its name only when it is complete and on disk. Until then it has a name that ends with `.part`, and
//! it is removed if the command fails.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ringback_core::crash_point;

use super::PRIVATE;

/// A file that is being written.
pub(super) struct PartialFile {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

impl PartialFile {
    /// Creates the file under its temporary name. Only its owner can read it.
    ///
    /// # Errors
    /// When `path` is a directory, or the file cannot be created.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!("{} is a directory", path.display());
        }
        let mut part = OsString::from(path);
        // Two processes may write the same file at once; the one that is complete last counts.
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        // A process with the same number may have been killed.
        remove_file(&part).ok();
        let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&part);
        let file = file.with_context(|| part.display().to_string())?;
        Ok(Self { file: BufWriter::with_capacity(256 * 1024, file), part, path: path.to_owned() })
    }

    pub(super) fn directory(&self) -> PathBuf {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        directory.unwrap_or_else(|| Path::new(".")).to_owned()
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| self.part.display().to_string())
    }

    /// Writes the file to disk, gives it its name, in place of any file of that name, and writes the directory to disk.
    ///
    /// # Errors
    /// When one of these steps fails. Before the last one, the file is removed.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.with_context(|| self.part.display().to_string())?;
        crash_point!("backup.before_rename");
        rename(&self.part, &self.path).with_context(|| self.path.display().to_string())?;
        // The name is safe when the directory is.
        let synced = File::open(self.directory()).and_then(|directory| directory.sync_all());
        synced.with_context(|| self.directory().display().to_string())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // It has another name after the rename.
        remove_file(&self.part).ok();
    }
}
