//! What the processes of a run see of the world: names of the store and of receivers, and the clock of Redis. Where no C
//! compiler is, they are addresses, and the clock does not step.

use ringback_testkit::{Preload, ProcessSpec, RedisOptions, RedisServer, Seen};

use crate::secret::PASSWORD;

/// The name of the store, and that of the receiver.
const STORE: &str = "redis.store.test";
const RECEIVER: &str = "hooks.receiver.test";

/// What can be changed of the world; nothing without a compiler.
pub(crate) struct World(Option<Preload>);

impl World {
    pub(crate) fn new() -> Self {
        Self(Preload::compile())
    }

    /// For one more program.
    pub(crate) fn seen(&self) -> Option<Seen> {
        self.0.as_ref().map(Preload::seen)
    }

    /// The options of servers that all programs connect to through proxies.
    pub(crate) fn servers(&self) -> RedisOptions {
        let options = RedisServer::options();
        match &self.0 {
            Some(preload) => options.behind_proxies(preload.clone()),
            None => options,
        }
    }

    /// The URL of a store on a port of this machine.
    pub(crate) fn store(&self, port: u16) -> String {
        format!("redis://default:{PASSWORD}@{}:{port}", self.host(STORE))
    }

    /// The URL of a receiver, given by its address.
    pub(crate) fn receiver(&self, address: &str) -> String {
        address.replace("127.0.0.1", self.host(RECEIVER))
    }

    fn host(&self, name: &'static str) -> &'static str {
        if self.0.is_some() { name } else { "127.0.0.1" }
    }
}

/// Lets a process see a world.
pub(crate) fn of_process(spec: ProcessSpec, seen: Option<&Seen>) -> ProcessSpec {
    let env = seen.map(Seen::env).unwrap_or_default();
    env.iter().fold(spec, |spec, (name, value)| spec.env(name, value))
}

/// Lets a server see a world.
pub(crate) fn of_server(options: RedisOptions, seen: Option<&Seen>) -> RedisOptions {
    let env = seen.map(Seen::env).unwrap_or_default();
    env.iter().fold(options, |options, (name, value)| options.env(name, value))
}
