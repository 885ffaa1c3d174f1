//! Files without a name for data that does not fit in memory. Only this user can read them, and they are gone when the
//! process ends, however it ends.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mode of files that contain secrets: only their owner reads and writes them.
pub(crate) const PRIVATE: u32 = 0o600;

/// An empty file in a directory, to write and to read.
///
/// # Errors
/// When no file can be made there.
pub(crate) fn scratch_file(directory: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".ringback-{}-{number}", std::process::id()));
    // A process with the same number may have been killed before it could remove its name.
    remove_file(&path).ok();
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}
