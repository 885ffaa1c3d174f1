//! Outcomes on their way to the store: what waits in each shard, when it may go, and what is
//! to be told again. A store that is away is asked again until the lease has run out, and for
//! a success a while longer; a job whose lease has run out is recovered. Makes no calls itself.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringback_core::job::JobKey;
use ringback_core::outcome::Outcome;
use ringback_core::store::{Lateness, Lease, MAX_BATCH, Settled, Shard, Unsettled};
use ringback_service::backoff::Backoff;
use ringback_service::random;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::metrics::Metrics;

/// The shards take turns, since settling is in no hurry: the lanes are free by then, and fewer,
/// larger calls leave Redis more time. A slow shard holds the others up no longer.
const TURN: Duration = Duration::from_millis(5);
/// Words wait no longer for a reserve of their shard that is foreseen.
const RIDE: Duration = Duration::from_millis(20);
/// How long after its lease a success is still told.
const LATE_SUCCESS: Duration = Duration::from_secs(300);

/// The word on one lease.
pub(crate) struct Word {
    pub(crate) lease: Lease,
    pub(crate) outcome: Outcome,
    /// How late the attempt was sent.
    pub(crate) late: Duration,
}

/// What one call settles.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<(Lease, Outcome)>,
    pub(crate) lateness: Lateness,
}

/// The words of a shard.
#[derive(Default)]
struct Line {
    waiting: Vec<Word>,
    /// When the first of them came.
    since: Option<Instant>,
    /// After a call that failed, until one succeeds.
    trouble: Option<Trouble>,
}

/// What could not be settled. It is told again as it was, and by itself, so that what fails
/// about a reserve does not keep it from being settled.
struct Trouble {
    /// Nothing while it is being told.
    batch: Option<Batch>,
    at: Instant,
    backoff: Backoff,
}

/// All words that are not settled yet.
pub(crate) struct Settler {
    lines: HashMap<Shard, Line>,
    /// Shards with a call under way that settles; what comes meanwhile shares the next one.
    telling: HashSet<Shard>,
    metrics: Metrics,
}

impl Settler {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { lines: HashMap::new(), telling: HashSet::new(), metrics }
    }

    pub(crate) fn add(&mut self, word: Word, now: Instant) {
        let line = self.lines.entry(word.lease.shard()).or_default();
        line.waiting.push(word);
        line.since.get_or_insert(now);
    }

    /// Whether no word waits. Those of calls under way do not.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.values().all(|line| line.waiting.is_empty() && line.batch().is_none())
    }

    /// The shard whose words may go first, and when: at once on an idle line; a moment later
    /// where a reserve of the shard is foreseen, or others are settled just now.
    pub(crate) fn next(&self, is_foreseen: impl Fn(Shard) -> bool) -> Option<(Shard, Instant)> {
        let turn = if self.telling.is_empty() { Duration::ZERO } else { TURN };
        let lines = self.lines.iter().filter(|(shard, _)| !self.telling.contains(shard));
        let times = lines.filter_map(|(shard, line)| {
            let at = match &line.trouble {
                Some(trouble) => trouble.at,
                None if is_foreseen(*shard) => line.since? + RIDE,
                None => line.since? + turn,
            };
            Some((*shard, at))
        });
        times.min_by_key(|(_, at)| *at)
    }

    /// What may go along with a reserve of the shard.
    pub(crate) fn ride(&mut self, shard: Shard) -> Option<Batch> {
        let line = self.lines.get_mut(&shard)?;
        if self.telling.contains(&shard) || line.trouble.is_some() || line.waiting.is_empty() {
            return None;
        }
        self.take(shard)
    }

    /// What is to be settled of the shard now. The next call to [`Settler::answered`] or
    /// [`Settler::failed`] is about that.
    pub(crate) fn take(&mut self, shard: Shard) -> Option<Batch> {
        let line = self.lines.get_mut(&shard)?;
        let batch = match &mut line.trouble {
            Some(trouble) => trouble.batch.take()?,
            None => line.fill(),
        };
        self.telling.insert(shard);
        self.metrics.settle_batch.record(batch.items.len() as u64, &[]);
        Some(batch)
    }

    /// The answers to a call.
    pub(crate) fn answered(&mut self, shard: Shard, jobs: &[JobKey], answers: &[Settled]) {
        self.telling.remove(&shard);
        if let Some(line) = self.lines.get_mut(&shard) {
            line.trouble = None;
        }
        for (job, settled) in jobs.iter().zip(answers) {
            self.heed(job, *settled);
        }
    }

    fn heed(&self, job: &JobKey, settled: Settled) {
        match settled {
            Settled::Applied | Settled::Replayed => {}
            Settled::Late => {
                self.metrics.late_settles.add(1, &[]);
                info!(job.topic = %job.topic, job.id = %job.id, "the lease had run out; the success counted all the same");
            }
            Settled::Stale => {
                self.metrics.stale_settles.add(1, &[]);
                info!(job.topic = %job.topic, job.id = %job.id, "the lease had run out; the outcome changed nothing");
            }
        }
    }

    /// A call has failed. Returns how many of its words are not worth telling again.
    pub(crate) fn failed(
        &mut self,
        shard: Shard,
        unsettled: Unsettled,
        lateness: Lateness,
        now: Instant,
    ) -> usize {
        self.telling.remove(&shard);
        let (count, error) = (unsettled.items.len(), unsettled.error);
        let (items, over): (Vec<_>, Vec<_>) =
            unsettled.items.into_iter().partition(|item| now < deadline(item));
        self.give_up(&over);
        let line = self.lines.entry(shard).or_default();
        let mut backoff = match line.trouble.take() {
            Some(trouble) => trouble.backoff,
            None => {
                warn!(
                    shard = shard.number(),
                    jobs = count,
                    error = crate::cause(&error),
                    "not settled; trying again"
                );
                Backoff::new(random::generator())
            }
        };
        if !items.is_empty() {
            let at = now + backoff.next();
            line.trouble = Some(Trouble { batch: Some(Batch { items, lateness }), at, backoff });
        }
        over.len()
    }

    /// The grace of a shutdown is over: what waits is given up.
    pub(crate) fn close(mut self) {
        for line in std::mem::take(&mut self.lines).into_values() {
            let again = line.trouble.and_then(|trouble| trouble.batch).unwrap_or_default();
            self.give_up(&again.items);
            let items: Vec<_> = line.waiting.into_iter().map(|word| (word.lease, word.outcome)).collect();
            self.give_up(&items);
        }
    }

    fn give_up(&self, items: &[(Lease, Outcome)]) {
        for (lease, _) in items {
            let job = &lease.key;
            self.metrics.unsettled.add(1, &[]);
            warn!(job.topic = %job.topic, job.id = %job.id, "not settled before the lease ran out; it is handed over again");
        }
    }
}

impl Line {
    fn batch(&self) -> Option<&Batch> {
        self.trouble.as_ref()?.batch.as_ref()
    }

    /// As many as one call carries.
    fn fill(&mut self) -> Batch {
        let mut batch = Batch::default();
        for word in self.waiting.drain(..self.waiting.len().min(MAX_BATCH)) {
            batch.lateness.record(word.late);
            batch.items.push((word.lease, word.outcome));
        }
        if self.waiting.is_empty() {
            self.since = None;
        }
        batch
    }
}

/// Until when it is worth telling: a failure until the lease runs out, for then it changes
/// nothing; a success longer, for it still counts and saves the receiver a second call.
fn deadline((lease, outcome): &(Lease, Outcome)) -> Instant {
    match outcome {
        Outcome::Complete => lease.deadline() + LATE_SUCCESS,
        Outcome::Retry { .. } | Outcome::Bury { .. } | Outcome::Release { .. } => lease.deadline(),
    }
}
