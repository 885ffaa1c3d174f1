//! The store: what keeps jobs, and one call per edge of a job's life.
//!
//! [`Store`] is a struct over the backends. Every call is bounded in time, every edge is
//! atomic, and repeating a call whose answer was lost does no harm: a submit is known by
//! its content, a reserve by its sequence, a settle by its receipt, a cancel by its mark, a
//! reschedule, run or revive by its token.

mod answers;
mod attempts;
mod audit;
mod dead;
#[path = "../../store-embedded/src/lib.rs"]
mod embedded;
mod error;
pub mod events;
mod lateness;
mod lease;
mod moves;
mod options;
mod outbox;
mod page;
mod payload;
mod policies;
mod pull;
mod reading;
#[path = "../../store-redis/src/lib.rs"]
mod redis;
mod revivals;
pub mod settings;
mod shard;
mod topics;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;

pub use self::answers::{
    Answer, Cancelled, Limit, Members, Moved, Pass, Profile, Renewed, Reserve, Reserved, Settled, Stats,
    Submitted, Unsettled,
};
pub use self::attempts::{Attempt, Logging, MAX_ANSWER, MAX_ATTEMPTS, Note, Noted};
pub use self::audit::{Audit, Damage, Finding, MOST_FINDINGS, Repair};
pub use self::dead::{DeadFilter, DeadJob, DeadPage, DeadPlace, MAX_DEAD};
use self::embedded::EmbeddedStore;
pub use self::embedded::Memory;
pub use self::error::StoreError;
pub use self::lateness::Lateness;
pub use self::lease::{Lease, StoreClock};
pub use self::moves::Token;
pub use self::options::Options;
pub use self::outbox::{MAX_DEATHS, Outbox, OutboxPlace, Telling, Told, Untold};
pub use self::page::{Cursor, Filter, Kept, MAX_PAGE, NoCursor, Page};
pub use self::policies::{PoliciesUnknown, PolicyBook, PolicyChanges, PolicyPut, PolicyVersion, Retries};
pub use self::pull::{Lapsed, Pull, PullLane, PullReceipt, Pulled, PulledJob, Recovered, Tries, Word};
use self::redis::RedisStore;
pub use self::revivals::{
    Begun, Holder, MAX_RATE, MOST_REVIVALS, NoRevivalId, Revival, RevivalId, RevivalState, Revived, Taken,
};
pub use self::shard::{Epoch, MAX_SHARDS, Shard};
pub use self::topics::{MAX_TOPICS, MOST_LANES, MOST_TOPICS, TopicCounts, TopicPage};
pub use self::wake::{Wake, Wakes};
use crate::job::{ImportJob, JobKey, NewJob};
use crate::outcome::Outcome;

/// The most jobs that one call of an edge carries.
pub const MAX_BATCH: usize = 500;
/// The most bytes that one submit call carries.
pub const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// A push lease is no longer than this plus the margin; longer calls renew it.
pub const LONGEST_STRETCH: Duration = Duration::from_secs(15);
/// So many leases in a row that ran out without an outcome bury a job.
const MOST_LOST: u32 = 5;

/// The most bytes of an error's word that are kept.
const MOST_ERROR: usize = 128;
/// The most attempts and failures a job can come with, so that they can be counted on.
const MOST_COUNTED: u32 = u32::MAX / 2;

/// A store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    shards: u16,
    logging: Option<Logging>,
}

#[derive(Clone)]
enum Backend {
    Redis(Arc<RedisStore>),
    Embedded(Arc<EmbeddedStore>),
}

impl Store {
    /// Opens a store without reaching for it yet; see [`Store::prepare`].
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the URL cannot be used.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let (shards, logging) = (options.shards, options.logging());
        let backend = match options.url.strip_prefix(embedded::SCHEME) {
            Some(directory) => {
                let directory = directory.to_owned();
                Backend::Embedded(Arc::new(EmbeddedStore::open(&directory, options)))
            }
            None => Backend::Redis(Arc::new(RedisStore::open(options)?)),
        };
        Ok(Self { backend, shards, logging })
    }

    /// The embedded store without a file, for tests: what it keeps goes with `memory`. The
    /// URL and the prefix of the options do not count.
    pub fn in_memory(memory: &Memory, options: Options) -> Self {
        let (shards, logging) = (options.shards, options.logging());
        let backend = Backend::Embedded(Arc::new(EmbeddedStore::in_memory(memory, options)));
        Self { backend, shards, logging }
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
            Backend::Embedded(store) => store.prepare().await,
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
            Backend::Embedded(store) => store.ping().await,
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
            Backend::Embedded(_) => Ok(0.0),
        }
    }

    /// Its kind's name in the API.
    pub fn kind(&self) -> &'static str {
        match &self.backend {
            Backend::Redis(store) => store.kind(),
            Backend::Embedded(_) => "embedded",
        }
    }

    /// How safely it keeps jobs; [`Profile::Unknown`] before it was reached.
    pub fn profile(&self) -> Profile {
        match &self.backend {
            Backend::Redis(store) => store.profile().unwrap_or(Profile::Unknown),
            Backend::Embedded(store) => store.profile(),
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
            Backend::Embedded(store) => store.submit(shard, jobs).await,
        }
    }

    /// import: nothing → delayed, ready or dead; jobs with what they have behind them. As
    /// [`Store::submit`] otherwise: a submit and an import of the same content are each
    /// other's repetition.
    ///
    /// # Errors
    /// Those of [`Store::submit`].
    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.import(shard, jobs).await,
            Backend::Embedded(store) => store.import(shard, jobs).await,
        }
    }

    /// cancel: delayed, ready, dead → cancelled; a reserved job is marked.
    ///
    /// # Errors
    /// Any [`StoreError`]; asking again tells whether it took effect.
    pub async fn cancel(&self, key: &JobKey) -> Result<Cancelled, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.cancel(self.shard_of(key), key).await,
            Backend::Embedded(store) => store.cancel(self.shard_of(key), key).await,
        }
    }

    /// A carrier's heartbeat: it counts as alive for `ttl`; zero says farewell.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn members(&self, carrier: &str, ttl: Duration) -> Result<Members, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.members(carrier, ttl).await,
            Backend::Embedded(store) => store.members(carrier, ttl),
        }
    }

    /// A carrier takes a shard; whoever held it is fenced.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn claim(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.claim(shard, carrier).await,
            Backend::Embedded(store) => store.claim(shard).await,
        }
    }

    /// A carrier gives a shard back, if it still holds it.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn give_back(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.give_back(shard, epoch).await,
            Backend::Embedded(store) => store.give_back(),
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
            Backend::Embedded(store) => store.promote(shard, epoch, limit, floor).await,
        }
    }

    /// recover: at most `limit` jobs whose lease has run out → ready, or dead by `lost`
    /// after five in a row, or cancelled where that was asked for. Those for pull are answered
    /// instead, for the caller to settle.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Recovered, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.recover(shard, epoch, limit, floor).await,
            Backend::Embedded(store) => store.recover(shard, epoch, limit, floor).await,
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
            Backend::Embedded(store) => store.expire(shard, epoch, limit, floor).await,
        }
    }

    /// reserve: ready → reserved.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating with the same sequence gives what was reserved.
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.reserve(shard, ask).await,
            Backend::Embedded(store) => store.reserve(shard, ask).await,
        }
    }

    /// renew: the lease lasts `by` from now on.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.renew(lease, by).await,
            Backend::Embedded(store) => store.renew(lease, by).await,
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
            Backend::Embedded(store) => store.settle(shard, &items, lateness).await,
        };
        settled.map_err(|error| Unsettled { error, items })
    }

    /// exchange: [`Store::settle`] and then [`Store::reserve`] of the same shard, in one call. What
    /// is released can be taken.
    ///
    /// # Errors
    /// The leases come back; settling them again and asking with the same sequence, together
    /// or each on its own, does no harm.
    pub async fn exchange(
        &self,
        shard: Shard,
        items: Vec<(Lease, Outcome)>,
        lateness: &Lateness,
        ask: &Reserve<'_>,
    ) -> Result<(Vec<Settled>, Reserved), Unsettled> {
        let answer = match &self.backend {
            Backend::Redis(store) => store.exchange(shard, &items, lateness, ask).await,
            Backend::Embedded(store) => store.exchange(shard, &items, lateness, ask).await,
        };
        answer.map_err(|error| Unsettled { error, items })
    }

    /// A new stream of wake-ups; `rng` spreads its attempts to subscribe again.
    pub fn wakes(&self, rng: StdRng) -> Wakes {
        match &self.backend {
            Backend::Redis(store) => store.wakes(rng).into(),
            Backend::Embedded(store) => store.wakes().into(),
        }
    }
}

/// The start of a text: at most so many bytes, and whole characters.
fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}
