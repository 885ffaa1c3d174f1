//! The slot of a shard, or of the installation, moves from one master of a cluster to another, key by key.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::RedisCluster;
use tokio::time::sleep;

use super::{RunningFault, master};
use crate::fault::Kind;
use crate::installation::Installation;
use crate::store_servers::Group;

pub(super) async fn make(installation: &Installation, rng: &mut StdRng) {
    let group = &*installation.group.as_ref().expect("a run on several servers").lock().await;
    let (Group::Cluster(cluster), masters) = (group, master::masters(group).await) else { return };
    let tags = tags(cluster).await;
    if tags.is_empty() {
        return;
    }
    let tag = &tags[rng.random_range(0..tags.len())];
    let slot = cluster.slot_of(&format!("{{{tag}}}")).await;
    let from = cluster.master_of(slot).await;
    let others: Vec<_> = masters.into_iter().filter(|master| *master != from).collect();
    let to = others[rng.random_range(0..others.len())];
    let (kind, pause) = (Kind::MoveSlot, rng.random_range(0..40));
    let begun = RunningFault::new(&installation.history, kind.name(), kind.class(), None);
    let mut moving = cluster.begin_move(slot, from, to).await;
    while moving.keys(rng.random_range(1..20)).await > 0 {
        sleep(Duration::from_millis(pause)).await;
    }
    moving.end().await;
    begun.healed();
}

/// The sorted hash tags of the keys on all nodes.
async fn tags(cluster: &RedisCluster) -> Vec<String> {
    let mut tags = Vec::new();
    for node in cluster.nodes() {
        let mut command = redis::cmd("KEYS");
        let keys: Vec<Vec<u8>> =
            command.arg("ringback:*").query_async(&mut node.client().await).await.unwrap_or_default();
        let tag = |key: &Vec<u8>| {
            let key = String::from_utf8_lossy(key);
            Some(key.split_once('{')?.1.split_once('}')?.0.to_owned())
        };
        tags.extend(keys.iter().filter_map(tag));
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}
