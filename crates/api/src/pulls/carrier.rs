//! Carries the reserves of consumers to the store. A call is never given up half-way: what it
//! has reserved for somebody who has gone meanwhile is released at once, and one whose answer
//! was lost is asked again under the same number, to release that too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::contract::{Pull, PullOutcome, PullReceipt, Pulled, PulledJob, Shard, StoreError};
use ringback_core::job::Topic;
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use crate::submit::Unavailable;

/// So many calls at once, shared by the shards: one that does not answer holds up no other's.
const CALLS: usize = 64;
/// What a lost answer may have given is asked for again for so long: the store remembers it
/// for a minute.
const AGAIN_FOR: Duration = Duration::from_secs(50);
/// So many lost answers of all shards at once are asked for again; of others the leases run out.
const LOST: usize = 1000;

/// What is to be carried.
pub(super) enum Work {
    Ask(Ask),
    /// Jobs that nobody is there for any more.
    Release(Vec<PullReceipt>),
}

/// A reserve of one shard.
pub(super) struct Ask {
    pub(super) shard: Shard,
    pub(super) topic: Topic,
    pub(super) limit: usize,
    pub(super) ttr: Option<Duration>,
    /// For jobs that do not say it, where the ask does not either.
    pub(super) default_ttr: Duration,
    /// Where what is handed over goes back to.
    pub(super) back: mpsc::UnboundedSender<Work>,
    /// The jobs, and whether there are more.
    pub(super) reply: oneshot::Sender<Result<(Handed, bool), Unavailable>>,
}

/// Jobs on their way to a consumer. Dropped before they are taken, they are released.
pub(super) struct Handed {
    jobs: Vec<PulledJob>,
    back: mpsc::UnboundedSender<Work>,
}

impl Handed {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Releases those beyond so many.
    pub(super) fn keep(&mut self, most: usize) {
        let jobs = self.jobs.split_off(most.min(self.jobs.len()));
        drop(Self { jobs, back: self.back.clone() });
    }

    /// The consumer has them.
    pub(super) fn take(mut self) -> Vec<PulledJob> {
        std::mem::take(&mut self.jobs)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            let receipts = self.jobs.iter().map(|job| job.receipt).collect();
            // Nobody is left to do it at the end of the process: the leases run out.
            self.back.send(Work::Release(receipts)).ok();
        }
    }
}

/// Names under which the store is asked. Each asks once at a time, so that an answer that was
/// lost can be asked for again.
struct Callers {
    process: u64,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    callers: Vec<Caller>,
    last: u64,
}

struct Caller {
    name: String,
    sequence: u64,
}

impl Callers {
    fn take(&self) -> Caller {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut caller = free.callers.pop().unwrap_or_else(|| {
            free.last += 1;
            Caller { name: format!("api-{:016x}-{}", self.process, free.last), sequence: 0 }
        });
        caller.sequence += 1;
        caller
    }

    fn give_back(&self, caller: Caller) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).callers.push(caller);
    }
}

/// A call whose answer was lost.
struct Lost {
    caller: Caller,
    shard: Shard,
    topic: Topic,
    limit: usize,
    ttr: Option<Duration>,
    default_ttr: Duration,
    bits: [u8; 8],
}

impl Lost {
    async fn ask(&self, store: &Store) -> Result<Pulled, StoreError> {
        let Self { caller, shard, topic, limit, ttr, default_ttr, bits } = self;
        let (caller, sequence) = (caller.name.as_str(), caller.sequence);
        let ask = Pull {
            caller,
            sequence,
            topic,
            limit: *limit,
            ttr: *ttr,
            default_ttr: *default_ttr,
            bits: *bits,
        };
        store.pull(*shard, &ask).await
    }
}

/// The task that carries the calls to one shard.
pub(super) struct Carrier {
    store: Store,
    calls: usize,
    lost: usize,
    inbox: mpsc::UnboundedReceiver<Work>,
    callers: Arc<Callers>,
}

impl Carrier {
    /// One of so many.
    pub(super) fn new(store: Store, inbox: mpsc::UnboundedReceiver<Work>, shards: usize) -> Self {
        let callers = Callers { process: random::generator().random(), free: Mutex::default() };
        let (calls, lost) = ((CALLS / shards).max(1), (LOST / shards).max(1));
        Self { store, calls, lost, inbox, callers: Arc::new(callers) }
    }

    /// Carries until nobody is left who asks, or the grace is over.
    pub(super) async fn run(mut self, shutdown: Shutdown) -> Result<(), JoinError> {
        let mut calls: JoinSet<Option<Lost>> = JoinSet::new();
        let mut lost: JoinSet<()> = JoinSet::new();
        let mut is_open = true;
        while is_open || !calls.is_empty() {
            tokio::select! {
                work = self.inbox.recv(), if is_open && calls.len() < self.calls => match work {
                    Some(work) => drop(calls.spawn(carry(self.store.clone(), Arc::clone(&self.callers), work))),
                    None => is_open = false,
                },
                Some(ended) = calls.join_next() => if let Some(call) = ended? && lost.len() < self.lost {
                    lost.spawn(again(self.store.clone(), Arc::clone(&self.callers), call));
                },
                Some(ended) = lost.join_next() => ended?,
                () = shutdown.expired() => return Ok(()),
            }
        }
        Ok(())
    }
}

/// A call whose answer was lost comes back.
async fn carry(store: Store, callers: Arc<Callers>, work: Work) -> Option<Lost> {
    let ask = match work {
        Work::Ask(ask) => ask,
        Work::Release(receipts) => {
            release(&store, receipts).await;
            return None;
        }
    };
    // Nobody waits for it any more.
    if ask.reply.is_closed() {
        return None;
    }
    let Ask { shard, topic, limit, ttr, default_ttr, back, reply } = ask;
    let (caller, bits) = (callers.take(), random::generator().random());
    let call = Lost { caller, shard, topic, limit, ttr, default_ttr, bits };
    match call.ask(&store).await {
        Ok(Pulled { jobs, more }) => {
            callers.give_back(call.caller);
            // Where nobody is there any more, what was to be handed over is dropped.
            reply.send(Ok((Handed { jobs, back }, more))).ok();
            None
        }
        Err(error) => {
            crate::error::log(&error);
            let error = Unavailable::Store(Arc::new(error));
            let is_lost = error.outcome_is_unknown();
            reply.send(Err(error)).ok();
            if is_lost {
                return Some(call);
            }
            callers.give_back(call.caller);
            None
        }
    }
}

/// Asks again until there is an answer, and gives back what it brings.
async fn again(store: Store, callers: Arc<Callers>, call: Lost) {
    let (mut backoff, since) = (Backoff::new(random::generator()), Instant::now());
    while since.elapsed() < AGAIN_FOR {
        sleep(backoff.next()).await;
        match call.ask(&store).await {
            Ok(pulled) => {
                release(&store, pulled.jobs.into_iter().map(|job| job.receipt).collect()).await;
                break;
            }
            Err(error) if error.is_transient() => {}
            Err(_) => break,
        }
    }
    callers.give_back(call.caller);
}

/// All of one shard. Where that fails the leases run out.
async fn release(store: &Store, receipts: Vec<PullReceipt>) {
    let Some(shard) = receipts.first().map(PullReceipt::shard) else { return };
    let words: Vec<_> = receipts
        .into_iter()
        .map(|receipt| (receipt, PullOutcome::Release { after: Duration::ZERO }))
        .collect();
    if let Err(error) = store.settle_receipts(shard, &words).await {
        tracing::debug!(%error, jobs = words.len(), "jobs that nobody waits for cannot be released");
    }
}
