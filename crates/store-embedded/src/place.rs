//! Where an embedded store lives: a file, or the memory of this process. All stores that one
//! process opens on a place share its writer; another process is refused by the file's lock.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use rand::TryRng as _;
use rand::rngs::SysRng;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError};
use ringback_core::clock::{Clock, SystemClock};
use ringback_core::contract::{Profile, StoreError};
use tokio::sync::watch;

use super::events::Tower;
use super::log::{self, Disk};
use super::wake::Hub;
use super::writer::{self, Handle};

/// How much of the file is kept in memory.
const CACHE: usize = 128 * 1024 * 1024;

/// The memory that a store without a file lives in. It keeps the jobs as long as it lives,
/// so that a store can be closed and opened again.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Place>);

impl Memory {
    /// An empty one. Time comes from the clock.
    pub fn new(clock: impl Clock) -> Self {
        let kept = Kept(Arc::new(InMemoryBackend::new()));
        Self(Arc::new(Place::new(Medium::Backend(Box::new(move || Box::new(kept.clone()))), Arc::new(clock))))
    }
}

pub(crate) struct Place {
    medium: Medium,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hub: Hub,
    /// Where events are told.
    pub(crate) tower: Tower,
    /// Told when policies have changed.
    pub(crate) policies: watch::Sender<()>,
    /// The live carriers and when each runs out, in µs. They are of this process, and gone
    /// with it.
    pub(crate) members: Mutex<BTreeMap<String, u64>>,
    live: Mutex<Live>,
}

/// The writer, while any store uses it.
#[derive(Default)]
struct Live {
    handle: Weak<Handle>,
    thread: Option<JoinHandle<()>>,
}

type Backend = Box<dyn Fn() -> Box<dyn StorageBackend> + Send + Sync>;

/// What stands between a log and its file.
pub(crate) type Wrap = Box<dyn Fn(File) -> Box<dyn Disk> + Send + Sync>;

pub(crate) enum Medium {
    /// The database; the log lies beside it.
    File(PathBuf, Wrap),
    Backend(Backend),
}

impl Place {
    pub(crate) fn new(medium: Medium, clock: Arc<dyn Clock>) -> Self {
        let (members, live) = (Mutex::default(), Mutex::default());
        Self {
            medium,
            clock,
            hub: Hub::default(),
            tower: Tower::default(),
            policies: watch::Sender::default(),
            members,
            live,
        }
    }

    /// The place of a file; the same for all who name it while any of them lives.
    pub(crate) fn of(file: &Path) -> Arc<Self> {
        static PLACES: Mutex<BTreeMap<PathBuf, Weak<Place>>> = Mutex::new(BTreeMap::new());
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let mut places = lock(&PLACES);
        places.retain(|_, place| place.strong_count() > 0);
        if let Some(place) = places.get(&file).and_then(Weak::upgrade) {
            return place;
        }
        let place = Arc::new(Self::new(
            Medium::File(file.clone(), Box::new(|log| Box::new(log))),
            Arc::new(SystemClock),
        ));
        places.insert(file, Arc::downgrade(&place));
        place
    }

    pub(crate) const fn profile(&self) -> Profile {
        match self.medium {
            Medium::File(..) => Profile::Disk,
            Medium::Backend(_) => Profile::Memory,
        }
    }

    /// The writer; it is started by the first who asks. Blocks.
    pub(crate) fn writer(self: &Arc<Self>, shards: u16) -> Result<Arc<Handle>, StoreError> {
        let mut live = lock(&self.live);
        if let Some(handle) = live.handle.upgrade() {
            return Ok(handle);
        }
        // The one before may be about to end; the file is free once it has.
        join(live.thread.take());
        let (handle, thread) = writer::start(self, shards)?;
        live.thread = Some(thread);
        live.handle = Arc::downgrade(&handle);
        Ok(handle)
    }

    /// Waits until the writer has ended.
    pub(crate) fn wait(&self) {
        join(lock(&self.live).thread.take());
    }

    /// Opens the database, and makes it where there is none.
    pub(crate) fn database(&self) -> Result<Database, StoreError> {
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE);
        match &self.medium {
            Medium::File(file, _) => open(&builder, file),
            Medium::Backend(backend) => {
                builder.create_with_backend(Boxed(backend())).map_err(|error| redb::Error::from(error).into())
            }
        }
    }

    /// Where the log lies, if there is one.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        match &self.medium {
            Medium::File(file, _) => Some(file.with_extension("redo")),
            Medium::Backend(_) => None,
        }
    }

    /// Refuses a log without its database, which would be taken for an empty store.
    pub(crate) fn check_pair(&self, log: &Path) -> Result<(), StoreError> {
        match &self.medium {
            Medium::File(file, _) if log.exists() && !file.exists() => Err(unfit(format!(
                "the file {} is missing, but its log {} is there; put it back, or move the log away to begin anew",
                file.display(),
                log.display()
            ))),
            Medium::File(..) | Medium::Backend(_) => Ok(()),
        }
    }

    /// What a log is written to.
    pub(crate) fn disk(&self, log: File) -> Box<dyn Disk> {
        match &self.medium {
            Medium::File(_, wrap) => wrap(log),
            Medium::Backend(_) => Box::new(log),
        }
    }

    /// Names the place in an error of what is found there.
    pub(crate) fn name(&self, error: StoreError) -> StoreError {
        match (error, &self.medium) {
            (StoreError::Unfit(why), Medium::File(file, _)) => {
                StoreError::Unfit(format!("the file {} cannot be used: {why}", file.display()))
            }
            (error, _) => error,
        }
    }
}

/// A random number that is not 0: the generation of a log.
pub(crate) fn draw() -> Result<u64, StoreError> {
    let drawn = SysRng.try_next_u64().map_err(|error| redb::Error::Io(std::io::Error::other(error)))?;
    Ok(drawn.max(1))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(thread: Option<JoinHandle<()>>) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("the embedded store's writer has panicked");
    }
}

fn open(builder: &Builder, file: &Path) -> Result<Database, StoreError> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(directory)
        .map_err(|error| unfit(format!("the directory {} cannot be made: {error}", directory.display())))?;
    let known = file.exists();
    let database = builder.create(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => unfit(format!(
            "the directory {} is in use by another process; stop that, or choose another directory",
            directory.display()
        )),
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied) =>
        {
            redb::Error::Io(error).into()
        }
        error => unfit(format!("the file {} cannot be opened as a store: {error}", file.display())),
    })?;
    if !known {
        // So that the file is found again after a power cut.
        log::sync_directory(file).map_err(redb::Error::Io)?;
    }
    Ok(database)
}

fn unfit(why: String) -> StoreError {
    StoreError::Unfit(why)
}

/// Memory that outlives the database on it.
#[derive(Clone, Debug)]
struct Kept(Arc<InMemoryBackend>);

/// What redb takes is a type, not a box.
#[derive(Debug)]
struct Boxed(Box<dyn StorageBackend>);

macro_rules! delegate {
    ($($type:ty),*) => { $(
        impl StorageBackend for $type {
            fn len(&self) -> Result<u64, std::io::Error> {
                self.0.len()
            }

            fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
                self.0.read(offset, out)
            }

            fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
                self.0.set_len(len)
            }

            fn sync_data(&self) -> Result<(), std::io::Error> {
                self.0.sync_data()
            }

            fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
                self.0.write(offset, data)
            }
        }
    )* };
}

delegate!(Kept, Boxed);
