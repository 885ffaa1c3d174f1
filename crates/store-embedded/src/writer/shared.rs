//! One writer per location: all stores that this process opens on a location share its writer.
//! Another process is refused by the lock of the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use redb::backends::InMemoryBackend;
use ringback_core::clock::{Clock, SystemClock};

use super::handle::{Handle, Thread};
use super::start;
use crate::error::Result;
use crate::location::{Medium, StoreLocation, lock};

/// The memory that a store without a file lives in. It keeps the jobs while it lives, so that a
/// store can be closed and opened again.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<SharedWriter>);

impl Memory {
    /// Empty memory. Time comes from the clock.
    pub fn new(clock: impl Clock) -> Self {
        let medium = Medium::Memory(Arc::new(InMemoryBackend::new()));
        Self(Arc::new(SharedWriter::new(StoreLocation::new(medium, Arc::new(clock)))))
    }
}

/// A location, with its writer while any store uses it.
pub(crate) struct SharedWriter {
    pub(crate) location: Arc<StoreLocation>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    handle: Weak<Handle>,
    thread: Arc<Thread>,
}

impl SharedWriter {
    pub(crate) fn new(location: StoreLocation) -> Self {
        Self { location: Arc::new(location), current: Mutex::default() }
    }

    /// The writer of a file; the same for all callers that name this file.
    pub(crate) fn of_file(file: &Path) -> Arc<Self> {
        static FILES: Mutex<BTreeMap<PathBuf, Weak<SharedWriter>>> = Mutex::new(BTreeMap::new());
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let mut files = lock(&FILES);
        files.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = files.get(&file).and_then(Weak::upgrade) {
            return shared;
        }
        let medium = Medium::File(file.clone(), Box::new(|log| Box::new(log)));
        let shared = Arc::new(Self::new(StoreLocation::new(medium, Arc::new(SystemClock))));
        files.insert(file, Arc::downgrade(&shared));
        shared
    }

    /// The writer, which the first caller starts. Blocks.
    pub(crate) fn handle(&self, shards: u16) -> Result<Arc<Handle>> {
        let mut current = lock(&self.current);
        if let Some(handle) = current.handle.upgrade() {
            return Ok(handle);
        }
        // The writer before may be about to end; the file is free once it has.
        current.thread.join();
        let (queue, thread, shards) = start(&self.location, shards)?;
        current.thread = Arc::new(Thread::new(thread));
        let handle = Arc::new(Handle::new(queue, shards, Arc::clone(&current.thread)));
        current.handle = Arc::downgrade(&handle);
        Ok(handle)
    }

    /// Waits until the writer has ended.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        lock(&self.current).thread.join();
    }
}
