//! The store itself: opening it, and running scripts on it.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{ClockGap, Options, Profile, Shard, StoreError};
use ringback_core::{crash_point, is_cut};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::accepted_counts::{AcceptedCounts, Row, SeenRow};
use super::clock_watch::ClockWatch;
use super::keys::{Keys, Place};
use super::lane_ids::LaneKey;
use super::moving::Moving;
use super::script::{self, Returns, Script};
use super::server_checks::Risk;
use super::server_checks::{self, Eviction};
use super::topology::{Confirmation, Topology, is_not_loaded};
use super::{reply, transition_log};

/// How often a call loads the function library.
const MAX_LOADS: u32 = 3;
/// The memory that a tombstone with a token takes, with its share of the hash that it is in. One without takes 8
/// bytes less.
const TOMBSTONE_BYTES: u64 = 112;

/// A store on Redis.
pub struct RedisStore {
    pub(crate) topology: Topology,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
    pub(crate) accepted_counts: AcceptedCounts,
    pub(crate) moving: Moving,
    /// Locked while the servers are checked.
    pub(crate) preparing: Mutex<()>,
    /// Set when the store was found fit.
    pub(crate) server_checks: RwLock<Option<ServerChecks>>,
    /// What removes jobs when memory is short, since it was set while the store was used; and when that was looked at
    /// last.
    pub(crate) eviction: RwLock<(Option<Eviction>, Option<Instant>)>,
    /// Why the store takes no new jobs although it was found fit before: it has become weaker than asked.
    pub(crate) weakness: RwLock<Option<StoreError>>,
    /// The key of lane ids for an installation that this process makes.
    new_lane_key: LaneKey,
    clock: ClockWatch,
    /// The shortest time for which a process keeps tombstones, in ms; 0 before that was looked at.
    shortest_keep_done: AtomicU64,
}

/// What was found when the store was found fit.
pub(crate) struct ServerChecks {
    pub(crate) profile: Profile,
    pub(crate) risks: BTreeSet<Risk>,
    pub(crate) run_ids: BTreeSet<String>,
    /// When it was last tried whether replicas sync in time.
    pub(crate) sync_tried: Instant,
}

impl RedisStore {
    /// Opens a store without connecting to it.
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

    /// How far the server's clock is ahead of this machine's.
    pub fn clock_gap(&self) -> ClockGap {
        self.clock.gap()
    }

    /// The shortest time for which a process that was seen within half a minute keeps tombstones: this one or another.
    pub fn shortest_keep_done(&self) -> Duration {
        match self.shortest_keep_done.load(Ordering::Relaxed) {
            0 => self.options.keep_done,
            ms => Duration::from_millis(ms).min(self.options.keep_done),
        }
    }

    /// Whether the clock of a shard's server is within a minute of this machine's.
    pub async fn agrees_on_time(&self, shard: Shard) -> Result<bool, StoreError> {
        let asked = Instant::now();
        let (seconds, micros): (u64, u64) =
            self.command(&redis::cmd("TIME"), Place::Shard(shard), "TIME").await?;
        self.clock.saw(seconds.saturating_mul(1_000_000).saturating_add(micros), asked.elapsed());
        Ok(!self.clock_gap().is_wide())
    }

    /// The version of the layout of keys and records.
    pub const LAYOUT: u64 = 1;

    pub fn kind(&self) -> &'static str {
        self.topology.kind()
    }

    pub fn addresses(&self) -> Vec<(String, u16)> {
        self.topology.addresses()
    }

    pub fn profile(&self) -> Option<Profile> {
        self.server_checks.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|found| found.profile)
    }

    /// Makes or checks the row of the installation.
    pub(crate) async fn look_at_installation(&self) -> Result<SeenRow, StoreError> {
        let has_to_be_accepted = u8::from(self.keeps_all());
        let key = self.new_lane_key.to_hex();
        let (life, sound_life) = self.lives();
        let keep_done = millis_up(self.options.keep_done);
        let shards = self.options.shards;
        let args = (Self::LAYOUT, shards, life, has_to_be_accepted, key, sound_life, keep_done);
        let asked = Instant::now();
        let row: Row = self.ask_unprepared(&script::INSTALL, args).await?;
        self.clock.saw(row.8, asked.elapsed());
        self.shortest_keep_done.store(row.9, Ordering::Relaxed);
        let (layout, stored_shards) = (&row.0, &row.1);
        if *layout != Self::LAYOUT.to_string() {
            return Err(StoreError::other_layout(layout, Self::LAYOUT));
        }
        if *stored_shards != shards.to_string() {
            return Err(self.options.shard_mismatch(stored_shards));
        }
        self.take_row(row)
    }

    pub(crate) fn lane_key(&self) -> Result<LaneKey, StoreError> {
        self.accepted_counts.installation().lane_key.ok_or(StoreError::Unprepared)
    }

    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        let (share, eviction) = server_checks::memory(&self.topology).await?;
        self.note_eviction(eviction);
        Ok(share)
    }

    /// Runs a script on a shard, and reads its answer.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        shard: Shard,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        self.run_at(script, Place::Shard(shard), args).await
    }

    /// Runs a script on a shard with few arguments, and reads its answer.
    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        script: &Script,
        shard: Shard,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        self.run(script, shard, all(&args)).await
    }

    /// Runs a script on the installation's keys, and reads its answer.
    pub(crate) async fn ask_installation<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        self.ask_unprepared(script, args).await
    }

    /// Like [`Self::run`], and waits until a replica has what the script changed, if that is asked.
    pub(crate) async fn run_confirmed<T: FromRedisValue>(
        &self,
        script: &Script,
        shard: Shard,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        self.run_on(script, Place::Shard(shard), Confirmation::ByReplicas, args).await
    }

    /// Like [`Self::ask`], and waits until a replica has what the script changed, if that is asked.
    pub(crate) async fn ask_confirmed<T: FromRedisValue>(
        &self,
        script: &Script,
        shard: Shard,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        self.run_confirmed(script, shard, all(&args)).await
    }

    /// Like [`Self::ask_installation`], and waits until a replica has what the script changed, if that is asked.
    pub(crate) async fn ask_installation_confirmed<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        self.run_on(script, Place::Installation, Confirmation::ByReplicas, all(&args)).await
    }

    /// Runs a script on the installation's keys before the store was found fit.
    pub(crate) async fn ask_unprepared<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        self.run_at(script, Place::Installation, all(&args)).await
    }

    /// Sends one command that names a key of a place, and reads its answer. `what` names the answer in an error.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        cmd: &Cmd,
        place: Place,
        what: &'static str,
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        reply::read(self.topology.call(cmd, place).await?, what)
    }

    /// How long tombstones are kept and how many, as the scripts that end jobs take it.
    pub(crate) fn keep(&self) -> (u64, u64) {
        (millis_up(self.options.keep_done), self.options.tombstones(TOMBSTONE_BYTES))
    }

    /// Adds [`Self::keep`] to a call.
    pub(crate) fn push_keep(&self, cmd: &mut Cmd) {
        cmd.arg(self.keep());
    }

    fn check_prepared(&self) -> Result<(), StoreError> {
        self.profile().map(drop).ok_or(StoreError::Unprepared)
    }

    pub(crate) async fn run_at<T: FromRedisValue>(
        &self,
        script: &Script,
        place: Place,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        self.run_on(script, place, Confirmation::None, args).await
    }

    async fn run_on<T: FromRedisValue>(
        &self,
        script: &Script,
        place: Place,
        confirmation: Confirmation,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        let returns = transition_log::wanted(script);
        let mut call = if self.topology.has_several_servers() {
            script.as_function(&self.keys.absent(place), returns)
        } else {
            script.as_function(&[self.keys.base(place)], returns)
        };
        args(&mut call);
        let answer = self.call(script, returns, place, confirmation, &call).await;
        self.moving.take(&self.keys, place, &answer);
        reply::read(transition_log::answer(answer?, returns)?, script.name())
    }

    async fn send(&self, cmd: &Cmd, place: Place, confirmation: Confirmation) -> Result<Value, StoreError> {
        match confirmation {
            Confirmation::None => self.topology.call(cmd, place).await,
            Confirmation::ByReplicas => self.topology.call_confirmed(cmd, place).await,
        }
    }

    /// Calls a script as a function. The library is loaded when the server does not have it: at the first
    /// start, after a flush, and in a new version. A flush may come between the load and the call.
    async fn call(
        &self,
        script: &Script,
        returns: Returns,
        place: Place,
        confirmation: Confirmation,
        call: &Cmd,
    ) -> Result<Value, StoreError> {
        if is_cut!(script.name(), "before") {
            return Err(cut());
        }
        let mut answer = self.send(call, place, confirmation).await;
        let mut loads = 0;
        while answer.as_ref().is_err_and(is_not_loaded) && loads < MAX_LOADS {
            loads += 1;
            tracing::debug!(script = script.name(), "the function library is not loaded; loading it");
            crash_point!("store.before_load");
            let loaded = self.topology.call(&script::load(), place).await;
            crash_point!("store.after_load");
            answer = match loaded {
                Ok(_) => self.send(call, place, confirmation).await,
                Err(error) => {
                    // Memory may be full, and scripts that make room must run all the same.
                    tracing::debug!(%error, "the function library cannot be loaded; running the script's text");
                    self.send(&script.as_text(call, returns), place, confirmation).await
                }
            };
        }
        if is_cut!(script.name(), "after") {
            return Err(cut());
        }
        answer
    }
}

/// Adds arguments to a call.
fn all(args: &impl ToRedisArgs) -> impl FnOnce(&mut Cmd) {
    move |cmd| {
        cmd.arg(args);
    }
}

/// The error of a call whose connection a test has cut.
fn cut() -> StoreError {
    StoreError::Away(Arc::new(io::Error::from(io::ErrorKind::ConnectionReset)))
}
