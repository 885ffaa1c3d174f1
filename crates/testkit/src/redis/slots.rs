//! Moves a slot of a cluster from one master to another, in the same steps as `redis-cli --cluster reshard`.

use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::{RedisCluster, RedisServer};
use crate::time::eventually;

/// The limit until all masters know who has a slot.
const OWNER_DEADLINE: Duration = Duration::from_secs(20);

/// A slot that is on its way from one master to another.
pub struct SlotMove {
    slot: u16,
    from: MultiplexedConnection,
    from_id: String,
    to: MultiplexedConnection,
    to_id: String,
    to_port: u16,
}

impl RedisCluster {
    /// The index of the master that has a slot. Waits until one has it.
    pub async fn master_of(&self, slot: u16) -> usize {
        let found = async || self.find_master_of(slot).await.ok_or("no master has it");
        eventually(OWNER_DEADLINE, "a slot has a master", found).await
    }

    async fn find_master_of(&self, slot: u16) -> Option<usize> {
        for (index, node) in self.nodes().iter().enumerate() {
            let mut cluster = redis::cmd("CLUSTER");
            let nodes: String = cluster
                .arg("NODES")
                .query_async(&mut node.client().await)
                .await
                .expect("CLUSTER NODES answers");
            let own = nodes.lines().find(|line| line.contains("myself,master")).unwrap_or_default();
            // The slots of a node come after its eight fields.
            let mut ranges = own.split(' ').skip(8).filter_map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?))
            });
            if ranges.any(|(first, last)| (first..=last).contains(&slot)) {
                return Some(index);
            }
        }
        None
    }

    /// Begins to move a slot between two masters, given by their indexes: keys can be moved from now on.
    pub async fn begin_move(&self, slot: u16, from: usize, to: usize) -> SlotMove {
        let (from, to) = (&self.nodes()[from], &self.nodes()[to]);
        let begun = SlotMove {
            slot,
            from: from.client().await,
            from_id: id(from).await,
            to: to.client().await,
            to_id: id(to).await,
            to_port: to.port(),
        };
        set_slot(&mut begun.to.clone(), slot, &["IMPORTING", &begun.from_id]).await;
        set_slot(&mut begun.from.clone(), slot, &["MIGRATING", &begun.to_id]).await;
        begun
    }
}

impl SlotMove {
    /// Moves at most `count` keys of the slot. Returns how many were moved; 0 means that none is left.
    pub async fn keys(&mut self, count: usize) -> usize {
        let mut cluster = redis::cmd("CLUSTER");
        let cluster = cluster.arg("GETKEYSINSLOT").arg(self.slot).arg(count);
        let keys: Vec<Vec<u8>> = cluster.query_async(&mut self.from).await.expect("GETKEYSINSLOT");
        if !keys.is_empty() {
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(self.to_port).arg("").arg(0).arg(5_000).arg("KEYS").arg(&keys);
            // Some nodes refuse all keys for a moment after a master was replaced.
            eventually(OWNER_DEADLINE, "keys are moved", async || {
                let moved: Result<String, _> = migrate.query_async(&mut self.from).await;
                moved.map_err(|error| error.to_string())
            })
            .await;
        }
        keys.len()
    }

    /// Gives the slot to its new master, after all keys were moved.
    pub async fn end(mut self) {
        for node in [&mut self.to, &mut self.from] {
            set_slot(node, self.slot, &["NODE", &self.to_id]).await;
        }
    }
}

async fn id(node: &RedisServer) -> String {
    let mut cluster = redis::cmd("CLUSTER");
    cluster.arg("MYID").query_async(&mut node.client().await).await.expect("CLUSTER MYID")
}

async fn set_slot(node: &mut MultiplexedConnection, slot: u16, state: &[&str]) {
    let mut cluster = redis::cmd("CLUSTER");
    cluster.arg("SETSLOT").arg(slot).arg(state).exec_async(node).await.expect("CLUSTER SETSLOT");
}
