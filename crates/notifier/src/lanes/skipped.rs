//! Lanes that a reserve skipped because their limit was reached here, and the shards in which their
//! jobs wait. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ringback_core::contract::Shard;

/// Skipped lanes and their shards.
#[derive(Default)]
pub(crate) struct SkippedLanes {
    lanes: BTreeMap<String, VecDeque<Shard>>,
    /// The number of skipped lanes per shard.
    shards: HashMap<Shard, usize>,
}

impl SkippedLanes {
    /// Records that a reserve of `shard` skipped `lane`.
    pub(crate) fn add(&mut self, lane: String, shard: Shard) {
        let shards = self.lanes.entry(lane).or_default();
        if !shards.contains(&shard) {
            shards.push_back(shard);
            *self.shards.entry(shard).or_default() += 1;
        }
    }

    /// Returns true if a lane was skipped in `shard`.
    pub(crate) fn is_in(&self, shard: Shard) -> bool {
        self.shards.contains_key(&shard)
    }

    /// Returns true if one of the lanes is open.
    pub(crate) fn is_any(&self, is_open: impl Fn(&str) -> bool) -> bool {
        self.lanes.keys().any(|lane| is_open(lane))
    }

    /// Removes and returns one shard of each open lane. Only one, because its jobs may use up the
    /// limit of the lane; the next shard has its turn later.
    pub(crate) fn take(&mut self, is_open: impl Fn(&str) -> bool) -> Vec<Shard> {
        let mut taken = Vec::new();
        self.lanes.retain(|lane, shards| {
            if is_open(lane) {
                taken.extend(shards.pop_front());
            }
            !shards.is_empty()
        });
        for shard in &taken {
            match self.shards.get_mut(shard) {
                Some(lanes) if *lanes > 1 => *lanes -= 1,
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
        let mut skipped = SkippedLanes::default();
        for (lane, shard) in [("a", 0), ("a", 1), ("a", 0), ("b", 0)] {
            skipped.add(lane.to_owned(), shards[shard]);
        }
        assert!(skipped.is_any(|lane| lane == "b") && !skipped.is_any(|lane| lane == "c"));
        assert_eq!(skipped.take(|lane| lane == "a"), [shards[0]]);
        assert!(skipped.is_in(shards[0]), "lane b still waits there");
        assert_eq!(skipped.take(|lane| lane == "b"), [shards[0]]);
        assert!(!skipped.is_in(shards[0]) && skipped.is_in(shards[1]));
        assert_eq!(skipped.take(|_| true), [shards[1]]);
        assert!(!skipped.is_any(|_| true) && skipped.take(|_| true).is_empty());
    }
}
