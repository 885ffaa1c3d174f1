//! `PacedBatch`: sends the jobs of a batch to the submit queues; with a [`Pace`], a few at a time with pauses, so that
//! the jobs of other tenants do not wait behind a large batch. Each call to the store delays the others, however small
//! it is, so up to four jobs of one shard go together.

use std::time::Duration;

use ringback_store::Store;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::batch::{ItemFailure, ItemResult, NumberedJob};
use super::queued_job::QueuedJob;

/// How many jobs of a shard go together.
const TOGETHER: usize = 4;
/// How many jobs of a batch go without a pause.
const FREE: usize = 8;
/// How many jobs go in a millisecond, and more if there are so many that they would take longer than [`WITHIN`]
/// milliseconds.
const RATE: usize = 2;
const WITHIN: usize = 200;

pub(crate) struct PacedBatch<'a, J> {
    store: &'a Store,
    shards: Vec<mpsc::UnboundedSender<NumberedJob<J>>>,
    /// The pace; `None` if each job is sent at once.
    pace: Option<Pace>,
    /// Jobs that wait for others of their shard.
    waiting: Vec<Vec<NumberedJob<J>>>,
}

pub(crate) struct Pace {
    /// Jobs in a millisecond.
    rate: usize,
    /// Jobs that still go without a pause.
    free: usize,
    /// Jobs that were sent since the last pause.
    sent: usize,
}

impl Pace {
    /// The pace of a batch of so many jobs.
    pub(crate) fn of(jobs: usize) -> Self {
        Self { rate: RATE.max(jobs.div_ceil(WITHIN)), free: FREE, sent: 0 }
    }

    /// The pause before the next jobs are sent, for those that were sent since the last pause.
    fn pause(&mut self) -> Duration {
        let pause = self.sent / self.rate;
        self.sent %= self.rate;
        Duration::from_millis(pause as u64)
    }

    fn sent(&mut self, jobs: usize) {
        let free = self.free.min(jobs);
        self.free -= free;
        self.sent += jobs - free;
    }
}

impl<'a, J: QueuedJob> PacedBatch<'a, J> {
    pub(super) fn new(
        store: &'a Store,
        shards: Vec<mpsc::UnboundedSender<NumberedJob<J>>>,
        pace: Option<Pace>,
    ) -> Self {
        let waiting = shards.iter().map(|_| Vec::new()).collect();
        Self { store, shards, pace, waiting }
    }

    /// Sends a job: without a pace at once, else after a pause and once there are four jobs of its shard. Adds failures
    /// to `results` for jobs that were not sent because the store has failed at their shard.
    pub(crate) async fn send(&mut self, number: usize, job: J, results: &mut Vec<ItemResult>) {
        let shard = usize::from(self.store.shard_of(&job.job().key).number());
        self.waiting[shard].push((number, job));
        if self.pace.is_none() || self.waiting[shard].len() == TOGETHER {
            self.send_waiting(shard, results).await;
        }
    }

    /// Sends the jobs that still wait, with pauses. Adds failures to `results` as [`Self::send`] does.
    pub(crate) async fn finish(mut self, results: &mut Vec<ItemResult>) {
        for shard in 0..self.waiting.len() {
            self.send_waiting(shard, results).await;
        }
    }

    /// Whether the store has failed at any shard.
    pub(crate) fn has_failed(&self) -> bool {
        self.shards.iter().any(mpsc::UnboundedSender::is_closed)
    }

    async fn send_waiting(&mut self, shard: usize, results: &mut Vec<ItemResult>) {
        let jobs = self.waiting[shard].len();
        if let Some(pace) = self.pace.as_mut().filter(|_| jobs > 0) {
            let pause = pace.pause();
            pace.sent(jobs);
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
        for job in self.waiting[shard].drain(..) {
            let sent = self.shards[shard].send(job);
            results.extend(sent.err().map(|job| (job.0.0, Err(ItemFailure::not_tried()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::limits::{Deadline, MemoryPermit};
    use crate::state::tests::{job, unprepared};

    #[test]
    fn a_pause_is_as_long_as_its_jobs_take_at_the_rate() {
        let pauses = |pace: &mut Pace, jobs: &[usize]| -> Vec<u128> {
            let pause = |jobs: &usize| {
                let pause = pace.pause().as_millis();
                pace.sent(*jobs);
                pause
            };
            jobs.iter().map(pause).collect()
        };
        assert_eq!(pauses(&mut Pace::of(24), &[4, 4, 4, 3, 3, 1, 1]), [0, 0, 0, 2, 1, 2, 0]);
        let of_many = pauses(&mut Pace::of(10_000), &[4; 27]);
        assert_eq!((of_many.iter().sum::<u128>(), of_many[15]), (1, 1), "{of_many:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn all_jobs_are_sent_and_take_their_time() {
        let api = unprepared();
        let numbered = |n: usize| job(&api, &format!(r#"{{"topic":"t","id":"{n}","url":"http://h/"}}"#));
        for (is_spread, least, most) in [(true, 14, 25), (false, 0, 0)] {
            let (permit, began) = (MemoryPermit::default(), Instant::now());
            let pace = is_spread.then(|| Pace::of(40));
            let (mut spread, results) = api.submits.submit_all(&permit, Deadline::from_now(), pace);
            let send = async {
                let mut results = Vec::new();
                for n in 0..40 {
                    spread.send(n, numbered(n), &mut results).await;
                }
                spread.finish(&mut results).await;
                results
            };
            let (at_once, mut results) = tokio::join!(send, results);
            let took = began.elapsed().as_millis();
            assert!((least..=most).contains(&took), "{took} ms");
            results.extend(at_once);
            results.sort_by_key(|(number, _)| *number);
            assert!(results.iter().map(|(number, _)| *number).eq(0..40));
        }
    }
}
