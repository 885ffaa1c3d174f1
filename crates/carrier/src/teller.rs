//! Tells of the deaths in one held shard: reads its outbox, submits a notice of each death that
//! somebody wants to know of, and takes out what was told. A notice has a name of its own, so one
//! that is submitted twice, as after a crash in between, is there once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use ringback_core::job::NewJob;
use ringback_core::notice::Death;
use ringback_core::store::{
    Answer, Epoch, MAX_DEATHS, Outbox, PolicyBook, Shard, Store, StoreError, Submitted, Telling, Told, Untold,
};
use ringback_service::backoff::Backoff;
use ringback_service::random;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error, info, warn};

use crate::bells::Bell;
use crate::metrics::Metrics;
use crate::pace::BREATH;

/// What the store did not take is submitted again after as long as it has waited, but no sooner than
const SOONEST: Duration = Duration::from_secs(1);
/// and no later than this.
const LATEST: Duration = Duration::from_secs(60);

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
        let (mut is_refused, mut away) = (false, false);
        loop {
            self.due().await;
            loop {
                match self.round(&mut is_refused).await {
                    Ok(Round::Fenced) => return,
                    Ok(Round::Empty) => break,
                    Ok(Round::Done) => {
                        away = false;
                        backoff.reset();
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

    async fn round(&self, is_refused: &mut bool) -> Result<Round, StoreError> {
        // Before that nobody can say whether a topic's deaths are wanted, or where.
        self.policies.known().await;
        // Where there is none, what follows puts right when the next one is.
        let outbox = self.store.outbox(self.shard, MAX_DEATHS).await?;
        let words = self.submit(&outbox.deaths).await;
        let telling = self.telling(outbox, &words, is_refused);
        // What was rung before this call is in its answer.
        self.deaths.quiet();
        let asked = Instant::now();
        match self.store.tell(self.shard, self.epoch, &telling).await? {
            Told::Fenced => Ok(Round::Fenced),
            Told::Held(Some(Duration::ZERO)) => Ok(Round::Done),
            Told::Held(next) => {
                next.iter().for_each(|wait| self.deaths.ring(asked + *wait));
                Ok(Round::Empty)
            }
        }
    }

    /// Submits the notices, those of each shard together. A word for each death.
    async fn submit(&self, deaths: &[Untold]) -> Vec<Word> {
        let mut words = vec![Word::Unwanted; deaths.len()];
        let mut of_shards: BTreeMap<Shard, (Vec<usize>, Vec<NewJob>)> = BTreeMap::new();
        for (number, death) in deaths.iter().enumerate() {
            let Some(death) = &death.death else {
                self.metrics.unreadable.add(1, &[]);
                continue;
            };
            let Some(notice) = self.notice(death) else { continue };
            let (numbers, jobs) = of_shards.entry(self.store.shard_of(&notice.key)).or_default();
            numbers.push(number);
            jobs.push(notice);
        }
        let calls = of_shards
            .iter()
            .map(|(shard, (numbers, jobs))| async move { (numbers, self.store.submit(*shard, jobs).await) });
        for (numbers, answer) in join_all(calls).await {
            let heard = self.heard(numbers.len(), answer);
            numbers.iter().zip(heard).for_each(|(number, word)| words[*number] = word);
        }
        words
    }

    fn notice(&self, death: &Death) -> Option<NewJob> {
        let policy = self.policies.get(&death.job.key.topic).ok().flatten();
        death.notice(policy.as_deref())
    }

    /// What was answered to so many notices.
    fn heard(&self, notices: usize, answer: Result<Vec<Submitted>, StoreError>) -> Vec<Word> {
        match answer {
            Ok(answers) => answers.into_iter().map(|one| word(one.answer)).collect(),
            Err(error) => {
                debug!(shard = self.shard.number(), error = crate::cause(&error), "notices were not taken");
                vec![Word::Refused; notices]
            }
        }
    }

    /// What is over, and what is to be tried again.
    fn telling(&self, outbox: Outbox, words: &[Word], is_refused: &mut bool) -> Telling {
        self.count(words, is_refused);
        let Outbox { deaths, now } = outbox;
        let mut telling = Telling::default();
        for (Untold { place, death }, word) in deaths.into_iter().zip(words) {
            match word {
                Word::Told | Word::Unwanted => telling.told.push(place),
                Word::Refused => {
                    let age = death.map_or(SOONEST, |death| now.since(death.died));
                    telling.later.push((place, age.clamp(SOONEST, LATEST)));
                }
            }
        }
        telling
    }

    /// That notices are refused is said once, until all of a round are taken again.
    fn count(&self, words: &[Word], is_refused: &mut bool) {
        let count = |wanted: Word| words.iter().filter(|word| **word == wanted).count() as u64;
        let (shard, told, refused) = (self.shard.number(), count(Word::Told), count(Word::Refused));
        if told > 0 {
            self.metrics.told.add(told, &[]);
        }
        if refused > 0 {
            self.metrics.untold.add(refused, &[]);
        }
        if refused > 0 && !std::mem::replace(is_refused, true) {
            error!(shard, refused, "the store does not take notices of deaths; they are submitted again");
        } else if refused == 0 && told > 0 && std::mem::take(is_refused) {
            info!(shard, "the store takes notices of deaths again");
        }
    }
}

/// Another job of the name counts as the notice: it is of the same death, told somewhere else before
/// its topic's policy was changed.
const fn word(answer: Answer) -> Word {
    match answer {
        Answer::Created | Answer::Repeated | Answer::Conflict => Word::Told,
        Answer::Full(_) => Word::Refused,
    }
}
