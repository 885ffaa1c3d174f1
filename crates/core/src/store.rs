//! The store: what keeps jobs, and one call per edge of a job's life.
//!
//! [`Store`] is a struct over the backends. Every call is bounded in time, every edge is
//! atomic, and repeating a call whose answer was lost does no harm: a submit is known by
//! its content, a reserve by its sequence, a settle by its receipt, a cancel by its mark.

mod error;
mod lateness;
mod lease;
mod payload;
mod redis;
pub mod settings;
mod shard;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use self::error::StoreError;
pub use self::lateness::Lateness;
pub use self::lease::{Lease, StoreClock};
use self::redis::RedisStore;
pub use self::redis::{Wake, Wakes};
pub use self::shard::{Epoch, MAX_SHARDS, Shard};
use crate::job::{Job, JobKey, NewJob};
use crate::outcome::Outcome;
use crate::wire::StatesAnswer;

/// The most jobs that one call of an edge carries.
pub const MAX_BATCH: usize = 500;
/// The most bytes that one submit call carries.
pub const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// How to reach a store, and what is fixed for the installation.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis://`, `rediss://` or `redis-cluster://`.
    pub url: String,
    /// Before every key: `[A-Za-z0-9._-]{1,32}`.
    pub prefix: String,
    /// How many shards; fixed at the first start.
    pub shards: u16,
    /// How long done and cancelled jobs are remembered; at least a minute.
    pub keep_done: Duration,
    /// How many MiB these memories may take.
    pub keep_done_mib: u32,
    /// How long dead jobs are kept.
    pub keep_dead: Duration,
    /// How long one call may take.
    pub patience: Duration,
}

/// How safely jobs are kept, the least safe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// A restart loses them.
    Memory,
    /// It cannot be told.
    Unknown,
    /// Synced every second: a crash can lose the last ones.
    Everysec,
    /// Synced before they are answered.
    Disk,
}

impl Profile {
    /// The word used in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Unknown => "unknown",
            Self::Everysec => "everysec",
            Self::Disk => "disk",
        }
    }
}

/// What a submit came to, and the job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// New, repeated or refused.
    pub answer: Answer,
    /// The job that has this name.
    pub job: Job,
}

/// How a submit was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A new job.
    Created,
    /// The same content again: nothing changed.
    Repeated,
    /// Another job has this name: nothing changed.
    Conflict,
}

/// What a cancel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// No job of this name is known.
    Unknown,
    /// It is cancelled, now or before.
    Cancelled {
        /// A hand-over was begun and never settled, so it may still be under way.
        in_flight_unknown: bool,
    },
    /// It is being handed over; unless that succeeds it will be cancelled.
    Requested {
        /// Its lease has run out, so whether the hand-over is under way is not known.
        in_flight_unknown: bool,
    },
    /// It is done.
    TooLate,
}

/// The live carriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Their names, in an order all agree on at rest.
    pub carriers: Vec<String>,
    /// When the first of the others runs out, unless it is heard of before.
    pub next_change: Option<Duration>,
}

/// One bounded pass of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Another carrier holds the shard; nothing was done.
    Fenced,
    /// Done, and when something will be due again; zero: at once.
    Held {
        /// Jobs that were moved.
        moved: u32,
        /// promote: stale entries dropped; recover: jobs buried as lost.
        other: u32,
        /// Until the next due time.
        next_due: Option<Duration>,
        /// Until the next lease runs out.
        next_lease: Option<Duration>,
        /// Until the next dead job has been kept long enough.
        next_dead: Option<Duration>,
    },
}

/// What a notifier asks for.
#[derive(Clone, Debug)]
pub struct Reserve<'a> {
    /// Who asks; unique per process.
    pub caller: &'a str,
    /// Counts the caller's reserves of this shard; the same again repeats the answer.
    pub sequence: u64,
    /// At most so many jobs.
    pub limit: usize,
    /// At most so many of a lane, where `rooms` does not say.
    pub lane_room: usize,
    /// Lanes with less room; 0 passes the lane.
    pub rooms: Vec<(String, usize)>,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
    /// How much longer than the attempt's timeout (15 s at most) a lease is.
    pub margin: Duration,
}

/// What a reserve came to.
#[derive(Debug)]
pub struct Reserved {
    /// The jobs.
    pub leases: Vec<Lease>,
    /// There is more that could be taken.
    pub more: bool,
    /// Lanes that were passed, or taken only up to the room they were given, and have more.
    pub passed: Vec<String>,
}

/// What a renewal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease has a later deadline.
    Extended,
    /// The lease is no longer current.
    Stale,
}

/// What a settle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It took effect.
    Applied,
    /// It had taken effect before.
    Replayed,
    /// The lease had run out; the success counted all the same.
    Late,
    /// The lease was no longer current; nothing changed.
    Stale,
}

/// Counts of a shard, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Jobs ever accepted.
    pub accepted: u64,
    /// Jobs per state.
    pub states: StatesAnswer,
    /// The topics.
    pub topics: BTreeSet<String>,
    /// Lateness over the last five minutes.
    pub lateness: Lateness,
    /// Memories of ended jobs dropped before their time, for lack of room.
    pub forgotten_early: u64,
}

impl Stats {
    fn merge(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.states, other.states);
        mine.delayed += theirs.delayed;
        mine.ready += theirs.ready;
        mine.reserved += theirs.reserved;
        mine.done += theirs.done;
        mine.dead += theirs.dead;
        mine.cancelled += theirs.cancelled;
        mine.purged += theirs.purged;
        self.accepted += other.accepted;
        self.forgotten_early += other.forgotten_early;
        self.topics.extend(other.topics);
        self.lateness.merge(&other.lateness);
    }
}

/// What could not be settled, handed back for another try.
#[derive(Debug)]
pub struct Unsettled {
    /// Why.
    pub error: StoreError,
    /// The leases with their outcomes.
    pub items: Vec<(Lease, Outcome)>,
}

/// A store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    shards: u16,
}

#[derive(Clone)]
enum Backend {
    Redis(Arc<RedisStore>),
}

impl Store {
    /// Opens a store without reaching for it yet; see [`Store::prepare`].
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the URL cannot be used.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let shards = options.shards;
        let backend = Backend::Redis(Arc::new(RedisStore::open(options)?));
        Ok(Self { backend, shards })
    }

    /// Reaches for the store and checks that it is fit to keep jobs. Until this has
    /// succeeded once, every edge answers [`StoreError::Unprepared`]. Worth repeating
    /// after the store was away: it may have come back as another one.
    ///
    /// # Errors
    /// A transient error when it is away; [`StoreError::Unfit`] when it must not be used.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.prepare().await,
        }
    }

    /// [`Store::prepare`], and then what was found: kind and profile. Takes a clone, for
    /// tasks that outlive the caller.
    ///
    /// # Errors
    /// Those of [`Store::prepare`].
    pub async fn prepared(self) -> Result<String, StoreError> {
        self.prepare().await?;
        Ok(format!("{}, {}", self.kind(), self.profile().name()))
    }

    /// Whether the store answers. Takes a clone, like [`Store::prepared`].
    ///
    /// # Errors
    /// Why it does not.
    pub async fn answers(self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.ping().await,
        }
    }

    /// How much of its memory limit the store uses: 0 to 1 and beyond, of several servers
    /// the fullest; 0 without a limit.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.memory_share().await,
        }
    }

    /// Its kind's name in the API.
    pub fn kind(&self) -> &'static str {
        match &self.backend {
            Backend::Redis(store) => store.kind(),
        }
    }

    /// How safely it keeps jobs; [`Profile::Unknown`] before it was reached.
    pub fn profile(&self) -> Profile {
        match &self.backend {
            Backend::Redis(store) => store.profile().unwrap_or(Profile::Unknown),
        }
    }

    /// All shards.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.shards).map(Shard)
    }

    /// The shard of a job.
    pub fn shard_of(&self, key: &JobKey) -> Shard {
        Shard::of(key, self.shards)
    }

    /// submit: nothing → delayed, or ready when already due. All jobs must be of the
    /// shard, at most [`MAX_BATCH`] and about [`MAX_BATCH_BYTES`]. An answer per job, in
    /// order. Jobs of one name are treated as submitted one after the other.
    ///
    /// # Errors
    /// Any [`StoreError`]; nothing is accepted, unless it is [`StoreError::Away`] or
    /// [`StoreError::Slow`]: then submitting the same again tells.
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.submit(shard, jobs).await,
        }
    }

    /// What is known of a job; of an ended one while it is remembered.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn get(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.get(self.shard_of(key), key).await,
        }
    }

    /// cancel: delayed, ready, dead → cancelled; a reserved job is marked.
    ///
    /// # Errors
    /// Any [`StoreError`]; asking again tells whether it took effect.
    pub async fn cancel(&self, key: &JobKey) -> Result<Cancelled, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.cancel(self.shard_of(key), key).await,
        }
    }

    /// Counts over all shards. The shards are read one after the other, so the sums can
    /// be off by what moved meanwhile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let mut sum = Stats::default();
        for shard in self.shards() {
            sum.merge(match &self.backend {
                Backend::Redis(store) => store.stats(shard).await?,
            });
        }
        Ok(sum)
    }

    /// A carrier's heartbeat: it counts as alive for `ttl`; zero says farewell.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn members(&self, carrier: &str, ttl: Duration) -> Result<Members, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.members(carrier, ttl).await,
        }
    }

    /// A carrier takes a shard; whoever held it is fenced.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn claim(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.claim(shard, carrier).await,
        }
    }

    /// A carrier gives a shard back, if it still holds it.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn give_back(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.give_back(shard, epoch).await,
        }
    }

    /// promote: at most `limit` jobs, delayed and due → ready. `floor` is how long the
    /// carrier will sleep at most.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn promote(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.promote(shard, epoch, limit, floor).await,
        }
    }

    /// recover: at most `limit` jobs whose lease has run out → ready, or dead by `lost`
    /// after five in a row, or cancelled where that was asked for.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.recover(shard, epoch, limit, floor).await,
        }
    }

    /// expire: at most `limit` dead jobs that were kept long enough → gone.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn expire(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.expire(shard, epoch, limit, floor).await,
        }
    }

    /// reserve: ready → reserved.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating with the same sequence gives what was reserved.
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.reserve(shard, ask).await,
        }
    }

    /// renew: the lease lasts `by` from now on.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.renew(lease, by).await,
        }
    }

    /// settle: the word on each lease, all of one shard; `lateness` is what was seen
    /// since the last settle of this shard. An answer per lease, in order.
    ///
    /// # Errors
    /// The leases come back; settling them again does no harm.
    pub async fn settle(
        &self,
        shard: Shard,
        items: Vec<(Lease, Outcome)>,
        lateness: &Lateness,
    ) -> Result<Vec<Settled>, Unsettled> {
        let settled = match &self.backend {
            Backend::Redis(store) => store.settle(shard, &items, lateness).await,
        };
        settled.map_err(|error| Unsettled { error, items })
    }

    /// A new stream of wake-ups.
    pub fn wakes(&self) -> Wakes {
        match &self.backend {
            Backend::Redis(store) => store.wakes(),
        }
    }
}
