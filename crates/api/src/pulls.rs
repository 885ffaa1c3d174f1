//! The consumer's side: reserves that wait for jobs of a topic, without asking the store again
//! and again. Who waits is known in `waiters`; `listener` hears of topics that are no longer
//! empty; `carrier` carries the calls of a shard, and gives back what was reserved for somebody
//! who has gone.

mod carrier;
mod listener;
mod waiters;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rand::RngExt as _;
use ringback_core::contract::{PulledJob, Shard};
use ringback_core::job::{DEFAULT_TTR, Topic};
use ringback_core::lane::PullLane;
use ringback_core::wire::ReserveAsk;
use ringback_service::{Shutdown, Tasks, random};
use ringback_store::{PolicyBook, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use self::carrier::{Ask, Carrier, Handed, Work};
use self::waiters::{Waiter, Waiters};
use crate::deadline::Deadline;
use crate::submit::Unavailable;

/// A shard that has said nothing for so long is slow: the next one is asked beside it.
const SLOW: Duration = Duration::from_millis(100);

/// Jobs, and whether there are more.
type Answer = Result<(Handed, bool), Unavailable>;

/// The reserves of a process.
pub(crate) struct Pulls {
    shards: Vec<Shard>,
    waiters: Arc<Waiters>,
    policies: PolicyBook,
    /// To the carrier of each shard.
    work: BTreeMap<Shard, mpsc::UnboundedSender<Work>>,
    shutdown: Shutdown,
}

impl Pulls {
    /// Its tasks end with the shutdown, or when it is dropped.
    pub(crate) fn start(store: &Store, policies: PolicyBook, tasks: &mut Tasks, shutdown: &Shutdown) -> Self {
        let shards: Vec<Shard> = store.shards().collect();
        let work = shards.iter().map(|shard| {
            let (work, inbox) = mpsc::unbounded_channel();
            tasks.spawn("pulls", Carrier::new(store.clone(), inbox, shards.len()).run(shutdown.clone()));
            (*shard, work)
        });
        let (work, waiters) = (work.collect(), Arc::new(Waiters::default()));
        let listener = listener::listen(store.clone(), Arc::clone(&waiters), shutdown.clone());
        tasks.spawn("consumers' wakes", listener);
        Self { shards, waiters, policies, work, shutdown: shutdown.clone() }
    }

    /// Reserves jobs of a topic; waits for the first one as long as was asked for, or until
    /// the shutdown.
    pub(crate) async fn reserve(
        &self,
        topic: &Topic,
        ask: ReserveAsk,
    ) -> Result<Vec<PulledJob>, Unavailable> {
        let until = Instant::now() + ask.wait;
        // Known before it looks, so that nothing comes in between.
        let mut waiter = self.waiters.register(PullLane::of(topic));
        let mut found = self.look(&mut waiter, topic, ask).await?;
        while found.is_empty() && Instant::now() < until {
            let woken = tokio::select! {
                woken = timeout_at(until, waiter.woken()) => woken,
                () = self.shutdown.stopping() => break,
            };
            let Ok(shard) = woken else { break };
            let (shard, answer) = self.ask(shard, topic, ask, Deadline::from_now()).await;
            found.extend(heard(&mut waiter, shard, answer, ask.max)?);
        }
        Ok(found.into_iter().flat_map(Handed::take).collect())
    }

    /// Looks at every shard until there are as many as were asked for. A failure counts only
    /// where nothing was found. A shard that is slow holds up those after it for a moment only;
    /// what it brings when others have had enough is released.
    async fn look(
        &self,
        waiter: &mut Waiter,
        topic: &Topic,
        ask: ReserveAsk,
    ) -> Result<Vec<Handed>, Unavailable> {
        let (mut found, mut left, mut failure) = (Vec::new(), ask.max, None);
        let deadline = Deadline::from_now();
        let (mut rest, mut asked) = (self.in_turn(), FuturesUnordered::new());
        while left > 0 {
            match rest.next() {
                Some(shard) => {
                    waiter.asks(shard);
                    asked.push(self.ask(shard, topic, ReserveAsk { max: left, ..ask }, deadline));
                }
                None if asked.is_empty() || !found.is_empty() => break,
                None => {}
            }
            let patience = deadline.share(rest.len() + 1).within(SLOW);
            while left > 0
                && let Ok(Some((shard, answer))) = patience.bound(asked.next()).await
            {
                match heard(waiter, shard, answer, left) {
                    Ok(handed) => {
                        left -= handed.as_ref().map_or(0, Handed::len);
                        found.extend(handed);
                    }
                    Err(error) => failure = Some(error),
                }
            }
        }
        // Who was sent to a shard that is slow would wait for it; the listener's next look does that.
        waiter.gives_up();
        match failure {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// All shards, from any one on.
    fn in_turn(&self) -> impl ExactSizeIterator<Item = Shard> + use<> {
        let mut shards = self.shards.clone();
        shards.rotate_left(random::generator().random_range(0..self.shards.len()));
        shards.into_iter()
    }

    /// Asks one shard, and again where only entries of jobs that have gone were met.
    async fn ask(&self, shard: Shard, topic: &Topic, ask: ReserveAsk, deadline: Deadline) -> (Shard, Answer) {
        loop {
            let answer = self.ask_once(shard, topic, ask, deadline).await;
            if !matches!(&answer, Ok((handed, true)) if handed.len() == 0) {
                return (shard, answer);
            }
        }
    }

    /// The jobs, and whether there are more. What comes after the deadline is released.
    async fn ask_once(&self, shard: Shard, topic: &Topic, ask: ReserveAsk, deadline: Deadline) -> Answer {
        let (reply, answer) = oneshot::channel();
        let ReserveAsk { max: limit, ttr, .. } = ask;
        let policy = self.policies.get(topic)?;
        let default_ttr = policy.and_then(|policy| policy.ttr).unwrap_or(DEFAULT_TTR);
        let work = self.work.get(&shard).ok_or(Unavailable::GivenUp)?;
        let back = work.clone();
        let ask = Ask { shard, topic: topic.clone(), limit, ttr, default_ttr, back, reply };
        work.send(Work::Ask(ask)).map_err(|_| Unavailable::GivenUp)?;
        let answer = deadline.bound(answer).await.map_err(|_elapsed| Unavailable::TooLate)?;
        answer.map_err(|_| Unavailable::GivenUp)?
    }
}

/// What a shard has answered. Jobs beyond those that are wanted are released.
fn heard(
    waiter: &mut Waiter,
    shard: Shard,
    answer: Answer,
    wanted: usize,
) -> Result<Option<Handed>, Unavailable> {
    // A store that fails would fail those it is passed on to; the next look wakes them.
    let (mut handed, more) = answer.inspect_err(|_| waiter.found_all(shard))?;
    if more || handed.len() > wanted {
        waiter.found_more(shard);
    } else {
        waiter.found_all(shard);
    }
    handed.keep(wanted);
    Ok((handed.len() > 0).then_some(handed))
}
