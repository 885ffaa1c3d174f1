//! Creates a store's files, with access for their owner only, and syncs directories, so that they survive a power cut.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Returns options that open a file for writing and create it, with mode 0600, if there is none. The mode protects the
/// bodies and headers of jobs.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

/// Makes the creation or removal of a file survive a power cut.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
