//! Whether the files that a store has open are still those under their names. A file that was removed, moved or replaced
//! can be written as before, and what is written is gone with the process.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringback_core::store_types::StoreError;
use tokio::time::{Duration, Instant};

use crate::error::Result;

/// How often the names are looked up, so that a busy store does not do it for each group of calls.
const INTERVAL: Duration = Duration::from_millis(100);

/// The files of a store, as they were when it was opened.
pub(crate) struct OpenFiles {
    files: Vec<OpenFile>,
    looked: Instant,
}

struct OpenFile {
    path: PathBuf,
    /// The number of its device, and its own on that.
    id: (u64, u64),
}

impl OpenFiles {
    /// Files that were just opened under these names.
    pub(crate) fn of(paths: &[&Path]) -> Result<Self> {
        let opened = |path: &&Path| Ok(OpenFile { path: path.to_path_buf(), id: id(path)? });
        Ok(Self { files: paths.iter().map(opened).collect::<Result<_>>()?, looked: Instant::now() })
    }

    /// Fails if one of them is not under its name any more.
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.looked.elapsed() < INTERVAL {
            return Ok(());
        }
        self.looked = Instant::now();
        let gone = self.files.iter().find(|file| is_gone(&file.path, file.id));
        gone.map_or(Ok(()), |file| Err(removed(&file.path).into()))
    }
}

pub(crate) fn removed(file: &Path) -> StoreError {
    StoreError::Removed(Arc::new(std::io::Error::other(format!(
        "the file {} was removed, moved or replaced while this process had it open; put all files of the store back, or start this process again to go on with what is there",
        file.display()
    ))))
}

/// The error of files that were put back and are older than those that were open.
pub(crate) fn are_older(file: &Path) -> StoreError {
    StoreError::Removed(Arc::new(std::io::Error::other(format!(
        "the file {} that is there now is older than what this process has accepted; put the right files back, or start this process again to go on with these",
        file.display()
    ))))
}

fn is_gone(path: &Path, opened: (u64, u64)) -> bool {
    match id(path) {
        Ok(found) => found != opened,
        // Any other error says nothing of the file.
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

fn id(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}
