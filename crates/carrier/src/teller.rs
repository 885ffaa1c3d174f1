//! Tells of the deaths in one held shard: reads its outbox, submits a notice of each death that
//! somebody wants to know of, and takes out what was told. A notice has a name of its own, so one
//! that is submitted twice, as after a crash in between, is there once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ringback_core::contract::{
    AckResult, DeadLetter, Epoch, Limit, MAX_NOTICES, Outbox, OutboxAck, PendingNotice, Shard, StoreError,
    SubmitResult,
};
use ringback_core::job::NewJob;
use ringback_service::backoff::Backoff;
use ringback_service::random;
use ringback_store::{PolicyBook, Store};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tracing::{error, info, warn};

use crate::bells::Bell;
use crate::metrics::Metrics;
use crate::pace::BREATH;

/// What the store did not take is submitted again after as long as it has waited, but no sooner than
const SOONEST: Duration = Duration::from_secs(1);
/// and no later than this.
const LATEST: Duration = Duration::from_secs(60);

/// A shard that has not answered so long after the first that did holds up the deaths told to others no
/// longer: what it was sent is submitted again.
const SLOW: Duration = Duration::from_millis(100);

/// What a teller works with.
pub(crate) struct Teller<'a> {
    pub(crate) store: &'a Store,
    pub(crate) metrics: &'a Metrics,
    pub(crate) policies: &'a PolicyBook,
    pub(crate) shard: Shard,
    pub(crate) epoch: &'a Epoch,
    /// Rung for the moment at which a death is to be told.
    pub(crate) deaths: &'a Bell,
}

/// What became of a death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Nobody wants to know of it, or can.
    Unwanted,
    /// The store has its notice, now or before.
    Told,
    /// The store did not take its notice.
    Refused,
}

/// How a round ended.
enum Round {
    Fenced,
    /// There may be more.
    Done,
    /// Nothing is to be told now.
    Empty,
}

impl Teller<'_> {
    /// Works until the shard has changed hands. Dropping it in between is safe.
    pub(crate) async fn run(&self) {
        let mut backoff = Backoff::new(random::generator());
        let (mut refusal, mut away) = (Refusal::default(), false);
        loop {
            self.due().await;
            loop {
                match self.round(&mut refusal).await {
                    Ok(Round::Fenced) => return,
                    Ok(round) => {
                        backoff.reset();
                        if std::mem::take(&mut away) {
                            info!(shard = self.shard.number(), "deaths are told again");
                        }
                        if matches!(round, Round::Empty) {
                            break;
                        }
                        sleep(BREATH).await;
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut away, true) {
                            let (shard, error) = (self.shard.number(), crate::cause(&error));
                            warn!(shard, error, "deaths cannot be told; trying again");
                        }
                        sleep(backoff.next()).await;
                    }
                }
            }
        }
    }

    /// Waits until a death is to be told.
    async fn due(&self) {
        let mut until = self.deaths.rung().await;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                at = self.deaths.rung() => until = until.min(at),
            }
        }
    }

    async fn round(&self, refusal: &mut Refusal) -> Result<Round, StoreError> {
        // Before that nobody can say whether a topic's deaths are wanted, or where.
        self.policies.known().await;
        // Where there is none, what follows puts right when the next one is.
        let outbox = self.store.outbox(self.shard, MAX_NOTICES).await?;
        let words = self.submit(&outbox.pending, refusal).await;
        let telling = self.telling(outbox, &words, refusal);
        // What was rung before this call is in its answer.
        self.deaths.quiet();
        let asked = Instant::now();
        match self.store.acknowledge(self.shard, self.epoch, &telling).await? {
            AckResult::Fenced => Ok(Round::Fenced),
            AckResult::Held(Some(Duration::ZERO)) => Ok(Round::Done),
            AckResult::Held(next) => {
                next.iter().for_each(|wait| self.deaths.ring(asked + *wait));
                Ok(Round::Empty)
            }
        }
    }

    /// Submits the notices, those of each shard together. A word for each death: refused is what no shard
    /// has answered for.
    async fn submit(&self, deaths: &[PendingNotice], refusal: &mut Refusal) -> Vec<Word> {
        let of_shards = self.notices(deaths);
        let mut words = vec![Word::Unwanted; deaths.len()];
        of_shards.values().flat_map(|(numbers, _)| numbers).for_each(|n| words[*n] = Word::Refused);
        let mut calls: FuturesUnordered<_> = of_shards
            .iter()
            .map(|(shard, (numbers, jobs))| async move { (numbers, self.store.submit(*shard, jobs).await) })
            .collect();
        let mut answer = calls.next().await;
        let until = Instant::now() + SLOW;
        while let Some((numbers, answered)) = answer {
            match answered {
                Ok(answers) => {
                    let heard = answers.into_iter().map(|one| word(one.answer, refusal));
                    numbers.iter().zip(heard).for_each(|(number, word)| words[*number] = word);
                }
                Err(error) => refusal.note(&error),
            }
            answer = timeout_at(until, calls.next()).await.unwrap_or_else(|_elapsed| {
                refusal.note(&"a shard is slow");
                None
            });
        }
        words
    }

    /// The notices that somebody wants, by the shard that each belongs to, with the numbers of the deaths.
    fn notices(&self, deaths: &[PendingNotice]) -> BTreeMap<Shard, (Vec<usize>, Vec<NewJob>)> {
        let mut of_shards: BTreeMap<Shard, (Vec<usize>, Vec<NewJob>)> = BTreeMap::new();
        for (number, death) in deaths.iter().enumerate() {
            let Some(death) = &death.letter else {
                self.metrics.unreadable.add(1, &[]);
                continue;
            };
            let Some(notice) = self.notice(death) else { continue };
            let (numbers, jobs) = of_shards.entry(self.store.shard_of(&notice.key)).or_default();
            numbers.push(number);
            jobs.push(notice);
        }
        of_shards
    }

    fn notice(&self, death: &DeadLetter) -> Option<NewJob> {
        let policy = self.policies.get(&death.job.key.topic).ok().flatten();
        death.notice(policy.as_deref())
    }

    /// What is over, and what is to be tried again.
    fn telling(&self, outbox: Outbox, words: &[Word], refusal: &mut Refusal) -> OutboxAck {
        self.count(words, refusal);
        let Outbox { pending: deaths, now } = outbox;
        let mut telling = OutboxAck::default();
        for (PendingNotice { id: place, letter: death }, word) in deaths.into_iter().zip(words) {
            match word {
                Word::Told | Word::Unwanted => telling.done.push(place),
                Word::Refused => {
                    let age = death.map_or(SOONEST, |death| now.since(death.died));
                    telling.later.push((place, age.clamp(SOONEST, LATEST)));
                }
            }
        }
        telling
    }

    fn count(&self, words: &[Word], refusal: &mut Refusal) {
        let count = |wanted: Word| words.iter().filter(|word| **word == wanted).count() as u64;
        let (shard, told, refused) = (self.shard.number(), count(Word::Told), count(Word::Refused));
        if told > 0 {
            self.metrics.told.add(told, &[]);
        }
        if refused > 0 {
            self.metrics.untold.add(refused, &[]);
        }
        if refused > 0 {
            if let Some(cause) = refusal.begins() {
                error!(
                    shard,
                    refused, cause, "the store does not take notices of deaths; they are submitted again"
                );
            }
        } else if told > 0 && refusal.ends() {
            info!(shard, "the store takes notices of deaths again");
        }
    }
}

/// That notices are refused is said once, with the first cause, until none was for as long as one that
/// is refused waits at most.
#[derive(Default)]
struct Refusal {
    cause: Option<String>,
    last: Option<Instant>,
}

impl Refusal {
    /// Why some of this round were refused.
    fn note(&mut self, cause: &dyn std::fmt::Display) {
        self.cause.get_or_insert_with(|| cause.to_string());
    }

    /// Some of a round were refused: the cause, where that is to be said.
    fn begins(&mut self) -> Option<String> {
        let cause = self.cause.take().unwrap_or_default();
        self.last.replace(Instant::now()).is_none().then_some(cause)
    }

    /// None of a round was refused: whether that is to be said.
    fn ends(&mut self) -> bool {
        self.last.take_if(|last| last.elapsed() > LATEST).is_some()
    }
}

/// Another job of the name counts as the notice: it is of the same death, told somewhere else before
/// its topic's policy was changed.
fn word(answer: SubmitResult, refusal: &mut Refusal) -> Word {
    match answer {
        SubmitResult::Created | SubmitResult::Repeated | SubmitResult::Conflict => Word::Told,
        SubmitResult::Full(limit) => {
            refusal.note(&match limit {
                Limit::Topics => "a shard has jobs of too many topics",
                Limit::Lanes => "a shard has jobs for too many origins",
            });
            Word::Refused
        }
    }
}
