//! The way to the writer: sends it calls and requests for snapshots. The writer ends with the last
//! handle.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use redb::ReadTransaction;
use ringback_core::contract::{Shard, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::call::Member;
use super::queue::Request;
use crate::error::Result;
use crate::location::lock;
use crate::txn::Txn;

pub(crate) struct Handle {
    /// `None` only while the handle is dropped.
    queue: Option<mpsc::Sender<Request>>,
    /// The number of shards, which is fixed in the file.
    pub(crate) shards: u16,
    thread: Arc<Thread>,
}

impl Handle {
    pub(crate) fn new(queue: mpsc::Sender<Request>, shards: u16, thread: Arc<Thread>) -> Self {
        Self { queue: Some(queue), shards, thread }
    }

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
        self.thread.join();
    }
}

/// The writer's thread, until somebody has waited for its end.
#[derive(Default)]
pub(crate) struct Thread(Mutex<Option<JoinHandle<()>>>);

impl Thread {
    pub(crate) fn new(thread: JoinHandle<()>) -> Self {
        Self(Mutex::new(Some(thread)))
    }

    /// Waits until the thread has ended.
    pub(crate) fn join(&self) {
        let mut thread = lock(&self.0);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the embedded store's writer has panicked");
        }
    }
}
