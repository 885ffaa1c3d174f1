//! Lanes: topic and destination together, the unit of fairness. How many callbacks of each
//! are in flight here, and how many more it may have. Pure bookkeeping of one owner.

use std::collections::HashMap;

use ringback_core::store::Lease;

/// A lane's name, as the store writes it.
pub(crate) fn lane_of(lease: &Lease) -> String {
    format!("{} {}", lease.key.topic, lease.delivery.callback.origin())
}

/// Callbacks in flight.
pub(crate) struct Lanes {
    concurrency: usize,
    lane_concurrency: usize,
    in_flight: usize,
    lanes: HashMap<String, usize>,
}

impl Lanes {
    pub(crate) fn new(concurrency: usize, lane_concurrency: usize) -> Self {
        Self { concurrency, lane_concurrency, in_flight: 0, lanes: HashMap::new() }
    }

    /// How many more callbacks may start.
    pub(crate) fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.in_flight)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many more of a lane may start that has `held` in flight: its own bound, and no
    /// more than half of what is free without it, so that a few lanes with slow receivers
    /// never take all there is.
    fn room(&self, held: usize) -> usize {
        let fair = ((self.free() + held) / 2).max(1);
        fair.min(self.lane_concurrency).saturating_sub(held).min(self.free())
    }

    /// The room of a lane that has nothing in flight.
    pub(crate) fn room_of_others(&self) -> usize {
        self.room(0)
    }

    /// The lanes in flight that have less room than others.
    pub(crate) fn rooms(&self) -> Vec<(String, usize)> {
        let others = self.room_of_others();
        let less = self.lanes.iter().map(|(lane, held)| (lane, self.room(*held)));
        less.filter(|(_, room)| *room < others).map(|(lane, room)| (lane.clone(), room)).collect()
    }

    pub(crate) fn enter(&mut self, lane: &str) {
        self.in_flight += 1;
        match self.lanes.get_mut(lane) {
            Some(held) => *held += 1,
            None => {
                self.lanes.insert(lane.to_owned(), 1);
            }
        }
    }

    /// Takes one out of flight. True when the lane has room worth a reserve again: a
    /// quarter of what it may have, so that a busy lane is refilled in batches.
    pub(crate) fn leave(&mut self, lane: &str) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        let held = self.lanes.get(lane).map_or(0, |held| held.saturating_sub(1));
        if held == 0 {
            self.lanes.remove(lane);
        } else if let Some(entry) = self.lanes.get_mut(lane) {
            *entry = held;
        }
        let room = self.room(held);
        room > 0 && room >= (room + held) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_never_takes_more_than_its_bound() {
        let mut lanes = Lanes::new(512, 64);
        (0..60).for_each(|_| lanes.enter("a"));
        assert_eq!(lanes.rooms(), [("a".to_owned(), 4)]);
        assert_eq!(lanes.room_of_others(), 64);
    }

    #[test]
    fn slow_lanes_leave_room_for_others_however_many_they_are() {
        let mut lanes = Lanes::new(512, 64);
        for lane in 0..20 {
            let room = lanes.room_of_others();
            (0..room).for_each(|_| lanes.enter(&lane.to_string()));
            if lanes.free() <= 1 {
                break;
            }
            assert!(lanes.room_of_others() >= 1, "lane {lane} has none");
        }
        assert!(lanes.lanes.len() > 12, "{}", lanes.lanes.len());
    }

    #[test]
    fn a_busy_lane_is_refilled_in_batches_and_a_narrow_one_at_once() {
        let mut lanes = Lanes::new(512, 64);
        (0..64).for_each(|_| lanes.enter("wide"));
        let first = (1..=64).find(|_| lanes.leave("wide"));
        assert_eq!(first, Some(16));
        let mut narrow = Lanes::new(512, 1);
        narrow.enter("n");
        assert!(narrow.leave("n"));
    }

    #[test]
    fn with_one_permit_something_still_moves() {
        let mut lanes = Lanes::new(1, 1);
        assert_eq!(lanes.room_of_others(), 1);
        lanes.enter("a");
        assert_eq!((lanes.free(), lanes.room_of_others()), (0, 0));
        assert!(lanes.leave("a"));
    }
}
