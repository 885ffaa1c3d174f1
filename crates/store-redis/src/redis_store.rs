//! The store itself: opening it, checking it, and running scripts on it.

use std::sync::{PoisonError, RwLock};

use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{Options, Profile, Shard, StoreError};

use super::keys::Keys;
use super::script::{self, Returns, Script};
use super::topology::{Topology, is_not_loaded};
use super::{check, edge_log, record, reply};

/// The memory that a tombstone with a token takes, with its share of the hash that it is in. One without takes 8
/// bytes less.
const TOMBSTONE_BYTES: u64 = 112;

/// A store on Redis.
pub struct RedisStore {
    pub(crate) topology: Topology,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
    /// Set when the store was found fit.
    profile: RwLock<Option<Profile>>,
}

impl RedisStore {
    /// Opens a store without connecting to it.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let topology = Topology::open(&options.url, options.call_timeout)?;
        let keys = Keys::new(&options.prefix, options.shards);
        Ok(Self { topology, keys, options, profile: RwLock::default() })
    }

    /// The version of the layout of keys and records.
    pub const LAYOUT: u16 = record::VERSION;

    pub fn kind(&self) -> &'static str {
        self.topology.kind()
    }

    pub fn profile(&self) -> Option<Profile> {
        *self.profile.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the servers and the settings of the installation. Until this has succeeded once, every call
    /// fails with [`StoreError::Unprepared`].
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let profile = check::servers(&self.topology).await?;
        let installation = self.keys.installation();
        let args = (record::VERSION, self.options.shards, record::EARLIEST);
        let (version, shards): (String, String) =
            self.run_at(&script::INSTALL, &installation, all(&args)).await?;
        if !version.parse().is_ok_and(|version| (record::EARLIEST..=record::VERSION).contains(&version)) {
            let (earliest, ours) = (record::EARLIEST, record::VERSION);
            return Err(StoreError::Unfit(format!(
                "the store has layout {version}; this version reads layouts {earliest} to {ours}; use the version that wrote it, or `ringback export` with that version and `ringback import` with this one under another RINGBACK_PREFIX"
            )));
        }
        if shards != self.options.shards.to_string() {
            return Err(self.options.shard_mismatch(shards));
        }
        *self.profile.write().unwrap_or_else(PoisonError::into_inner) = Some(profile);
        Ok(())
    }

    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        check::memory_share(&self.topology).await
    }

    pub async fn ping(&self) -> Result<(), StoreError> {
        // PING reports a full disk (MISCONF), the role a fail-over after which this server is a replica.
        self.topology.call(&redis::cmd("PING")).await?;
        check::masters(&self.topology).await
    }

    /// Runs a script on a shard, and reads its answer.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        shard: Shard,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        self.run_at(script, self.keys.shard(shard), args).await
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
        self.run_at(script, &self.keys.installation(), all(&args)).await
    }

    /// Sends one command, and reads its answer. `what` names the answer in an error.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        cmd: &Cmd,
        what: &'static str,
    ) -> Result<T, StoreError> {
        self.check_prepared()?;
        reply::read(self.topology.call(cmd).await?, what)
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

    async fn run_at<T: FromRedisValue>(
        &self,
        script: &Script,
        key: &str,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<T, StoreError> {
        let returns = edge_log::wanted(script);
        let mut call = script.as_function(key, returns);
        args(&mut call);
        reply::read(self.call(script, returns, key, &call).await?, script.name())
    }

    /// Calls a script as a function. The library is loaded when the server does not have it: at the first
    /// start, after a flush, and in a new version.
    async fn call(
        &self,
        script: &Script,
        returns: Returns,
        key: &str,
        call: &Cmd,
    ) -> Result<Value, StoreError> {
        let mut answer = self.topology.call(call).await;
        if answer.as_ref().is_err_and(is_not_loaded) {
            tracing::debug!(script = script.name(), "the function library is not loaded; loading it");
            answer = match self.topology.call_at(&script::load(), key).await {
                Ok(_) => self.topology.call(call).await,
                Err(error) => {
                    // Memory may be full, and scripts that make room must run all the same.
                    tracing::debug!(%error, "the function library cannot be loaded; running the script's text");
                    self.topology.call(&script.as_text(call, returns)).await
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
