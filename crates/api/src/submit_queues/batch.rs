//! Submits the jobs of a batch, shard by shard: each job goes to the queue of its shard once it is parsed, and gets a
//! result. After a failure the later jobs of that shard are not tried.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use ringback_admission::weight;
use ringback_core::job::JobKey;
use ringback_core::limits::MAX_BATCH_BYTES;
use ringback_core::store_types::Submitted;
use tokio::sync::mpsc;

use super::SubmitQueues;
use super::queued_job::QueuedJob;
use crate::error::Unavailable;
use crate::limits::{Deadline, MemoryPermit};

/// A job of a batch, with its number there.
pub(super) type NumberedJob<J> = (usize, J);
pub(crate) type ItemResult = (usize, Result<Submitted, ItemFailure>);

/// Why a job of a batch was not accepted, or may not have been.
#[derive(Debug)]
pub(crate) struct ItemFailure {
    pub(crate) error: Unavailable,
    /// The job, if it may have been accepted.
    pub(crate) key: Option<JobKey>,
}

impl ItemFailure {
    /// The failure of a job that was not submitted, because an earlier call for its shard failed.
    pub(crate) fn not_tried() -> Self {
        Self { error: Unavailable::NotTried, key: None }
    }

    fn of(error: &Unavailable, key: JobKey) -> Self {
        Self { error: error.clone(), key: error.outcome_is_unknown().then_some(key) }
    }
}

/// Submits the jobs that the receivers `unsent`, one for each shard, bring. Returns the results of all once the senders
/// are dropped.
pub(super) async fn submit<J: QueuedJob>(
    queues: &SubmitQueues<J>,
    unsent: Vec<mpsc::UnboundedReceiver<NumberedJob<J>>>,
    permit: &MemoryPermit,
    deadline: Deadline,
) -> Vec<ItemResult> {
    let deadlines = CallDeadlines { first: deadline, was_answered: AtomicBool::new(false) };
    let unsent = unsent.into_iter().map(|jobs| UnsentJobs { jobs, left: None });
    let shards = unsent.map(|unsent| submit_in_turn(queues, unsent, permit, &deadlines));
    join_all(shards).await.into_iter().flatten().collect()
}

/// Submits the jobs of one shard, call after call. After a call that fails, closes `unsent` and submits no more.
async fn submit_in_turn<J: QueuedJob>(
    queues: &SubmitQueues<J>,
    mut unsent: UnsentJobs<J>,
    permit: &MemoryPermit,
    deadlines: &CallDeadlines,
) -> Vec<ItemResult> {
    let mut results = Vec::new();
    while let Some((numbers, jobs)) = unsent.next_call().await {
        let keys: Vec<_> = jobs.iter().map(|job| job.job().key.clone()).collect();
        match queues.submit(jobs, permit.clone(), deadlines.next()).await {
            Ok(submitted) => {
                deadlines.was_answered.store(true, Ordering::Relaxed);
                results.extend(numbers.into_iter().zip(submitted.into_iter().map(Ok)));
            }
            Err(error) => {
                let failed = numbers.into_iter().zip(keys);
                results.extend(failed.map(|(number, key)| (number, Err(ItemFailure::of(&error, key)))));
                unsent.jobs.close();
                while let Some((number, _)) = unsent.next().await {
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

    /// Waits for a job, and adds those that have been sent by then, up to the weight of a call. `None` after the last.
    async fn next_call(&mut self) -> Option<(Vec<usize>, Vec<J>)> {
        let (number, job) = self.next().await?;
        let mut free = MAX_BATCH_BYTES.saturating_sub(weight(job.job()));
        let mut taken = (vec![number], vec![job]);
        while let Ok((number, job)) = self.jobs.try_recv() {
            let Some(rest) = free.checked_sub(weight(job.job())) else {
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
    use ringback_core::job::NewJob;
    use ringback_core::limits::MAX_BATCH;
    use ringback_core::store_types::StoreError;

    use super::*;
    use crate::state::tests::{job as job_of, unprepared};

    fn job(id: usize, body: usize) -> (usize, NewJob) {
        let body = "x".repeat(body);
        let json = format!(r#"{{"topic":"t","id":"{id}","url":"http://h/","body":"{body}"}}"#);
        (id, job_of(&unprepared(), &json))
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
        let (mut unsent, mut calls) = (UnsentJobs { jobs: receiver, left: None }, Vec::new());
        while let Some((numbers, _)) = unsent.next_call().await {
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
        let (mut sender, results) = api.submits.submit_all(&permit, Deadline::from_now(), None);
        let send = async {
            let mut at_once = Vec::new();
            for number in 0..40 {
                let (number, job) = job(number, 10);
                sender.send(number, job, &mut at_once).await;
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
