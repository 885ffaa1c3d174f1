//! The parts of a stack, and the settings of each of its processes.

use crate::network::free_port;
use crate::process::ProcessSpec;
use crate::redis::RedisOptions;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The HTTP API.
    Api,
    /// Moves due jobs and recovers expired leases.
    Carrier,
    /// Delivers jobs.
    Notifier,
    /// All three roles in one process: `ringback up`.
    Up,
    /// Writes the ended jobs to a database.
    Archiver,
    /// Loads rows of a database as jobs.
    Feed,
}

impl Role {
    pub fn binary(self) -> &'static str {
        match self {
            Self::Api => "ringback-api",
            Self::Carrier => "ringback-carrier",
            Self::Notifier => "ringback-notifier",
            Self::Up => "ringback",
            Self::Archiver => "ringback-archiver",
            Self::Feed => "ringback-feed",
        }
    }

    /// The command that starts a process of the role, without settings.
    fn start(self) -> ProcessSpec {
        let spec = ProcessSpec::new(self.binary());
        match self {
            Self::Api | Self::Carrier | Self::Notifier | Self::Archiver | Self::Feed => spec,
            Self::Up => spec.arg("up"),
        }
    }
}

/// The options of a stack. The default is one process of each role, a redis-server that keeps nothing on disk, a
/// carrier lock of one second, a lease margin of one second and retry delays of 100, 200 and 400 ms.
#[must_use]
#[derive(Clone, Debug)]
pub struct StackOptions {
    pub(crate) store: StoreOptions,
    pub(crate) apis: usize,
    pub(crate) carriers: usize,
    pub(crate) notifiers: usize,
    pub(crate) ups: usize,
    pub(crate) archivers: usize,
    pub(crate) feeds: usize,
    pub(crate) is_checked: bool,
    is_unread: bool,
    is_guarded: bool,
    env: Vec<(Option<Role>, String, String)>,
}

/// The store of a stack.
#[derive(Clone, Debug)]
pub(crate) enum StoreOptions {
    Single(RedisOptions),
    Cluster(RedisOptions),
    ClusterWithReplicas(RedisOptions),
    Sentinel(RedisOptions),
    Running(String),
}

impl Default for StackOptions {
    fn default() -> Self {
        let options = Self {
            store: StoreOptions::Single(RedisOptions::default()),
            apis: 1,
            carriers: 1,
            notifiers: 1,
            ups: 0,
            archivers: 0,
            feeds: 0,
            is_checked: true,
            is_unread: false,
            is_guarded: false,
            env: Vec::new(),
        };
        options.lock_ttl("1s").lease_margin("1s").retry("100ms 200ms 400ms")
    }
}

impl StackOptions {
    /// Uses a redis-server with these options.
    pub fn redis(mut self, options: RedisOptions) -> Self {
        self.store = StoreOptions::Single(options);
        self
    }

    /// Uses the store at a URL, which outlives the stack. A relative directory after `embedded:` is below the
    /// directory of each process, which keeps it over restarts.
    pub fn store(mut self, url: &str) -> Self {
        self.store = StoreOptions::Running(url.to_owned());
        self
    }

    /// Uses a cluster of three masters instead of one server.
    pub fn cluster(mut self, options: RedisOptions) -> Self {
        self.store = StoreOptions::Cluster(options);
        self
    }

    /// Uses a cluster of three masters, each with a replica, instead of one server.
    pub fn cluster_with_replicas(mut self, options: RedisOptions) -> Self {
        self.store = StoreOptions::ClusterWithReplicas(options);
        self
    }

    /// Uses a master with two replicas and three sentinels instead of one server.
    pub fn sentinel(mut self, options: RedisOptions) -> Self {
        self.store = StoreOptions::Sentinel(options);
        self
    }

    /// Sets the number of processes of a role, which may be 0.
    pub fn count(mut self, role: Role, count: usize) -> Self {
        match role {
            Role::Api => self.apis = count,
            Role::Carrier => self.carriers = count,
            Role::Notifier => self.notifiers = count,
            Role::Up => self.ups = count,
            Role::Archiver => self.archivers = count,
            Role::Feed => self.feeds = count,
        }
        self
    }

    /// One API and no other role: no job becomes ready and none is delivered.
    pub fn api_only() -> Self {
        Self::default().count(Role::Carrier, 0).count(Role::Notifier, 0)
    }

    /// One `ringback up` on an embedded store.
    pub fn embedded() -> Self {
        Self::default().in_one_process().store("embedded:./data")
    }

    /// Both kinds of store, each with one API process alone.
    pub fn api_on_each_store() -> [Self; 2] {
        [Self::api_only(), Self::api_only().store("embedded:./data")]
    }

    /// Both kinds of store: Redis with one process of each role, and one process on an embedded store.
    pub fn each_store() -> [Self; 2] {
        [Self::default(), Self::embedded()]
    }

    /// One `ringback up` in place of a process of each role.
    pub fn in_one_process(self) -> Self {
        let none =
            [Role::Api, Role::Carrier, Role::Notifier].into_iter().fold(self, |o, role| o.count(role, 0));
        none.count(Role::Up, 1)
    }

    /// Skips the check when the stack is dropped, for benchmarks and for stores that are damaged on purpose.
    pub fn unchecked(self) -> Self {
        Self { is_checked: false, ..self }
    }

    /// Starts each process [unread](ProcessSpec::unread).
    pub fn unread(self) -> Self {
        Self { is_unread: true, ..self }
    }

    /// Gives the address guard its default settings. Otherwise callbacks may go to every address.
    pub fn guarded(self) -> Self {
        Self { is_guarded: true, ..self }
    }

    /// Sets how long the locks of carriers and feed processes outlive these.
    pub fn lock_ttl(self, ttl: &str) -> Self {
        self.env("RINGBACK_LOCK_TTL", ttl).env("RINGBACK_FEED_LOCK_TTL", ttl)
    }

    /// Sets how much longer a lease is than its job's timeout.
    pub fn lease_margin(self, margin: &str) -> Self {
        self.env("RINGBACK_LEASE_MARGIN", margin)
    }

    /// Sets the retry delays of jobs that have none.
    pub fn retry(self, tiers: &str) -> Self {
        self.env("RINGBACK_RETRY", tiers)
    }

    /// Sets an environment variable for every process. The last value of a name counts.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((None, name.to_owned(), value.to_owned()));
        self
    }

    /// Sets an environment variable for the processes of one role.
    pub fn role_env(mut self, role: Role, name: &str, value: &str) -> Self {
        self.env.push((Some(role), name.to_owned(), value.to_owned()));
        self
    }

    /// The settings of one more process of a role: free ports, the store, and those options that the role knows.
    pub(crate) fn spec(&self, role: Role, store: &str) -> ProcessSpec {
        let listen = || format!("127.0.0.1:{}", free_port());
        let mut spec = role.start().env("RINGBACK_STORE", store);
        spec = spec.env("RINGBACK_ADMIN_LISTEN", &listen());
        if matches!(role, Role::Api | Role::Up) {
            spec = spec.env("RINGBACK_API_LISTEN", &listen());
        }
        if self.is_guarded {
            spec = spec.guarded();
        }
        for (only, name, value) in &self.env {
            if only.is_none_or(|only| only == role) && known_to(role, name) {
                spec = spec.env(name, value);
            }
        }
        if self.is_unread { spec.unread() } else { spec }
    }
}

/// Whether a role knows a setting. Processes refuse unknown settings.
fn known_to(role: Role, name: &str) -> bool {
    match name {
        "RINGBACK_LOCK_TTL" => matches!(role, Role::Carrier | Role::Up),
        "RINGBACK_FEED_LOCK_TTL" => role == Role::Feed,
        "RINGBACK_LEASE_MARGIN" => matches!(role, Role::Notifier | Role::Up),
        _ => true,
    }
}
