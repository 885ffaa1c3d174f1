//! Lane limits: how many callbacks of each lane are in flight here and how many more may start. A lane
//! is a topic together with an origin, the unit of fairness. Pure.

mod skipped;

use std::collections::HashMap;

use ringback_core::contract::Lease;
use ringback_core::lane::Lane;

pub(crate) use self::skipped::SkippedLanes;

/// The most jobs of one reserve.
const MAX_RESERVE: usize = 128;
/// A reserve asks for one of this many parts of the free permits, so that several shards can be asked
/// at the same time.
const PARTS: usize = 2;
/// The least number of jobs that a reserve asks for, unless fewer permits are free.
const MIN_RESERVE: usize = 16;
/// The most lanes whose limits a reserve names. Each costs the store about a microsecond.
const MAX_NAMED: usize = 256;
/// Permits are scarce when less than this fraction of them is free.
const SCARCE: usize = 32;
/// Permits are plenty when at least this fraction of them is free.
const PLENTY: usize = 4;

/// How many free slots of a lane justify a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Half of the limit of the lane, so that a busy lane is refilled in batches.
    Batch,
    /// One slot: for lanes whose callbacks take long.
    Any,
}

/// Returns the lane of a lease, under the name that the store uses.
pub(crate) fn lane_of(lease: &Lease) -> String {
    Lane::new(&lease.key.topic, lease.delivery.callback.origin()).name()
}

/// The limits of one reserve. Its permits count as used until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReserveLimits {
    /// The most jobs.
    pub(crate) limit: usize,
    /// The most jobs of a lane that `lanes` does not name.
    pub(crate) per_lane: usize,
    /// Lanes with a lower limit; 0 skips the lane.
    pub(crate) lanes: Vec<(String, usize)>,
}

/// The permits of this notifier: callbacks in flight, outcomes that are not settled yet, and reserves
/// in flight.
pub(crate) struct Lanes {
    concurrency: usize,
    lane_concurrency: usize,
    /// Jobs that hold a permit, from the reserve until they are settled.
    permits: usize,
    /// Callbacks in flight per lane.
    lanes: HashMap<String, usize>,
    /// Jobs that reserves in flight ask for.
    requested: usize,
    /// Jobs per lane that reserves in flight ask for.
    requested_per_lane: usize,
}

impl Lanes {
    pub(crate) fn new(concurrency: usize, lane_concurrency: usize) -> Self {
        Self {
            concurrency,
            lane_concurrency,
            permits: 0,
            lanes: HashMap::new(),
            requested: 0,
            requested_per_lane: 0,
        }
    }

    /// Returns the number of free permits.
    fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.permits + self.requested)
    }

    /// Returns the number of jobs that hold a permit.
    pub(crate) fn permits(&self) -> usize {
        self.permits
    }

    /// Returns how many more callbacks may start of a lane that has `held` in flight. The limit of a
    /// lane is `lane_concurrency`, and at most half of the permits that other lanes leave free, so
    /// that a few lanes with slow receivers never use all permits.
    fn free_slots(&self, held: usize) -> usize {
        let fair = ((self.free() + held) / 2).max(1);
        fair.min(self.lane_concurrency).saturating_sub(held + self.requested_per_lane).min(self.free())
    }

    /// Returns the free slots of a lane if they justify a reserve, else 0. In a narrow lane any slot
    /// does.
    fn usable_slots(&self, held: usize, refill: Refill) -> usize {
        let free = self.free_slots(held);
        match refill {
            Refill::Batch if free < (free + held) / 2 => 0,
            Refill::Batch | Refill::Any => free,
        }
    }

    /// Takes permits for the next reserve and returns its limits; `None` if no permit is free.
    pub(crate) fn request(&mut self, refill: Refill) -> Option<ReserveLimits> {
        let part = |left: usize| left.div_ceil(PARTS).max(MIN_RESERVE).min(left);
        let per_lane = part(self.free_slots(0));
        if per_lane == 0 {
            return None;
        }
        let limit = part(self.free()).min(MAX_RESERVE);
        let (per_lane, lanes) = self.named_limits(per_lane, refill);
        self.requested += limit;
        self.requested_per_lane += per_lane;
        Some(ReserveLimits { limit, per_lane, lanes })
    }

    /// Returns the limit per lane and the lanes whose limit is lower, the fullest ones first.
    ///
    /// If there are more such lanes than can be named, the limit per lane is lowered to the free slots
    /// of the fullest lane that is not named, but to 1 at least, so that lanes with nothing in flight
    /// still progress. Only a lane that is full beside 256 others may exceed its limit, by one.
    fn named_limits(&self, mut per_lane: usize, refill: Refill) -> (usize, Vec<(String, usize)>) {
        let slots =
            |(lane, held): (_, &usize)| (self.usable_slots(*held, refill), self.free_slots(*held), lane);
        let mut lanes: Vec<_> =
            self.lanes.iter().map(slots).filter(|(usable, ..)| *usable < per_lane).collect();
        if lanes.len() > MAX_NAMED {
            lanes.select_nth_unstable(MAX_NAMED);
            let least = lanes.drain(MAX_NAMED..).map(|(_, free, _)| free).min();
            per_lane = per_lane.min(least.unwrap_or(per_lane)).max(1);
        }
        (
            per_lane,
            lanes.into_iter().map(|(usable, _, lane): (_, _, &String)| (lane.clone(), usable)).collect(),
        )
    }

    /// Returns true if so few permits are free that using each at once would cause many small calls.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.concurrency / SCARCE
    }

    /// Returns true if enough permits are free for outcomes to hold theirs a little longer.
    pub(crate) fn is_plenty(&self) -> bool {
        self.free() >= self.concurrency / PLENTY
    }

    /// Returns the permits of a reserve that has been answered.
    pub(crate) fn answered(&mut self, limits: &ReserveLimits) {
        self.requested = self.requested.saturating_sub(limits.limit);
        self.requested_per_lane = self.requested_per_lane.saturating_sub(limits.per_lane);
    }

    /// Records that a callback of the lane starts. It holds a permit until it is settled.
    pub(crate) fn enter(&mut self, lane: &str) {
        self.permits += 1;
        match self.lanes.get_mut(lane) {
            Some(held) => *held += 1,
            None => {
                self.lanes.insert(lane.to_owned(), 1);
            }
        }
    }

    /// Returns true if the free slots of the lane justify a reserve.
    pub(crate) fn is_open(&self, lane: &str, refill: Refill) -> bool {
        self.usable_slots(self.lanes.get(lane).copied().unwrap_or(0), refill) > 0
    }

    /// Records that a callback of the lane has ended. Its permit stays in use.
    pub(crate) fn leave(&mut self, lane: &str) {
        let held = self.lanes.get(lane).map_or(0, |held| held.saturating_sub(1));
        if held == 0 {
            self.lanes.remove(lane);
        } else if let Some(entry) = self.lanes.get_mut(lane) {
            *entry = held;
        }
    }

    /// Frees the permits of jobs that are settled or given up.
    pub(crate) fn settled(&mut self, jobs: usize) {
        self.permits = self.permits.saturating_sub(jobs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a lane, one reserve at a time, and returns the number of jobs.
    fn fill(lanes: &mut Lanes, lane: &str) -> usize {
        let mut taken = 0;
        while let Some(limits) = lanes.request(Refill::Batch) {
            lanes.answered(&limits);
            let free =
                limits.lanes.iter().find(|(name, _)| name == lane).map_or(limits.per_lane, |(_, free)| *free);
            if free == 0 {
                break;
            }
            (0..free.min(limits.limit)).for_each(|_| lanes.enter(lane));
            taken += free.min(limits.limit);
        }
        taken
    }

    #[test]
    fn a_lane_takes_up_to_its_limit_and_no_more() {
        let mut lanes = Lanes::new(512, 64);
        assert_eq!(fill(&mut lanes, "a"), 64);
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!((limits.per_lane, limits.lanes), (32, vec![("a".to_owned(), 0)]));
    }

    #[test]
    fn reserves_in_flight_never_exceed_a_lanes_limit_or_the_permits() {
        for (concurrency, lane) in [(512, 64), (10, 10), (7, 3), (1, 1)] {
            let mut lanes = Lanes::new(concurrency, lane);
            let requests: Vec<_> = std::iter::from_fn(|| lanes.request(Refill::Batch)).collect();
            assert!(!requests.is_empty());
            assert!(
                requests.iter().map(|a| a.per_lane).sum::<usize>() <= lane,
                "{concurrency} {lane}: {requests:?}"
            );
            assert!(
                requests.iter().map(|a| a.limit).sum::<usize>() <= concurrency,
                "{concurrency} {lane}: {requests:?}"
            );
            requests.iter().for_each(|limits| lanes.answered(limits));
            assert!(lanes.request(Refill::Batch).is_some());
        }
    }

    #[test]
    fn slow_lanes_leave_permits_for_others_however_many_they_are() {
        let mut lanes = Lanes::new(512, 64);
        for lane in 0..12 {
            assert!(fill(&mut lanes, &lane.to_string()) > 0, "lane {lane} has none");
        }
        assert!(lanes.request(Refill::Batch).is_some());
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
    fn a_lane_whose_callbacks_take_long_is_refilled_one_by_one() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "slow");
        assert!(!lanes.is_open("slow", Refill::Any));
        lanes.leave("slow");
        assert!(!lanes.is_open("slow", Refill::Batch) && lanes.is_open("slow", Refill::Any));
        assert_eq!(lanes.request(Refill::Any).unwrap().lanes, [("slow".to_owned(), 1)]);
    }

    #[test]
    fn a_lane_with_few_free_slots_is_skipped_until_more_are_free() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, "wide");
        lanes.leave("wide");
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!(limits.lanes, [("wide".to_owned(), 0)]);
        lanes.answered(&limits);
        (0..31).for_each(|_| lanes.leave("wide"));
        assert_eq!(lanes.request(Refill::Batch).unwrap().lanes, []);
    }

    #[test]
    fn of_many_lanes_the_fullest_are_named_and_the_others_stay_within_their_limit() {
        let mut lanes = Lanes::new(65_536, 8);
        let enter = |lanes: &mut Lanes, lane: &str, times| (0..times).for_each(|_| lanes.enter(lane));
        (0..5_000).for_each(|n| enter(&mut lanes, &format!("little {n}"), 1));
        (0..200).for_each(|n| enter(&mut lanes, &format!("full {n}"), 8));
        (0..200).for_each(|n| enter(&mut lanes, &format!("half {n}"), 5));
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!(limits.lanes.len(), MAX_NAMED);
        assert_eq!(
            limits.lanes.iter().filter(|(lane, free)| lane.starts_with("full") && *free == 0).count(),
            200
        );
        assert_eq!(limits.per_lane, 3, "the free slots of the half full lanes that are not named");
    }

    #[test]
    fn lanes_with_nothing_in_flight_go_on_though_more_are_full_than_can_be_named() {
        let mut lanes = Lanes::new(1_000, 1);
        (0..300).for_each(|n| lanes.enter(&n.to_string()));
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!((limits.lanes.len(), limits.per_lane), (MAX_NAMED, 1));
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
    fn a_quarter_of_the_permits_is_plenty_and_reserves_in_flight_use_it_up() {
        let mut lanes = Lanes::new(512, 512);
        (0..384).for_each(|_| lanes.enter("a"));
        assert!(lanes.is_plenty());
        let limits = lanes.request(Refill::Any).unwrap();
        assert!(!lanes.is_plenty());
        lanes.answered(&limits);
        assert!(lanes.is_plenty());
    }

    #[test]
    fn a_permit_is_held_until_its_job_is_settled() {
        let mut lanes = Lanes::new(1, 1);
        lanes.enter("a");
        lanes.leave("a");
        assert_eq!((lanes.request(Refill::Batch), lanes.is_open("a", Refill::Batch)), (None, false));
        lanes.settled(1);
        assert!(lanes.is_open("a", Refill::Batch));
        assert_eq!(lanes.request(Refill::Batch).map(|limits| (limits.limit, limits.per_lane)), Some((1, 1)));
    }
}
