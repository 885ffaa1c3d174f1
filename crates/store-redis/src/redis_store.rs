//! [`RedisStore`]: opens the store, and holds the data about its servers and its installation.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::store_types::{AcceptClock, ClockGap, Options, Profile, Shard, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::accepted_counts::AcceptedCounts;
use super::clock_watch::ClockWatch;
use super::keys::{KeySpace, Keys};
use super::lane_ids::LaneKey;
use super::moving_slots::Moving;
use super::server_checks::Risk;
use super::server_checks::{self, Eviction};
use super::topology::{Confirmation, Topology};

/// The memory of a tombstone with a token, with its share of the hash it is in. One without takes 8 bytes less.
const TOMBSTONE_BYTES: u64 = 112;

pub struct RedisStore {
    pub(crate) topology: Topology,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
    pub(crate) accepted_counts: AcceptedCounts,
    pub(crate) moving: Moving,
    /// Locked while the servers are checked.
    pub(crate) preparing: Mutex<()>,
    /// The findings of the checks. Set when the store was found fit.
    pub(crate) server_checks: RwLock<Option<ServerChecks>>,
    /// The setting that removes jobs when memory is short, if it was made in use; and when that was last checked.
    pub(crate) eviction: RwLock<(Option<Eviction>, Option<Instant>)>,
    /// Why the store refuses new jobs although it was found fit before: it has become less durable than required.
    pub(crate) weakness: RwLock<Option<StoreError>>,
    /// The key of lane ids for an installation that this process makes.
    pub(crate) new_lane_key: LaneKey,
    pub(crate) clock: ClockWatch,
    /// The shortest time for which a process keeps tombstones, in ms; 0 before the row was read.
    pub(crate) shortest_keep_done: AtomicU64,
}

/// The findings of the checks by which the store was found fit.
pub(crate) struct ServerChecks {
    pub(crate) profile: Profile,
    pub(crate) risks: BTreeSet<Risk>,
    pub(crate) run_ids: BTreeSet<String>,
    /// When the durability of the servers was last read.
    pub(crate) durability_read: Instant,
    /// When the sync of replicas was last tested.
    pub(crate) sync_tried: Instant,
}

impl RedisStore {
    /// Opens a store without connecting. Fails if the URL or a TLS file is unusable, or there are no random numbers.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let keys = Keys::new(&options.prefix, options.shards);
        let confirmation = match options.durability {
            Some(Profile::Replicated) => Confirmation::ByReplicas,
            _ => Confirmation::None,
        };
        let topology = Topology::open(&options.url, &options.tls, options.call_timeout, &keys, confirmation)?;
        let accepted_counts = AcceptedCounts::new(options.shards);
        let (moving, preparing) = (Moving::new(&keys), Mutex::default());
        let (server_checks, weakness, eviction) = (RwLock::default(), RwLock::default(), RwLock::default());
        let new_lane_key = LaneKey::generate()?;
        let clock = ClockWatch::default();
        Ok(Self {
            topology,
            keys,
            options,
            accepted_counts,
            moving,
            preparing,
            server_checks,
            eviction,
            weakness,
            new_lane_key,
            clock,
            shortest_keep_done: AtomicU64::default(),
        })
    }

    /// Returns how far the server's clock is ahead of this machine's, as last measured.
    pub fn clock_ahead(&self) -> ClockGap {
        self.clock.gap()
    }

    /// Returns [`Self::clock_ahead`] if the gap is wide, else `None`.
    pub fn clock_gap(&self) -> Option<ClockGap> {
        Some(self.clock_ahead()).filter(|gap| gap.is_wide())
    }

    /// Does nothing, and returns that the time of the server counts.
    pub async fn accept_clock(&self) -> Result<AcceptClock, StoreError> {
        Ok(AcceptClock::OfServer)
    }

    /// Returns the shortest time for which a process keeps tombstones: this one, or another that was seen within 30 s
    /// before the row was last read.
    pub fn shortest_keep_done(&self) -> Duration {
        match self.shortest_keep_done.load(Ordering::Relaxed) {
            0 => self.options.keep_done,
            ms => Duration::from_millis(ms).min(self.options.keep_done),
        }
    }

    /// Reads the clock of a shard's server, and returns whether it is within a minute of this machine's.
    pub async fn agrees_on_time(&self, shard: Shard) -> Result<bool, StoreError> {
        let asked = Instant::now();
        self.clock.saw(self.server_time(shard.into()).await?, asked.elapsed());
        Ok(self.clock_gap().is_none())
    }

    /// Reads the time of a key space's server, in µs.
    pub(crate) async fn server_time(&self, space: KeySpace) -> Result<u64, StoreError> {
        let (seconds, micros): (u64, u64) = self.command("TIME", space, "TIME").early().run().await?;
        Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
    }

    /// The version of the layout of keys and records.
    pub const LAYOUT: u64 = 6;

    pub const fn layout(&self) -> u64 {
        Self::LAYOUT
    }

    pub fn kind(&self) -> &'static str {
        self.topology.kind()
    }

    pub fn addresses(&self) -> Vec<(String, u16)> {
        self.topology.addresses()
    }

    /// Returns how durable the store is; [`Profile::Unknown`] before it was found fit.
    pub fn profile(&self) -> Profile {
        self.found_profile().unwrap_or(Profile::Unknown)
    }

    /// Returns how durable the store was found to be; `None` before it was found fit.
    pub(crate) fn found_profile(&self) -> Option<Profile> {
        self.server_checks.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|found| found.profile)
    }

    pub(crate) fn lane_key(&self) -> Result<LaneKey, StoreError> {
        self.accepted_counts.installation().lane_key.ok_or(StoreError::Unprepared)
    }

    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        let (share, eviction) = server_checks::memory(&self.topology).await?;
        self.note_eviction(eviction);
        Ok(share)
    }

    /// Returns for how long tombstones are kept, in ms, and how many, as arguments of the scripts that end jobs.
    pub(crate) fn keep(&self) -> (u64, u64) {
        (millis_up(self.options.keep_done), self.options.tombstones(TOMBSTONE_BYTES))
    }
}
