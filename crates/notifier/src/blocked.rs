//! Lanes that were passed for lack of room here, and the shards where they wait, in turn.
//! Pure bookkeeping of one owner.

use std::collections::{HashMap, VecDeque};

use ringback_core::contract::Shard;

/// What waits for room.
#[derive(Default)]
pub(crate) struct Blocked {
    lanes: HashMap<String, VecDeque<Shard>>,
    /// In how many lanes a shard waits.
    shards: HashMap<Shard, usize>,
}

impl Blocked {
    /// A lane was passed in a shard.
    pub(crate) fn pass(&mut self, lane: String, shard: Shard) {
        let shards = self.lanes.entry(lane).or_default();
        if !shards.contains(&shard) {
            shards.push_back(shard);
            *self.shards.entry(shard).or_default() += 1;
        }
    }

    /// Whether a lane waits in the shard.
    pub(crate) fn is_in(&self, shard: Shard) -> bool {
        self.shards.contains_key(&shard)
    }

    /// Whether one of the lanes is open.
    pub(crate) fn is_any(&self, is_open: impl Fn(&str) -> bool) -> bool {
        self.lanes.keys().any(|lane| is_open(lane))
    }

    /// Takes one shard of each open lane. One at a time: it may take all the room, and the
    /// others would be asked in vain.
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
        let mut blocked = Blocked::default();
        for (lane, shard) in [("a", 0), ("a", 1), ("a", 0), ("b", 0)] {
            blocked.pass(lane.to_owned(), shards[shard]);
        }
        assert!(blocked.is_any(|lane| lane == "b") && !blocked.is_any(|lane| lane == "c"));
        assert_eq!(blocked.take(|lane| lane == "a"), [shards[0]]);
        assert!(blocked.is_in(shards[0]), "lane b waits there still");
        assert_eq!(blocked.take(|lane| lane == "b"), [shards[0]]);
        assert!(!blocked.is_in(shards[0]) && blocked.is_in(shards[1]));
        assert_eq!(blocked.take(|_| true), [shards[1]]);
        assert!(!blocked.is_any(|_| true) && blocked.take(|_| true).is_empty());
    }
}
