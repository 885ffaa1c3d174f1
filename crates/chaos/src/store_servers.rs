//! Stores of several servers: a cluster with replicas, or a master with replicas and sentinels.

use ringback_testkit::{Persistence, RedisCluster, RedisSentinel, RedisServer};

use crate::store_kind::StoreKind;
use crate::world::World;

/// The servers of a store.
pub(crate) enum Group {
    Cluster(RedisCluster),
    Sentinel(RedisSentinel),
}

impl Group {
    /// Starts the servers of a kind of store; `None` if it is a single Redis or embedded.
    pub(crate) async fn start(kind: StoreKind, world: &World) -> Option<Self> {
        let options = world.servers().persistence(Persistence::Always);
        match kind {
            StoreKind::Redis | StoreKind::Embedded => None,
            StoreKind::Cluster => Some(Self::Cluster(RedisCluster::start_with_replicas(options).await)),
            StoreKind::Sentinel => Some(Self::Sentinel(RedisSentinel::start(options).await)),
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinel(sentinel) => sentinel.url(),
        }
    }

    pub(crate) fn servers(&self) -> &[RedisServer] {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::Sentinel(sentinel) => sentinel.servers(),
        }
    }

    /// The servers, and then the sentinels.
    pub(crate) fn all(&self) -> Vec<&RedisServer> {
        let sentinels = match self {
            Self::Cluster(_) => &[],
            Self::Sentinel(sentinel) => sentinel.sentinels(),
        };
        self.servers().iter().chain(sentinels).collect()
    }

    pub(crate) fn server_mut(&mut self, index: usize) -> &mut RedisServer {
        match self {
            Self::Cluster(cluster) => cluster.node_mut(index),
            Self::Sentinel(sentinel) => sentinel.server_mut(index),
        }
    }
}
