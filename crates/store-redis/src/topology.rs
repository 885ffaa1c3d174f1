//! The servers and the connections to them: a single server, a master that sentinels watch, or a cluster, behind one
//! `call`. Nothing outside this module knows the difference. Errors of the client become store errors here.

mod address;
mod candidates;
mod cluster;
mod cluster_confirmation;
mod connection;
mod diagnosis;
mod error;
mod replica_confirmation;
mod sentinel;
mod server_answers;
mod single;
mod tls;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};
use redis::aio::PubSub;
use redis::{Client, Cmd, ConnectionAddr, RedisError, Value};
use ringback_core::store_types::{StoreError, StoreTls};
use tokio::time::timeout;

pub use self::address::Address;
use self::cluster::Cluster;
use self::cluster_confirmation::ConfirmedNodes;
use self::error::classify;
pub(crate) use self::error::{is_not_loaded, is_under_way};
use self::replica_confirmation::{Confirmed, Server};
use self::sentinel::Sentinel;
use self::single::Single;
pub use self::tls::{authorities, certificate, fit, key};
use crate::keys::{KeySpace, Keys};

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(1);

pub(crate) struct Topology {
    servers: Servers,
    /// The connections for calls that wait until replicas have their changes; `None` if no call does.
    confirmed: Option<ConfirmedServers>,
    /// The servers in the URL.
    listed: Vec<ConnectionAddr>,
    /// The masters of a cluster that have answered the last command for each.
    masters: Mutex<BTreeSet<(String, u16)>>,
}

/// Whether a call waits until replicas have its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    None,
    ByReplicas,
}

/// A master: its address in a cluster or as sentinels name it; no address for the only server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node(Option<(String, u16)>);

impl Node {
    /// Returns the only server.
    pub(crate) const fn only() -> Self {
        Self(None)
    }

    /// Reads an address from the client of a cluster. Fails if it is not `host:port`.
    fn parse(address: Value) -> Result<Self, StoreError> {
        let unreadable = StoreError::Unreadable("the address of a master");
        let text: String = redis::from_redis_value(address).map_err(|_| unreadable.clone())?;
        let (host, port) = text.rsplit_once(':').ok_or(unreadable.clone())?;
        Ok(Self(Some((host.to_owned(), port.parse().map_err(|_| unreadable)?))))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |(host, port)| write!(f, " at {host}:{port}"))
    }
}

enum Servers {
    Single(Box<Single>),
    Sentinel(Box<Sentinel>),
    Cluster(Box<Cluster>),
}

enum ConfirmedServers {
    Single(Box<Confirmed>, Keys),
    Cluster(Box<ConfirmedNodes>),
}

impl Topology {
    /// Parses the URL and reads the files for TLS; the first call connects. Fails if one of them cannot be used, or there
    /// are no random numbers. With `confirmation` by replicas, confirmed calls get connections of their own.
    pub(crate) fn open(
        url: &str,
        tls: &StoreTls,
        call_timeout: Duration,
        keys: &Keys,
        confirmation: Confirmation,
    ) -> Result<Self, StoreError> {
        let address = Address::parse(url).map_err(StoreError::Unfit)?;
        let listed = address.servers();
        let is_confirmed = confirmation == Confirmation::ByReplicas;
        let on_one = |server| {
            let confirmed = Confirmed::new(server, call_timeout);
            ConfirmedServers::Single(Box::new(confirmed), keys.clone())
        };
        let (servers, confirmed) = match address {
            Address::Single(info) => {
                let info = tls::with(*info, tls)?;
                let single = || Single::open(info.clone(), call_timeout, rng()?);
                let confirmed = is_confirmed.then(single).transpose()?;
                (Servers::Single(Box::new(single()?)), confirmed.map(|single| on_one(Server::Single(single))))
            }
            Address::Sentinel(watched) => {
                let sentinel = Sentinel::open(*watched, call_timeout, is_confirmed, rng()?)?;
                let confirmed =
                    is_confirmed.then(|| Ok(sentinel.beside(call_timeout, rng()?))).transpose()?;
                let confirmed = confirmed.map(|sentinel| on_one(Server::Sentinel(sentinel)));
                (Servers::Sentinel(Box::new(sentinel)), confirmed)
            }
            Address::Cluster(infos) => {
                let nodes = || ConfirmedNodes::open(&infos, call_timeout, keys.clone(), rng()?);
                let confirmed = is_confirmed.then(nodes).transpose()?;
                let cluster = Cluster::open(infos, call_timeout, keys.clone(), rng()?)?;
                let confirmed = confirmed.map(|nodes| ConfirmedServers::Cluster(Box::new(nodes)));
                (Servers::Cluster(Box::new(cluster)), confirmed)
            }
        };
        Ok(Self { servers, confirmed, listed, masters: Mutex::default() })
    }

    /// Returns the kind's name in the API.
    pub(crate) fn kind(&self) -> &'static str {
        match self.servers {
            Servers::Single(_) => "redis",
            Servers::Sentinel(_) => "redis-sentinel",
            Servers::Cluster(_) => "redis-cluster",
        }
    }

    /// Returns host and port of each known server: those of the URL, and the masters that they name.
    pub(crate) fn addresses(&self) -> Vec<(String, u16)> {
        let master = match &self.servers {
            Servers::Sentinel(sentinel) => sentinel.master(),
            Servers::Single(_) | Servers::Cluster(_) => None,
        };
        let masters = self.masters.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = self.listed.iter().filter_map(address::host_and_port);
        listed.chain(masters.iter().cloned()).chain(master).collect()
    }

    /// Returns why one of the URL's servers, none of which was ever reached, is not Redis or refuses access; `None` if
    /// none of them shows a reason.
    pub(crate) async fn diagnosis(&self) -> Option<StoreError> {
        for address in &self.listed {
            if let Some(error) = diagnosis::of(address).await {
                return Some(error);
            }
        }
        None
    }

    /// Whether shards can be on different servers.
    pub(crate) fn has_several_servers(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// Whether a replica takes over by itself when a master fails.
    pub(crate) fn replaces_masters(&self) -> bool {
        !matches!(self.servers, Servers::Single(_))
    }

    /// Returns the number of the connection to the only server; `None` without one. In a cluster always 0.
    pub(crate) fn connection_number(&self) -> Option<u64> {
        match &self.servers {
            Servers::Single(single) => single.connection.number(),
            Servers::Sentinel(sentinel) => sentinel.connection.number(),
            Servers::Cluster(_) => Some(0),
        }
    }

    /// Sends one command to the server of a key space. Answers or fails within the call timeout. With `confirmation` by
    /// replicas, on a store that was opened for that, waits until replicas have its changes, and fails with
    /// [`StoreError::Unreplicated`] if they do not have them in time.
    ///
    /// Boxed, as [`Self::call_each`] is, so that the client of Redis is compiled into this crate only, and not into
    /// each one that waits for a call.
    pub(crate) fn call<'a>(
        &'a self,
        cmd: &'a Cmd,
        space: KeySpace,
        confirmation: Confirmation,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        match (&self.confirmed, confirmation) {
            (Some(ConfirmedServers::Single(server, keys)), Confirmation::ByReplicas) => {
                return Box::pin(async move { server.call(cmd, &keys.mark(space)).await });
            }
            (Some(ConfirmedServers::Cluster(nodes)), Confirmation::ByReplicas) => {
                return Box::pin(nodes.call(cmd, space));
            }
            (None, _) | (_, Confirmation::None) => {}
        }
        match &self.servers {
            Servers::Single(single) => Box::pin(async { Ok(single.connection.send(cmd).await?.0) }),
            Servers::Sentinel(sentinel) => Box::pin(async { Ok(sentinel.connection.send(cmd).await?.0) }),
            Servers::Cluster(cluster) => Box::pin(cluster.call(cmd, space)),
        }
    }

    /// Waits until replicas have all changes of the servers. Succeeds at once on a store without confirmed calls.
    pub(crate) fn check_replicas(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            match &self.confirmed {
                None => Ok(()),
                Some(ConfirmedServers::Single(server, keys)) => {
                    server.check(&keys.mark(KeySpace::Installation)).await
                }
                Some(ConfirmedServers::Cluster(nodes)) => nodes.check().await,
            }
        })
    }

    /// Whether too few replicas have confirmed the last changes of a key space's server. False without confirmed calls.
    pub(crate) fn is_behind(&self, space: KeySpace) -> bool {
        match &self.confirmed {
            None => false,
            Some(ConfirmedServers::Single(server, _)) => server.is_behind(),
            Some(ConfirmedServers::Cluster(nodes)) => nodes.is_behind(space),
        }
    }

    /// Sets whether confirmed calls wait until replicas have synced changes to disk, or only until they have them.
    pub(crate) fn wait_for_sync(&self, is_synced: bool) {
        match &self.confirmed {
            None => {}
            Some(ConfirmedServers::Single(server, _)) => server.wait_for_sync(is_synced),
            Some(ConfirmedServers::Cluster(nodes)) => nodes.wait_for_sync(is_synced),
        }
    }

    /// Waits until replicas have synced all changes of the servers, even if calls do not wait for syncs.
    pub(crate) fn check_replicas_synced(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            match &self.confirmed {
                None => Ok(()),
                Some(ConfirmedServers::Single(server, keys)) => {
                    server.check_synced(&keys.mark(KeySpace::Installation)).await
                }
                Some(ConfirmedServers::Cluster(nodes)) => nodes.check_synced().await,
            }
        })
    }

    /// Sends a command without keys to every master. Returns each with its answer, and remembers the masters of a
    /// cluster. Fails if one of them fails.
    pub(crate) fn call_each<'a>(
        &'a self,
        cmd: &'a Cmd,
    ) -> BoxFuture<'a, Result<Vec<(Node, Value)>, StoreError>> {
        Box::pin(async move {
            match &self.servers {
                Servers::Single(_) | Servers::Sentinel(_) => {
                    let answer = self.call(cmd, KeySpace::Installation, Confirmation::None).await?;
                    Ok(vec![(Node::only(), answer)])
                }
                Servers::Cluster(cluster) => {
                    let answers = cluster.call_each(cmd).await?.into_iter();
                    let answers = answers.map(|(address, answer)| Ok((Node::parse(address)?, answer)));
                    let answers: Vec<_> = answers.collect::<Result<_, StoreError>>()?;
                    let masters = answers.iter().filter_map(|(node, _): &(Node, Value)| node.0.clone());
                    *self.masters.lock().unwrap_or_else(PoisonError::into_inner) = masters.collect();
                    Ok(answers)
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
            (Servers::Single(_) | Servers::Sentinel(_), _) => {
                self.call(cmd, KeySpace::Installation, Confirmation::None)
            }
            (Servers::Cluster(_), None) => {
                Box::pin(async { Err(StoreError::Unreadable("the address of a master")) })
            }
        }
    }

    /// Finds out what no call shows: whether sentinels name another master now, and which replicas may take over.
    pub(crate) async fn look(&self) {
        match &self.confirmed {
            None => {}
            Some(ConfirmedServers::Single(server, _)) => server.look().await,
            Some(ConfirmedServers::Cluster(nodes)) => nodes.look().await,
        }
        match &self.servers {
            // The other connection has just asked the sentinels.
            Servers::Sentinel(sentinel) if self.confirmed.is_some() => sentinel.follow(),
            Servers::Sentinel(sentinel) => sentinel.look().await,
            Servers::Single(_) | Servers::Cluster(_) => {}
        }
    }

    /// Whether messages that are published still reach this server. False if sentinels name another master.
    pub(crate) fn publishes_to(&self, node: &Node) -> bool {
        match (&self.servers, &node.0) {
            (Servers::Sentinel(sentinel), Some(address)) => sentinel.is_at(address),
            _ => true,
        }
    }

    /// Opens a connection that is subscribed to a channel, and returns its server too. In a cluster it leads to any node,
    /// since published messages reach all of them. The names of the servers are resolved each time.
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

fn rng() -> Result<StdRng, StoreError> {
    StdRng::try_from_rng(&mut SysRng)
        .map_err(|error| StoreError::Unfit(format!("the system gives no random numbers: {error}")))
}
