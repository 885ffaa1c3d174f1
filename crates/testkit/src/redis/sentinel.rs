//! A master with two replicas, and three sentinels that watch them.

use std::time::Duration;

use redis::FromRedisValue;

use super::{RedisOptions, RedisServer};
use crate::time::eventually;

const NAME: &str = "jobs";
/// How many replicas there are, and one more server.
const SERVERS: usize = 3;
const SENTINELS: usize = 3;
/// After this many ms of silence a master is replaced, and a sentinel is left out of the fail-over.
const DOWN_AFTER: &str = "1500";
/// The limit until replicas and sentinels know each other, or agree on a new master.
const AGREE_DEADLINE: Duration = Duration::from_secs(60);

/// A running master, its replicas and their sentinels; they are killed when this is dropped.
pub struct RedisSentinel {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
    name: &'static str,
}

impl RedisSentinel {
    /// Starts a master and two replicas with these options, and three sentinels; waits until all know each other.
    pub async fn start(options: RedisOptions) -> Self {
        let options = options.arg("--repl-diskless-sync-delay", "0");
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(options.clone().start().await);
        }
        for replica in &servers[1..] {
            let mut command = redis::cmd("REPLICAOF");
            command.arg("127.0.0.1").arg(servers[0].port());
            command.exec_async(&mut replica.client().await).await.expect("REPLICAOF");
        }
        let mut sentinels = Vec::new();
        for _ in 0..SENTINELS {
            let sentinel = options.sentinel().start().await;
            let port = servers[0].port().to_string();
            ask::<()>(&sentinel, &["MONITOR", NAME, "127.0.0.1", &port, "2"]).await;
            for option in [["down-after-milliseconds", DOWN_AFTER], ["failover-timeout", "10000"]] {
                ask::<()>(&sentinel, &[&["SET", NAME][..], &option].concat()).await;
            }
            sentinels.push(sentinel);
        }
        let set = Self { servers, sentinels, name: NAME };
        set.is_complete().await;
        set
    }

    /// `redis-sentinel://127.0.0.1:p1,127.0.0.1:p2,127.0.0.1:p3/jobs`.
    pub fn url(&self) -> String {
        self.url_of(0..self.sentinels.len())
    }

    /// The URL with the sentinels of these numbers, from 0.
    pub fn url_of(&self, sentinels: impl IntoIterator<Item = usize>) -> String {
        let host = |index: usize| format!("127.0.0.1:{}", self.sentinels[index].port());
        let hosts: Vec<_> = sentinels.into_iter().map(host).collect();
        format!("redis-sentinel://{}/{}", hosts.join(","), self.name)
    }

    /// The servers, the first of which was the master at the start.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// One server, to stop, kill or restart it.
    pub fn server_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.servers[index]
    }

    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Holds what passes between one server with one sentinel and all others. Does nothing unless they are [behind
    /// proxies](RedisOptions::behind_proxies).
    pub fn part(&self, server: usize, sentinel: usize) {
        let is_near = |at: usize| at == server || at == SERVERS + sentinel;
        let all: Vec<_> = self.servers.iter().chain(&self.sentinels).enumerate().collect();
        for (at, one) in &all {
            let beyond = all.iter().filter(|(other, _)| is_near(*other) != is_near(*at));
            let from: Vec<_> = beyond.filter_map(|(_, other)| Some(other.seen()?.address())).collect();
            one.hold_links(&from);
        }
    }

    /// Ends a partition, and passes on what was held.
    pub fn join(&self) {
        self.servers.iter().chain(&self.sentinels).for_each(RedisServer::heal_links);
    }

    /// One sentinel, to stop, kill or restart it.
    pub fn sentinel_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.sentinels[index]
    }

    /// The index of the server that a sentinel names as the master.
    pub async fn master_of(&self, sentinel: usize) -> usize {
        let (_, port): (String, u16) =
            ask(&self.sentinels[sentinel], &["GET-MASTER-ADDR-BY-NAME", self.name]).await;
        self.servers.iter().position(|server| server.port() == port).expect("it is one of the servers")
    }

    /// Waits until a sentinel names another master than `than`, and returns its index. Panics after a minute.
    pub async fn another_master(&self, sentinel: usize, than: usize) -> usize {
        eventually(AGREE_DEADLINE, "another master is chosen", async || {
            let master = self.master_of(sentinel).await;
            if master == than { Err("it is the same") } else { Ok(master) }
        })
        .await
    }

    /// Makes the sentinels replace a working master (SENTINEL FAILOVER), and waits until they begin. Panics after a
    /// while.
    pub async fn fail_over(&self) {
        eventually(AGREE_DEADLINE, "a fail-over begins", async || {
            let mut sentinel = redis::cmd("SENTINEL");
            let asked = sentinel.arg("FAILOVER").arg(self.name);
            asked.exec_async(&mut self.sentinels[0].client().await).await.map_err(|error| error.to_string())
        })
        .await;
    }

    /// Waits until both other servers have all that the master has.
    pub async fn are_in_sync(&self, master: usize) {
        self.servers[master].is_replicated_to(SERVERS - 1).await;
    }

    /// Waits until every sentinel knows both replicas and both other sentinels. Panics after a minute.
    pub async fn is_complete(&self) {
        for sentinel in &self.sentinels {
            eventually(AGREE_DEADLINE, "a sentinel knows the others", async || {
                let replicas: Vec<redis::Value> = ask(sentinel, &["REPLICAS", self.name]).await;
                let others: Vec<redis::Value> = ask(sentinel, &["SENTINELS", self.name]).await;
                let known = (replicas.len(), others.len());
                if known == (SERVERS - 1, SENTINELS - 1) { Ok(()) } else { Err(format!("{known:?}")) }
            })
            .await;
        }
    }
}

impl RedisOptions {
    /// The options of a sentinel that watches nothing yet. It is behind proxies if the servers are.
    fn sentinel(&self) -> Self {
        Self { is_sentinel: true, preload: self.preload.clone(), ..Self::default() }
    }
}

async fn ask<T: FromRedisValue>(sentinel: &RedisServer, what: &[&str]) -> T {
    let mut command = redis::cmd("SENTINEL");
    let asked = command.arg(what).query_async(&mut sentinel.client().await).await;
    asked.unwrap_or_else(|error| panic!("SENTINEL {what:?}: {error}"))
}
