//! Outcomes on their way to the store: what waits in each shard, when it may go, and what is
//! to be told again. A store that is away is asked again until the lease has run out, and for
//! a success a while longer; a job whose lease has run out is recovered. Makes no calls itself.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringback_core::contract::{Lateness, Lease, Note, Settled, Shard, Unsettled};
use ringback_core::job::JobKey;
use ringback_core::limits::MAX_BATCH;
use ringback_core::outcome::Outcome;
use ringback_service::backoff::Backoff;
use ringback_service::random;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::call::Told;
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
    /// What the log of attempts is told.
    pub(crate) note: Option<Box<Note>>,
}

/// What one call settles.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<(Lease, Outcome)>,
    pub(crate) lateness: Lateness,
    /// Told before.
    pub(crate) notes: Vec<Note>,
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
    pub(crate) fn failed(&mut self, shard: Shard, unsettled: Unsettled, told: Told, now: Instant) -> usize {
        let Told { lateness, notes, .. } = told;
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
            line.trouble = Some(Trouble { batch: Some(Batch { items, lateness, notes }), at, backoff });
        } else if !notes.is_empty() {
            self.metrics.unnoted.add(notes.len() as u64, &[]);
        }
        over.len()
    }

    /// The grace of a shutdown is over: so many jobs are given up, whether their words wait or
    /// were on their way.
    pub(crate) fn close(self, jobs: usize) {
        if jobs > 0 {
            self.metrics.unsettled.add(jobs as u64, &[]);
            warn!(jobs, "not settled before the grace was over; they are handed over again");
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
            batch.notes.extend(word.note.map(|note| *note));
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

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry::metrics::noop::NoopMeterProvider;
    use ringback_core::clock::SystemClock;
    use ringback_core::clock::Timestamp;
    use ringback_core::contract::{Attempt, Options, Reserve, StoreError};
    use ringback_core::job::{Body, Callback, ContentHash, Context, Delivery, Due, Headers, JobKey, NewJob};
    use ringback_core::outcome::LastAttempt;
    use ringback_store::{Memory, Store, settings};

    use super::*;

    fn settler() -> Settler {
        Settler::new(Metrics::new(&NoopMeterProvider::new().meter("test")))
    }

    fn job(id: &str) -> NewJob {
        let delivery = Delivery {
            callback: Callback::parse("http://receiver.example/hook").unwrap(),
            body: Body { bytes: "{}".into(), content_type: None },
            headers: Headers::default(),
            context: Context::default(),
            retry: None,
            timeout: None,
            trace: None,
            on_dead: None,
        };
        let key = JobKey { topic: "t".parse().unwrap(), id: id.parse().unwrap() };
        NewJob { key, due: Due::In(Duration::ZERO), delivery, content: ContentHash([1; 8]) }
    }

    /// Words of two shards, so many of each.
    async fn words(count: usize) -> [Vec<Word>; 2] {
        let options = Options { shards: 2, ..settings::defaults(Duration::from_secs(10)) };
        let store = Store::in_memory(&Memory::new(SystemClock), options);
        store.prepare().await.unwrap();
        let mut words = [Vec::new(), Vec::new()];
        for (shard, words) in store.shards().zip(&mut words) {
            let jobs = (0..).map(|n| job(&n.to_string()));
            let jobs: Vec<_> = jobs.filter(|job| store.shard_of(&job.key) == shard).take(count).collect();
            store.submit(shard, &jobs).await.unwrap();
            let ask = Reserve {
                caller: "test",
                sequence: 1,
                limit: count,
                lane_limit: count,
                lane_limits: Vec::new(),
                bits: [0; 8],
                margin: Duration::from_secs(1),
            };
            let leases = store.reserve(shard, &ask).await.unwrap().leases;
            assert_eq!(leases.len(), count);
            let word = |lease| Word { lease, outcome: Outcome::Complete, late: Duration::ZERO, note: None };
            words.extend(leases.into_iter().map(word));
        }
        words
    }

    fn names(batch: &Batch) -> Vec<JobKey> {
        batch.items.iter().map(|(lease, _)| lease.key.clone()).collect()
    }

    fn lost(batch: Batch) -> (Unsettled, Told) {
        let told = Told { jobs: names(&batch), lateness: batch.lateness, notes: batch.notes, unnoted: 0 };
        (Unsettled { error: StoreError::Closed, items: batch.items }, told)
    }

    #[tokio::test]
    async fn words_go_at_once_and_later_where_others_go_or_a_reserve_is_foreseen() {
        let [one, other] = words(2).await;
        let (a, b) = (one[0].lease.shard(), other[0].lease.shard());
        let (mut settler, now) = (settler(), Instant::now());
        assert_eq!(settler.next(|_| false), None);
        one.into_iter().for_each(|word| settler.add(word, now));
        assert_eq!(settler.next(|_| false), Some((a, now)));
        assert_eq!(settler.next(|_| true), Some((a, now + RIDE)));
        let batch = settler.take(a).unwrap();
        other.into_iter().for_each(|word| settler.add(word, now));
        assert_eq!(settler.next(|_| false), Some((b, now + TURN)), "the first shard has its turn");
        settler.answered(a, &names(&batch), &[Settled::Applied; 2]);
        assert_eq!(settler.next(|_| false), Some((b, now)));
        assert_eq!(settler.ride(b).unwrap().items.len(), 2);
        assert!(settler.is_empty() && settler.ride(b).is_none());
    }

    #[tokio::test]
    async fn what_comes_while_a_call_is_under_way_shares_the_next_one() {
        let [words, _] = words(3).await;
        let (shard, now) = (words[0].lease.shard(), Instant::now());
        let mut settler = settler();
        let mut words = words.into_iter();
        settler.add(words.next().unwrap(), now);
        let first = settler.take(shard).unwrap();
        words.for_each(|word| settler.add(word, now));
        assert!(settler.next(|_| false).is_none() && settler.ride(shard).is_none());
        settler.answered(shard, &names(&first), &[Settled::Applied]);
        assert_eq!(settler.ride(shard).unwrap().items.len(), 2);
    }

    #[tokio::test]
    async fn what_failed_is_told_again_as_it_was_after_a_pause_and_without_a_reserve() {
        let [words, _] = words(3).await;
        let (shard, now) = (words[0].lease.shard(), Instant::now());
        let mut settler = settler();
        let mut words = words.into_iter().map(|word| {
            let note = Some(Box::new(Note::of(&word.lease, Attempt::default())));
            Word { note, ..word }
        });
        words.by_ref().take(2).for_each(|word| settler.add(word, now));
        let batch = settler.ride(shard).unwrap();
        let known = names(&batch);
        let (unsettled, told) = lost(batch);
        assert_eq!(settler.failed(shard, unsettled, told, now), 0);
        words.for_each(|word| settler.add(word, now));
        assert!(settler.ride(shard).is_none());
        let (_, at) = settler.next(|_| false).unwrap();
        assert!(at > now, "it backs off");
        let again = settler.take(shard).unwrap();
        assert_eq!((names(&again), again.lateness.count(), again.notes.len()), (known.clone(), 2, 2));
        assert!(settler.next(|_| false).is_none());
        settler.answered(shard, &known, &[Settled::Applied, Settled::Replayed]);
        assert_eq!(settler.ride(shard).unwrap().items.len(), 1, "then the others go, with a reserve too");
    }

    #[tokio::test]
    async fn a_failure_is_told_until_its_lease_runs_out_and_a_success_for_longer() {
        let [mut words, _] = words(2).await;
        let last = LastAttempt {
            at: Timestamp::from_millis(0),
            status: None,
            error: None,
            duration: Duration::ZERO,
        };
        words[0].outcome = Outcome::Retry { after: Duration::ZERO, last };
        let (shard, ends) = (words[0].lease.shard(), words[0].lease.deadline());
        let mut settler = settler();
        words.into_iter().for_each(|word| settler.add(word, ends));
        for (now, given_up) in [(ends - TURN, 0), (ends, 1), (ends + TURN, 0), (ends + LATE_SUCCESS, 1)] {
            let (unsettled, told) = lost(settler.take(shard).unwrap());
            assert_eq!(settler.failed(shard, unsettled, told, now), given_up, "at {now:?}");
        }
        assert!(settler.is_empty() && settler.next(|_| false).is_none());
    }
}
