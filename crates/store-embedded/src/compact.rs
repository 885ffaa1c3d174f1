//! Compacts the file of a store that is not in use: moves its pages together and gives the room after them back to the
//! disk. redb does not shrink a file by itself.

use std::path::Path;
use std::sync::Arc;

use ringback_core::clock::SystemClock;
use ringback_core::store_types::StoreError;

use crate::error::Result;
use crate::location::{Disks, Medium, StoreLocation};
use crate::redo_log::checkpoint::CheckpointedDb;

/// The length of a store's file, in bytes: before, together with its log, and after it was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    pub before: u64,
    pub after: u64,
}

/// Compacts the file of a store, after it has brought the log into the file. Blocks; no process can open the store
/// meanwhile. An interruption leaves the file usable, as before.
///
/// # Errors
/// [`StoreError::Unfit`] if there is no such store, the file is not one, or a process has it open;
/// [`StoreError::Disk`] if the file cannot be read or written.
pub fn compact(file: &Path) -> Result<Compacted, StoreError> {
    Ok(compact_file(file)?)
}

fn compact_file(file: &Path) -> Result<Compacted> {
    // An empty file would become a store.
    if length(file)? == 0 {
        return Err(StoreError::Unfit(format!("there is no store {}", file.display())).into());
    }
    let medium = Medium::File(file.to_owned(), Disks::default());
    let location = StoreLocation::new(medium, Arc::new(SystemClock));
    let log = location.log_path().map_or(Ok(0), |log| length(&log))?;
    let before = length(file)? + log;
    // A store that exists keeps its number of shards.
    let (db, _shards) = CheckpointedDb::open(&location, 1)?;
    db.compact()?;
    Ok(Compacted { before, after: length(file)? })
}

/// Returns the length of a file in bytes; 0 if there is none.
fn length(file: &Path) -> Result<u64> {
    match std::fs::metadata(file) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}
