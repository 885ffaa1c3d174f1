//! `FullLanes`: remembers the lanes, origins and tenants that a reserve found at their limit, and the shards in which
//! their jobs wait. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ringback_core::store_types::Shard;

/// The shards of each full lane, origin or tenant, by its name.
#[derive(Default)]
pub(crate) struct FullLanes {
    names: BTreeMap<String, VecDeque<Shard>>,
    /// The number of names per shard.
    shards: HashMap<Shard, usize>,
}

impl FullLanes {
    /// Records that a reserve of `shard` found the lane, origin or tenant `name` at its limit.
    pub(crate) fn add(&mut self, name: String, shard: Shard) {
        let shards = self.names.entry(name).or_default();
        if !shards.contains(&shard) {
            shards.push_back(shard);
            *self.shards.entry(shard).or_default() += 1;
        }
    }

    /// Returns true if no lane, origin or tenant is at its limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns true if jobs of a full lane, origin or tenant wait in `shard`.
    pub(crate) fn is_in(&self, shard: Shard) -> bool {
        self.shards.contains_key(&shard)
    }

    /// Returns true if `is_open` holds for any of the full lanes, origins and tenants.
    pub(crate) fn is_any(&self, is_open: impl Fn(&str) -> bool) -> bool {
        self.names.keys().any(|name| is_open(name))
    }

    /// Removes and returns one shard of each full lane, origin or tenant that is open again. Only one, because
    /// its jobs may use up the limit; the next shard has its turn later.
    pub(crate) fn take(&mut self, is_open: impl Fn(&str) -> bool) -> Vec<Shard> {
        let mut taken = Vec::new();
        self.names.retain(|name, shards| {
            if is_open(name) {
                taken.extend(shards.pop_front());
            }
            !shards.is_empty()
        });
        for shard in &taken {
            match self.shards.get_mut(shard) {
                Some(names) if *names > 1 => *names -= 1,
                Some(_) | None => drop(self.shards.remove(shard)),
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringback_store::{Store, settings};

    use super::*;

    #[tokio::test]
    async fn the_shards_of_a_lane_come_in_turn_and_one_at_a_time() {
        let store = Store::open(settings::defaults(Duration::from_secs(1))).unwrap();
        let shards: Vec<_> = store.shards().take(2).collect();
        let mut full = FullLanes::default();
        for (lane, shard) in [("a", 0), ("a", 1), ("a", 0), ("b", 0)] {
            full.add(lane.to_owned(), shards[shard]);
        }
        assert!(full.is_any(|lane| lane == "b") && !full.is_any(|lane| lane == "c"));
        assert_eq!(full.take(|lane| lane == "a"), [shards[0]]);
        assert!(full.is_in(shards[0]), "lane b still waits there");
        assert_eq!(full.take(|lane| lane == "b"), [shards[0]]);
        assert!(!full.is_in(shards[0]) && full.is_in(shards[1]));
        assert_eq!(full.take(|_| true), [shards[1]]);
        assert!(!full.is_any(|_| true) && full.take(|_| true).is_empty());
    }
}
