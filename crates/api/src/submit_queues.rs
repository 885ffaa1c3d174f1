//! `SubmitQueues`: brings parsed jobs to the store, through one queue per shard. A request submits one job, or the
//! items of a batch while it still parses the rest. A submit waits until its deadline at most.

mod batch;
mod paced_batch;
mod queued_job;
mod shard_queue;

use std::sync::Arc;

use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::batch::{ItemFailure, ItemResult};
pub(crate) use self::paced_batch::{Pace, PacedBatch};
pub(crate) use self::queued_job::QueuedJob;
use self::shard_queue::{Results, Waiting};
use crate::error::Unavailable;
use crate::limits::{Deadline, MemoryPermit};
use crate::metrics::Metrics;

/// The queues of submits, or those of imports.
pub(crate) struct SubmitQueues<J> {
    store: Store,
    shards: Vec<mpsc::Sender<Waiting<J>>>,
}

impl<J: QueuedJob> SubmitQueues<J> {
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let shards = store.shards().map(|shard| shard_queue::start(store, shard, metrics, tasks, shutdown));
        Self { shards: shards.collect(), store: store.clone() }
    }

    /// Submits jobs of one shard, at most [`MAX_BATCH_BYTES`](ringback_core::limits::MAX_BATCH_BYTES) by weight, and
    /// waits for their results until the deadline. Jobs that are in the queue by then are stored even if this future is
    /// dropped or fails, unless the grace period of the shutdown ends first. Panics without a job.
    pub(crate) async fn submit(&self, jobs: Vec<J>, permit: MemoryPermit, deadline: Deadline) -> Results {
        let queue = &self.shards[usize::from(self.store.shard_of(&jobs[0].job().key).number())];
        let results = async {
            let (reply, results) = oneshot::channel();
            queue.send(Waiting { jobs, permit, reply }).await.ok()?;
            results.await.ok()
        };
        match deadline.bound(results).await {
            Ok(results) => results.unwrap_or(Err(Unavailable::GivenUp)),
            Err(_elapsed) => Err(Unavailable::TooLate),
        }
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
        let results = batch::submit(self, unsent, permit, deadline);
        (PacedBatch::new(&self.store, senders, pace), results)
    }
}
