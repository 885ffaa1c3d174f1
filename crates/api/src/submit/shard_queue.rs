//! `ShardQueue`: the jobs of a shard that wait for the store. One store call runs at a time, which keeps submits in
//! order. Jobs that arrive meanwhile share the next call, so an idle queue calls at once with one job, and calls grow
//! with the load. There is no timer. A call that panics stops the process.

use std::sync::Arc;
use std::time::Duration;

use ringback_admission::weight;
use ringback_core::contract::{Shard, Submitted};
use ringback_core::crash_point;
use ringback_core::limits::MAX_BATCH_BYTES;
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::queued_job::QueuedJob;
use crate::error::Unavailable;
use crate::limits::{Deadline, MemoryPermit};
use crate::metrics::Metrics;

/// How many requests may wait for a shard's next call.
const CAPACITY: usize = 512;
/// How much longer than the grace period of the shutdown a call may run. Calls notice the end of the
/// grace period themselves and only need time to answer.
const LAST_CALL: Duration = Duration::from_millis(500);

type Results = Result<Vec<Submitted>, Unavailable>;

/// The jobs of one request for one shard, in order. Their memory permit is held until they are
/// in the store, even if the client disconnects.
pub(super) struct RequestChunk<J> {
    pub(super) jobs: Vec<J>,
    pub(super) permit: MemoryPermit,
}

struct Waiting<J> {
    chunk: RequestChunk<J>,
    reply: oneshot::Sender<Results>,
}

/// A handle to the queue. The queue ends when the handle is dropped and every job has its
/// result, or shortly after the grace period of the shutdown.
pub(super) struct ShardQueue<J>(mpsc::Sender<Waiting<J>>);

impl<J: QueuedJob> ShardQueue<J> {
    pub(super) fn start(
        store: &Store,
        shard: Shard,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
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
        Self(queue)
    }

    /// Submits jobs, at most [`MAX_BATCH_BYTES`] by weight, and waits for their results. Once they are in the queue they
    /// are stored even if this future is dropped, unless the grace period of the shutdown ends first.
    pub(super) async fn submit(&self, chunk: RequestChunk<J>, deadline: Deadline) -> Results {
        let results = async {
            let (reply, results) = oneshot::channel();
            self.0.send(Waiting { chunk, reply }).await.ok()?;
            results.await.ok()
        };
        match deadline.bound(results).await {
            Ok(results) => results.unwrap_or(Err(Unavailable::GivenUp)),
            Err(_elapsed) => Err(Unavailable::TooLate),
        }
    }
}

/// Makes the calls of a queue.
struct Worker<J> {
    store: Store,
    shard: Shard,
    metrics: Arc<Metrics>,
    waiting: mpsc::Receiver<Waiting<J>>,
    /// A chunk that was too heavy for the last call.
    too_heavy: Option<Waiting<J>>,
}

impl<J: QueuedJob> Worker<J> {
    /// Makes calls until the handle is dropped and nothing waits.
    async fn run(mut self) {
        while let Some(first) = self.next().await {
            // Lets requests that are ready to run share the call; that needs no timer.
            tokio::task::yield_now().await;
            let chunks = self.next_call(first);
            self.store(chunks).await;
        }
    }

    async fn next(&mut self) -> Option<Waiting<J>> {
        match self.too_heavy.take() {
            Some(waiting) => Some(waiting),
            None => self.waiting.recv().await,
        }
    }

    /// What waits, up to the weight of a call. Each job weighs enough that this bounds their number too.
    fn next_call(&mut self, first: Waiting<J>) -> Vec<Waiting<J>> {
        let weigh = |waiting: &Waiting<J>| waiting.chunk.jobs.iter().map(|job| weight(job.job())).sum();
        let mut free = MAX_BATCH_BYTES.saturating_sub(weigh(&first));
        let mut chunks = vec![first];
        while let Ok(next) = self.waiting.try_recv() {
            let Some(rest) = free.checked_sub(weigh(&next)) else {
                self.too_heavy = Some(next);
                break;
            };
            free = rest;
            chunks.push(next);
        }
        chunks
    }

    /// Makes one call of the store, and sends each request its results. The clients may be gone; the jobs are stored all
    /// the same.
    async fn store(&self, chunks: Vec<Waiting<J>>) {
        if let Some(shortage) = self.store.shortage().await {
            for Waiting { reply, .. } in chunks {
                reply.send(Err(Unavailable::NearlyFull(shortage))).ok();
            }
            return;
        }
        let (mut jobs, mut permits, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for Waiting { chunk, reply } in chunks {
            replies.push((chunk.jobs.len(), reply));
            permits.push(chunk.permit);
            jobs.extend(chunk.jobs);
        }
        self.metrics.call(jobs.len());
        crash_point!("api.before_write");
        let stored = J::store(&self.store, self.shard, &jobs).await;
        crash_point!("api.after_write");
        let expected = jobs.len();
        drop((jobs, permits));
        match stored.map_err(Unavailable::from) {
            Ok(results) if results.len() != expected => {
                let found = results.len();
                tracing::error!(expected, found, "the store returned the wrong number of results");
            }
            Ok(results) => {
                let mut results = results.into_iter();
                for (jobs, reply) in replies {
                    reply.send(Ok(results.by_ref().take(jobs).collect())).ok();
                }
            }
            Err(error) => {
                for (_, reply) in replies {
                    reply.send(Err(error.clone())).ok();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
