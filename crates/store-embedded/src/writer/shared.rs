//! One writer per location: all stores that this process opens on a location share its writer. The first store starts
//! it, and it ends with the last. The lock of the file keeps other processes out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use redb::ReadTransaction;
use redb::backends::InMemoryBackend;
use ringback_core::clock::{Clock, SystemClock};
use ringback_core::store_types::{Shard, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::queue::{Member, Request};
use super::{Writer, start};
use crate::call_faults::CallFaults;
use crate::error::Result;
use crate::location::{Disks, Medium, StoreLocation};
use crate::mutex::lock;
use crate::txn::Txn;

/// The memory of a store without a file. It keeps the jobs, so that the store can be closed and opened again.
#[derive(Clone)]
pub struct Memory {
    pub(crate) shared: Arc<SharedWriter>,
    pub(crate) faults: Option<Arc<dyn CallFaults>>,
}

impl Memory {
    /// Returns empty memory. The store's time comes from the clock.
    pub fn new(clock: impl Clock) -> Self {
        Self::of(clock, RunsOn::Thread)
    }

    /// Returns empty memory whose calls run on their callers' threads, one at a time: with one thread in a fixed order.
    pub fn inline(clock: impl Clock) -> Self {
        Self::of(clock, RunsOn::Callers)
    }

    /// Returns the same memory for a store whose calls have faults.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<dyn CallFaults>) -> Self {
        Self { shared: Arc::clone(&self.shared), faults: Some(faults) }
    }

    fn of(clock: impl Clock, runs_on: RunsOn) -> Self {
        let medium = Medium::Memory(Arc::new(InMemoryBackend::new()));
        let location = StoreLocation::new(medium, Arc::new(clock));
        Self { shared: Arc::new(SharedWriter { runs_on, ..SharedWriter::new(location) }), faults: None }
    }
}

/// Where a writer runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsOn {
    Thread,
    Callers,
}

/// A location, with its writer while any store uses it.
pub(crate) struct SharedWriter {
    pub(crate) location: Arc<StoreLocation>,
    runs_on: RunsOn,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    handle: Weak<Handle>,
    thread: Arc<Thread>,
}

impl SharedWriter {
    pub(crate) fn new(location: StoreLocation) -> Self {
        Self { location: Arc::new(location), runs_on: RunsOn::Thread, current: Mutex::default() }
    }

    /// Runs blocking `work` on a thread for that, or on the thread of the caller if calls run there. Fails with `Closed`
    /// if `work` panics.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.runs_on {
            RunsOn::Thread => tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Closed),
            RunsOn::Callers => Ok(work()),
        }
    }

    /// Returns the shared writer of a file, the same for all callers with the same absolute path.
    pub(crate) fn of_file(file: &Path) -> Arc<Self> {
        static FILES: Mutex<BTreeMap<PathBuf, Weak<SharedWriter>>> = Mutex::new(BTreeMap::new());
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let mut files = lock(&FILES);
        files.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = files.get(&file).and_then(Weak::upgrade) {
            return shared;
        }
        let medium = Medium::File(file.clone(), Disks::default());
        let shared = Arc::new(Self::new(StoreLocation::new(medium, Arc::new(SystemClock))));
        files.insert(file, Arc::downgrade(&shared));
        shared
    }

    /// Returns the handle of the running writer. If there is none, waits for the end of the former one, opens the store
    /// and starts a writer. Blocks. `shards` counts for a new database only.
    pub(crate) fn handle(&self, shards: u16) -> Result<Arc<Handle>> {
        let mut current = lock(&self.current);
        if let Some(handle) = current.handle.upgrade() {
            return Ok(handle);
        }
        // The former writer may be about to end; the file is free once it has.
        join(&current.thread);
        let handle = match self.runs_on {
            RunsOn::Thread => {
                let (queue, thread, shards) = start(&self.location, shards)?;
                current.thread = Arc::new(Mutex::new(Some(thread)));
                let (queue, thread) = (Some(queue), Arc::clone(&current.thread));
                Handle { shards, runner: Runner::Thread { queue, thread } }
            }
            RunsOn::Callers => {
                let writer = Writer::open(&self.location, shards)?;
                Handle { shards: writer.shards, runner: Runner::Callers(Box::new(Mutex::new(writer))) }
            }
        };
        let handle = Arc::new(handle);
        current.handle = Arc::downgrade(&handle);
        Ok(handle)
    }

    /// Waits until the writer has ended.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        join(&lock(&self.current).thread);
    }
}

/// Sends calls and requests for snapshots to the writer. Dropping it ends the writer and waits for that.
pub(crate) struct Handle {
    pub(crate) shards: u16,
    runner: Runner,
}

enum Runner {
    Thread {
        /// `None` only while the handle is dropped.
        queue: Option<mpsc::Sender<Request>>,
        thread: Arc<Thread>,
    },
    Callers(Box<Mutex<Writer>>),
}

impl Handle {
    /// Runs `work` in the writer's transaction, more than once if another call of its group fails half-way, and returns
    /// the last result. `bytes` is about how much it writes. Fails with `Closed` if the writer has ended.
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

    /// Returns a snapshot with the effects of all answered calls. Fails with `Closed` if the writer has ended.
    pub(crate) async fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Snapshot(reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Whether the writer has ended although this handle exists, which means that it has panicked.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.runner {
            Runner::Thread { queue, .. } => queue.as_ref().is_none_or(mpsc::Sender::is_closed),
            Runner::Callers(writer) => writer.is_poisoned(),
        }
    }

    async fn send(&self, request: Request) -> Result<(), StoreError> {
        match &self.runner {
            Runner::Thread { queue, .. } => {
                let queue = queue.as_ref().ok_or(StoreError::Closed)?;
                queue.send(request).await.map_err(|_| StoreError::Closed)
            }
            Runner::Callers(writer) => {
                writer.lock().map_err(|_| StoreError::Closed)?.run_one(request);
                Ok(())
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Runner::Thread { queue, thread } = &mut self.runner {
            *queue = None;
            join(thread);
        }
    }
}

/// The writer's thread; `None` once [`join`] has waited for its end.
type Thread = Mutex<Option<JoinHandle<()>>>;

/// Waits until the thread has ended, and logs if it has panicked.
fn join(thread: &Thread) {
    let mut thread = lock(thread);
    if thread.take().is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("the embedded store's writer has panicked");
    }
}
