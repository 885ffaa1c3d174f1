//! The options that a test starts a redis-server with: persistence, memory limit, environment, proxies and any other.

use super::{PORT_TRIES, RedisServer};
use crate::network::free_port;
use crate::preload::Preload;

/// The data that a server keeps on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: a restart begins empty.
    Off,
    /// An append-only file, synced once a second.
    EverySec,
    /// An append-only file, synced before each response.
    Always,
}

/// How a server is started.
#[must_use]
#[derive(Clone, Debug)]
pub struct RedisOptions {
    pub(super) persistence: Persistence,
    pub(super) maxmemory: Option<String>,
    pub(super) maxmemory_policy: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) is_sentinel: bool,
    /// The cluster bus port of a node of a cluster.
    pub(super) bus: Option<u16>,
    pub(super) preload: Option<Preload>,
    pub(super) counts_instructions: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            persistence: Persistence::Off,
            maxmemory: None,
            maxmemory_policy: "noeviction".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            is_sentinel: false,
            bus: None,
            preload: None,
            counts_instructions: false,
        }
    }
}

impl RedisOptions {
    /// Sets what is kept on disk; nothing by default.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// Sets the memory limit as Redis writes it, such as `64mb`; none by default.
    pub fn maxmemory(mut self, limit: &str) -> Self {
        self.maxmemory = Some(limit.to_owned());
        self
    }

    /// Sets the policy at the memory limit; `noeviction` by default.
    pub fn maxmemory_policy(mut self, policy: &str) -> Self {
        policy.clone_into(&mut self.maxmemory_policy);
        self
    }

    /// Makes a master send its data to a new replica at once, and the first change within a second.
    pub fn copies_at_once(self) -> Self {
        self.arg("--repl-diskless-sync-delay", "0").arg("--repl-ping-replica-period", "1")
    }

    /// Runs the server under valgrind, for an [`InstructionCount`](super::InstructionCount).
    pub fn count_instructions(mut self) -> Self {
        self.counts_instructions = true;
        self
    }

    /// Adds an option, as in `arg("--maxclients", "64")`. It overrides the options set by other methods.
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Loads the library into the server. Programs and servers that have it then connect to this server through proxies.
    pub fn behind_proxies(mut self, preload: Preload) -> Self {
        self.preload = Some(preload);
        self
    }

    /// Starts a server with these options on a free port, and waits until it answers. Panics if it does not.
    pub async fn start(self) -> RedisServer {
        let mut last = String::new();
        for _ in 0..PORT_TRIES {
            match RedisServer::launch(self.clone(), free_port()).await {
                Ok(server) => return server,
                Err(reason) if reason.contains("Address already in use") => last = reason,
                Err(reason) => panic!("{reason}"),
            }
        }
        panic!("{last}");
    }
}
