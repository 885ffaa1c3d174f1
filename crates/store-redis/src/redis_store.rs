//! The store itself: opening it, checking it, and running scripts on it.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{Options, Profile, Shard, StoreError};

use super::check::{Findings, Risk};
use super::keys::{Keys, Place};
use super::moving::Moving;
use super::script::{self, Returns, Script};
use super::topology::{Topology, is_not_loaded};
use super::witness::{Row, SeenRow, Witness};
use super::{check, edge_log, record, reply};

/// The memory that a tombstone with a token takes, with its share of the hash that it is in. One without takes 8
/// bytes less.
const TOMBSTONE_BYTES: u64 = 112;

/// A store on Redis.
pub struct RedisStore {
    pub(crate) topology: Topology,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
    pub(crate) witness: Witness,
    pub(crate) moving: Moving,
    /// Set when the store was found fit.
    fitness: RwLock<Option<Fitness>>,
}

/// What was found when the store was found fit.
struct Fitness {
    profile: Profile,
    risks: BTreeSet<Risk>,
    /// The run ids of the servers.
    run_ids: BTreeSet<String>,
}

impl RedisStore {
    /// Opens a store without connecting to it.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let keys = Keys::new(&options.prefix, options.shards);
        let topology = Topology::open(&options.url, options.call_timeout, &keys)?;
        let witness = Witness::new(options.shards);
        let moving = Moving::new(&keys);
        Ok(Self { topology, keys, options, witness, moving, fitness: RwLock::default() })
    }

    /// The version of the layout of keys and records.
    pub const LAYOUT: u16 = record::VERSION;

    pub fn kind(&self) -> &'static str {
        self.topology.kind()
    }

    pub fn profile(&self) -> Option<Profile> {
        self.fitness.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|found| found.profile)
    }

    /// Checks the servers, the settings of the installation, and whether the data are still there. Until this has
    /// succeeded once, every call fails with [`StoreError::Unprepared`]. While a loss of jobs has to be accepted it
    /// fails with [`StoreError::Lost`], and submits do.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        // The servers were checked when the loss was noticed.
        let is_lost = self.profile().is_some() && self.loss().is_some();
        let findings = if is_lost { None } else { Some(check::servers(&self.topology).await?) };
        let losses = self.losses().await?;
        self.look_at_installation().await?;
        self.note_losses(losses).await?;
        if let Some(findings) = findings {
            self.rewrite_after_start(&findings.rewritten).await;
            self.take_findings(findings);
        }
        self.check_no_loss()
    }

    /// Warns of risks, but not at every attempt to reach the store again.
    fn take_findings(&self, findings: Findings) {
        let mut fitness = self.fitness.write().unwrap_or_else(PoisonError::into_inner);
        if fitness.as_ref().is_none_or(|before| before.risks != findings.risks) {
            findings.warn();
        }
        let Findings { profile, risks, run_ids, .. } = findings;
        *fitness = Some(Fitness { profile, risks, run_ids });
    }

    /// Makes or checks the row of the installation.
    pub(crate) async fn look_at_installation(&self) -> Result<SeenRow, StoreError> {
        let has_to_be_accepted = u8::from(self.profile() == Some(Profile::Disk));
        let args = (record::VERSION, self.options.shards, record::EARLIEST, self.life(), has_to_be_accepted);
        let row: Row = self.ask_unprepared(&script::INSTALL, args).await?;
        let (version, shards) = (&row.0, &row.1);
        if !version.parse().is_ok_and(|version| (record::EARLIEST..=record::VERSION).contains(&version)) {
            let (earliest, ours) = (record::EARLIEST, record::VERSION);
            return Err(StoreError::Unfit(format!(
                "the store has layout {version}; this version reads layouts {earliest} to {ours}; use the version that wrote it, or `ringback export` with that version and `ringback import` with this one under another RINGBACK_PREFIX"
            )));
        }
        if *shards != self.options.shards.to_string() {
            return Err(self.options.shard_mismatch(shards));
        }
        Ok(self.take_row(row))
    }

    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        check::memory_share(&self.topology).await
    }

    /// Checks that the store answers and is the same. Its call writes, so that it fails on a server that takes no
    /// writes: a replica after a fail-over, or one whose disk is full (MISCONF).
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.topology.look().await;
        let SeenRow { is_another, run_id } = self.look_at_installation().await?;
        let run_ids = if self.topology.has_several_servers() {
            self.look_at_moves().await?;
            check::current_run_ids(&self.topology).await?
        } else {
            BTreeSet::from([run_id])
        };
        let has_changed = {
            let fitness = self.fitness.read().unwrap_or_else(PoisonError::into_inner);
            fitness.as_ref().is_some_and(|found| found.run_ids != run_ids)
        };
        // A server that has started again between two calls may have other settings, and other data.
        if has_changed || is_another || self.has_next_shard_lost().await? {
            return self.prepare().await;
        }
        self.check_no_loss()
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
        let returns = edge_log::wanted(script);
        let mut call = if self.topology.has_several_servers() {
            script.as_function(&self.keys.absent(place), returns)
        } else {
            script.as_function(&[self.keys.base(place)], returns)
        };
        args(&mut call);
        let answer = self.call(script, returns, place, &call).await;
        self.moving.take(&self.keys, place, &answer);
        reply::read(answer?, script.name())
    }

    /// Calls a script as a function. The library is loaded when the server does not have it: at the first
    /// start, after a flush, and in a new version.
    async fn call(
        &self,
        script: &Script,
        returns: Returns,
        place: Place,
        call: &Cmd,
    ) -> Result<Value, StoreError> {
        let mut answer = self.topology.call(call, place).await;
        if answer.as_ref().is_err_and(is_not_loaded) {
            tracing::debug!(script = script.name(), "the function library is not loaded; loading it");
            answer = match self.topology.call(&script::load(), place).await {
                Ok(_) => self.topology.call(call, place).await,
                Err(error) => {
                    // Memory may be full, and scripts that make room must run all the same.
                    tracing::debug!(%error, "the function library cannot be loaded; running the script's text");
                    self.topology.call(&script.as_text(call, returns), place).await
                }
            };
        }
        edge_log::answer(answer?, returns)
    }
}

/// Adds arguments to a call.
fn all(args: &impl ToRedisArgs) -> impl FnOnce(&mut Cmd) {
    move |cmd| {
        cmd.arg(args);
    }
}
