//! Which callbacks may start: how many of each lane and to each origin are in flight here, and how many more may be. A
//! lane is a topic together with an origin, the unit of fairness; an origin has places over all topics, so that one
//! receiver that hangs leaves room for the others whoever calls it. Pure.

mod held;
mod skipped;

use std::collections::BTreeSet;

use ringback_core::contract::Lease;
use ringback_core::lane::Lane;
use tokio::time::Instant;

use self::held::Held;
pub(crate) use self::skipped::Skipped;
use crate::slow_calls::SlowCalls;

/// The most jobs of one reserve.
const MAX_RESERVE: usize = 128;
/// A reserve asks for one of this many parts of the free permits, so that several shards can be asked
/// at the same time.
const PARTS: usize = 2;
/// The least number of jobs that a reserve asks for, unless fewer permits are free.
const MIN_RESERVE: usize = 16;
/// The most lanes, and the most origins, whose limits a reserve names. Each costs the store about a microsecond.
const MAX_NAMED: usize = 256;
const MAX_NAMED_ORIGINS: usize = 64;
/// The most origins that a reserve names because their receivers have too many slow calls.
const MAX_CROWDED: usize = 512;
/// Fewer origins share a reserve so that each may need most of it.
const FEW_ORIGINS: usize = 4;
/// Permits are scarce when less than this fraction of them is free.
const SCARCE: usize = 32;
/// Permits are plenty when at least this fraction of them is free.
const PLENTY: usize = 4;

/// How many free slots of a lane or an origin justify a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Half of the limit of a lane, and as many as the smallest reserve asks for of an origin, so that
    /// busy ones are refilled in batches.
    Batch,
    /// One slot: for callbacks that take long.
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
    /// The most jobs to an origin that `origins` does not name.
    pub(crate) per_origin: usize,
    /// Origins with a lower limit; 0 skips their lanes.
    pub(crate) origins: Vec<(String, usize)>,
}

/// The permits of this notifier: callbacks in flight, outcomes that are not settled yet, and reserves
/// in flight.
pub(crate) struct Lanes {
    concurrency: usize,
    lane_concurrency: usize,
    /// Jobs that hold a permit, from the reserve until they are settled.
    permits: usize,
    /// Jobs that reserves in flight ask for.
    requested: usize,
    /// Callbacks in flight per lane, by its name.
    lanes: Held,
    /// Callbacks in flight per origin.
    origins: Held,
    /// Origins whose receivers have too many slow calls: no job of them is reserved.
    crowded: BTreeSet<String>,
}

impl Lanes {
    pub(crate) fn new(concurrency: usize, lane_concurrency: usize) -> Self {
        Self {
            concurrency,
            lane_concurrency,
            permits: 0,
            requested: 0,
            lanes: Held::default(),
            origins: Held::default(),
            crowded: BTreeSet::new(),
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
    fn lane_slots(&self, held: usize) -> usize {
        let fair = ((self.free() + held) / 2).max(1);
        fair.min(self.lane_concurrency).saturating_sub(held + self.lanes.requested).min(self.free())
    }

    /// Returns how many more callbacks may start to an origin that has `held` in flight: at most half of the
    /// permits that others leave free, or seven eighths while no more than one has callbacks in flight.
    fn origin_slots(&self, held: usize) -> usize {
        let left = self.free() + held;
        let is_alone = self.origins.len() <= 1;
        let fair = if is_alone { left - left / 8 } else { left / 2 };
        fair.max(1).saturating_sub(held + self.origins.requested).min(self.free())
    }

    /// Returns the free slots of a lane if they justify a reserve, else 0. In a narrow lane any slot
    /// does.
    fn usable_lane_slots(&self, held: usize, refill: Refill) -> usize {
        let free = self.lane_slots(held);
        usable(free, (free + held) / 2, refill)
    }

    /// The same of an origin.
    fn usable_origin_slots(&self, held: usize, refill: Refill) -> usize {
        let free = self.origin_slots(held);
        usable(free, ((free + held) / 2).min(MIN_RESERVE), refill)
    }

    /// Asks which origins lead to receivers that have too many slow calls.
    pub(crate) fn look_at(&mut self, slow: &SlowCalls) {
        self.crowded = slow.crowded(self.free(), self.origins.len() <= 1, Instant::now());
    }

    /// Takes permits for the next reserve and returns its limits; `None` if no permit is free.
    pub(crate) fn request(&mut self, refill: Refill) -> Option<ReserveLimits> {
        let part = |left: usize| left.div_ceil(PARTS).max(MIN_RESERVE).min(left);
        // What is asked for counts for each origin until the answer comes. Where many share the jobs, less leaves room
        // for the next reserve.
        let of_origin = self.origin_slots(0);
        let of_origin = if self.origins.len() < FEW_ORIGINS { of_origin } else { of_origin.div_ceil(2) };
        let (per_lane, per_origin) = (part(self.lane_slots(0)), part(of_origin));
        if per_lane == 0 || per_origin == 0 {
            return None;
        }
        let limit = part(self.free()).min(MAX_RESERVE);
        let lane_slots = |held| (self.usable_lane_slots(held, refill), self.lane_slots(held));
        let (per_lane, lanes) = self.lanes.lower_limits(per_lane, MAX_NAMED, lane_slots);
        let origin_slots = |held| (self.usable_origin_slots(held, refill), self.origin_slots(held));
        let (per_origin, mut origins) =
            self.origins.lower_limits(per_origin.min(limit), MAX_NAMED_ORIGINS, origin_slots);
        origins.retain(|(origin, _)| !self.crowded.contains(origin));
        let crowded = self.crowded.iter().take(MAX_CROWDED);
        origins.extend(crowded.map(|origin| (origin.clone(), 0)));
        self.requested += limit;
        self.lanes.requested += per_lane;
        self.origins.requested += per_origin;
        Some(ReserveLimits { limit, per_lane, lanes, per_origin, origins })
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
        self.lanes.requested = self.lanes.requested.saturating_sub(limits.per_lane);
        self.origins.requested = self.origins.requested.saturating_sub(limits.per_origin);
    }

    /// Records that a callback of the lane starts. It holds a permit until it is settled.
    pub(crate) fn enter(&mut self, lane: &str) {
        self.permits += 1;
        self.lanes.enter(lane);
        self.origins.enter(origin_of(lane));
    }

    /// Returns true if the free slots of a skipped lane or origin justify a reserve.
    pub(crate) fn is_open(&self, skipped: &str, refill: Refill) -> bool {
        let is_origin_open = |origin| {
            let held = self.origins.of(origin);
            !self.crowded.contains(origin) && self.usable_origin_slots(held, refill) > 0
        };
        match Lane::parse(skipped) {
            Some(lane) => {
                is_origin_open(lane.origin) && self.usable_lane_slots(self.lanes.of(skipped), refill) > 0
            }
            None => is_origin_open(skipped),
        }
    }

    /// Records that a callback of the lane has ended. Its permit stays in use.
    pub(crate) fn leave(&mut self, lane: &str) {
        self.lanes.leave(lane);
        self.origins.leave(origin_of(lane));
    }

    /// Frees the permits of jobs that are settled or given up.
    pub(crate) fn settled(&mut self, jobs: usize) {
        self.permits = self.permits.saturating_sub(jobs);
    }
}

fn usable(free: usize, batch: usize, refill: Refill) -> usize {
    match refill {
        Refill::Batch if free < batch => 0,
        Refill::Batch | Refill::Any => free,
    }
}

fn origin_of(lane: &str) -> &str {
    Lane::parse(lane).map_or("", |lane| lane.origin)
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use super::*;

    /// A lane of a topic to an origin of its own.
    fn lane(name: impl Display) -> String {
        format!("topic http://{name}.example")
    }

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
        assert_eq!(fill(&mut lanes, &lane("a")), 64);
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!((limits.per_lane, limits.lanes), (32, vec![(lane("a"), 0)]));
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
        for n in 0..12 {
            assert!(fill(&mut lanes, &lane(n)) > 0, "lane {n} has none");
        }
        assert!(lanes.request(Refill::Batch).is_some());
    }

    /// Enters callbacks of as many topics to an origin, up to what a reserve may have of it.
    fn fill_origin(lanes: &mut Lanes, origin: &str) -> usize {
        let mut taken = 0;
        while let Some(limits) = lanes.request(Refill::Any) {
            lanes.answered(&limits);
            let own = limits.origins.iter().find(|(name, _)| name == origin);
            let free = own.map_or(limits.per_origin, |(_, free)| *free).min(limits.limit);
            if free == 0 {
                break;
            }
            (0..free).for_each(|n| lanes.enter(&format!("topic-{} {origin}", taken + n)));
            taken += free;
        }
        taken
    }

    #[test]
    fn an_origin_leaves_room_for_others_over_all_topics() {
        let mut lanes = Lanes::new(512, 64);
        assert_eq!(fill_origin(&mut lanes, "http://alone"), 448, "seven eighths while it is alone");
        assert!(
            !lanes.is_open("http://alone", Refill::Any) && !lanes.is_open("new http://alone", Refill::Any)
        );
        assert!(lanes.is_open("new http://other", Refill::Any));
        assert_eq!(fill_origin(&mut lanes, "http://other"), 32, "half of the rest");

        let mut lanes = Lanes::new(512, 64);
        lanes.enter("topic http://other");
        assert_eq!(fill_origin(&mut lanes, "http://slow"), 255, "half of what the other leaves");
    }

    #[test]
    fn an_origin_that_was_full_is_refilled_by_sixteen_or_one_by_one_if_its_callbacks_take_long() {
        let mut lanes = Lanes::new(512, 64);
        fill_origin(&mut lanes, "http://busy");
        (0..15).for_each(|n| lanes.leave(&format!("topic-{n} http://busy")));
        lanes.settled(15);
        assert!(!lanes.is_open("http://busy", Refill::Batch) && lanes.is_open("http://busy", Refill::Any));
        lanes.leave("topic-15 http://busy");
        lanes.settled(1);
        assert!(lanes.is_open("http://busy", Refill::Batch));
    }

    #[test]
    fn no_job_is_reserved_of_an_origin_whose_address_has_too_many_slow_calls() {
        let (mut lanes, slow) = (Lanes::new(8, 8), SlowCalls::new(8));
        let address = ([127, 0, 0, 1], 80).into();
        lanes.enter("topic http://other");
        let calls: Vec<_> = (0..4).map(|_| slow.count(address, "http://slow")).collect();
        (0..4).for_each(|_| lanes.enter("topic http://slow"));
        lanes.look_at(&slow);
        let limits = lanes.request(Refill::Any).unwrap();
        assert!(limits.origins.contains(&("http://slow".to_owned(), 0)), "{limits:?}");
        lanes.answered(&limits);
        assert!(
            !lanes.is_open("topic http://slow", Refill::Any)
                && lanes.is_open("topic http://new", Refill::Any)
        );
        drop(calls);
        lanes.look_at(&slow);
        (0..4).for_each(|_| lanes.leave("topic http://slow"));
        lanes.settled(4);
        assert!(lanes.is_open("topic http://slow", Refill::Any));
    }

    #[test]
    fn a_busy_lane_is_refilled_in_batches_and_a_narrow_one_at_once() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, &lane("wide"));
        let first = (1..=64).find(|_| {
            lanes.leave(&lane("wide"));
            lanes.settled(1);
            lanes.is_open(&lane("wide"), Refill::Batch)
        });
        assert_eq!(first, Some(32));
        let mut narrow = Lanes::new(512, 1);
        narrow.enter(&lane("n"));
        assert!(!narrow.is_open(&lane("n"), Refill::Batch));
        narrow.leave(&lane("n"));
        narrow.settled(1);
        assert!(narrow.is_open(&lane("n"), Refill::Batch));
    }

    #[test]
    fn a_lane_whose_callbacks_take_long_is_refilled_one_by_one() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, &lane("slow"));
        assert!(!lanes.is_open(&lane("slow"), Refill::Any));
        lanes.leave(&lane("slow"));
        assert!(!lanes.is_open(&lane("slow"), Refill::Batch) && lanes.is_open(&lane("slow"), Refill::Any));
        assert_eq!(lanes.request(Refill::Any).unwrap().lanes, [(lane("slow"), 1)]);
    }

    #[test]
    fn a_lane_with_few_free_slots_is_skipped_until_more_are_free() {
        let mut lanes = Lanes::new(512, 64);
        fill(&mut lanes, &lane("wide"));
        lanes.leave(&lane("wide"));
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!(limits.lanes, [(lane("wide"), 0)]);
        lanes.answered(&limits);
        (0..31).for_each(|_| lanes.leave(&lane("wide")));
        assert_eq!(lanes.request(Refill::Batch).unwrap().lanes, []);
    }

    #[test]
    fn of_many_lanes_the_fullest_are_named_and_the_others_stay_within_their_limit() {
        let mut lanes = Lanes::new(65_536, 8);
        let enter = |lanes: &mut Lanes, name: &str, times| (0..times).for_each(|_| lanes.enter(name));
        (0..5_000).for_each(|n| enter(&mut lanes, &lane(format!("little-{n}")), 1));
        (0..200).for_each(|n| enter(&mut lanes, &lane(format!("full-{n}")), 8));
        (0..200).for_each(|n| enter(&mut lanes, &lane(format!("half-{n}")), 5));
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!(limits.lanes.len(), MAX_NAMED);
        assert_eq!(
            limits.lanes.iter().filter(|(lane, free)| lane.contains("full") && *free == 0).count(),
            200
        );
        assert_eq!(limits.per_lane, 3, "the free slots of the half full lanes that are not named");
    }

    #[test]
    fn lanes_with_nothing_in_flight_go_on_though_more_are_full_than_can_be_named() {
        let mut lanes = Lanes::new(1_000, 1);
        (0..300).for_each(|n| lanes.enter(&lane(n)));
        let limits = lanes.request(Refill::Batch).unwrap();
        assert_eq!((limits.lanes.len(), limits.per_lane), (MAX_NAMED, 1));
    }

    #[test]
    fn the_last_permits_are_scarce_but_for_a_narrow_notifier() {
        let mut lanes = Lanes::new(512, 512);
        (0..496).for_each(|_| lanes.enter(&lane("a")));
        assert!(!lanes.is_scarce());
        lanes.enter(&lane("a"));
        assert!(lanes.is_scarce());
        let mut narrow = Lanes::new(31, 31);
        (0..30).for_each(|_| narrow.enter(&lane("a")));
        assert!(!narrow.is_scarce() && !narrow.is_plenty());
    }

    #[test]
    fn a_quarter_of_the_permits_is_plenty_and_reserves_in_flight_use_it_up() {
        let mut lanes = Lanes::new(512, 512);
        (0..384).for_each(|_| lanes.enter(&lane("a")));
        assert!(lanes.is_plenty());
        let limits = lanes.request(Refill::Any).unwrap();
        assert!(!lanes.is_plenty());
        lanes.answered(&limits);
        assert!(lanes.is_plenty());
    }

    #[test]
    fn a_permit_is_held_until_its_job_is_settled() {
        let mut lanes = Lanes::new(1, 1);
        lanes.enter(&lane("a"));
        lanes.leave(&lane("a"));
        assert_eq!((lanes.request(Refill::Batch), lanes.is_open(&lane("a"), Refill::Batch)), (None, false));
        lanes.settled(1);
        assert!(lanes.is_open(&lane("a"), Refill::Batch));
        assert_eq!(lanes.request(Refill::Batch).map(|limits| (limits.limit, limits.per_lane)), Some((1, 1)));
    }
}
