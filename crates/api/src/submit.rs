//! From a parsed job to the store's word on it. Submits of the same moment share one call
//! per shard, and so do imports; nobody waits for a call beyond the request's [`Deadline`].

mod item;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use ringback_core::contract::{Shard, StoreError, Submitted};
use ringback_core::limits::{MAX_BATCH, MAX_BATCH_BYTES};
use ringback_service::{Gather, GatherOptions, Shutdown, Tasks};
use ringback_store::{PoliciesUnknown, Store};
use tokio::sync::mpsc;

pub(crate) use self::item::Item;
use crate::deadline::Deadline;
use crate::error;
use crate::metrics::Metrics;
use crate::room::Share;

/// So many requests may wait for a shard's next call.
const CAPACITY: usize = 512;

type Outcome = Result<Vec<Submitted>, Unavailable>;
type Line<J> = Gather<Part<J>, Outcome>;

/// What goes into a line: jobs of one request and shard, in order, and the room that they take
/// until they have been carried, though their submitter went away.
struct Part<J> {
    jobs: Vec<J>,
    share: Share,
}

/// A job of a batch with its place in it.
type Numbered<J> = (usize, J);
/// What became of the job in that place.
pub(crate) type Answered = (usize, Result<Submitted, Unavailable>);

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
    /// The policies of the topics were not read yet.
    #[error(transparent)]
    Policies(#[from] PoliciesUnknown),
    /// An earlier call of the same request failed.
    #[error("the store did not carry out the calls before")]
    NotTried,
}

impl Unavailable {
    /// Whether the job may have been accepted all the same.
    pub(crate) fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::TooLate | Self::GivenUp => true,
            Self::NotTried | Self::NearlyFull | Self::Policies(_) => false,
            Self::Store(error) => match **error {
                StoreError::Away(_)
                | StoreError::Slow(_)
                | StoreError::Disk(_)
                | StoreError::Unreadable(_) => true,
                StoreError::Unprepared
                | StoreError::Replica
                | StoreError::Full
                | StoreError::Closed
                | StoreError::Outdated
                | StoreError::Unfit(_)
                | StoreError::Refused(_) => false,
            },
        }
    }
}

/// One line per shard.
pub(crate) struct Lines<J> {
    store: Store,
    lines: Vec<Line<J>>,
}

impl<J: Item> Lines<J> {
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let lines = store.shards().map(|shard| line(store.clone(), shard, metrics, tasks, shutdown));
        Self { lines: lines.collect(), store: store.clone() }
    }

    /// Submits one job.
    pub(crate) async fn submit(
        &self,
        job: J,
        share: Share,
        deadline: Deadline,
    ) -> Result<Submitted, Unavailable> {
        let line = self.line(self.store.shard_of(job.key()));
        let mut answers = call(line, Part { jobs: vec![job], share }, deadline).await?;
        answers.pop().ok_or(Unavailable::GivenUp)
    }

    /// Submits many jobs, from the first one on that is handed in. Those of a shard are submitted
    /// in order, and no further once the store has failed. The answers are there when the
    /// inlet is dropped.
    pub(crate) fn submit_all(
        &self,
        share: &Share,
        deadline: Deadline,
    ) -> (Inlet<'_, J>, impl Future<Output = Vec<Answered>>) {
        let (inlets, shards): (Vec<_>, Vec<_>) = self.lines.iter().map(|_| mpsc::unbounded_channel()).unzip();
        let answers = async move {
            let patience = Patience { deadline, heard: AtomicBool::new(false) };
            let waiting = shards.into_iter().map(|jobs| Waiting { jobs, held: None });
            let shards = self.lines.iter().zip(waiting);
            let shards = shards.map(|(line, waiting)| in_turn(line, waiting, share, &patience));
            join_all(shards).await.into_iter().flatten().collect()
        };
        (Inlet { store: &self.store, shards: inlets }, answers)
    }

    fn line(&self, shard: Shard) -> &Line<J> {
        &self.lines[usize::from(shard.number())]
    }
}

/// Where the jobs of a batch are handed in.
pub(crate) struct Inlet<'a, J> {
    store: &'a Store,
    shards: Vec<mpsc::UnboundedSender<Numbered<J>>>,
}

impl<J: Item> Inlet<'_, J> {
    /// Hands one in; where its shard has failed before, the answer is there at once.
    pub(crate) fn hand_in(&self, number: usize, job: J) -> Option<Answered> {
        let shard = &self.shards[usize::from(self.store.shard_of(job.key()).number())];
        shard.send((number, job)).err().map(|_| (number, Err(Unavailable::NotTried)))
    }

    /// Whether the store has failed at a shard.
    pub(crate) fn has_failed(&self) -> bool {
        self.shards.iter().any(mpsc::UnboundedSender::is_closed)
    }
}

fn line<J: Item>(
    store: Store,
    shard: Shard,
    metrics: &Arc<Metrics>,
    tasks: &mut Tasks,
    shutdown: &Shutdown,
) -> Line<J> {
    let metrics = Arc::clone(metrics);
    let options = GatherOptions {
        limit: MAX_BATCH,
        max_weight: MAX_BATCH_BYTES,
        weight: |part: &Part<J>| part.jobs.iter().map(Item::weight).sum(),
        // One at a time: what is submitted first arrives first, and batches grow with the load.
        in_flight: 1,
        capacity: CAPACITY,
    };
    let name = format!("{} of shard {}", J::NAME, shard.number());
    Gather::start(tasks, name, shutdown, options, move |parts: Vec<Part<J>>| {
        let (store, metrics) = (store.clone(), Arc::clone(&metrics));
        async move {
            if store.is_nearly_full().await {
                return parts.iter().map(|_| Err(Unavailable::NearlyFull)).collect();
            }
            let lengths: Vec<usize> = parts.iter().map(|part| part.jobs.len()).collect();
            let (jobs, _shares): (Vec<_>, Vec<_>) =
                parts.into_iter().map(|part| (part.jobs, part.share)).unzip();
            let jobs: Vec<J> = jobs.into_iter().flatten().collect();
            metrics.call(jobs.len());
            match J::carry(&store, shard, &jobs).await {
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

async fn call<J: Item>(line: &Line<J>, part: Part<J>, deadline: Deadline) -> Outcome {
    match deadline.bound(line.submit(part)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_closed)) => Err(Unavailable::GivenUp),
        Err(_elapsed) => Err(Unavailable::TooLate),
    }
}

/// Submits the jobs of one shard, as many per call as are there and one may carry.
async fn in_turn<J: Item>(
    line: &Line<J>,
    mut waiting: Waiting<J>,
    share: &Share,
    patience: &Patience,
) -> Vec<Answered> {
    let mut answers = Vec::new();
    while let Some((numbers, jobs)) = waiting.chunk().await {
        match call(line, Part { jobs, share: share.clone() }, patience.for_a_call()).await {
            Ok(submitted) => {
                patience.heard.store(true, Ordering::Relaxed);
                answers.extend(numbers.into_iter().zip(submitted.into_iter().map(Ok)));
            }
            Err(error) => {
                answers.extend(numbers.into_iter().map(|number| (number, Err(error.clone()))));
                waiting.jobs.close();
                while let Some((number, _)) = waiting.next().await {
                    answers.push((number, Err(Unavailable::NotTried)));
                }
            }
        }
    }
    answers
}

/// How long a batch waits: for the first word of the store to the request's deadline, then as
/// long again for each further word.
struct Patience {
    deadline: Deadline,
    heard: AtomicBool,
}

impl Patience {
    fn for_a_call(&self) -> Deadline {
        if self.heard.load(Ordering::Relaxed) { Deadline::from_now() } else { self.deadline }
    }
}

/// Jobs of one shard that have been handed in.
struct Waiting<J> {
    jobs: mpsc::UnboundedReceiver<Numbered<J>>,
    /// Taken out, but left for the next call by its weight.
    held: Option<Numbered<J>>,
}

impl<J: Item> Waiting<J> {
    async fn next(&mut self) -> Option<Numbered<J>> {
        match self.held.take() {
            Some(held) => Some(held),
            None => self.jobs.recv().await,
        }
    }

    /// What there is for one call; none when there will be no more.
    async fn chunk(&mut self) -> Option<(Vec<usize>, Vec<J>)> {
        let (number, job) = self.next().await?;
        let mut room = MAX_BATCH_BYTES.saturating_sub(job.weight());
        let mut taken = (vec![number], vec![job]);
        while let Ok((number, job)) = self.jobs.try_recv() {
            let Some(left) = room.checked_sub(job.weight()) else {
                self.held = Some((number, job));
                break;
            };
            room = left;
            taken.0.push(number);
            taken.1.push(job);
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::job::NewJob;

    use super::*;
    use crate::state::tests::unprepared;

    fn job(id: usize, body: usize) -> (usize, NewJob) {
        let body = "x".repeat(body);
        let json = format!(r#"{{"topic":"t","id":"{id}","url":"http://h/","body":"{body}"}}"#);
        (id, unprepared().parse(json.as_bytes(), None, None).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_has_heard_of_the_store_waits_anew_for_each_word() {
        let patience = Patience { deadline: Deadline::from_now(), heard: AtomicBool::new(false) };
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert!(patience.for_a_call().has_passed());
        patience.heard.store(true, Ordering::Relaxed);
        assert!(!patience.for_a_call().has_passed());
    }

    async fn chunks(jobs: Vec<Numbered<NewJob>>) -> Vec<Vec<usize>> {
        let (inlet, handed_in) = mpsc::unbounded_channel();
        jobs.into_iter().for_each(|job| inlet.send(job).unwrap());
        drop(inlet);
        let (mut waiting, mut chunks) = (Waiting { jobs: handed_in, held: None }, Vec::new());
        while let Some((numbers, _)) = waiting.chunk().await {
            chunks.push(numbers);
        }
        chunks
    }

    #[tokio::test]
    async fn a_chunk_is_no_more_than_a_call_may_carry() {
        let first = job(0, 10);
        let small = (0..MAX_BATCH + 3).map(|number| (number, first.1.clone())).collect();
        let lengths: Vec<_> = chunks(small).await.iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_BATCH, 3]);
        let large = [200, 200, 200, 200, 200, 200].into_iter().enumerate();
        let large = large.map(|(number, kib)| job(number, kib * 1024)).collect();
        assert_eq!(chunks(large).await, [vec![0, 1, 2, 3, 4], vec![5]]);
    }

    #[tokio::test]
    async fn every_job_of_a_batch_has_an_answer_when_the_store_fails() {
        let api = unprepared();
        let share = Share::default();
        let (inlet, answers) = api.submits.submit_all(&share, Deadline::from_now());
        let hand_in = async {
            let mut at_once = Vec::new();
            for number in 0..40 {
                let (number, job) = job(number, 10);
                at_once.extend(inlet.hand_in(number, job));
                tokio::task::yield_now().await;
            }
            drop(inlet);
            at_once
        };
        let (at_once, mut answers) = tokio::join!(hand_in, answers);
        answers.extend(at_once);
        answers.sort_by_key(|(number, _)| *number);
        let numbers: Vec<_> = answers.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        assert!(answers.iter().all(|(_, answer)| match answer {
            Err(Unavailable::Store(error)) => matches!(**error, StoreError::Unprepared),
            Err(error) => matches!(error, Unavailable::NotTried),
            Ok(_) => false,
        }));
    }
}
