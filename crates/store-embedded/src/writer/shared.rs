//! One writer per location: all stores that this process opens on a location share its writer. The
//! lock of the file keeps other processes out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use redb::ReadTransaction;
use redb::backends::InMemoryBackend;
use ringback_core::clock::{Clock, SystemClock};
use ringback_core::contract::{Shard, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::queue::{Member, Request};
use super::start;
use crate::error::Result;
use crate::location::{Medium, StoreLocation, lock};
use crate::txn::Txn;

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
        join(&current.thread);
        let (queue, thread, shards) = start(&self.location, shards)?;
        current.thread = Arc::new(Mutex::new(Some(thread)));
        let handle = Arc::new(Handle { queue: Some(queue), shards, thread: Arc::clone(&current.thread) });
        current.handle = Arc::downgrade(&handle);
        Ok(handle)
    }

    /// Waits until the writer has ended.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        join(&lock(&self.current).thread);
    }
}

/// Sends calls and requests for snapshots to the writer, which ends when the handle is dropped.
pub(crate) struct Handle {
    /// `None` only while the handle is dropped.
    queue: Option<mpsc::Sender<Request>>,
    /// The number of shards, which is fixed in the file.
    pub(crate) shards: u16,
    thread: Arc<Thread>,
}

impl Handle {
    /// Runs `work` in the writer's transaction. `bytes` is about how much it writes.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        shard: Shard,
        bytes: usize,
        work: impl FnMut(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (member, answer) = Member::new(shard, work);
        self.send(Request::Call(member, bytes)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// A view of all that was answered before.
    pub(crate) async fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Snapshot(reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Whether the writer has ended too early, which means that it has panicked.
    pub(crate) fn has_ended(&self) -> bool {
        self.queue.as_ref().is_none_or(mpsc::Sender::is_closed)
    }

    async fn send(&self, request: Request) -> Result<(), StoreError> {
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(request).await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue = None;
        join(&self.thread);
    }
}

/// The writer's thread; `None` once somebody has waited for its end.
type Thread = Mutex<Option<JoinHandle<()>>>;

/// Waits until the thread has ended.
fn join(thread: &Thread) {
    let mut thread = lock(thread);
    if thread.take().is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("the embedded store's writer has panicked");
    }
}
