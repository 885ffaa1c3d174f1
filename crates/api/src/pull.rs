//! Reserves jobs for consumers (pull jobs). A reserve that finds no job waits for a wake-up
//! instead of polling the store. [`Pulls`] asks the shards, `shard_reserver` makes the store calls,
//! `waiters` knows who waits for which topic, and `wake_listener` wakes them.

mod receipt_bits;
mod shard_reserver;
mod waiters;
mod wake_listener;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rand::RngExt as _;
use ringback_core::job::{DEFAULT_TTR, Topic};
use ringback_core::store_types::{PulledJob, Shard};
use ringback_secrets::RootKey;
use ringback_service::{Shutdown, Tasks, random};
use ringback_store::{SharedConfig, Store};
use ringback_wire::ReserveRequest;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

pub(crate) use self::receipt_bits::ReceiptBits;
use self::shard_reserver::{Command, Request, ReservedJobs, ShardRequest, ShardReserver};
use self::waiters::{Waiter, Waiters};
use crate::error::Unavailable;
use crate::limits::{Deadline, Turn};

/// How long a shard may take before the next one is asked in parallel.
const SLOW: Duration = Duration::from_millis(100);

/// The jobs of a shard, and whether it has more.
type ShardResult = Result<(ReservedJobs, bool), Unavailable>;

/// Jobs that were found for a consumer. They are released if this is dropped before [`Self::take`].
pub(crate) struct FoundJobs(Vec<ReservedJobs>);

impl FoundJobs {
    /// The jobs, for a consumer who is still there.
    pub(crate) fn take(self) -> Vec<PulledJob> {
        self.0.into_iter().flat_map(ReservedJobs::take).collect()
    }
}

pub(crate) struct Pulls {
    shards: Vec<Shard>,
    waiters: Arc<Waiters>,
    policies: SharedConfig,
    /// The [`ShardReserver`] of each shard.
    reservers: BTreeMap<Shard, mpsc::UnboundedSender<Command>>,
    /// What makes receipts those of a tenant.
    root: Option<RootKey>,
    shutdown: Shutdown,
}

impl Pulls {
    /// Starts the tasks. They end with the shutdown, or when this is dropped.
    pub(crate) fn start(
        store: &Store,
        policies: SharedConfig,
        root: Option<RootKey>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let shards: Vec<Shard> = store.shards().collect();
        let reservers = shards.iter().map(|shard| {
            let (commands, inbox) = mpsc::unbounded_channel();
            tasks
                .spawn("pulls", ShardReserver::new(store.clone(), inbox, shards.len()).run(shutdown.clone()));
            (*shard, commands)
        });
        let (reservers, waiters) = (reservers.collect(), Arc::new(Waiters::default()));
        let listener = wake_listener::listen(store.clone(), Arc::clone(&waiters), shutdown.clone());
        tasks.spawn("pull wake-ups", listener);
        Self { shards, waiters, policies, reservers, root, shutdown: shutdown.clone() }
    }

    /// Reserves jobs of a topic. If there are none, waits for the first for `ask.wait`, or until the shutdown, and then
    /// returns none. `turn` ends after the first look. Jobs that are not taken are released. Fails if no job was found
    /// and a shard failed.
    pub(crate) async fn reserve(
        &self,
        topic: &Topic,
        ask: ReserveRequest,
        turn: Option<Turn>,
    ) -> Result<FoundJobs, Unavailable> {
        let until = Instant::now() + ask.wait;
        // Registered before the first look, so that no wake-up is lost in between.
        let mut waiter = self.waiters.register(topic.clone());
        // Who does not wait may know of jobs whose wake-ups are still under way.
        let looks = ask.wait.is_zero() || waiter.must_look();
        let mut found = if looks { self.ask_all(&mut waiter, topic, ask).await? } else { Vec::new() };
        drop(turn);
        while found.is_empty() && Instant::now() < until {
            let woken = tokio::select! {
                biased;
                woken = timeout_at(until, waiter.woken()) => woken,
                () = self.shutdown.stopping() => break,
            };
            let Ok(shard) = woken else { break };
            let (shard, answer) = self.ask(shard, topic, ask, Deadline::from_now()).await;
            found.extend(accept(&mut waiter, shard, answer, ask.max)?);
        }
        Ok(FoundJobs(found))
    }

    /// Asks shard after shard until there are as many jobs as the caller wants. An error counts
    /// only if no job was found. A slow shard delays the next one only for a moment; jobs that it
    /// brings when enough were found are released.
    async fn ask_all(
        &self,
        waiter: &mut Waiter,
        topic: &Topic,
        ask: ReserveRequest,
    ) -> Result<Vec<ReservedJobs>, Unavailable> {
        let (mut found, mut left, mut failure) = (Vec::new(), ask.max, None);
        let deadline = Deadline::from_now();
        let (mut rest, mut asked) = (self.shards_from_random(), FuturesUnordered::new());
        let mut empty = 0;
        while left > 0 {
            match rest.next() {
                Some(shard) => {
                    waiter.asks(shard);
                    asked.push(self.ask(shard, topic, ReserveRequest { max: left, ..ask }, deadline));
                }
                None if asked.is_empty() || !found.is_empty() => break,
                None => {}
            }
            let turn = deadline.share(rest.len() + 1).within(SLOW);
            while left > 0
                && let Ok(Some((shard, answer))) = turn.bound(asked.next()).await
            {
                match accept(waiter, shard, answer, left) {
                    Ok(None) => empty += 1,
                    Ok(Some(reserved)) => {
                        left -= reserved.len();
                        found.push(reserved);
                    }
                    Err(error) => failure = Some(error),
                }
            }
        }
        // Another waiter sent to a slow shard would wait for it too. The wake listener reads
        // that shard again.
        waiter.gives_up();
        if empty == self.shards.len() {
            waiter.found_nothing();
        }
        match failure {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// All shards, beginning with a random one.
    fn shards_from_random(&self) -> impl ExactSizeIterator<Item = Shard> + use<> {
        let mut shards = self.shards.clone();
        shards.rotate_left(random::generator().random_range(0..self.shards.len()));
        shards.into_iter()
    }

    /// Asks one shard, and again, until the deadline is near, while it returns no job and says that there may be more:
    /// then it found only entries of jobs that are gone, or jobs that had expired.
    async fn ask(
        &self,
        shard: Shard,
        topic: &Topic,
        ask: ReserveRequest,
        deadline: Deadline,
    ) -> (Shard, ShardResult) {
        loop {
            let answer = self.ask_once(shard, topic, ask, deadline).await;
            if !matches!(&answer, Ok((reserved, true)) if reserved.len() == 0) || deadline.is_near() {
                return (shard, answer);
            }
        }
    }

    /// Asks one shard once. Jobs that arrive after the deadline are released.
    async fn ask_once(
        &self,
        shard: Shard,
        topic: &Topic,
        ask: ReserveRequest,
        deadline: Deadline,
    ) -> ShardResult {
        let (reply, answer) = oneshot::channel();
        let ReserveRequest { max: limit, ttr, .. } = ask;
        let policy = self.policies.get(topic)?;
        let default_ttr = policy.and_then(|policy| policy.ttr).unwrap_or(DEFAULT_TTR);
        let reserver = self.reservers.get(&shard).ok_or(Unavailable::GivenUp)?;
        let random = random::generator().random();
        let bits = ReceiptBits::new(self.root.as_ref(), topic.tenant().as_ref(), random);
        let request = ShardRequest { shard, topic: topic.clone(), limit, ttr, default_ttr, bits };
        let request = Request { request, release: reserver.clone(), reply };
        reserver.send(Command::Reserve(request)).map_err(|_| Unavailable::GivenUp)?;
        let answer = deadline.bound(answer).await.map_err(|_elapsed| Unavailable::TooLate)?;
        answer.map_err(|_| Unavailable::GivenUp)?
    }
}

/// Takes up to `max` jobs of a shard's answer and releases the others; `None` if there are none. Lets the waiter pass
/// the shard on if it has more. Fails if the shard failed.
fn accept(
    waiter: &mut Waiter,
    shard: Shard,
    answer: ShardResult,
    max: usize,
) -> Result<Option<ReservedJobs>, Unavailable> {
    // A shard that fails is not passed on, since it would fail the next waiter too. The wake
    // listener reads it again.
    let (mut reserved, more) = answer.inspect_err(|_| waiter.failed(shard))?;
    if more || reserved.len() > max {
        waiter.found_more(shard);
    } else {
        waiter.found_all(shard);
    }
    reserved.keep(max);
    Ok((reserved.len() > 0).then_some(reserved))
}
