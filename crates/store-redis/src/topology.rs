//! The servers and the connections to them: a single server or a cluster, behind one `call`. Sentinel is not
//! supported. Nothing outside this file knows the difference. Errors of the client become store errors here.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::ErrorKind::{AuthenticationFailed, Extension, Server};
use redis::ServerErrorKind::{NoPerm, ReadOnly, ResponseError};
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, Cmd, ConnectionInfo, IntoConnectionInfo, RedisError, Value};
use ringback_core::contract::StoreError;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);
/// How long sent data may stay unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// How long a connection may be silent before it is probed. After two more unanswered probes it counts as
/// broken.
const PROBE_AFTER: Duration = Duration::from_secs(5);
/// Commands that may wait in the connection's queue.
const PIPELINE: usize = 1024;

/// A store's URL, parsed.
pub enum Address {
    Single(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
}

impl Address {
    /// Parses a store's URL; the error says what is allowed.
    pub fn parse(url: &str) -> Result<Self, String> {
        const ALLOWED: &str = "redis://host:port, rediss://host:port, redis-cluster://host:port,host:port,... or embedded:directory";
        let wrong = |e: RedisError| format!("not a store's URL ({e}); allowed are {ALLOWED}");
        match url.split_once("://") {
            Some(("redis" | "rediss", _)) => Ok(Self::Single(Box::new(info(url).map_err(wrong)?))),
            Some(("redis-cluster", hosts)) => {
                // Every node takes the same credentials; those of the first serve for all.
                let login = hosts.split(',').next().and_then(|host| Some(host.rsplit_once('@')?.0));
                let urls = hosts.split(',').map(|host| match login {
                    Some(login) if !host.contains('@') => info(&format!("redis://{login}@{host}")),
                    _ => info(&format!("redis://{host}")),
                });
                Ok(Self::Cluster(urls.collect::<Result<_, _>>().map_err(wrong)?))
            }
            Some(("redis-sentinel", _)) => {
                Err(format!("redis-sentinel:// is not supported yet; allowed are {ALLOWED}"))
            }
            _ => Err(format!("not a store's URL; allowed are {ALLOWED}")),
        }
    }
}

/// The servers and the connection to them.
pub(crate) struct Topology {
    servers: Servers,
    call_timeout: Duration,
}

/// A master: its address in a cluster, nothing for the only server.
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
    Cluster(Box<Cluster>),
}

struct Single {
    client: Client,
    config: ConnectionManagerConfig,
    manager: RwLock<ConnectionManager>,
}

impl Single {
    fn manager(&self) -> ConnectionManager {
        self.manager.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the connection, and looks the server's name up again.
    fn reconnect(&self) {
        if let Ok(manager) = ConnectionManager::new_lazy_with_config(self.client.clone(), self.config.clone())
        {
            *self.manager.write().unwrap_or_else(PoisonError::into_inner) = manager;
        }
    }
}

struct Cluster {
    client: ClusterClient,
    nodes: Vec<Client>,
    connection: OnceCell<ClusterConnection>,
}

impl Cluster {
    /// The connection; made on the first call that finds a node.
    async fn connection(&self) -> redis::RedisResult<ClusterConnection> {
        self.connection.get_or_try_init(|| self.client.get_async_connection()).await.cloned()
    }
}

impl Topology {
    /// Parses the URL. Connects on the first call.
    pub(crate) fn open(url: &str, call_timeout: Duration) -> Result<Self, StoreError> {
        let servers = match Address::parse(url).map_err(StoreError::Unfit)? {
            Address::Single(info) => {
                let client = Client::open(*info).map_err(|e| unfit(&e))?;
                let config = ConnectionManagerConfig::new()
                    .set_number_of_retries(0)
                    .set_connection_timeout(Some(CONNECT))
                    .set_response_timeout(Some(call_timeout))
                    .set_pipeline_buffer_size(PIPELINE);
                let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())
                    .map_err(|e| unfit(&e))?;
                Servers::Single(Box::new(Single { client, config, manager: RwLock::new(manager) }))
            }
            Address::Cluster(infos) => {
                let nodes = infos.iter().cloned().map(Client::open).collect::<Result<_, _>>();
                let nodes = nodes.map_err(|e| unfit(&e))?;
                let client = ClusterClient::builder(infos)
                    .tcp_settings(tcp())
                    .connection_timeout(CONNECT)
                    .response_timeout(call_timeout)
                    .overall_response_timeout(Some(call_timeout))
                    .retries(3)
                    .build()
                    .map_err(|e| unfit(&e))?;
                Servers::Cluster(Box::new(Cluster { client, nodes, connection: OnceCell::new() }))
            }
        };
        Ok(Self { servers, call_timeout })
    }

    /// The kind's name in the API.
    pub(crate) fn kind(&self) -> &'static str {
        match self.servers {
            Servers::Single(_) => "redis",
            Servers::Cluster(_) => "redis-cluster",
        }
    }

    /// Sends one command. Answers or fails within the time given to a call.
    ///
    /// Boxed, as [`Self::route`] is, so that the client of Redis is compiled into this crate only, and not into
    /// each one that waits for a call.
    pub(crate) fn call<'a>(&'a self, cmd: &'a Cmd) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let answer = timeout(self.call_timeout, async {
                match &self.servers {
                    Servers::Single(single) => single.manager().req_packed_command(cmd).await,
                    Servers::Cluster(cluster) => cluster.connection().await?.req_packed_command(cmd).await,
                }
            });
            let error = match answer.await {
                Ok(Ok(Value::ServerError(e))) => classify(e.into()),
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(e)) if e.is_timeout() => StoreError::Slow(self.call_timeout),
                Ok(Err(e)) => classify(e),
                Err(_) => StoreError::Slow(self.call_timeout),
            };
            if matches!(error, StoreError::Replica) {
                self.reconnect();
            }
            Err(error)
        })
    }

    /// Sends a command that names no key to the server of a key.
    pub(crate) async fn call_at(&self, cmd: &Cmd, key: &str) -> Result<Value, StoreError> {
        let route = Route::with_key(key, SlotAddr::Master);
        self.route(cmd, RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route))).await
    }

    /// Sends a command to the nodes of a route. A single server takes every command.
    fn route<'a>(&'a self, cmd: &'a Cmd, route: RoutingInfo) -> BoxFuture<'a, Result<Value, StoreError>> {
        let Servers::Cluster(cluster) = &self.servers else { return self.call(cmd) };
        Box::pin(async move {
            let answer = timeout(self.call_timeout, async {
                cluster.connection().await?.route_command(cmd.clone(), route).await
            });
            answer.await.map_err(|_| StoreError::Slow(self.call_timeout))?.map_err(classify)
        })
    }

    /// Connects again, because after a fail-over the name may lead to another server. The client of a cluster
    /// follows by itself.
    pub(crate) fn reconnect(&self) {
        if let Servers::Single(single) = &self.servers {
            single.reconnect();
        }
    }

    /// Sends a command to every master, to read their configuration.
    pub(crate) async fn call_each(&self, cmd: &Cmd) -> Result<Vec<(Node, Value)>, StoreError> {
        let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        match (self.route(cmd, all).await?, &self.servers) {
            (Value::Map(answers), Servers::Cluster(_)) => {
                answers.into_iter().map(|(address, answer)| Ok((Node::parse(address)?, answer))).collect()
            }
            (answer, _) => Ok(vec![(Node::only(), answer)]),
        }
    }

    /// Sends a command to one master.
    pub(crate) async fn call_node(&self, cmd: &Cmd, node: &Node) -> Result<Value, StoreError> {
        let Some((host, port)) = node.0.clone() else { return self.call(cmd).await };
        let one = SingleNodeRoutingInfo::ByAddress { host, port };
        self.route(cmd, RoutingInfo::SingleNode(one)).await
    }

    /// Opens a connection that listens to a channel. Any node of a cluster will do, since published messages
    /// reach all of them.
    pub(crate) fn listen<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, Result<PubSub, StoreError>> {
        Box::pin(self.listen_to_any(channel))
    }

    async fn listen_to_any(&self, channel: &str) -> Result<PubSub, StoreError> {
        let clients = match &self.servers {
            Servers::Single(single) => std::slice::from_ref(&single.client),
            Servers::Cluster(cluster) => cluster.nodes.as_slice(),
        };
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
}

/// The store error for an error of the client. The client's error becomes its source.
fn classify(error: RedisError) -> StoreError {
    match (error.kind(), error.code()) {
        (Extension, Some("OOM")) => StoreError::Full,
        (Server(ReadOnly), _) => StoreError::Replica,
        (Server(ResponseError | NoPerm) | AuthenticationFailed, _)
        | (Extension, Some("NOAUTH" | "WRONGPASS")) => StoreError::Refused(Arc::new(error)),
        // Lost connections, LOADING, CLUSTERDOWN, MISCONF (the disk is full), BUSY and the like pass by
        // themselves.
        _ => StoreError::Away(Arc::new(error)),
    }
}

/// Whether a call failed because the function library is not loaded. Redis has no error code for that, only
/// this text.
pub(crate) fn is_not_loaded(error: &StoreError) -> bool {
    let StoreError::Refused(source) = error else { return false };
    source.downcast_ref::<RedisError>().and_then(RedisError::detail) == Some("Function not found")
}

/// Whether a rewrite of the append-only file was refused because one is under way. Redis has no error code for that
/// either.
pub(crate) fn is_under_way(error: &StoreError) -> bool {
    let StoreError::Refused(source) = error else { return false };
    let detail = source.downcast_ref::<RedisError>().and_then(RedisError::detail);
    detail.is_some_and(|detail| detail.contains("already in progress"))
}

fn unfit(error: &RedisError) -> StoreError {
    StoreError::Unfit(format!("the store's URL cannot be used: {error}"))
}

fn info(url: &str) -> Result<ConnectionInfo, RedisError> {
    Ok(url.into_connection_info()?.set_tcp_settings(tcp()))
}

fn tcp() -> TcpSettings {
    // Probes find a connection that only listens and whose other end has vanished.
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER).with_retries(2);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_unsupported_urls_are_refused_with_what_is_allowed() {
        for (url, word) in [
            ("redis-sentinel://a/m", "not supported"),
            ("mysql://a", "not a store's URL"),
            ("x", "not a store's URL"),
            ("redis://", "not a store's URL"),
            ("redis-cluster://", "not a store's URL"),
        ] {
            let error = Address::parse(url).err();
            let helps = |e: &String| e.contains(word) && e.contains("redis-cluster://host:port");
            assert!(error.as_ref().is_some_and(helps), "{url}: {error:?}");
        }
        assert!(
            matches!(Address::parse("redis-cluster://a:1,b:2"), Ok(Address::Cluster(nodes)) if nodes.len() == 2)
        );
        assert!(matches!(Address::parse("rediss://:secret@a:6380/1"), Ok(Address::Single(_))));
    }
}
