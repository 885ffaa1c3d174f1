//! The queue of a shard: its jobs that wait for the store. One store call runs at a time, which keeps submits in
//! order. Jobs that arrive meanwhile share the next call, so an idle queue calls at once with one job, and calls grow
//! with the load. There is no timer. A call that panics stops the process.

use std::sync::Arc;
use std::time::Duration;

use ringback_admission::weight;
use ringback_core::crash_point;
use ringback_core::limits::MAX_BATCH_BYTES;
use ringback_core::store_types::{Shard, Submitted};
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::queued_job::QueuedJob;
use crate::error::Unavailable;
use crate::limits::MemoryPermit;
use crate::metrics::Metrics;

/// How many requests may wait for a shard's next call.
const CAPACITY: usize = 512;
/// How much longer than the grace period of the shutdown a call may run. Calls notice the end of the
/// grace period themselves and only need time to answer.
const LAST_CALL: Duration = Duration::from_millis(500);

pub(super) type Results = Result<Vec<Submitted>, Unavailable>;

/// The jobs of one request for one shard, in order. Their memory permit is held until they are
/// in the store, even if the client disconnects.
pub(super) struct Waiting<J> {
    pub(super) jobs: Vec<J>,
    pub(super) permit: MemoryPermit,
    pub(super) reply: oneshot::Sender<Results>,
}

/// Starts a queue and returns its sender. It ends when the sender is dropped and every job has its result, or half a
/// second after the grace period of the shutdown.
pub(super) fn start<J: QueuedJob>(
    store: &Store,
    shard: Shard,
    metrics: &Arc<Metrics>,
    tasks: &mut Tasks,
    shutdown: &Shutdown,
) -> mpsc::Sender<Waiting<J>> {
    let (queue, waiting) = mpsc::channel(CAPACITY);
    let (store, metrics) = (store.clone(), Arc::clone(metrics));
    let worker = Worker { store, shard, metrics, waiting, too_heavy: None };
    let shutdown = shutdown.clone();
    let cut = async move {
        shutdown.expired().await;
        sleep(LAST_CALL).await;
    };
    tasks.spawn(format!("{} of shard {}", J::QUEUE, shard.number()), async move {
        tokio::select! {
            biased;
            () = worker.run() => {}
            () = cut => {}
        }
    });
    queue
}

struct Worker<J> {
    store: Store,
    shard: Shard,
    metrics: Arc<Metrics>,
    waiting: mpsc::Receiver<Waiting<J>>,
    /// A chunk that was too heavy for the last call.
    too_heavy: Option<Waiting<J>>,
}

impl<J: QueuedJob> Worker<J> {
    /// Makes calls until the sender is dropped and nothing waits. Jobs are stored even if their clients have gone.
    /// While the store is nearly full, all jobs are refused without a call.
    async fn run(mut self) {
        while let Some(first) = self.next().await {
            // Lets requests that are ready to run share the call; that needs no timer.
            tokio::task::yield_now().await;
            // What waits, up to the weight of a call. Each job weighs enough that this bounds their number too.
            let (mut jobs, mut permits, mut replies) = (Vec::new(), Vec::new(), Vec::new());
            let (mut free, mut next) = (MAX_BATCH_BYTES, Some(first));
            while let Some(waiting) = next.take() {
                let weight = waiting.jobs.iter().map(|job| weight(job.job())).sum();
                if weight > free && !jobs.is_empty() {
                    self.too_heavy = Some(waiting);
                    break;
                }
                free = free.saturating_sub(weight);
                replies.push((waiting.jobs.len(), waiting.reply));
                permits.push(waiting.permit);
                jobs.extend(waiting.jobs);
                next = self.waiting.try_recv().ok();
            }
            let results = match self.store.shortage().await {
                Some(shortage) => Err(Unavailable::NearlyFull(shortage)),
                None => {
                    self.metrics.call(jobs.len());
                    crash_point!("api.before_write");
                    let results = J::store(&self.store, self.shard, &jobs).await;
                    crash_point!("api.after_write");
                    results.map_err(Unavailable::from)
                }
            };
            let expected = jobs.len();
            drop((jobs, permits));
            let mut results = results.and_then(|results| {
                let found = results.len();
                if found != expected {
                    tracing::error!(expected, found, "the store returned the wrong number of results");
                    return Err(Unavailable::GivenUp);
                }
                Ok(results.into_iter())
            });
            for (jobs, reply) in replies {
                let results = results.as_mut().map_err(|error| error.clone());
                reply.send(results.map(|results| results.take(jobs).collect())).ok();
            }
        }
    }

    async fn next(&mut self) -> Option<Waiting<J>> {
        match self.too_heavy.take() {
            Some(waiting) => Some(waiting),
            None => self.waiting.recv().await,
        }
    }
}

#[cfg(test)]
mod tests;
