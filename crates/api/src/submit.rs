//! From a parsed job to the store's word on it. Submits of the same moment share one call
//! per shard; nobody waits longer than [`ANSWER_WITHIN`] for a call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ringback_core::job::NewJob;
use ringback_core::store::{MAX_BATCH, MAX_BATCH_BYTES, Shard, Store, StoreError, Submitted};
use ringback_service::{Gather, GatherOptions};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::error;
use crate::metrics::Metrics;
use crate::pressure::Pressure;

/// So long a request waits for one call of the store, its turn included.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(1900);
/// So many requests may wait for a shard's next call.
const CAPACITY: usize = 512;
/// What a job weighs at least, so that a full weight is also at most [`MAX_BATCH`] jobs.
const LEAST_WEIGHT: usize = MAX_BATCH_BYTES / MAX_BATCH;

type Outcome = Result<Vec<Submitted>, Unavailable>;
/// Items are the jobs of one request and shard, in order.
type Line = Gather<Vec<NewJob>, Outcome>;

/// Why the store's word is missing.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// The store did not carry out the call.
    #[error("{}", error::brief(.0))]
    Store(#[source] Arc<StoreError>),
    /// The store is nearly full.
    #[error("the store has passed 80 % of its memory limit")]
    NearlyFull,
    /// The call, or the turn for it, did not come in time.
    #[error("the store did not answer in time")]
    TooLate,
    /// The call died.
    #[error("the call to the store was given up")]
    GivenUp,
    /// An earlier call of the same request failed.
    #[error("the store did not carry out the calls before")]
    NotTried,
}

impl Unavailable {
    /// Whether the job may have been accepted all the same.
    pub(crate) fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::TooLate | Self::GivenUp => true,
            Self::NotTried | Self::NearlyFull => false,
            Self::Store(error) => match **error {
                StoreError::Away(_)
                | StoreError::Slow(_)
                | StoreError::Disk(_)
                | StoreError::Unreadable(_) => true,
                StoreError::Unprepared
                | StoreError::Replica
                | StoreError::Full
                | StoreError::Closed
                | StoreError::Unfit(_)
                | StoreError::Refused(_) => false,
            },
        }
    }
}

/// One line per shard.
pub(crate) struct Lines {
    store: Store,
    lines: Vec<Line>,
}

impl Lines {
    pub(crate) fn start(store: &Store, metrics: &Arc<Metrics>, tasks: &TaskTracker) -> Self {
        let pressure = Arc::new(Pressure::default());
        let lines = store.shards().map(|shard| line(store.clone(), shard, metrics, &pressure, tasks));
        Self { lines: lines.collect(), store: store.clone() }
    }

    /// Submits one job.
    pub(crate) async fn submit(&self, job: NewJob) -> Result<Submitted, Unavailable> {
        let line = self.line(self.store.shard_of(&job.key));
        let mut answers = call(line, vec![job]).await?;
        answers.pop().ok_or(Unavailable::GivenUp)
    }

    /// Submits many jobs, each beside a number that comes back with its answer. Those of a shard
    /// are submitted in order, and no further once the store has failed.
    pub(crate) async fn submit_all(
        &self,
        jobs: Vec<(usize, NewJob)>,
    ) -> Vec<(usize, Result<Submitted, Unavailable>)> {
        let mut by_shard: Vec<Vec<(usize, NewJob)>> = self.lines.iter().map(|_| Vec::new()).collect();
        for (number, job) in jobs {
            by_shard[usize::from(self.store.shard_of(&job.key).number())].push((number, job));
        }
        let shards = self.lines.iter().zip(by_shard).map(|(line, jobs)| in_turn(line, jobs));
        join_all(shards).await.into_iter().flatten().collect()
    }

    fn line(&self, shard: Shard) -> &Line {
        &self.lines[usize::from(shard.number())]
    }
}

fn line(
    store: Store,
    shard: Shard,
    metrics: &Arc<Metrics>,
    pressure: &Arc<Pressure>,
    tasks: &TaskTracker,
) -> Line {
    let (metrics, pressure) = (Arc::clone(metrics), Arc::clone(pressure));
    let options = GatherOptions {
        limit: MAX_BATCH,
        max_weight: MAX_BATCH_BYTES,
        weight: |jobs: &Vec<NewJob>| jobs.iter().map(weight).sum(),
        // One at a time: what is submitted first arrives first, and batches grow with the load.
        in_flight: 1,
        turns: None,
        capacity: CAPACITY,
    };
    Gather::start(tasks, options, move |items: Vec<Vec<NewJob>>| {
        let (store, metrics, pressure) = (store.clone(), Arc::clone(&metrics), Arc::clone(&pressure));
        async move {
            if pressure.is_high(&store).await {
                return items.iter().map(|_| Err(Unavailable::NearlyFull)).collect();
            }
            let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
            let jobs: Vec<NewJob> = items.into_iter().flatten().collect();
            metrics.call(jobs.len());
            match store.submit(shard, &jobs).await {
                Ok(answers) => {
                    let mut answers = answers.into_iter();
                    lengths.into_iter().map(|n| Ok(answers.by_ref().take(n).collect())).collect()
                }
                Err(error) => {
                    error::log(&error);
                    let error = Unavailable::Store(Arc::new(error));
                    lengths.into_iter().map(|_| Err(error.clone())).collect()
                }
            }
        }
    })
}

async fn call(line: &Line, jobs: Vec<NewJob>) -> Result<Vec<Submitted>, Unavailable> {
    match timeout(ANSWER_WITHIN, line.submit(jobs)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_closed)) => Err(Unavailable::GivenUp),
        Err(_elapsed) => Err(Unavailable::TooLate),
    }
}

/// Submits the jobs of one shard, as many per call as one may carry.
async fn in_turn(line: &Line, jobs: Vec<(usize, NewJob)>) -> Vec<(usize, Result<Submitted, Unavailable>)> {
    let mut results = Vec::with_capacity(jobs.len());
    let mut jobs = jobs.into_iter().peekable();
    while jobs.peek().is_some() {
        let (numbers, chunk) = chunk(&mut jobs);
        match call(line, chunk).await {
            Ok(answers) => results.extend(numbers.into_iter().zip(answers.into_iter().map(Ok))),
            Err(error) => {
                results.extend(numbers.into_iter().map(|number| (number, Err(error.clone()))));
                results.extend(jobs.by_ref().map(|(number, _)| (number, Err(Unavailable::NotTried))));
            }
        }
    }
    results
}

fn chunk(jobs: &mut std::iter::Peekable<impl Iterator<Item = (usize, NewJob)>>) -> (Vec<usize>, Vec<NewJob>) {
    let mut room = MAX_BATCH_BYTES;
    let mut taken = (Vec::new(), Vec::new());
    while let Some((number, job)) = jobs.next_if(|(_, job)| taken.1.is_empty() || weight(job) <= room) {
        room = room.saturating_sub(weight(&job));
        taken.0.push(number);
        taken.1.push(job);
    }
    taken
}

/// About how many bytes a job brings to a call.
fn weight(job: &NewJob) -> usize {
    let entries = |list: &[(String, String)]| list.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
    let delivery = &job.delivery;
    let bytes = delivery.body.bytes.len()
        + delivery.callback.origin().len()
        + delivery.callback.path().len()
        + entries(delivery.headers.entries())
        + entries(delivery.context.entries());
    bytes.max(LEAST_WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::unprepared;

    fn job(id: usize, body: usize) -> (usize, NewJob) {
        let body = "x".repeat(body);
        let json = format!(r#"{{"topic":"t","id":"{id}","url":"http://h/","body":"{body}"}}"#);
        (id, unprepared().parse(json.as_bytes(), None).unwrap())
    }

    fn chunks(jobs: Vec<(usize, NewJob)>) -> Vec<Vec<usize>> {
        let mut jobs = jobs.into_iter().peekable();
        let mut chunks = Vec::new();
        while jobs.peek().is_some() {
            chunks.push(chunk(&mut jobs).0);
        }
        chunks
    }

    #[tokio::test]
    async fn a_chunk_is_no_more_than_a_call_may_carry() {
        let first = job(0, 10);
        let small = (0..MAX_BATCH + 3).map(|number| (number, first.1.clone())).collect();
        let lengths: Vec<_> = chunks(small).iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_BATCH, 3]);
        let large = [200, 200, 200, 200, 200, 200].into_iter().enumerate();
        let large = large.map(|(number, kib)| job(number, kib * 1024)).collect();
        assert_eq!(chunks(large), [vec![0, 1, 2, 3, 4], vec![5]]);
    }

    #[tokio::test]
    async fn every_job_of_a_batch_has_an_answer_when_the_store_fails() {
        let api = unprepared();
        let jobs: Vec<_> = (0..40).map(|number| job(number, 10)).collect();
        let mut answers = api.lines.submit_all(jobs).await;
        answers.sort_by_key(|(number, _)| *number);
        let numbers: Vec<_> = answers.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        assert!(answers.iter().all(|(_, answer)| {
            matches!(answer, Err(Unavailable::Store(error)) if matches!(**error, StoreError::Unprepared))
        }));
    }
}
