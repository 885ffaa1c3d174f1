//! The location of an embedded store: a file with a log beside it, or the memory of this process. Opens and creates the
//! database there. Holds what all stores on one location share in this process: the clock, the streams of wake-ups,
//! events and policy changes, the live carriers, the use of limits, and whether writes fail.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::statvfs::statvfs;
use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError};
use ringback_core::clock::Clock;
use ringback_core::crash_point;
use ringback_core::store_types::{Profile, StoreError, Wake};
use tokio::sync::{broadcast, watch};

use super::clock_consent::ClockWord;
use super::error::{Error, Result};
use super::files::{private_file, sync_directory};
use super::open_files::{self, OpenFiles};
use super::places::LimitUsage;
use super::redo_log::log::Disk;
use super::streams::{EventBus, WAKE_BACKLOG};
use super::write_behind::{Backend, WriteBehind};

/// How much of the database file is cached in memory.
const CACHE: usize = 128 * 1024 * 1024;

pub(crate) struct StoreLocation {
    medium: Medium,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_word: ClockWord,
    pub(crate) wakes: broadcast::Sender<Wake>,
    pub(crate) events: EventBus,
    /// Notified when policies have changed.
    pub(crate) policies: watch::Sender<()>,
    /// The live carriers. All of them are in this process.
    pub(crate) carriers: Mutex<BTreeMap<String, CarrierLock>>,
    /// How much of the limits is used.
    pub(crate) places: Mutex<LimitUsage>,
    is_failing: AtomicBool,
}

/// The lock of a live carrier; times are in µs.
pub(crate) struct CarrierLock {
    /// When it expires.
    pub(crate) until: u64,
    /// How long it lasts after a heartbeat.
    pub(crate) length: u64,
}

/// Makes the disk of a file.
pub(crate) type Wrap = Box<dyn Fn(File) -> Box<dyn Disk> + Send + Sync>;

/// What the files of a store are written through; tests replace it.
pub(crate) struct Disks {
    pub(crate) database: Wrap,
    pub(crate) log: Wrap,
}

impl Default for Disks {
    fn default() -> Self {
        let plain = || -> Wrap { Box::new(|file| Box::new(file)) };
        Self { database: plain(), log: plain() }
    }
}

pub(crate) enum Medium {
    /// The database file; the log lies beside it.
    File(PathBuf, Disks),
    Memory(Arc<dyn StorageBackend>),
}

impl StoreLocation {
    pub(crate) fn new(medium: Medium, clock: Arc<dyn Clock>) -> Self {
        Self {
            medium,
            clock,
            clock_word: ClockWord::default(),
            wakes: broadcast::Sender::new(WAKE_BACKLOG),
            events: EventBus::default(),
            policies: watch::Sender::default(),
            carriers: Mutex::default(),
            places: Mutex::default(),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Records that a group with changes was written. Returns true if writes failed before.
    pub(crate) fn can_write(&self) -> bool {
        self.is_failing() && self.is_failing.swap(false, Ordering::Relaxed)
    }

    /// Records that a group could not be written. Returns true if writes did not fail before.
    pub(crate) fn cannot_write(&self) -> bool {
        !self.is_failing.swap(true, Ordering::Relaxed)
    }

    /// Whether writes fail: from a group that could not be written until a group with changes is written.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Fails if the file of a database that this process had open is gone; otherwise an empty one would be created.
    pub(crate) fn check_is_there(&self) -> Result<(), StoreError> {
        match &self.medium {
            Medium::File(file, _) if !file.exists() => Err(open_files::removed(file)),
            Medium::File(..) | Medium::Memory(_) => Ok(()),
        }
    }

    /// Records which files have the names of the store, which was just opened; `None` for memory.
    pub(crate) fn open_files(&self) -> Result<Option<OpenFiles>> {
        match (&self.medium, self.log_path()) {
            (Medium::File(file, _), Some(log)) => Ok(Some(OpenFiles::of(&[file, &log])?)),
            _ => Ok(None),
        }
    }

    /// Returns the error for a database that lacks changes which this process has accepted.
    pub(crate) fn is_older(&self) -> StoreError {
        match &self.medium {
            Medium::File(file, _) => open_files::are_older(file),
            Medium::Memory(_) => StoreError::Closed,
        }
    }

    pub(crate) const fn profile(&self) -> Profile {
        match self.medium {
            Medium::File(..) => Profile::Disk,
            Medium::Memory(_) => Profile::Memory,
        }
    }

    /// Opens or creates the database; what is behind it is `None` for memory. Fails with `Unfit` if another process has
    /// it open or it is not a database.
    pub(crate) fn open_database(&self) -> Result<(Database, Option<WriteBehind>)> {
        match &self.medium {
            Medium::File(file, disks) => {
                open_file(file, &disks.database).map(|(database, behind)| (database, Some(behind)))
            }
            Medium::Memory(memory) => Ok((builder().create_with_backend(Memory(Arc::clone(memory)))?, None)),
        }
    }

    /// Returns the path of the log; `None` for memory.
    pub(crate) fn log_path(&self) -> Option<PathBuf> {
        match &self.medium {
            Medium::File(file, _) => Some(file.with_extension("redo")),
            Medium::Memory(_) => None,
        }
    }

    /// Fails if there is a log without its database, which would look like an empty store.
    pub(crate) fn check_pair(&self, log: &Path) -> Result<()> {
        match &self.medium {
            Medium::File(file, _) if log.exists() && !file.exists() => Err(unfit(format!(
                "the file {} is missing, but its log {} is there; put it back, or move the log away to begin anew",
                file.display(),
                log.display()
            ))),
            Medium::File(..) | Medium::Memory(_) => Ok(()),
        }
    }

    /// Returns how many bytes are free on the disk of the file; `None` for memory.
    pub(crate) fn free_bytes(&self) -> Result<Option<u64>> {
        let Medium::File(file, _) = &self.medium else { return Ok(None) };
        let found = statvfs(directory(file)).map_err(io::Error::from)?;
        Ok(Some(found.blocks_available() * found.fragment_size()))
    }

    pub(crate) fn disk(&self, log: File) -> Box<dyn Disk> {
        match &self.medium {
            Medium::File(_, disks) => (disks.log)(log),
            Medium::Memory(_) => Box::new(log),
        }
    }

    /// Adds the name of the file to an `Unfit` error; leaves other errors as they are.
    pub(crate) fn named(&self, error: Error) -> Error {
        match (error, &self.medium) {
            (Error::Store(StoreError::Unfit(why)), Medium::File(file, _)) => {
                unfit(format!("the file {} cannot be used: {why}", file.display()))
            }
            (error, _) => error,
        }
    }
}

fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new("."))
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// Opens the database in a file, or creates it there.
fn open_through(file: &Path, wrap: &Wrap) -> Result<(Database, WriteBehind)> {
    let opened_file = File::options().read(true).write(true).create(true).truncate(false).open(file);
    let (backend, behind) = Backend::new(opened_file.map_err(|error| opened(error.into(), file))?, wrap)?;
    let database = builder().create_with_backend(backend).map_err(|error| opened(error, file))?;
    Ok((database, behind))
}

fn open_file(file: &Path, wrap: &Wrap) -> Result<(Database, WriteBehind)> {
    let directory = directory(file);
    fs::create_dir_all(directory)
        .map_err(|error| unfit(format!("the directory {} cannot be made: {error}", directory.display())))?;
    if !file.exists()
        && let Some(created) = create_file(file, wrap)?
    {
        return Ok(created);
    }
    open_through(file, wrap)
}

/// Creates the database under another name and renames it when complete: an incomplete one, left by a crash or a full
/// disk, cannot be opened. `None` if another process has created it meanwhile. Fails if one is creating it.
pub(crate) fn create_file(file: &Path, wrap: &Wrap) -> Result<Option<(Database, WriteBehind)>> {
    // The lock is held until the end, and given up with this value.
    let lock = file.with_extension("lock");
    let _held = lock_creation(&lock, file)?;
    if file.exists() {
        // Whoever has created the database may have removed a lock before this one was made.
        remove_if_there(&lock)?;
        return Ok(None);
    }
    let new = file.with_extension("new");
    remove_if_there(&new)?;
    private_file().open(&new)?;
    let created = open_through(&new, wrap);
    crash_point!("create.before_name");
    let named = created.and_then(|database| Ok(fs::rename(&new, file).map(|()| database)?));
    if named.is_err() {
        remove_if_there(&new)?;
    }
    let database = named?;
    crash_point!("create.after_name");
    // Whoever waits with this file open finds the database under its name.
    remove_if_there(&lock)?;
    sync_directory(file)?;
    Ok(Some(database))
}

/// Locks the creation of a database until the file is dropped. Fails if another process holds the lock.
fn lock_creation(lock: &Path, file: &Path) -> Result<File> {
    let held = private_file().open(lock)?;
    match held.try_lock() {
        Ok(()) => Ok(held),
        Err(TryLockError::WouldBlock) => Err(in_use(file)),
        // A file system without locks has none for the database either.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(held),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Converts the error of a database that cannot be opened: `Unfit`, or `Disk` if the disk failed.
fn opened(error: DatabaseError, file: &Path) -> Error {
    match error {
        DatabaseError::DatabaseAlreadyOpen => in_use(file),
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(
                error.kind(),
                // The last: the file is shorter than its head says.
                ErrorKind::InvalidData | ErrorKind::PermissionDenied | ErrorKind::UnexpectedEof
            ) =>
        {
            error.into()
        }
        error => unfit(format!("the file {} cannot be opened as a store: {error}", file.display())),
    }
}

fn in_use(file: &Path) -> Error {
    unfit(format!(
        "the directory {} is in use by another process; stop that, or choose another directory",
        directory(file).display()
    ))
}

fn unfit(why: String) -> Error {
    StoreError::Unfit(why).into()
}

/// Memory that outlives the database on it.
#[derive(Debug)]
struct Memory(Arc<dyn StorageBackend>);

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
