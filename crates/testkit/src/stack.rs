//! A complete Ringback as real processes with short timings: one store and any number of each role, or all roles in one
//! process.

mod check;
mod options;
mod requests;
mod routes;

use std::time::Duration;

use self::options::StoreOptions;
pub use self::options::{Role, StackOptions};
pub use self::requests::Reply;
use crate::network::http_client;
use crate::process::{Process, ProcessSpec};
use crate::redis::{RedisCluster, RedisSentinel, RedisServer};

/// The limit until a process answers `/readyz`, on a busy machine too.
const READY_DEADLINE: Duration = Duration::from_secs(30);

/// A running stack. Dropping it checks the store and then kills the processes and the store.
pub struct Stack {
    pub apis: Vec<Process>,
    pub carriers: Vec<Process>,
    pub notifiers: Vec<Process>,
    /// The processes that run all three roles.
    pub ups: Vec<Process>,
    pub archivers: Vec<Process>,
    /// The processes that load rows.
    pub feeds: Vec<Process>,
    store: Store,
    http: reqwest::Client,
    options: StackOptions,
    is_checked: bool,
}

/// The store of a stack.
enum Store {
    Single(Box<RedisServer>),
    Cluster(RedisCluster),
    Sentinel(Box<RedisSentinel>),
    Running(String),
}

impl Store {
    fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinel(sentinel) => sentinel.url(),
            Self::Running(url) => url.clone(),
        }
    }
}

impl StackOptions {
    /// Starts the store and all processes, and waits until each is ready.
    pub async fn start(self) -> Stack {
        let mut stack = self.launch().await;
        stack.ready(READY_DEADLINE).await;
        stack
    }

    /// Starts the store and all processes, without waiting until they are ready.
    pub async fn launch(self) -> Stack {
        let store = match &self.store {
            StoreOptions::Single(options) => Store::Single(Box::new(options.clone().start().await)),
            StoreOptions::Cluster(options) => Store::Cluster(RedisCluster::start_with(options.clone()).await),
            StoreOptions::ClusterWithReplicas(options) => {
                Store::Cluster(RedisCluster::start_with_replicas(options.clone()).await)
            }
            StoreOptions::Sentinel(options) => {
                Store::Sentinel(Box::new(RedisSentinel::start(options.clone()).await))
            }
            StoreOptions::Running(url) => Store::Running(url.clone()),
        };
        let url = store.url();
        let launch =
            |role, count| (0..count).map(|_| self.spec(role, &url).start()).collect::<Vec<Process>>();
        Stack {
            apis: launch(Role::Api, self.apis),
            carriers: launch(Role::Carrier, self.carriers),
            notifiers: launch(Role::Notifier, self.notifiers),
            ups: launch(Role::Up, self.ups),
            archivers: launch(Role::Archiver, self.archivers),
            feeds: launch(Role::Feed, self.feeds),
            store,
            http: http_client(),
            options: self.clone(),
            is_checked: self.is_checked,
        }
    }
}

impl Stack {
    pub async fn start() -> Self {
        StackOptions::default().start().await
    }

    /// The default options, to change them before the start.
    pub fn options() -> StackOptions {
        StackOptions::default()
    }

    /// Waits until every process is ready, for up to `within` each.
    pub async fn ready(&mut self, within: Duration) {
        for process in self.processes_mut() {
            process.ready(within).await;
        }
    }

    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        let Self { apis, carriers, notifiers, ups, archivers, feeds, .. } = self;
        apis.iter().chain(carriers).chain(notifiers).chain(ups).chain(archivers).chain(feeds)
    }

    /// All processes, to kill or restart them.
    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        let Self { apis, carriers, notifiers, ups, archivers, feeds, .. } = self;
        apis.iter_mut().chain(carriers).chain(notifiers).chain(ups).chain(archivers).chain(feeds)
    }

    /// Starts one more process of a role and waits until it is ready.
    pub async fn add(&mut self, role: Role) -> &mut Process {
        let mut process = self.spec(role).start();
        process.ready(READY_DEADLINE).await;
        let group = match role {
            Role::Api => &mut self.apis,
            Role::Carrier => &mut self.carriers,
            Role::Notifier => &mut self.notifiers,
            Role::Up => &mut self.ups,
            Role::Archiver => &mut self.archivers,
            Role::Feed => &mut self.feeds,
        };
        group.push(process);
        group.last_mut().expect("it has just been added")
    }

    /// The settings of one more process of a role, with ports of its own, for tests that start the process themselves.
    pub fn spec(&self, role: Role) -> ProcessSpec {
        self.options.spec(role, &self.store.url())
    }

    pub fn redis(&self) -> &RedisServer {
        match &self.store {
            Store::Single(server) => server,
            Store::Cluster(_) | Store::Sentinel(_) | Store::Running(_) => {
                panic!("this stack has no server of its own")
            }
        }
    }

    /// The redis-server, to kill or pause it. Panics if the stack has another kind of store.
    pub fn redis_mut(&mut self) -> &mut RedisServer {
        match &mut self.store {
            Store::Single(server) => server,
            Store::Cluster(_) | Store::Sentinel(_) | Store::Running(_) => {
                panic!("this stack has no server of its own")
            }
        }
    }

    pub fn cluster_mut(&mut self) -> &mut RedisCluster {
        match &mut self.store {
            Store::Cluster(cluster) => cluster,
            _ => panic!("this stack has no cluster of its own"),
        }
    }

    /// The master, its replicas and their sentinels. Panics if the stack has another kind of store.
    pub fn sentinel_mut(&mut self) -> &mut RedisSentinel {
        match &mut self.store {
            Store::Sentinel(sentinel) => sentinel,
            _ => panic!("this stack has no sentinels of its own"),
        }
    }

    /// The value of `RINGBACK_STORE`.
    pub fn store_url(&self) -> String {
        self.store.url()
    }

    /// The base URLs of all processes that serve the API.
    pub fn api_urls(&self) -> Vec<String> {
        let apis = self.apis.iter().chain(&self.ups).filter_map(|api| api.setting("RINGBACK_API_LISTEN"));
        apis.map(|listen| format!("http://{listen}")).collect()
    }

    /// The URL of a path on the first process that serves the API.
    pub fn url(&self, path: &str) -> String {
        let api = self.apis.first().or(self.ups.first()).expect("this stack has an api");
        format!("http://{}{path}", api.setting("RINGBACK_API_LISTEN").expect("an api knows where it listens"))
    }
}
