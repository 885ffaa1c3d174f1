//! A cluster: makes its connection, and calls on it. The client of Redis keeps a connection to each node behind this one,
//! and follows slots that move and nodes that end. It does not notice a node that accepts commands and never answers;
//! `connection` does.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use rand::rngs::StdRng;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Client, Cmd, ConnectionInfo, RedisResult, Value};
use ringback_core::backoff::Backoff;
use ringback_core::store_types::StoreError;
use tokio::time::timeout;

use super::CONNECT;
use super::address::tcp;
use super::connection::{FIRST_PAUSE, SharedConnection};
use super::error::{classify, classify_connect, is_half_moved, unfit};
use crate::keys::{KeySpace, Keys};

/// How long connecting to all nodes may take.
const CONNECT_ALL: Duration = Duration::from_secs(5);
/// How often a call is sent again after a node refused it for now, or if its node is not known.
const RETRIES: u32 = 8;
/// The shortest and the longest pause before that, in milliseconds. By default the client waits for more than a second,
/// and the call ends without the reason.
const RETRY_PAUSES: (u64, u64) = (10, 100);
/// The longest pause between two attempts to connect. An attempt is a connection to each node.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Cluster {
    nodes: Vec<Client>,
    keys: Keys,
    /// The connection, whose places are the key spaces, and one more for every master.
    connection: SharedConnection<ClusterConnection>,
}

impl Cluster {
    pub(super) fn open(
        infos: Vec<ConnectionInfo>,
        call_timeout: Duration,
        keys: Keys,
        rng: StdRng,
    ) -> Result<Self, StoreError> {
        let nodes = infos.iter().cloned().map(Client::open).collect::<RedisResult<_>>();
        let nodes = nodes.map_err(|error| unfit(&error))?;
        let client = ClusterClient::builder(infos)
            .tcp_settings(tcp())
            .connection_timeout(CONNECT)
            .response_timeout(call_timeout)
            .overall_response_timeout(Some(call_timeout))
            .retries(RETRIES)
            .min_retry_wait(RETRY_PAUSES.0)
            .max_retry_wait(RETRY_PAUSES.1)
            .build()
            .map_err(|error| unfit(&error))?;
        let backoff = Backoff::between(FIRST_PAUSE, LONGEST_PAUSE, rng);
        let bases = Arc::clone(keys.bases());
        let places = bases.len() + 1;
        let make = move |silent| connect(client.clone(), Arc::clone(&bases), silent).boxed();
        let connection = SharedConnection::new(places, call_timeout, backoff, make);
        Ok(Self { nodes, keys, connection })
    }

    pub(super) fn nodes(&self) -> &[Client] {
        &self.nodes
    }

    /// Sends one command to the master of a key space. Fails with `Moving` while its slot moves key by key.
    pub(super) async fn call(&self, cmd: &Cmd, space: KeySpace) -> Result<Value, StoreError> {
        let answer = self.send(cmd, route(self.keys.base(space)), self.keys.index(space)).await;
        answer.map_err(
            |error| if is_half_moved(&error) { StoreError::Moving(space.to_string()) } else { error },
        )
    }

    /// Sends a command to every master. Returns the address of each, and its answer; fails if one of them fails.
    pub(super) async fn call_each(&self, cmd: &Cmd) -> Result<Vec<(Value, Value)>, StoreError> {
        let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        match self.send(cmd, all, self.keys.bases().len()).await? {
            Value::Map(answers) => {
                answers.into_iter().map(|(address, answer)| Ok((address, value(answer)?))).collect()
            }
            _ => Err(StoreError::Unreadable("the answers of all masters")),
        }
    }

    /// Sends a command to the master at an address.
    pub(super) async fn call_node(
        &self,
        cmd: &Cmd,
        (host, port): &(String, u16),
    ) -> Result<Value, StoreError> {
        let one = SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port };
        self.send(cmd, RoutingInfo::SingleNode(one), self.keys.bases().len()).await
    }

    async fn send(&self, cmd: &Cmd, route: RoutingInfo, space: usize) -> Result<Value, StoreError> {
        let send =
            async |mut connection: ClusterConnection| connection.route_command(cmd.clone(), route).await;
        let (answer, _) = self.connection.call(space, send).await?;
        answer.map_err(classify).and_then(value)
    }
}

fn value(answer: Value) -> Result<Value, StoreError> {
    match answer {
        Value::ServerError(error) => Err(classify(error.into())),
        value => Ok(value),
    }
}

fn route(key: &str) -> RoutingInfo {
    let route = Route::with_key(key, SlotAddr::Master);
    RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route))
}

/// Connects to all nodes, beginning with those of the URL, within 5 s. If a place is silent on the connection in use, the
/// new one must have an answer there: until then the old one serves the other places, and a new one without a connection
/// to each master would serve them worse.
async fn connect(
    client: ClusterClient,
    bases: Arc<[String]>,
    silent: Option<usize>,
) -> Result<ClusterConnection, StoreError> {
    let connect = async {
        let connection = client.get_async_connection().await?;
        // The check is made here, because no call can use the connection before this function returns.
        let asked = match silent {
            None => &[][..],
            // The place after the key spaces stands for every master.
            Some(space) => bases.get(space..=space).unwrap_or(&bases),
        };
        try_join_all(asked.iter().map(|base| answer(connection.clone(), base))).await?;
        Ok(connection)
    };
    timeout(CONNECT_ALL, connect)
        .await
        .map_or(Err(StoreError::Slow(CONNECT_ALL)), |made| made.map_err(classify_connect))
}

/// Sends a GET of a key, so that the key's master answers; a command without a key could be answered by another node.
async fn answer(mut connection: ClusterConnection, key: &str) -> RedisResult<Value> {
    connection.route_command(redis::cmd("GET").arg(key).to_owned(), route(key)).await
}
