//! `SubmitQueues`: the way of parsed jobs to the store, as one queue per shard. A request submits one job, or the items
//! of a batch while it still parses the rest. No caller waits beyond the deadline of its request.

mod batch;
mod paced_batch;
mod queued_job;
mod shard_queue;

use std::sync::Arc;

use ringback_core::contract::Submitted;
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::mpsc;

pub(crate) use self::batch::{ItemFailure, ItemResult};
pub(crate) use self::paced_batch::{Pace, PacedBatch};
pub(crate) use self::queued_job::QueuedJob;
use self::shard_queue::{RequestChunk, ShardQueue};
use crate::error::Unavailable;
use crate::limits::{Deadline, MemoryPermit};
use crate::metrics::Metrics;

/// The queues of submits, or those of imports.
pub(crate) struct SubmitQueues<J> {
    store: Store,
    shards: Vec<ShardQueue<J>>,
}

impl<J: QueuedJob> SubmitQueues<J> {
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let shards = store.shards().map(|shard| ShardQueue::start(store, shard, metrics, tasks, shutdown));
        Self { shards: shards.collect(), store: store.clone() }
    }

    pub(crate) async fn submit(
        &self,
        job: J,
        permit: MemoryPermit,
        deadline: Deadline,
    ) -> Result<Submitted, Unavailable> {
        let queue = &self.shards[usize::from(self.store.shard_of(&job.job().key).number())];
        let mut results = queue.submit(RequestChunk { jobs: vec![job], permit }, deadline).await?;
        results.pop().ok_or(Unavailable::GivenUp)
    }

    /// Submits the jobs that are sent to the returned [`PacedBatch`]. Those of a shard are submitted in order, and not
    /// after the store has failed there. The results are complete once the batch is finished.
    pub(crate) fn submit_all(
        &self,
        permit: &MemoryPermit,
        deadline: Deadline,
        pace: Option<Pace>,
    ) -> (PacedBatch<'_, J>, impl Future<Output = Vec<ItemResult>>) {
        let (senders, unsent) = self.shards.iter().map(|_| mpsc::unbounded_channel()).unzip();
        let results = batch::submit(&self.shards, unsent, permit, deadline);
        (PacedBatch::new(&self.store, senders, pace), results)
    }
}
