//! The consumer's side: reserves that wait for jobs of a topic, without asking the store again
//! and again. Who waits is known in `waiters`; `listener` hears of topics that are no longer
//! empty; `carrier` carries the calls, and gives back what was reserved for somebody who has
//! gone.

mod carrier;
mod listener;
mod waiters;

use std::sync::Arc;

use rand::RngExt as _;
use ringback_core::job::{DEFAULT_TTR, Topic};
use ringback_core::store::{PolicyBook, PullLane, PulledJob, Shard, Store};
use ringback_core::wire::ReserveAsk;
use ringback_service::{Shutdown, Tasks, random};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use self::carrier::{Ask, Carrier, Handed, Work};
use self::waiters::{Waiter, Waiters};
use crate::deadline::Deadline;
use crate::submit::Unavailable;

/// The reserves of a process.
pub(crate) struct Pulls {
    shards: Vec<Shard>,
    waiters: Arc<Waiters>,
    policies: PolicyBook,
    work: mpsc::UnboundedSender<Work>,
    shutdown: Shutdown,
}

impl Pulls {
    /// Its tasks end with the shutdown, or when it is dropped.
    pub(crate) fn start(store: &Store, policies: PolicyBook, tasks: &mut Tasks, shutdown: &Shutdown) -> Self {
        let (work, inbox) = mpsc::unbounded_channel();
        let waiters = Arc::new(Waiters::default());
        tasks.spawn("pulls", Carrier::new(store.clone(), inbox).run(shutdown.clone()));
        let listener = listener::listen(store.clone(), Arc::clone(&waiters), shutdown.clone());
        tasks.spawn("consumers' wakes", listener);
        Self { shards: store.shards().collect(), waiters, policies, work, shutdown: shutdown.clone() }
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
            found.extend(self.ask(&mut waiter, shard, topic, ask, Deadline::from_now()).await?);
        }
        Ok(found.into_iter().flat_map(Handed::take).collect())
    }

    /// Looks at every shard until there are as many as were asked for. A failure counts only
    /// where nothing was found.
    async fn look(
        &self,
        waiter: &mut Waiter,
        topic: &Topic,
        ask: ReserveAsk,
    ) -> Result<Vec<Handed>, Unavailable> {
        let (mut found, mut left, mut failure) = (Vec::new(), ask.max, None);
        let deadline = Deadline::from_now();
        let first = random::generator().random_range(0..self.shards.len());
        let (before, from) = self.shards.split_at(first);
        for shard in from.iter().chain(before) {
            if left == 0 || deadline.has_passed() {
                break;
            }
            match self.ask(waiter, *shard, topic, ReserveAsk { max: left, ..ask }, deadline).await {
                Ok(handed) => {
                    left -= handed.iter().map(Handed::len).sum::<usize>().min(left);
                    found.extend(handed);
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// Asks one shard, and again where only entries of jobs that have gone were met.
    async fn ask(
        &self,
        waiter: &mut Waiter,
        shard: Shard,
        topic: &Topic,
        ask: ReserveAsk,
        deadline: Deadline,
    ) -> Result<Option<Handed>, Unavailable> {
        loop {
            waiter.asks(shard);
            let asked = self.ask_once(shard, topic, ask, deadline).await;
            // A store that fails would fail those it is passed on to; the next look wakes them.
            if !matches!(asked, Ok((_, true))) {
                waiter.found_all();
            }
            let (handed, more) = asked?;
            if handed.len() > 0 {
                return Ok(Some(handed));
            }
            if !more {
                return Ok(None);
            }
        }
    }

    /// The jobs, and whether there are more. What comes after the deadline is released.
    async fn ask_once(
        &self,
        shard: Shard,
        topic: &Topic,
        ask: ReserveAsk,
        deadline: Deadline,
    ) -> Result<(Handed, bool), Unavailable> {
        let (reply, answer) = oneshot::channel();
        let ReserveAsk { max: limit, ttr, .. } = ask;
        let policy = self.policies.get(topic)?;
        let default_ttr = policy.and_then(|policy| policy.ttr).unwrap_or(DEFAULT_TTR);
        let back = self.work.clone();
        let ask = Ask { shard, topic: topic.clone(), limit, ttr, default_ttr, back, reply };
        self.work.send(Work::Ask(ask)).map_err(|_| Unavailable::GivenUp)?;
        let answer = deadline.bound(answer).await.map_err(|_elapsed| Unavailable::TooLate)?;
        answer.map_err(|_| Unavailable::GivenUp)?
    }
}
