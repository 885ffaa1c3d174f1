//! How the files of a store are created: readable by their owner alone, and so that they are there after a power cut.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file for writing, and creates it if there is none. Bodies and headers of jobs are secret.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

/// Makes it safe against a power cut that a file was created or removed.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
