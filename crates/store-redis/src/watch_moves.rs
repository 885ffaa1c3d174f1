//! Finds slots of a cluster that move, by its masters' answers, and marks their shards, which `moving_slots.rs` then
//! refuses.

use std::collections::BTreeSet;

use ringback_core::store_types::{Shard, StoreError};

use super::keys::KeySpace;
use super::redis_store::RedisStore;
use super::{reply, script};

impl RedisStore {
    /// Returns the shards that are marked as moving.
    pub fn moving(&self) -> Vec<Shard> {
        let shards = self.options.all_shards();
        shards.filter(|shard| self.moving.is_set(&self.keys, KeySpace::Shard(*shard))).collect()
    }

    /// Marks the shards whose slot moves, and calls each other shard that is marked: an answer removes the mark. Fails if
    /// the masters cannot be asked, or if such a call fails for another reason than a moving slot.
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

    /// Returns the slots that move by the answers of the masters; none if the user may not send CLUSTER NODES.
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

/// Returns the slots that a node gives away, `[93->-<node>]`, or receives, `[93-<-<node>]`, from CLUSTER NODES.
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
