//! [`Store`]: opening and preparing it, and what is known of it as a whole: durability, shards, memory, losses, health.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::JobKey;
use ringback_core::store_types::{
    AcceptLoss, Cursor, Filter, FilterIndex, Options, Profile, Shard, StoreError,
};
use ringback_core::topic_policy::Logging;
use ringback_store_embedded::{EmbeddedStore, Memory, SCHEME};
use ringback_store_redis::RedisStore;

use crate::backend::{Backend, backend};
use crate::pressure::{HIGH, Pressure, Shortage};

/// A store. Cheap to clone; all clones share the backend.
#[derive(Clone)]
pub struct Store {
    pub(crate) backend: Backend,
    pub(crate) shards: u16,
    /// Which attempts are logged by default; `None` if the store keeps no attempt log.
    pub(crate) logging: Option<Logging>,
    pub(crate) log_attempts_timeout: Duration,
    pub(crate) pressure: Arc<Pressure>,
    /// The shards whose archive outbox was full at the last submit.
    pub(crate) behind: Arc<Mutex<BTreeSet<Shard>>>,
}

impl Store {
    /// Opens a store without connecting to it; see [`Store::prepare`].
    ///
    /// # Errors
    /// [`StoreError::Unfit`] if the URL cannot be used.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let (shards, logging, log_attempts_timeout) =
            (options.shards, options.logging(), options.log_attempts_timeout());
        let room = Shortage::Disk(options.keep_free_mib);
        let (shortage, backend) = match options.url.strip_prefix(SCHEME) {
            Some(directory) => {
                let directory = directory.to_owned();
                (room, Backend::Embedded(Arc::new(EmbeddedStore::open(&directory, options))))
            }
            None => (Shortage::Memory, Backend::Redis(Arc::new(RedisStore::open(options)?))),
        };
        let (pressure, behind) = (Arc::new(Pressure::new(shortage)), Arc::default());
        Ok(Self { backend, shards, logging, log_attempts_timeout, pressure, behind })
    }

    /// An embedded store without a file, for tests. Its jobs live as long as `memory`. URL and prefix of
    /// the options are ignored.
    pub fn in_memory(memory: &Memory, options: Options) -> Self {
        let (shards, logging, log_attempts_timeout) =
            (options.shards, options.logging(), options.log_attempts_timeout());
        let pressure = Arc::new(Pressure::new(Shortage::Disk(options.keep_free_mib)));
        let backend = Backend::Embedded(Arc::new(EmbeddedStore::in_memory(memory, options)));
        Self { backend, shards, logging, log_attempts_timeout, pressure, behind: Arc::default() }
    }

    /// Connects to the store and checks that it is fit to keep jobs. Until this has succeeded once, every
    /// transition fails with [`StoreError::Unprepared`]. Call it again after the store was away, because it may
    /// have come back with other settings.
    ///
    /// # Errors
    /// A transient error if the store is away; [`StoreError::Unfit`] if it must not be used; [`StoreError::Lost`] if a
    /// loss of jobs has to be accepted before it takes new ones; [`StoreError::Weaker`] or [`StoreError::NoReplica`] if
    /// it has become less durable than asked. With the last three every call works but submits, if it was fit before.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        backend!(self.prepare().await)
    }

    /// Prepares the store like [`Store::prepare`], and returns its kind and state as a text. Takes a clone, for tasks
    /// that outlive the caller.
    pub async fn prepared(self) -> Result<String, StoreError> {
        self.prepare().await?;
        Ok(self.describe().await)
    }

    /// Checks that the store replies, and that it has not lost what it had. Returns the same text as
    /// [`Store::prepared`], and takes a clone like it.
    pub async fn answers(self) -> Result<String, StoreError> {
        backend!(self.ping().await)?;
        Ok(self.describe().await)
    }

    /// Kind and profile, followed by what is wrong: shards that refuse calls, a clock that differs, and an embedded
    /// store that has little room. Redis is not asked for its memory while nobody submits.
    async fn describe(&self) -> String {
        let shortage = match &self.backend {
            Backend::Redis(_) => None,
            Backend::Embedded(_) => self.shortage().await,
        };
        let mut found = format!("{}, {}", self.kind(), self.profile());
        found.push_str(&refused(
            "while their slots move to other nodes of the cluster",
            &backend!(self.moving()),
        ));
        let behind: Vec<_> =
            self.behind.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        found.push_str(&refused("for submits, because too many ended jobs wait for the archive", &behind));
        if let Some(gap) = self.clock_gap() {
            found.push_str(&match &self.backend {
                Backend::Redis(_) => format!("; the clock of Redis is {gap} this machine's"),
                Backend::Embedded(_) => format!(
                    "; the store's last time is {gap} this machine's clock: {} jobs were accepted, tried or became due by it; if the clock is right, `ringback check --accept-clock`",
                    gap.jobs
                ),
            });
        }
        match shortage {
            Some(shortage) => format!("{found}; {shortage}, so submits are refused"),
            None => found,
        }
    }

    /// Host and port of each server of the store that is known: those in the URL, and the masters that they name.
    pub fn addresses(&self) -> Vec<(String, u16)> {
        backend!(self.addresses())
    }

    /// Accepts the loss of jobs with this `run_id`, so that submits are accepted again.
    pub async fn accept_loss(&self, run_id: &str) -> Result<AcceptLoss, StoreError> {
        backend!(self.accept_loss(run_id).await)
    }

    /// How often a loss of jobs was noticed since the start, by this process or another one. Callers that can submit
    /// the lost jobs again do so when this changes.
    pub fn losses_noticed(&self) -> u64 {
        backend!(self.losses_noticed())
    }

    /// The shortest time for which a process of the installation keeps tombstones: of this one, and of those that were
    /// seen in the half minute before the store was last checked.
    pub fn shortest_keep_done(&self) -> Duration {
        backend!(self.shortest_keep_done())
    }

    /// The share of its memory limit that the store uses: from 0 to 1, or beyond. The fullest server
    /// counts. 0 without a limit.
    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        backend!(self.memory_share().await)
    }

    /// Whether the store removes jobs when its memory is short, according to the last check of its settings.
    pub fn evicts(&self) -> bool {
        backend!(self.evicts())
    }

    /// What the store has too little of; `None` if it is not nearly full. If it is, submits should be refused, and
    /// attempts are not logged. Reads the share of memory or the room on the disk at most once a second.
    pub async fn shortage(&self) -> Option<Shortage> {
        let read = async || match &self.backend {
            Backend::Redis(_) => Ok(self.memory_share().await? >= HIGH),
            Backend::Embedded(store) => store.has_little_room().await,
        };
        self.pressure.shortage(read).await
    }

    /// The name of the store's kind in the API.
    pub fn kind(&self) -> &'static str {
        backend!(self.kind())
    }

    /// The version of the layout in which the store keeps jobs. Each kind has layouts of its own.
    pub fn layout(&self) -> u64 {
        backend!(self.layout())
    }

    /// How durable the store is; [`Profile::Unknown`] before the first connection.
    pub fn profile(&self) -> Profile {
        backend!(self.profile())
    }

    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.shards).map(Shard)
    }

    /// The cursors at which the pages of a filter can begin, one for each part of the store; a part ends where a page
    /// names another shard. The parts are the shards. The embedded store has only one part, except for dead jobs found
    /// by their index.
    pub fn page_starts(&self, filter: &Filter) -> Vec<Cursor> {
        if matches!(self.backend, Backend::Embedded(_)) && filter.index() != Some(FilterIndex::Dead) {
            return vec![Cursor::START];
        }
        self.shards().map(|shard| Cursor { shard: shard.0, ..Cursor::START }).collect()
    }

    pub fn shard_of(&self, key: &JobKey) -> Shard {
        Shard::of(key, self.shards)
    }

    /// The shard to which ids that are made now should lead, so that submits share calls: each for a few milliseconds, in
    /// turn. `None` for an embedded store, whose shards share a writer.
    pub fn shard_for_new_jobs(&self, now: Timestamp) -> Option<Shard> {
        const TURN_MS: u64 = 4;
        let turn = now.as_millis() / TURN_MS % u64::from(self.shards);
        matches!(self.backend, Backend::Redis(_)).then_some(Shard(turn as u16))
    }
}

/// Says which shards are refused and why, to be added to the store's description; empty without shards.
fn refused(why: &str, shards: &[Shard]) -> String {
    if shards.is_empty() {
        return String::new();
    }
    let numbers: Vec<_> = shards.iter().map(|shard| shard.0.to_string()).collect();
    let numbers = numbers.join(", ");
    format!("; refused {why}: shards {numbers}")
}
