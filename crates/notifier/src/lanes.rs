//! Lanes: topic and destination together, the unit of fairness. How many callbacks of each
//! are in flight here, and how many more it may have. Pure bookkeeping of one owner.

use std::collections::HashMap;

use ringback_core::store::Lease;

/// At most so many jobs a reserve.
const LIMIT: usize = 128;
/// What is left is asked for in so many parts,
const PARTS: usize = 4;
/// none of them below this, unless less is left.
const BATCH: usize = 16;

/// A lane's name, as the store writes it.
pub(crate) fn lane_of(lease: &Lease) -> String {
    format!("{} {}", lease.key.topic, lease.delivery.callback.origin())
}

/// What one reserve may ask for. It counts as taken until the answer is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// At most so many jobs.
    pub(crate) limit: usize,
    /// At most so many of a lane that `rooms` does not name.
    pub(crate) lane_room: usize,
    /// Lanes that have less room; 0 for those whose room is not worth a call yet.
    pub(crate) rooms: Vec<(String, usize)>,
}

/// Callbacks in flight, outcomes on their way to the store, and reserves under way.
pub(crate) struct Lanes {
    concurrency: usize,
    lane_concurrency: usize,
    /// Jobs that hold a permit: from the reserve until they are settled.
    permits: usize,
    /// Calls in flight per lane.
    lanes: HashMap<String, usize>,
    asked: usize,
    asked_per_lane: usize,
}

impl Lanes {
    pub(crate) fn new(concurrency: usize, lane_concurrency: usize) -> Self {
        Self { concurrency, lane_concurrency, permits: 0, lanes: HashMap::new(), asked: 0, asked_per_lane: 0 }
    }

    /// How many permits are left.
    fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.permits + self.asked)
    }

    /// How many jobs hold a permit.
    pub(crate) fn permits(&self) -> usize {
        self.permits
    }

    /// How many more of a lane may start that has `held` in flight: its own bound, and no
    /// more than half of what is free without it, so that a few lanes with slow receivers
    /// never take all there is.
    fn room(&self, held: usize) -> usize {
        let fair = ((self.free() + held) / 2).max(1);
        fair.min(self.lane_concurrency).saturating_sub(held + self.asked_per_lane).min(self.free())
    }

    /// A lane's room, once it is a quarter of what the lane may have: so a busy lane is
    /// refilled in batches, and a narrow one at once.
    fn worth(&self, held: usize) -> usize {
        let room = self.room(held);
        if room >= (room + held) / 4 { room } else { 0 }
    }

    /// What the next reserve may ask for: a part of what is left, so that several shards
    /// can be asked at the same time, but no less than a batch worth a call. `None` when
    /// nothing is left.
    pub(crate) fn ask(&mut self) -> Option<Ask> {
        let part = |left: usize| left.div_ceil(PARTS).max(BATCH).min(left);
        let lane_room = part(self.room(0));
        if lane_room == 0 {
            return None;
        }
        let limit = part(self.free()).min(LIMIT);
        let rooms = self.lanes.iter().map(|(lane, held)| (lane, self.worth(*held)));
        let rooms =
            rooms.filter(|(_, room)| *room < lane_room).map(|(lane, room)| (lane.clone(), room)).collect();
        self.asked += limit;
        self.asked_per_lane += lane_room;
        Some(Ask { limit, lane_room, rooms })
    }

    /// The answer to a reserve is here.
    pub(crate) fn answered(&mut self, ask: &Ask) {
        self.asked = self.asked.saturating_sub(ask.limit);
        self.asked_per_lane = self.asked_per_lane.saturating_sub(ask.lane_room);
    }

    /// A call of the lane starts.
    pub(crate) fn enter(&mut self, lane: &str) {
        self.permits += 1;
        match self.lanes.get_mut(lane) {
            Some(held) => *held += 1,
            None => {
                self.lanes.insert(lane.to_owned(), 1);
            }
        }
    }

    /// Whether the lane has room worth a reserve.
    pub(crate) fn is_open(&self, lane: &str) -> bool {
        self.worth(self.lanes.get(lane).copied().unwrap_or(0)) > 0
    }

    /// A call of the lane has ended.
    pub(crate) fn leave(&mut self, lane: &str) {
        let held = self.lanes.get(lane).map_or(0, |held| held.saturating_sub(1));
        if held == 0 {
            self.lanes.remove(lane);
        } else if let Some(entry) = self.lanes.get_mut(lane) {
            *entry = held;
        }
    }

    /// A job is settled, or given up: its permit is free.
    pub(crate) fn settled(&mut self) {
        self.permits = self.permits.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One ask at a time, all of it taken by the lane.
    fn fill(lanes: &mut Lanes, lane: &str) -> usize {
        let mut taken = 0;
        while let Some(ask) = lanes.ask() {
            lanes.answered(&ask);
            let room =
                ask.rooms.iter().find(|(name, _)| name == lane).map_or(ask.lane_room, |(_, room)| *room);
            if room == 0 {
                break;
            }
            (0..room.min(ask.limit)).for_each(|_| lanes.enter(lane));
            taken += room.min(ask.limit);
        }
        taken
    }

    #[test]
    fn a_lane_takes_up_to_its_bound_and_no_more() {
        let mut lanes = Lanes::new(512, 64);
        assert_eq!(fill(&mut lanes, "a"), 64);
        let ask = lanes.ask().unwrap();
        assert_eq!((ask.lane_room, ask.rooms), (16, vec![("a".to_owned(), 0)]));
    }

    #[test]
    fn asks_under_way_together_never_exceed_a_lanes_bound_or_the_permits() {
        for (concurrency, lane) in [(512, 64), (10, 10), (7, 3), (1, 1)] {
            let mut lanes = Lanes::new(concurrency, lane);
            let asks: Vec<_> = std::iter::from_fn(|| lanes.ask()).collect();
            assert!(!asks.is_empty());
            assert!(
                asks.iter().map(|a| a.lane_room).sum::<usize>() <= lane,
                "{concurrency} {lane}: {asks:?}"
            );
            assert!(
                asks.iter().map(|a| a.limit).sum::<usize>() <= concurrency,
                "{concurrency} {lane}: {asks:?}"
            );
            asks.iter().for_each(|ask| lanes.answered(ask));
            assert!(lanes.ask().is_some());
        }
    }

    #[test]
    fn slow_lanes_leave_room_for_others_however_many_they_are() {
        let mut lanes = Lanes::new(512, 64);
        for lane in 0..12 {
            assert!(fill(&mut lanes, &lane.to_string()) > 0, "lane {lane} has none");
        }
        assert!(lanes.ask().is_some());
    }

    #[test]
    fn a_busy_lane_is_refilled_in_batches_and_a_narrow_one_at_once() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "wide");
        let first = (1..=64).find(|_| {
            lanes.leave("wide");
            lanes.settled();
            lanes.is_open("wide")
        });
        assert_eq!(first, Some(16));
        let mut narrow = Lanes::new(512, 1);
        narrow.enter("n");
        assert!(!narrow.is_open("n"));
        narrow.leave("n");
        narrow.settled();
        assert!(narrow.is_open("n"));
    }

    #[test]
    fn a_lane_with_little_room_is_passed_until_more_is_free() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "wide");
        lanes.leave("wide");
        let ask = lanes.ask().unwrap();
        assert_eq!(ask.rooms, [("wide".to_owned(), 0)]);
        lanes.answered(&ask);
        (0..15).for_each(|_| lanes.leave("wide"));
        assert_eq!(lanes.ask().unwrap().rooms, []);
    }

    #[test]
    fn a_permit_is_held_until_its_job_is_settled() {
        let mut lanes = Lanes::new(1, 1);
        lanes.enter("a");
        lanes.leave("a");
        assert_eq!((lanes.ask(), lanes.is_open("a")), (None, false));
        lanes.settled();
        assert!(lanes.is_open("a"));
        assert_eq!(lanes.ask().map(|ask| (ask.limit, ask.lane_room)), Some((1, 1)));
    }
}
