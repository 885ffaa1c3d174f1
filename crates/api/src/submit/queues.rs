//! `SubmitQueues`: a queue of jobs for each shard, whose batches become store calls. Each shard gets
//! one call at a time, which keeps submits in order. A request submits one job, or the items of a
//! batch while it still parses the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use ringback_core::contract::{Shard, Submitted};
use ringback_core::crash_point;
use ringback_core::job::JobKey;
use ringback_core::limits::{MAX_BATCH, MAX_BATCH_BYTES};
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::mpsc;

use super::batcher::{Batcher, Limits};
use super::queued_job::QueuedJob;
use crate::error::Unavailable;
use crate::limits::{Deadline, MemoryPermit};
use crate::metrics::Metrics;

/// How many requests may wait for a shard's next call.
const CAPACITY: usize = 512;

type StoreReply = Result<Vec<Submitted>, Unavailable>;
type Queue<J> = Batcher<RequestChunk<J>, StoreReply>;

/// The jobs of one request for one shard, in order. Their memory permit is held until they are
/// in the store, even if the client disconnects.
struct RequestChunk<J> {
    jobs: Vec<J>,
    permit: MemoryPermit,
}

/// A job of a batch, with its number there.
pub(super) type NumberedJob<J> = (usize, J);
/// The result for the item of that number.
pub(crate) type ItemResult = (usize, Result<Submitted, ItemFailure>);

/// Why a job of a batch was not accepted, or may not have been.
#[derive(Debug)]
pub(crate) struct ItemFailure {
    pub(crate) error: Unavailable,
    /// The job, if it may have been accepted.
    pub(crate) key: Option<JobKey>,
}

impl ItemFailure {
    /// That of a job that was not submitted because an earlier call failed.
    pub(crate) fn not_tried() -> Self {
        Self { error: Unavailable::NotTried, key: None }
    }

    fn of(error: &Unavailable, key: JobKey) -> Self {
        Self { error: error.clone(), key: error.outcome_is_unknown().then_some(key) }
    }
}

/// One queue per shard.
pub(crate) struct SubmitQueues<J> {
    store: Store,
    queues: Vec<Queue<J>>,
}

impl<J: QueuedJob> SubmitQueues<J> {
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let queues = store.shards().map(|shard| queue(store.clone(), shard, metrics, tasks, shutdown));
        Self { queues: queues.collect(), store: store.clone() }
    }

    pub(crate) async fn submit(
        &self,
        job: J,
        permit: MemoryPermit,
        deadline: Deadline,
    ) -> Result<Submitted, Unavailable> {
        let queue = &self.queues[usize::from(self.store.shard_of(job.key()).number())];
        let mut results = call(queue, RequestChunk { jobs: vec![job], permit }, deadline).await?;
        results.pop().ok_or(Unavailable::GivenUp)
    }

    /// Submits the jobs that are sent to the returned [`BatchSender`]. Those of a shard are
    /// submitted in order, and not after the store has failed there. The results are complete
    /// once the sender is dropped.
    pub(crate) fn submit_all(
        &self,
        permit: &MemoryPermit,
        deadline: Deadline,
    ) -> (BatchSender<'_, J>, impl Future<Output = Vec<ItemResult>>) {
        let (shards, inboxes): (Vec<_>, Vec<_>) =
            self.queues.iter().map(|_| mpsc::unbounded_channel()).unzip();
        let results = async move {
            let deadlines = CallDeadlines { first: deadline, was_answered: AtomicBool::new(false) };
            let inboxes = inboxes.into_iter().map(|jobs| UnsentJobs { jobs, left: None });
            let shards = self.queues.iter().zip(inboxes);
            let shards = shards.map(|(queue, inbox)| submit_in_turn(queue, inbox, permit, &deadlines));
            join_all(shards).await.into_iter().flatten().collect()
        };
        (BatchSender { store: &self.store, shards }, results)
    }
}

/// Sends the jobs of a batch to the queues of their shards.
pub(crate) struct BatchSender<'a, J> {
    store: &'a Store,
    shards: Vec<mpsc::UnboundedSender<NumberedJob<J>>>,
}

impl<J: QueuedJob> BatchSender<'_, J> {
    /// Sends a job to its shard. Returns its result at once if that shard has failed before.
    pub(crate) fn send(&self, number: usize, job: J) -> Option<ItemResult> {
        let shard = &self.shards[self.shard_of(&job)];
        shard.send((number, job)).err().map(|_| (number, Err(ItemFailure::not_tried())))
    }

    pub(super) fn shard_of(&self, job: &J) -> usize {
        self.store.shard_of(job.key()).number().into()
    }

    /// How many shards there are.
    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Whether the store has failed at any shard.
    pub(super) fn has_failed(&self) -> bool {
        self.shards.iter().any(mpsc::UnboundedSender::is_closed)
    }
}

fn queue<J: QueuedJob>(
    store: Store,
    shard: Shard,
    metrics: &Arc<Metrics>,
    tasks: &mut Tasks,
    shutdown: &Shutdown,
) -> Queue<J> {
    let metrics = Arc::clone(metrics);
    let limits = Limits {
        items: MAX_BATCH,
        weight: MAX_BATCH_BYTES,
        weigh: |part: &RequestChunk<J>| part.jobs.iter().map(QueuedJob::weight).sum(),
        waiting: CAPACITY,
    };
    let name = format!("{} of shard {}", J::NAME, shard.number());
    Batcher::start(tasks, name, shutdown, limits, move |parts: Vec<RequestChunk<J>>| {
        let (store, metrics) = (store.clone(), Arc::clone(&metrics));
        async move {
            if let Some(shortage) = store.shortage().await {
                return parts.iter().map(|_| Err(Unavailable::NearlyFull(shortage))).collect();
            }
            let lengths: Vec<usize> = parts.iter().map(|part| part.jobs.len()).collect();
            let (jobs, _permits): (Vec<_>, Vec<_>) =
                parts.into_iter().map(|part| (part.jobs, part.permit)).unzip();
            let jobs: Vec<J> = jobs.into_iter().flatten().collect();
            metrics.call(jobs.len());
            crash_point!("api.before_write");
            let stored = J::store(&store, shard, &jobs).await;
            crash_point!("api.after_write");
            match stored.map_err(Unavailable::from) {
                Ok(results) => {
                    let mut results = results.into_iter();
                    lengths.into_iter().map(|n| Ok(results.by_ref().take(n).collect())).collect()
                }
                Err(error) => lengths.into_iter().map(|_| Err(error.clone())).collect(),
            }
        }
    })
}

async fn call<J: QueuedJob>(queue: &Queue<J>, part: RequestChunk<J>, deadline: Deadline) -> StoreReply {
    match deadline.bound(queue.submit(part)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_closed)) => Err(Unavailable::GivenUp),
        Err(_elapsed) => Err(Unavailable::TooLate),
    }
}

/// Submits the jobs of one shard, call after call.
async fn submit_in_turn<J: QueuedJob>(
    queue: &Queue<J>,
    mut inbox: UnsentJobs<J>,
    permit: &MemoryPermit,
    deadlines: &CallDeadlines,
) -> Vec<ItemResult> {
    let mut results = Vec::new();
    while let Some((numbers, jobs)) = inbox.next_call().await {
        let keys: Vec<_> = jobs.iter().map(|job| job.key().clone()).collect();
        match call(queue, RequestChunk { jobs, permit: permit.clone() }, deadlines.next()).await {
            Ok(submitted) => {
                deadlines.was_answered.store(true, Ordering::Relaxed);
                results.extend(numbers.into_iter().zip(submitted.into_iter().map(Ok)));
            }
            Err(error) => {
                let failed = numbers.into_iter().zip(keys);
                results.extend(failed.map(|(number, key)| (number, Err(ItemFailure::of(&error, key)))));
                inbox.jobs.close();
                while let Some((number, _)) = inbox.next().await {
                    results.push((number, Err(ItemFailure::not_tried())));
                }
            }
        }
    }
    results
}

/// The deadlines of a batch's calls: that of the request until the store has answered a call,
/// then a new one for each further call.
struct CallDeadlines {
    first: Deadline,
    was_answered: AtomicBool,
}

impl CallDeadlines {
    fn next(&self) -> Deadline {
        if self.was_answered.load(Ordering::Relaxed) { Deadline::from_now() } else { self.first }
    }
}

/// The jobs of one shard that have been sent and not yet submitted.
struct UnsentJobs<J> {
    jobs: mpsc::UnboundedReceiver<NumberedJob<J>>,
    /// A job that was too heavy for the last call.
    left: Option<NumberedJob<J>>,
}

impl<J: QueuedJob> UnsentJobs<J> {
    async fn next(&mut self) -> Option<NumberedJob<J>> {
        match self.left.take() {
            Some(left) => Some(left),
            None => self.jobs.recv().await,
        }
    }

    /// The jobs that are there, up to the limits of a call. `None` after the last.
    async fn next_call(&mut self) -> Option<(Vec<usize>, Vec<J>)> {
        let (number, job) = self.next().await?;
        let mut free = MAX_BATCH_BYTES.saturating_sub(job.weight());
        let mut taken = (vec![number], vec![job]);
        while let Ok((number, job)) = self.jobs.try_recv() {
            let Some(rest) = free.checked_sub(job.weight()) else {
                self.left = Some((number, job));
                break;
            };
            free = rest;
            taken.0.push(number);
            taken.1.push(job);
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::contract::StoreError;
    use ringback_core::job::NewJob;

    use super::*;
    use crate::state::tests::unprepared;

    fn job(id: usize, body: usize) -> (usize, NewJob) {
        let body = "x".repeat(body);
        let json = format!(r#"{{"topic":"t","id":"{id}","url":"http://h/","body":"{body}"}}"#);
        (
            id,
            unprepared()
                .admission
                .parse_job(
                    json.as_bytes(),
                    None,
                    &mut None,
                    &ringback_admission::Principal::operator(ringback_core::job::TenantScope::All),
                )
                .unwrap(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn once_the_store_has_answered_each_call_has_a_new_deadline() {
        let deadlines = CallDeadlines { first: Deadline::from_now(), was_answered: AtomicBool::new(false) };
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert!(deadlines.next().has_passed());
        deadlines.was_answered.store(true, Ordering::Relaxed);
        assert!(!deadlines.next().has_passed());
    }

    async fn calls(jobs: Vec<NumberedJob<NewJob>>) -> Vec<Vec<usize>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        jobs.into_iter().for_each(|job| sender.send(job).unwrap());
        drop(sender);
        let (mut inbox, mut calls) = (UnsentJobs { jobs: receiver, left: None }, Vec::new());
        while let Some((numbers, _)) = inbox.next_call().await {
            calls.push(numbers);
        }
        calls
    }

    #[tokio::test]
    async fn a_call_has_at_most_the_jobs_and_bytes_that_the_store_takes() {
        let first = job(0, 10);
        let small = (0..MAX_BATCH + 3).map(|number| (number, first.1.clone())).collect();
        let lengths: Vec<_> = calls(small).await.iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_BATCH, 3]);
        let large = [200, 200, 200, 200, 200, 200].into_iter().enumerate();
        let large = large.map(|(number, kib)| job(number, kib * 1024)).collect();
        assert_eq!(calls(large).await, [vec![0, 1, 2, 3, 4], vec![5]]);
    }

    #[tokio::test]
    async fn every_job_of_a_batch_has_a_result_when_the_store_fails() {
        let api = unprepared();
        let permit = MemoryPermit::default();
        let (sender, results) = api.submits.submit_all(&permit, Deadline::from_now());
        let send = async {
            let mut at_once = Vec::new();
            for number in 0..40 {
                let (number, job) = job(number, 10);
                at_once.extend(sender.send(number, job));
                tokio::task::yield_now().await;
            }
            drop(sender);
            at_once
        };
        let (at_once, mut results) = tokio::join!(send, results);
        results.extend(at_once);
        results.sort_by_key(|(number, _)| *number);
        let numbers: Vec<_> = results.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        assert!(results.iter().all(|(_, result)| match result {
            Err(ItemFailure { error: Unavailable::Store(error), key: None }) => {
                matches!(**error, StoreError::Unprepared)
            }
            Err(failure) => matches!(failure.error, Unavailable::NotTried),
            Ok(_) => false,
        }));
    }

    #[tokio::test]
    async fn a_job_that_may_have_been_accepted_is_named() {
        let key = job(0, 1).1.key;
        assert_eq!(ItemFailure::of(&Unavailable::TooLate, key.clone()).key, Some(key.clone()));
        assert_eq!(ItemFailure::of(&Unavailable::NotTried, key).key, None);
    }
}
