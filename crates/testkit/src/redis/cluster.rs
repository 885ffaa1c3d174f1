//! A Redis Cluster of three masters, with or without a replica of each, formed with plain commands.

use std::time::Duration;

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{FromRedisValue, RedisResult};

use super::{RedisOptions, RedisServer};
use crate::network::free_port;
use crate::time::eventually;

/// The first and the last slot of each master, as redis-cli assigns them.
const SLOTS: [(u16, u16); 3] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];
/// The limit until a cluster is complete. A new master accepts writes two seconds after it has seen that.
const FORM_DEADLINE: Duration = Duration::from_secs(30);

/// Three running masters, and a replica of each if there are any; they are killed when this is dropped.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// A cluster that keeps nothing on disk.
    pub async fn start() -> Self {
        Self::start_with(RedisOptions::default()).await
    }

    /// A cluster of servers with these options.
    pub async fn start_with(options: RedisOptions) -> Self {
        Self::start_nodes(options, SLOTS.len()).await
    }

    /// A cluster of servers with these options: each master has a replica; the fourth node follows the first, and so on.
    pub async fn start_with_replicas(options: RedisOptions) -> Self {
        let options = options.arg("--repl-diskless-sync-delay", "0");
        let cluster = Self::start_nodes(options, 2 * SLOTS.len()).await;
        for (master, replica) in cluster.nodes.iter().zip(&cluster.nodes[SLOTS.len()..]) {
            let id: String = ask(master, &["MYID"]).await;
            let _: String = ask(replica, &["REPLICATE", &id]).await;
        }
        for replica in &cluster.nodes[SLOTS.len()..] {
            eventually(FORM_DEADLINE, "a replica has its data", async || {
                let link = replica.info_field("replication", "master_link_status").await;
                if link == "up" { Ok(()) } else { Err(link) }
            })
            .await;
        }
        cluster
    }

    async fn start_nodes(options: RedisOptions, count: usize) -> Self {
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for _ in 0..count {
            let bus = free_port();
            nodes.push(node(options.clone(), bus).start().await);
            buses.push(bus);
        }
        let cluster = Self { nodes };
        cluster.form(&buses).await.expect("the masters take their slots and meet");
        cluster.is_ok().await;
        cluster
    }

    /// `redis-cluster://127.0.0.1:p1,127.0.0.1:p2,…`: the masters, then the replicas.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// The nodes: the masters in the order of their first slots, then the replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The slot of a key. A hash tag in braces is a key too.
    pub async fn slot_of(&self, key: &str) -> u16 {
        ask(&self.nodes[0], &["KEYSLOT", key]).await
    }

    /// Adds a node as a replica of the node `master`, and waits until it has the data. Returns its index.
    pub async fn add_replica(&mut self, options: RedisOptions, master: usize) -> usize {
        let bus = free_port();
        let node = node(options.arg("--repl-diskless-sync-delay", "0"), bus).start().await;
        let known = &self.nodes[master];
        let id: String = ask(known, &["MYID"]).await;
        let (port, bus) = (node.port().to_string(), bus.to_string());
        let _: String = ask(known, &["MEET", "127.0.0.1", &port, &bus]).await;
        eventually(FORM_DEADLINE, "the new node knows its master and follows it", async || {
            let mut cluster = redis::cmd("CLUSTER");
            let follow = cluster.arg("REPLICATE").arg(&id);
            follow.exec_async(&mut node.client().await).await.map_err(|error| error.to_string())
        })
        .await;
        eventually(FORM_DEADLINE, "a replica has its data", async || {
            let link = node.info_field("replication", "master_link_status").await;
            if link == "up" { Ok(()) } else { Err(link) }
        })
        .await;
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Makes the nodes `by` forget the node `gone`. Waits while that node is still the master of one of them.
    pub async fn forget(&self, gone: usize, by: &[usize]) {
        let id: String = ask(&self.nodes[gone], &["MYID"]).await;
        for node in by {
            eventually(FORM_DEADLINE, "a node is forgotten", async || {
                let mut cluster = redis::cmd("CLUSTER");
                let forget = cluster.arg("FORGET").arg(&id);
                let asked = forget.exec_async(&mut self.nodes[*node].client().await).await;
                asked.map_err(|error| error.to_string())
            })
            .await;
        }
    }

    /// Whether every node reports that all slots are served.
    pub async fn serves_all_slots(&self) -> bool {
        for node in &self.nodes {
            let info: String = ask(node, &["INFO"]).await;
            if !info.contains("cluster_state:ok") {
                return false;
            }
        }
        true
    }

    /// One node, to stop or kill it.
    pub fn node_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.nodes[index]
    }

    /// Makes each master announce another port to clients, that of a proxy to it, and waits until all masters know
    /// these ports.
    pub async fn announce(&self, ports: &[u16]) {
        for (node, port) in self.nodes.iter().zip(ports) {
            let mut config = redis::cmd("CONFIG");
            config.arg("SET").arg("cluster-announce-port").arg(*port);
            config.exec_async(&mut node.client().await).await.expect("CONFIG SET");
        }
        for node in &self.nodes {
            let what = format!("the master on port {} names all announced ports", node.port());
            eventually(FORM_DEADLINE, &what, async || {
                let (mut client, mut cluster) = (node.client().await, redis::cmd("CLUSTER"));
                let nodes: String =
                    cluster.arg("NODES").query_async(&mut client).await.expect("CLUSTER NODES");
                let is_named = |port: &u16| nodes.contains(&format!("127.0.0.1:{port}@"));
                if ports.iter().all(is_named) { Ok(()) } else { Err(nodes) }
            })
            .await;
        }
    }

    pub async fn client(&self) -> ClusterConnection {
        let nodes: Vec<String> = self.nodes.iter().map(RedisServer::url).collect();
        let client = ClusterClient::builder(nodes).response_timeout(Duration::from_secs(5)).build();
        client
            .expect("the addresses are well formed")
            .get_async_connection()
            .await
            .expect("the cluster answers")
    }

    /// Assigns epochs and slots to the masters, and introduces the other nodes to the first one.
    async fn form(&self, buses: &[u16]) -> RedisResult<()> {
        for (epoch, node) in self.nodes.iter().enumerate() {
            let mut client = node.client().await;
            let mut cluster = redis::cmd("CLUSTER");
            cluster.arg("SET-CONFIG-EPOCH").arg(epoch + 1).query_async::<()>(&mut client).await?;
        }
        for (node, (first, last)) in self.nodes.iter().zip(SLOTS) {
            let mut client = node.client().await;
            let mut cluster = redis::cmd("CLUSTER");
            cluster.arg("ADDSLOTSRANGE").arg(first).arg(last).query_async::<()>(&mut client).await?;
        }
        let mut first = self.nodes[0].client().await;
        for (node, bus) in self.nodes.iter().zip(buses).skip(1) {
            let mut cluster = redis::cmd("CLUSTER");
            cluster.arg("MEET").arg("127.0.0.1").arg(node.port()).arg(*bus);
            cluster.query_async::<()>(&mut first).await?;
        }
        Ok(())
    }

    /// Waits until every node knows all nodes and sees every slot served. A node that does not know the others yet may
    /// follow a former master for ever.
    pub async fn is_ok(&self) {
        for node in &self.nodes {
            let what = format!("cluster_state:ok on port {}", node.port());
            eventually(FORM_DEADLINE, &what, async || {
                let mut client = node.client().await;
                let info: String = redis::cmd("CLUSTER")
                    .arg("INFO")
                    .query_async(&mut client)
                    .await
                    .map_err(|e| e.to_string())?;
                let known = format!("cluster_known_nodes:{}", self.nodes.len());
                let wanted = ["cluster_state:ok", "cluster_slots_ok:16384", &known];
                let missing = wanted.iter().find(|line| !info.lines().any(|have| have.trim() == **line));
                missing.map_or(Ok(()), |line| Err(format!("no {line} in: {info}")))
            })
            .await;
        }
    }
}

fn node(options: RedisOptions, bus: u16) -> RedisOptions {
    RedisOptions { bus: Some(bus), ..options }.arg("--cluster-node-timeout", "2000")
}

async fn ask<T: FromRedisValue>(node: &RedisServer, what: &[&str]) -> T {
    let mut cluster = redis::cmd("CLUSTER");
    let asked = cluster.arg(what).query_async(&mut node.client().await).await;
    asked.unwrap_or_else(|error| panic!("CLUSTER {what:?}: {error}"))
}
