//! Parts of the store that are refused because their slot moves from one node of a cluster to another, key by key. A
//! script would run on half of the keys, so the nodes refuse it ([`Keys::absent`]). They serve it again when the move is
//! over. Nothing is known of that but what calls were answered, and what the nodes say of their slots.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_core::store_types::{Shard, StoreError};

use crate::keys::{KeySpace, Keys};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// Which parts were refused when they were called or looked at last.
pub(crate) struct Moving(Box<[AtomicBool]>);

impl Moving {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self(keys.bases().iter().map(|_| AtomicBool::new(false)).collect())
    }

    /// Takes the end of a call.
    pub(crate) fn take<T>(&self, keys: &Keys, space: KeySpace, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.set(keys, space, false),
            Err(StoreError::Moving(_)) => self.set(keys, space, true),
            Err(_) => {}
        }
    }

    pub(crate) fn set(&self, keys: &Keys, space: KeySpace, is_moving: bool) {
        let flag = &self.0[keys.index(space)];
        // Written only if it changes, because every call comes here.
        if flag.load(Ordering::Relaxed) == is_moving || flag.swap(is_moving, Ordering::Relaxed) == is_moving {
            return;
        }
        if is_moving {
            tracing::warn!(
                part = %space,
                slot = keys.slot(space),
                "a part of the store is refused while its slot moves to another node of the cluster"
            );
        } else {
            tracing::info!(part = %space, slot = keys.slot(space), "a part of the store is served again");
        }
    }

    pub(crate) fn is_set(&self, keys: &Keys, space: KeySpace) -> bool {
        self.0[keys.index(space)].load(Ordering::Relaxed)
    }
}

impl RedisStore {
    /// The shards that are refused.
    pub fn moving(&self) -> Vec<Shard> {
        let shards = self.options.all_shards();
        shards.filter(|shard| self.moving.is_set(&self.keys, KeySpace::Shard(*shard))).collect()
    }

    /// Looks for shards whose slot moves, and whether those that were refused are served again.
    pub(crate) async fn look_at_moves(&self) -> Result<(), StoreError> {
        let slots = self.moving_slots().await?;
        for shard in self.options.all_shards() {
            let space = KeySpace::Shard(shard);
            if slots.contains(&self.keys.slot(space)) {
                self.moving.set(&self.keys, space, true);
            } else if self.moving.is_set(&self.keys, space) {
                let asked: Result<(u64, String), _> = self.call(&script::ACCEPTED, space).early().run().await;
                match asked {
                    Ok(_) | Err(StoreError::Moving(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The slots that the masters say are moving; none where the question is not allowed.
    async fn moving_slots(&self) -> Result<BTreeSet<u32>, StoreError> {
        let mut ask = redis::cmd("CLUSTER");
        let answers = match self.topology.call_each(ask.arg("NODES")).await {
            Err(error) if error.is_refusal() => Vec::new(),
            answers => answers?,
        };
        let texts = answers.into_iter().map(|(_, answer)| reply::read::<String>(answer, "CLUSTER NODES"));
        let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
        Ok(texts.iter().flat_map(|text| slots_in(text)).collect())
    }
}

/// The slots that a node gives away, `[93->-<node>]`, or takes, `[93-<-<node>]`, in its answer to CLUSTER NODES.
fn slots_in(nodes: &str) -> Vec<u32> {
    let marks = nodes.split_whitespace().filter_map(|word| word.strip_prefix('['));
    marks.filter_map(|mark| mark.split('-').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_a_node_gives_away_or_takes_are_found() {
        let nodes = "e7d1 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922\n\
                     07c3 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 [93->-e7d1] [77-<-67ed]\n";
        assert_eq!(slots_in(nodes), [93, 77]);
        assert_eq!(slots_in(""), [] as [u32; 0]);
    }
}
