//! Lanes: topic and destination together, the unit of fairness. How many callbacks of each
//! are in flight here, and how many more it may have. Pure bookkeeping of one owner.

use std::collections::HashMap;

use ringback_core::contract::Lease;

/// At most so many jobs a reserve.
const LIMIT: usize = 128;
/// What is left is asked for in so many parts,
const PARTS: usize = 2;
/// none of them below this, unless less is left.
const BATCH: usize = 16;
/// Of so many lanes a reserve tells the room at most: each costs the store about a microsecond.
const NAMED: usize = 256;
/// Less than this part of all permits is scarce,
const SCARCE: usize = 32;
/// and this part is plenty.
const PLENTY: usize = 4;

/// How much room of a lane is worth a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Half of what the lane may have: so a busy lane is refilled in batches.
    Batch,
    /// Any: for lanes whose calls take long.
    Any,
}

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
    pub(crate) lane_limit: usize,
    /// Lanes that have less room, the fullest 256 of them; 0 for those whose room is not
    /// worth a call yet.
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

    /// A lane's room, where it is worth a call. That of a narrow lane always is.
    fn worth(&self, held: usize, refill: Refill) -> usize {
        let room = self.room(held);
        match refill {
            Refill::Batch if room < (room + held) / 2 => 0,
            Refill::Batch | Refill::Any => room,
        }
    }

    /// What the next reserve may ask for: a part of what is left, so that several shards
    /// can be asked at the same time, but no less than a batch worth a call. `None` when
    /// nothing is left.
    pub(crate) fn ask(&mut self, refill: Refill) -> Option<Ask> {
        let part = |left: usize| left.div_ceil(PARTS).max(BATCH).min(left);
        let lane_limit = part(self.room(0));
        if lane_limit == 0 {
            return None;
        }
        let limit = part(self.free()).min(LIMIT);
        let (lane_limit, rooms) = self.rooms(lane_limit, refill);
        self.asked += limit;
        self.asked_per_lane += lane_limit;
        Some(Ask { limit, lane_limit, rooms })
    }

    /// The room of the fullest lanes among those that have less than `lane_limit`. When there
    /// are more than can be named, the others get no more than the fullest of them may have;
    /// or 1, where even that one is full, for lanes with nothing in flight must go on. So
    /// only a lane that is full beside 256 others may get one too many.
    fn rooms(&self, lane_limit: usize, refill: Refill) -> (usize, Vec<(String, usize)>) {
        let rooms = self.lanes.iter().map(|(lane, held)| (self.worth(*held, refill), self.room(*held), lane));
        let mut rooms: Vec<_> = rooms.filter(|(worth, ..)| *worth < lane_limit).collect();
        let mut lane_limit = lane_limit;
        if rooms.len() > NAMED {
            rooms.select_nth_unstable(NAMED);
            let least = rooms.drain(NAMED..).map(|(_, room, _)| room).min();
            lane_limit = lane_limit.min(least.unwrap_or(lane_limit)).max(1);
        }
        (lane_limit, rooms.into_iter().map(|(worth, _, lane)| (lane.clone(), worth)).collect())
    }

    /// Whether so little is left that asking for it each time would make many small calls.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.concurrency / SCARCE
    }

    /// Whether so much is left that outcomes may hold their permits a moment longer.
    pub(crate) fn is_plenty(&self) -> bool {
        self.free() >= self.concurrency / PLENTY
    }

    /// The answer to a reserve is here.
    pub(crate) fn answered(&mut self, ask: &Ask) {
        self.asked = self.asked.saturating_sub(ask.limit);
        self.asked_per_lane = self.asked_per_lane.saturating_sub(ask.lane_limit);
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
    pub(crate) fn is_open(&self, lane: &str, refill: Refill) -> bool {
        self.worth(self.lanes.get(lane).copied().unwrap_or(0), refill) > 0
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

    /// So many jobs are settled, or given up: their permits are free.
    pub(crate) fn settled(&mut self, jobs: usize) {
        self.permits = self.permits.saturating_sub(jobs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One ask at a time, all of it taken by the lane.
    fn fill(lanes: &mut Lanes, lane: &str) -> usize {
        let mut taken = 0;
        while let Some(ask) = lanes.ask(Refill::Batch) {
            lanes.answered(&ask);
            let room =
                ask.rooms.iter().find(|(name, _)| name == lane).map_or(ask.lane_limit, |(_, room)| *room);
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
        let ask = lanes.ask(Refill::Batch).unwrap();
        assert_eq!((ask.lane_limit, ask.rooms), (32, vec![("a".to_owned(), 0)]));
    }

    #[test]
    fn asks_under_way_together_never_exceed_a_lanes_bound_or_the_permits() {
        for (concurrency, lane) in [(512, 64), (10, 10), (7, 3), (1, 1)] {
            let mut lanes = Lanes::new(concurrency, lane);
            let asks: Vec<_> = std::iter::from_fn(|| lanes.ask(Refill::Batch)).collect();
            assert!(!asks.is_empty());
            assert!(
                asks.iter().map(|a| a.lane_limit).sum::<usize>() <= lane,
                "{concurrency} {lane}: {asks:?}"
            );
            assert!(
                asks.iter().map(|a| a.limit).sum::<usize>() <= concurrency,
                "{concurrency} {lane}: {asks:?}"
            );
            asks.iter().for_each(|ask| lanes.answered(ask));
            assert!(lanes.ask(Refill::Batch).is_some());
        }
    }

    #[test]
    fn slow_lanes_leave_room_for_others_however_many_they_are() {
        let mut lanes = Lanes::new(512, 64);
        for lane in 0..12 {
            assert!(fill(&mut lanes, &lane.to_string()) > 0, "lane {lane} has none");
        }
        assert!(lanes.ask(Refill::Batch).is_some());
    }

    #[test]
    fn a_busy_lane_is_refilled_in_batches_and_a_narrow_one_at_once() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "wide");
        let first = (1..=64).find(|_| {
            lanes.leave("wide");
            lanes.settled(1);
            lanes.is_open("wide", Refill::Batch)
        });
        assert_eq!(first, Some(32));
        let mut narrow = Lanes::new(512, 1);
        narrow.enter("n");
        assert!(!narrow.is_open("n", Refill::Batch));
        narrow.leave("n");
        narrow.settled(1);
        assert!(narrow.is_open("n", Refill::Batch));
    }

    #[test]
    fn a_lane_whose_calls_take_long_is_refilled_with_any_room() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "slow");
        assert!(!lanes.is_open("slow", Refill::Any));
        lanes.leave("slow");
        assert!(!lanes.is_open("slow", Refill::Batch) && lanes.is_open("slow", Refill::Any));
        assert_eq!(lanes.ask(Refill::Any).unwrap().rooms, [("slow".to_owned(), 1)]);
    }

    #[test]
    fn a_lane_with_little_room_is_passed_until_more_is_free() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "wide");
        lanes.leave("wide");
        let ask = lanes.ask(Refill::Batch).unwrap();
        assert_eq!(ask.rooms, [("wide".to_owned(), 0)]);
        lanes.answered(&ask);
        (0..31).for_each(|_| lanes.leave("wide"));
        assert_eq!(lanes.ask(Refill::Batch).unwrap().rooms, []);
    }

    #[test]
    fn of_many_lanes_the_fullest_are_named_and_the_others_get_no_more_than_they_may_have() {
        let mut lanes = Lanes::new(65_536, 8);
        let enter = |lanes: &mut Lanes, lane: &str, times| (0..times).for_each(|_| lanes.enter(lane));
        (0..5_000).for_each(|n| enter(&mut lanes, &format!("little {n}"), 1));
        (0..200).for_each(|n| enter(&mut lanes, &format!("full {n}"), 8));
        (0..200).for_each(|n| enter(&mut lanes, &format!("half {n}"), 5));
        let ask = lanes.ask(Refill::Batch).unwrap();
        assert_eq!(ask.rooms.len(), NAMED);
        assert_eq!(
            ask.rooms.iter().filter(|(lane, room)| lane.starts_with("full") && *room == 0).count(),
            200
        );
        assert_eq!(ask.lane_limit, 3, "the room of those half full that are not named");
    }

    #[test]
    fn lanes_with_nothing_in_flight_go_on_though_more_are_full_than_can_be_named() {
        let mut lanes = Lanes::new(1_000, 1);
        (0..300).for_each(|n| lanes.enter(&n.to_string()));
        let ask = lanes.ask(Refill::Batch).unwrap();
        assert_eq!((ask.rooms.len(), ask.lane_limit), (NAMED, 1));
    }

    #[test]
    fn the_last_permits_are_scarce_but_for_a_narrow_notifier() {
        let mut lanes = Lanes::new(512, 512);
        (0..496).for_each(|_| lanes.enter("a"));
        assert!(!lanes.is_scarce());
        lanes.enter("a");
        assert!(lanes.is_scarce());
        let mut narrow = Lanes::new(31, 31);
        (0..30).for_each(|_| narrow.enter("a"));
        assert!(!narrow.is_scarce() && !narrow.is_plenty());
    }

    #[test]
    fn a_quarter_of_the_permits_is_plenty_and_asks_under_way_take_of_it() {
        let mut lanes = Lanes::new(512, 512);
        (0..384).for_each(|_| lanes.enter("a"));
        assert!(lanes.is_plenty());
        let ask = lanes.ask(Refill::Any).unwrap();
        assert!(!lanes.is_plenty());
        lanes.answered(&ask);
        assert!(lanes.is_plenty());
    }

    #[test]
    fn a_permit_is_held_until_its_job_is_settled() {
        let mut lanes = Lanes::new(1, 1);
        lanes.enter("a");
        lanes.leave("a");
        assert_eq!((lanes.ask(Refill::Batch), lanes.is_open("a", Refill::Batch)), (None, false));
        lanes.settled(1);
        assert!(lanes.is_open("a", Refill::Batch));
        assert_eq!(lanes.ask(Refill::Batch).map(|ask| (ask.limit, ask.lane_limit)), Some((1, 1)));
    }
}
