//! The servers and the connections to them: a single server, a master that sentinels watch, or a cluster, behind one
//! `call`. Nothing outside this module knows the difference. Errors of the client become store errors here.

mod address;
mod answer;
mod cluster;
mod connection;
mod error;
mod sentinel;
mod single;

use std::time::Duration;

use futures_util::future::BoxFuture;
use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};
use redis::aio::PubSub;
use redis::{Client, Cmd, RedisError, Value};
use ringback_core::contract::StoreError;
use tokio::time::timeout;

pub use self::address::Address;
use self::address::Watched;
use self::cluster::Cluster;
use self::error::classify;
pub(crate) use self::error::{is_not_loaded, is_under_way};
use self::sentinel::Sentinel;
use self::single::Single;
use crate::keys::{Keys, Place};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);

/// The servers and the connection to them.
pub(crate) struct Topology {
    servers: Servers,
}

/// A master: its address in a cluster or as sentinels name it, nothing for the only server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node(Option<(String, u16)>);

impl Node {
    /// The only server.
    pub(crate) const fn only() -> Self {
        Self(None)
    }

    /// The address as the client of a cluster names it.
    fn parse(address: Value) -> Result<Self, StoreError> {
        let unreadable = StoreError::Unreadable("the address of a master");
        let text: String = redis::from_redis_value(address).map_err(|_| unreadable.clone())?;
        let (host, port) = text.rsplit_once(':').ok_or(unreadable.clone())?;
        Ok(Self(Some((host.to_owned(), port.parse().map_err(|_| unreadable)?))))
    }
}

enum Servers {
    Single(Box<Single>),
    Sentinel(Box<Sentinel>),
    Cluster(Box<Cluster>),
}

impl Topology {
    /// Parses the URL. Connects on the first call.
    pub(crate) fn open(url: &str, call_timeout: Duration, keys: &Keys) -> Result<Self, StoreError> {
        let rng = StdRng::try_from_rng(&mut SysRng)
            .map_err(|error| StoreError::Unfit(format!("the system gives no random numbers: {error}")))?;
        let servers = match Address::parse(url).map_err(StoreError::Unfit)? {
            Address::Single(info) => Servers::Single(Box::new(Single::open(*info, call_timeout, rng)?)),
            Address::Sentinel(watched) => {
                let Watched { sentinels, name, master } = *watched;
                Servers::Sentinel(Box::new(Sentinel::open(sentinels, name, master, call_timeout, rng)?))
            }
            Address::Cluster(infos) => {
                Servers::Cluster(Box::new(Cluster::open(infos, call_timeout, keys.clone(), rng)?))
            }
        };
        Ok(Self { servers })
    }

    /// The kind's name in the API.
    pub(crate) fn kind(&self) -> &'static str {
        match self.servers {
            Servers::Single(_) => "redis",
            Servers::Sentinel(_) => "redis-sentinel",
            Servers::Cluster(_) => "redis-cluster",
        }
    }

    /// Whether shards can be on different servers.
    pub(crate) fn has_several_servers(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// Sends one command to the server of a place. Answers or fails within the time given to a call.
    ///
    /// Boxed, as [`Self::call_each`] is, so that the client of Redis is compiled into this crate only, and not into
    /// each one that waits for a call.
    pub(crate) fn call<'a>(&'a self, cmd: &'a Cmd, place: Place) -> BoxFuture<'a, Result<Value, StoreError>> {
        match &self.servers {
            Servers::Single(single) => Box::pin(single.call(cmd)),
            Servers::Sentinel(sentinel) => Box::pin(sentinel.call(cmd)),
            Servers::Cluster(cluster) => Box::pin(cluster.call(cmd, place)),
        }
    }

    /// Sends a command that names no key to every master.
    pub(crate) fn call_each<'a>(
        &'a self,
        cmd: &'a Cmd,
    ) -> BoxFuture<'a, Result<Vec<(Node, Value)>, StoreError>> {
        Box::pin(async move {
            match &self.servers {
                Servers::Single(single) => Ok(vec![(Node::only(), single.call(cmd).await?)]),
                Servers::Sentinel(sentinel) => Ok(vec![(Node::only(), sentinel.call(cmd).await?)]),
                Servers::Cluster(cluster) => {
                    let answers = cluster.call_each(cmd).await?.into_iter();
                    answers.map(|(address, answer)| Ok((Node::parse(address)?, answer))).collect()
                }
            }
        })
    }

    /// Sends a command to one master.
    pub(crate) fn call_node<'a>(
        &'a self,
        cmd: &'a Cmd,
        node: &'a Node,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        match (&self.servers, &node.0) {
            (Servers::Cluster(cluster), Some(address)) => Box::pin(cluster.call_node(cmd, address)),
            (Servers::Single(single), _) => Box::pin(single.call(cmd)),
            (Servers::Sentinel(sentinel), _) => Box::pin(sentinel.call(cmd)),
            (Servers::Cluster(_), None) => {
                Box::pin(async { Err(StoreError::Unreadable("the address of a master")) })
            }
        }
    }

    /// Looks for what no call shows: that sentinels name another master now.
    pub(crate) async fn look(&self) {
        if let Servers::Sentinel(sentinel) = &self.servers {
            sentinel.look().await;
        }
    }

    /// Whether what is published still reaches this server.
    pub(crate) fn publishes_to(&self, node: &Node) -> bool {
        match (&self.servers, &node.0) {
            (Servers::Sentinel(sentinel), Some(address)) => sentinel.is_at(address),
            _ => true,
        }
    }

    /// Opens a connection that listens to a channel, and returns its server. Any node of a cluster will do, since
    /// published messages reach all of them. The names of the servers are looked up each time.
    pub(crate) fn listen<'a>(
        &'a self,
        channel: &'a str,
    ) -> BoxFuture<'a, Result<(PubSub, Node), StoreError>> {
        Box::pin(async move {
            match &self.servers {
                Servers::Single(single) => {
                    Ok((listen_to_any(std::slice::from_ref(single.client()), channel).await?, Node::only()))
                }
                Servers::Sentinel(sentinel) => {
                    let (client, address) = sentinel.client().await?;
                    Ok((listen_to_any(&[client], channel).await?, Node(Some(address))))
                }
                Servers::Cluster(cluster) => {
                    Ok((listen_to_any(cluster.nodes(), channel).await?, Node::only()))
                }
            }
        })
    }
}

async fn listen_to_any(clients: &[Client], channel: &str) -> Result<PubSub, StoreError> {
    let mut last = StoreError::Slow(CONNECT);
    for client in clients {
        let subscribed = timeout(2 * CONNECT, async {
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe(channel).await?;
            Ok::<_, RedisError>(pubsub)
        });
        match subscribed.await {
            Ok(Ok(pubsub)) => return Ok(pubsub),
            Ok(Err(e)) => last = classify(e),
            Err(_) => last = StoreError::Slow(2 * CONNECT),
        }
    }
    Err(last)
}
