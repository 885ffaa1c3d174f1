//! What the processes of a run see of the world: host names of the store and of the receiver, and the clock of Redis.
//! Without a C compiler the store has an address in place of a name, and the clock cannot be stepped.

use std::net::Ipv4Addr;

use ringback_testkit::{LookUp, NameServer, Preload, ProcessSpec, RedisOptions, RedisServer, Seen};

use crate::planted_secret::PASSWORD;

/// The name of the store, and that of the receiver.
const STORE: &str = "redis.store.test";
const RECEIVER: &str = "hooks.receiver.test";

/// The clocks, names and addresses that a run can change.
pub(crate) struct World {
    /// `None` without a C compiler.
    preload: Option<Preload>,
    receivers: NameServer,
}

impl World {
    pub(crate) fn new() -> Self {
        // Answers may not be cached, so that a change is seen at once.
        let receivers = NameServer::start(0);
        receivers.knows(RECEIVER, &[Ipv4Addr::LOCALHOST.into()]);
        Self { preload: Preload::compile(), receivers }
    }

    /// The address of the name server that knows the receiver.
    pub(crate) fn name_server(&self) -> String {
        self.receivers.address().to_string()
    }

    /// Sets how look-ups of the receiver end from now on.
    pub(crate) fn set_receivers(&self, look_up: LookUp) {
        self.receivers.set(RECEIVER, look_up);
    }

    /// The clock, names and address for one more program; `None` without a C compiler.
    pub(crate) fn seen(&self) -> Option<Seen> {
        self.preload.as_ref().map(Preload::seen)
    }

    /// The options of servers that all programs connect to through proxies, if there is a C compiler.
    pub(crate) fn servers(&self) -> RedisOptions {
        let options = RedisServer::options();
        match &self.preload {
            Some(preload) => options.behind_proxies(preload.clone()),
            None => options,
        }
    }

    /// The URL of a store on a port of this machine.
    pub(crate) fn store(&self, port: u16) -> String {
        let host = if self.preload.is_some() { STORE } else { "127.0.0.1" };
        format!("redis://default:{PASSWORD}@{host}:{port}")
    }
}

/// The URL of a receiver with its host name in place of 127.0.0.1.
pub(crate) fn receiver(address: &str) -> String {
    address.replace("127.0.0.1", RECEIVER)
}

/// Adds the environment variables of `seen` to a process; none if it is `None`.
pub(crate) fn of_process(spec: ProcessSpec, seen: Option<&Seen>) -> ProcessSpec {
    let env = seen.map(Seen::env).unwrap_or_default();
    env.iter().fold(spec, |spec, (name, value)| spec.env(name, value))
}

/// Adds the environment variables of `seen` to a server; none if it is `None`.
pub(crate) fn of_server(options: RedisOptions, seen: Option<&Seen>) -> RedisOptions {
    let env = seen.map(Seen::env).unwrap_or_default();
    env.iter().fold(options, |options, (name, value)| options.env(name, value))
}
