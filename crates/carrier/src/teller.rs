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

/// What is known of a notice once it was submitted.
enum Word {
    /// The store has it, now or before; or nobody wants it.
    Told,
    /// It was not taken.
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
        let outbox = self.store.outbox(self.shard, MAX_DEATHS).await?;
        if outbox.deaths.is_empty() {
            return Ok(Round::Empty);
        }
        let words = self.submit(&outbox.deaths).await;
        let telling = self.telling(outbox, words, is_refused);
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
        let mut words: Vec<Word> = deaths.iter().map(|_| Word::Told).collect();
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
            self.hear(numbers, answer, &mut words);
        }
        words
    }

    fn notice(&self, death: &Death) -> Option<NewJob> {
        let policy = self.policies.get(&death.job.key.topic).ok().flatten();
        death.notice(policy.as_deref())
    }

    /// Notes what was answered to the notices of deaths of these numbers.
    fn hear(&self, numbers: &[usize], answer: Result<Vec<Submitted>, StoreError>, words: &mut [Word]) {
        match answer {
            Ok(answers) => {
                let refused = answers.iter().zip(numbers).filter(|(one, _)| !is_there(one.answer));
                let refused: Vec<usize> = refused.map(|(_, number)| *number).collect();
                self.metrics.told.add((answers.len() - refused.len()) as u64, &[]);
                refused.into_iter().for_each(|number| words[number] = Word::Refused);
            }
            Err(error) => {
                debug!(shard = self.shard.number(), error = crate::cause(&error), "notices were not taken");
                numbers.iter().for_each(|number| words[*number] = Word::Refused);
            }
        }
    }

    /// What is over and what is to be tried again; that is said once, until all are taken again.
    fn telling(&self, outbox: Outbox, words: Vec<Word>, is_refused: &mut bool) -> Telling {
        let Outbox { deaths, now } = outbox;
        let (shard, mut telling) = (self.shard.number(), Telling::default());
        for (Untold { place, death }, word) in deaths.into_iter().zip(words) {
            match word {
                Word::Told => telling.told.push(place),
                Word::Refused => {
                    let age = death.map_or(SOONEST, |death| now.since(death.died));
                    telling.later.push((place, age.clamp(SOONEST, LATEST)));
                }
            }
        }
        let refused = telling.later.len();
        self.metrics.untold.add(refused as u64, &[]);
        match (refused > 0, std::mem::replace(is_refused, refused > 0)) {
            (true, false) => {
                error!(shard, refused, "the store does not take notices of deaths; they are submitted again");
            }
            (false, true) => info!(shard, "the store takes notices of deaths again"),
            (true, true) | (false, false) => {}
        }
        telling
    }
}

/// Whether the store has a notice. Another job of the name is one too: of the same death, told
/// somewhere else before its topic's policy was changed.
fn is_there(answer: Answer) -> bool {
    match answer {
        Answer::Created | Answer::Repeated | Answer::Conflict => true,
        Answer::Full(_) => false,
    }
}
