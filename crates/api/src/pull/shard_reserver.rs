//! `ShardReserver`: makes the reserve calls of one shard. A call is never cancelled: jobs that it
//! reserved for a consumer who has gone are released at once. A call whose answer was lost is
//! repeated under the same number, to release what it reserved.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::backoff::Backoff;
use ringback_core::job::Topic;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::store_types::{Pull, Pulled, PulledJob, Receipt, Shard, StoreError};
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::receipt_bits::ReceiptBits;
use crate::error::Unavailable;

/// The most calls at once, divided among the shards, so that a shard that does not answer does
/// not take the calls of another.
const MAX_CALLS: usize = 64;
/// How long a lost call is repeated. The store remembers its answer for a minute.
const REPEAT_FOR: Duration = Duration::from_secs(50);
/// The most lost calls that are repeated at once, divided among the shards. The leases of any
/// others expire.
const MAX_LOST: usize = 1000;

pub(super) enum Command {
    Reserve(Request),
    /// Release jobs that nobody waits for any more.
    Release(Vec<Receipt>),
}

/// A reserve, and where its answer goes.
pub(super) struct Request {
    pub(super) request: ShardRequest,
    /// Receives the jobs to release if the consumer has gone.
    pub(super) release: mpsc::UnboundedSender<Command>,
    /// Receives the jobs, and whether there are more.
    pub(super) reply: oneshot::Sender<Result<(ReservedJobs, bool), Unavailable>>,
}

/// How many jobs of a topic to reserve in a shard, and for how long.
pub(super) struct ShardRequest {
    pub(super) shard: Shard,
    pub(super) topic: Topic,
    pub(super) limit: usize,
    pub(super) ttr: Option<Duration>,
    /// The lease of jobs without a `ttr`, if the request has none either.
    pub(super) default_ttr: Duration,
    pub(super) bits: ReceiptBits,
}

/// Reserved jobs on their way to a consumer. They are released if this is dropped before
/// [`Self::take`].
pub(super) struct ReservedJobs {
    jobs: Vec<PulledJob>,
    release: mpsc::UnboundedSender<Command>,
}

impl ReservedJobs {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Keeps the first `max` jobs and releases the others.
    pub(super) fn keep(&mut self, max: usize) {
        let jobs = self.jobs.split_off(max.min(self.jobs.len()));
        drop(Self { jobs, release: self.release.clone() });
    }

    /// The jobs, for a consumer who is still there.
    pub(super) fn take(mut self) -> Vec<PulledJob> {
        std::mem::take(&mut self.jobs)
    }
}

impl Drop for ReservedJobs {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            let receipts = self.jobs.iter().map(|job| job.receipt).collect();
            // At the end of the process nobody receives this, and the leases expire.
            self.release.send(Command::Release(receipts)).ok();
        }
    }
}

/// The caller ids of a shard. Each makes one call at a time, so that a lost call can be repeated.
struct CallerIds {
    process: u64,
    free: Mutex<FreeIds>,
}

#[derive(Default)]
struct FreeIds {
    ids: Vec<CallerId>,
    last: u64,
}

/// A name for the store, and the number of its current call.
struct CallerId {
    name: String,
    sequence: u64,
}

impl CallerIds {
    fn take(&self) -> CallerId {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut id = free.ids.pop().unwrap_or_else(|| {
            free.last += 1;
            CallerId { name: format!("api-{:016x}-{}", self.process, free.last), sequence: 0 }
        });
        id.sequence += 1;
        id
    }

    fn put_back(&self, id: CallerId) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).ids.push(id);
    }
}

/// A store call, which can be repeated.
struct Call {
    caller: CallerId,
    request: ShardRequest,
}

impl Call {
    async fn send(&self, store: &Store) -> Result<Pulled, StoreError> {
        let Self { caller, request } = self;
        let ShardRequest { shard, topic, limit, ttr, default_ttr, bits } = request;
        let pull = Pull {
            caller: &caller.name,
            sequence: caller.sequence,
            topic,
            limit: *limit,
            ttr: *ttr,
            default_ttr: *default_ttr,
            bits: bits.0,
        };
        store.pull(*shard, &pull).await
    }
}

/// The task that makes the calls of one shard.
pub(super) struct ShardReserver {
    store: Store,
    max_calls: usize,
    max_lost: usize,
    inbox: mpsc::UnboundedReceiver<Command>,
    ids: Arc<CallerIds>,
}

impl ShardReserver {
    pub(super) fn new(store: Store, inbox: mpsc::UnboundedReceiver<Command>, shards: usize) -> Self {
        let ids = CallerIds { process: random::generator().random(), free: Mutex::default() };
        let (max_calls, max_lost) = ((MAX_CALLS / shards).max(1), (MAX_LOST / shards).max(1));
        Self { store, max_calls, max_lost, inbox, ids: Arc::new(ids) }
    }

    /// Runs until all senders are dropped, or the grace period of the shutdown is over.
    pub(super) async fn run(mut self, shutdown: Shutdown) -> Result<(), JoinError> {
        let mut calls: JoinSet<Option<Call>> = JoinSet::new();
        let mut lost: JoinSet<()> = JoinSet::new();
        let mut is_open = true;
        while is_open || !calls.is_empty() {
            tokio::select! {
                biased;
                () = shutdown.expired() => break,
                Some(ended) = lost.join_next() => ended?,
                Some(ended) = calls.join_next() => if let Some(call) = ended? && lost.len() < self.max_lost {
                    lost.spawn(repeat(self.store.clone(), Arc::clone(&self.ids), call));
                },
                command = self.inbox.recv(), if is_open && calls.len() < self.max_calls => match command {
                    Some(command) => {
                        calls.spawn(execute(self.store.clone(), Arc::clone(&self.ids), command));
                    }
                    None => is_open = false,
                },
            }
        }
        // Aborted calls hold the store until they are dropped.
        calls.shutdown().await;
        lost.shutdown().await;
        Ok(())
    }
}

/// Executes a command; a reserve whose consumer has gone is left out. Buries jobs that have expired instead of sending
/// them to the consumer. Returns the call if its answer was lost.
async fn execute(store: Store, ids: Arc<CallerIds>, command: Command) -> Option<Call> {
    let Request { request, release: sender, reply } = match command {
        Command::Reserve(request) => request,
        Command::Release(receipts) => {
            release(&store, receipts).await;
            return None;
        }
    };
    // The consumer has gone.
    if reply.is_closed() {
        return None;
    }
    let call = Call { caller: ids.take(), request };
    match call.send(&store).await {
        Ok(Pulled { jobs, more, now }) => {
            ids.put_back(call.caller);
            let (expired, jobs): (Vec<_>, Vec<_>) =
                jobs.into_iter().partition(|job| job.expires.is_some_and(|at| at <= now));
            // There may be others behind those that have expired.
            let more = more || !expired.is_empty();
            // If the consumer has gone, the jobs are dropped, which releases them.
            reply.send(Ok((ReservedJobs { jobs, release: sender }, more))).ok();
            bury_expired(&store, expired).await;
            None
        }
        Err(error) => {
            let error = Unavailable::from(error);
            let is_lost = error.outcome_is_unknown();
            reply.send(Err(error)).ok();
            if is_lost {
                return Some(call);
            }
            ids.put_back(call.caller);
            None
        }
    }
}

/// Repeats a lost call until it is answered, and releases the jobs that it reserved. Gives up after 50 s, or at an
/// error that is not transient; then the leases expire.
async fn repeat(store: Store, ids: Arc<CallerIds>, call: Call) {
    let (mut backoff, since) = (Backoff::new(random::generator()), Instant::now());
    while since.elapsed() < REPEAT_FOR {
        sleep(backoff.next()).await;
        match call.send(&store).await {
            Ok(pulled) => {
                release(&store, pulled.jobs.into_iter().map(|job| job.receipt).collect()).await;
                break;
            }
            Err(error) if error.is_transient() => {}
            Err(_) => break,
        }
    }
    ids.put_back(call.caller);
}

/// Buries jobs of one shard that have expired. If that fails, their leases run out, and a later reserve finds them
/// again.
async fn bury_expired(store: &Store, jobs: Vec<PulledJob>) {
    let Some(shard) = jobs.first().map(|job| job.receipt.shard) else { return };
    let buries: Vec<_> = jobs
        .into_iter()
        .map(|job| {
            let last = LastAttempt::by_consumer(Some(Reason::Expired.as_ref().to_owned()));
            (job.receipt, Outcome::Bury { reason: Reason::Expired, last })
        })
        .collect();
    if let Err(error) = store.settle_receipts(shard, &buries).await {
        tracing::warn!(%error, jobs = buries.len(), "jobs that have expired were not buried; their leases run out");
    }
}

/// Releases jobs of one shard. If that fails, their leases expire.
async fn release(store: &Store, receipts: Vec<Receipt>) {
    let Some(shard) = receipts.first().map(|receipt| receipt.shard) else { return };
    let releases: Vec<_> =
        receipts.into_iter().map(|receipt| (receipt, Outcome::Release { after: Duration::ZERO })).collect();
    if let Err(error) = store.settle_receipts(shard, &releases).await {
        tracing::debug!(%error, jobs = releases.len(), "reserved jobs that nobody waits for were not released");
    }
}
