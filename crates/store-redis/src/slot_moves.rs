//! Looks for shards whose slot moves from one node of a cluster to another.

use std::collections::BTreeSet;

use ringback_core::contract::{Shard, StoreError};

use crate::keys::Place;
use crate::moving::moving_slots;
use crate::redis_store::RedisStore;
use crate::{reply, script};

impl RedisStore {
    /// The shards that are refused.
    pub fn moving(&self) -> Vec<Shard> {
        let shards = self.options.all_shards();
        shards.filter(|shard| self.moving.is_set(&self.keys, Place::Shard(*shard))).collect()
    }

    /// Looks for shards whose slot moves, and whether those that were refused are served again.
    pub(crate) async fn look_at_moves(&self) -> Result<(), StoreError> {
        let slots = self.moving_slots().await?;
        for shard in self.options.all_shards() {
            let place = Place::Shard(shard);
            if slots.contains(&self.keys.slot(place)) {
                self.moving.set(&self.keys, place, true);
            } else if self.moving.is_set(&self.keys, place) {
                let asked: Result<(u64, String), _> = self.call(&script::ACCEPTED, place).early().run().await;
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
        Ok(texts.iter().flat_map(|text| moving_slots(text)).collect())
    }
}
