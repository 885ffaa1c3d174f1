//! Detects that a file which a store has open was removed, moved or replaced. Such a file can be written as before, but
//! what is written is lost when the process ends.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringback_core::store_types::StoreError;
use tokio::time::{Duration, Instant};

use crate::error::Result;

/// The shortest time between two checks, so that a busy store does not check for each group of calls.
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
    /// Records which files have these paths. To be called right after they were opened.
    pub(crate) fn of(paths: &[&Path]) -> Result<Self> {
        let opened = |path: &&Path| Ok(OpenFile { path: path.to_path_buf(), id: id(path)? });
        Ok(Self { files: paths.iter().map(opened).collect::<Result<_>>()?, looked: Instant::now() })
    }

    /// Fails with [`StoreError::Removed`] if another file, or none, has the path of one of the files. Succeeds without
    /// a check within [`INTERVAL`] after the last one.
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

/// Returns the error for files that were put back and are older than those that were open.
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
