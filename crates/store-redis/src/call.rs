//! [`Call`]: one call of Redis, a script or a command on the keys of a shard or of the installation, and whether replicas
//! have to confirm its changes. [`Call::run`] loads the function library if necessary. Commands without keys, such as
//! INFO, go through [`Topology`](super::topology::Topology) alone.

use std::io;
use std::sync::Arc;

use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};
use ringback_core::store_types::StoreError;
use ringback_core::{crash_point, is_cut};

use super::keys::KeySpace;
use super::redis_store::RedisStore;
use super::script::{self, Returns, Script};
use super::topology::{Confirmation, is_not_loaded};
use super::{reply, transition_log};

/// How often a call loads the function library.
const MAX_LOADS: u32 = 3;

/// A call to be made.
#[must_use = "a call is made by `run`"]
pub(crate) struct Call<'a> {
    store: &'a RedisStore,
    space: KeySpace,
    what: What<'a>,
    cmd: Cmd,
    confirmation: Confirmation,
    /// Whether the call may be made before the store was found fit.
    is_early: bool,
}

#[derive(Clone, Copy)]
enum What<'a> {
    Script(&'a Script, Returns),
    /// A command, and what its answer is called in errors.
    Command(&'static str),
}

impl RedisStore {
    /// Returns a call of a script on a shard, or on the installation.
    pub(crate) fn call<'a>(&'a self, script: &'a Script, space: impl Into<KeySpace>) -> Call<'a> {
        let (space, returns) = (space.into(), transition_log::wanted(script));
        let cmd = if self.topology.has_several_servers() {
            script.as_function(&self.keys.absent(space), returns)
        } else {
            script.as_function(&[self.keys.base(space)], returns)
        };
        self.new_call(space, What::Script(script, returns), cmd)
    }

    /// Returns a call of one command, whose arguments name a key of the space. `answer` names its answer in errors.
    pub(crate) fn command(&self, name: &str, space: impl Into<KeySpace>, answer: &'static str) -> Call<'_> {
        self.new_call(space.into(), What::Command(answer), redis::cmd(name))
    }

    fn new_call<'a>(&'a self, space: KeySpace, what: What<'a>, cmd: Cmd) -> Call<'a> {
        Call { store: self, space, what, cmd, confirmation: Confirmation::None, is_early: false }
    }
}

impl Call<'_> {
    /// Adds arguments.
    pub(crate) fn arg(mut self, args: impl ToRedisArgs) -> Self {
        self.cmd.arg(args);
        self
    }

    /// Adds arguments by a function.
    pub(crate) fn with(mut self, push: impl FnOnce(&mut Cmd)) -> Self {
        push(&mut self.cmd);
        self
    }

    /// Makes the call wait until replicas have its changes, if the configured durability requires that.
    pub(crate) fn confirmed(mut self) -> Self {
        self.confirmation = Confirmation::ByReplicas;
        self
    }

    /// Lets the call be made before the store was found fit.
    pub(crate) fn early(mut self) -> Self {
        self.is_early = true;
        self
    }

    /// Makes the call, and reads its answer, within the call timeout of the topology. Fails with `Unprepared` before the
    /// store was found fit, unless the call is early, and with `Unreadable` if the answer has another form.
    pub(crate) async fn run<T: FromRedisValue>(self) -> Result<T, StoreError> {
        let name = match self.what {
            What::Script(script, _) => script.name(),
            What::Command(answer) => answer,
        };
        reply::read(self.answer().await?, name)
    }

    /// Calls a command, or a script as a function. Loads the library if the server does not have it: at the first start,
    /// after a flush, and in a new version; again if a flush comes in between. If it cannot be loaded, runs the text of
    /// the script.
    async fn answer(&self) -> Result<Value, StoreError> {
        let Self { store, space, confirmation, .. } = *self;
        if !self.is_early && store.found_profile().is_none() {
            return Err(StoreError::Unprepared);
        }
        let What::Script(script, returns) = self.what else {
            return store.topology.call(&self.cmd, space, confirmation).await;
        };
        if is_cut!(script.name(), "before") {
            return Err(cut());
        }
        let mut answer = store.topology.call(&self.cmd, space, confirmation).await;
        let mut loads = 0;
        while answer.as_ref().is_err_and(is_not_loaded) && loads < MAX_LOADS {
            loads += 1;
            tracing::debug!(script = script.name(), "the function library is not loaded; loading it");
            crash_point!("store.before_load");
            let loaded = store.topology.call(&script::load(), space, Confirmation::None).await;
            crash_point!("store.after_load");
            answer = match loaded {
                Ok(_) => store.topology.call(&self.cmd, space, confirmation).await,
                Err(error) => {
                    // Memory may be full, and scripts that make room must run all the same.
                    tracing::debug!(%error, "the function library cannot be loaded; running the script's text");
                    store.topology.call(&script.as_text(&self.cmd, returns), space, confirmation).await
                }
            };
        }
        if is_cut!(script.name(), "after") {
            return Err(cut());
        }
        store.moving.take(&store.keys, space, &answer);
        transition_log::answer(answer?, returns)
    }
}

/// The error of a call whose connection a test has cut.
fn cut() -> StoreError {
    StoreError::Away(Arc::new(io::Error::from(io::ErrorKind::ConnectionReset)))
}
