//! Tests of how many callbacks lanes, origins and tenants may have, reserve by reserve.

use std::fmt::Display;

use super::*;

/// The lane of the topic `topic` to an origin of this name.
fn lane(name: impl Display) -> String {
    format!("topic http://{name}.example")
}

/// Enters callbacks of a lane, one reserve at a time, until it has no room. Returns how many.
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

/// Records 40 callbacks of a lane that took so long.
fn took(lanes: &mut Lanes, lane: &str, length: Duration) {
    (0..40).for_each(|_| lanes.ended(lane, Some(false), length, Instant::now()));
}

#[test]
fn a_lane_whose_receiver_is_quick_leases_ahead_once_half_of_its_places_are_taken() {
    let (mut lanes, a, quick) = (Lanes::new(512, 64), lane("a"), Duration::from_millis(1));
    took(&mut lanes, &a, quick);
    (0..31).for_each(|_| lanes.enter(&a));
    let limits = lanes.request(Refill::Batch).unwrap();
    lanes.answered(&limits);
    assert_eq!((limits.per_lane, limits.most_per_lane, limits.lanes), (32, 32, vec![]));

    lanes.enter(&a);
    let limits = lanes.request(Refill::Batch).unwrap();
    assert_eq!((limits.per_lane, limits.most_per_lane), (32, 128));
    assert_eq!(limits.lanes, [(a.clone(), 128)]);
    // With what reserves in flight may bring, no lane has more than half of the permits, and the others have theirs.
    let more: Vec<_> = std::iter::from_fn(|| lanes.request(Refill::Any)).collect();
    let asked = |limits: &ReserveLimits| {
        let own = limits.lanes.iter().find(|(name, _)| *name == a);
        own.map_or(limits.per_lane, |(_, most)| *most)
    };
    let most = 32 + 128 + more.iter().map(asked).sum::<usize>();
    assert!(most <= 256, "{most}: {more:?}");
    more.iter().chain([&limits]).for_each(|limits| lanes.answered(limits));
    assert_eq!(lanes.requested_ahead, 0);
}

#[test]
fn callbacks_begin_in_the_places_of_a_lane_alone() {
    let (mut lanes, a) = (Lanes::new(512, 4), lane("a"));
    (0..4).for_each(|_| lanes.enter(&a));
    assert!(lanes.may_begin(&a, 0));
    lanes.enter(&a);
    assert!(!lanes.may_begin(&a, 0));
    lanes.enter(&a);
    assert!(!lanes.may_begin(&a, 1), "five are in flight with this one");
}

#[test]
fn a_receiver_that_is_slow_or_fails_or_was_not_called_of_late_leases_nothing_ahead() {
    let a = lane("a");
    let most = |prepare: &dyn Fn(&mut Lanes)| {
        let mut lanes = Lanes::new(512, 64);
        took(&mut lanes, &a, Duration::from_millis(1));
        prepare(&mut lanes);
        (0..40).for_each(|_| lanes.enter(&a));
        lanes.request(Refill::Any).unwrap().most_per_lane
    };
    assert_eq!(most(&|_| {}), 128);
    assert_eq!(most(&|lanes| took(lanes, &a, Duration::from_secs(10))), 32);
    assert_eq!(most(&|lanes| lanes.ended(&a, Some(true), Duration::ZERO, Instant::now())), 32);
    assert_eq!(most(&|lanes| lanes.reopen(Instant::now() + Duration::from_secs(1))), 32);
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

/// Enters callbacks to an origin, each of a topic of its own, until reserves may have no more. Returns how many.
fn fill_origin(lanes: &mut Lanes, origin: &str) -> usize {
    let mut taken = 0;
    while let Some(limits) = lanes.request(Refill::Any) {
        lanes.answered(&limits);
        let own = limits.groups.iter().find(|(name, _)| name == origin);
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
    assert!(!lanes.is_open("http://alone", Refill::Any) && !lanes.is_open("new http://alone", Refill::Any));
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
    assert!(limits.groups.contains(&("http://slow".to_owned(), 0)), "{limits:?}");
    lanes.answered(&limits);
    assert!(
        !lanes.is_open("topic http://slow", Refill::Any) && lanes.is_open("topic http://new", Refill::Any)
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
fn a_lane_with_few_free_slots_is_full_until_more_are_free() {
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
    assert_eq!(limits.lanes.iter().filter(|(lane, free)| lane.contains("full") && *free == 0).count(), 200);
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

/// Enters callbacks of a tenant, each to an origin of its own, until reserves may have no more. Returns how many.
fn fill_tenant(lanes: &mut Lanes, tenant: &str) -> usize {
    let mut taken = 0;
    while let Some(limits) = lanes.request(Refill::Any) {
        lanes.answered(&limits);
        let own = limits.groups.iter().find(|(name, _)| name == tenant);
        let other = if tenant == NO_TENANT { limits.limit } else { limits.per_tenant };
        let free = own.map_or(other, |(_, free)| *free).min(limits.limit);
        if free == 0 {
            break;
        }
        (0..free).for_each(|n| lanes.enter(&lane_of_tenant(tenant, taken + n)));
        taken += free;
    }
    taken
}

fn lane_of_tenant(tenant: &str, n: usize) -> String {
    let topic = if tenant == NO_TENANT { "topic".to_owned() } else { format!("{tenant}/topic") };
    format!("{topic} http://{n}.example")
}

#[test]
fn a_tenant_leaves_room_for_others_over_all_origins() {
    let mut lanes = Lanes::new(512, 64);
    assert_eq!(fill_tenant(&mut lanes, "~a"), 448, "seven eighths while it is alone");
    assert!(!lanes.is_open("~a", Refill::Any) && !lanes.is_open(&lane_of_tenant("~a", 999), Refill::Any));
    for other in ["~b", NO_TENANT] {
        assert!(
            lanes.is_open(other, Refill::Any) && lanes.is_open(&lane_of_tenant(other, 0), Refill::Any),
            "{other}"
        );
    }
    assert_eq!(fill_tenant(&mut lanes, "~b"), 32, "half of the rest");
    assert_eq!(fill_tenant(&mut lanes, NO_TENANT), 16, "without a tenant, half of what they leave");

    let mut lanes = Lanes::new(512, 64);
    lanes.enter(&lane_of_tenant("~b", 0));
    assert_eq!(fill_tenant(&mut lanes, "~a"), 255, "half of what the other leaves");
}

#[test]
fn jobs_without_a_tenant_leave_room_for_tenants_once_there_are_some() {
    let mut lanes = Lanes::new(512, 64);
    lanes.expect_tenants();
    assert_eq!(fill_tenant(&mut lanes, NO_TENANT), 448);
    assert!(
        !lanes.is_open(NO_TENANT, Refill::Any)
            && !lanes.is_open(&lane_of_tenant(NO_TENANT, 999), Refill::Any)
    );
    assert_eq!(fill_tenant(&mut lanes, "~a"), 32);
}

#[test]
fn without_tenants_only_lanes_and_origins_are_limited() {
    let mut lanes = Lanes::new(512, 64);
    assert_eq!(fill_tenant(&mut lanes, NO_TENANT), 512);
    lanes.settled(1);
    lanes.leave(&lane_of_tenant(NO_TENANT, 0));
    assert!(lanes.is_open(&lane_of_tenant(NO_TENANT, 0), Refill::Any));
    let limits = lanes.request(Refill::Any).unwrap();
    assert!(limits.groups.iter().all(|(name, _)| !name.starts_with(NO_TENANT)), "{limits:?}");
}

#[test]
fn reserves_in_flight_never_exceed_a_tenants_limit() {
    let mut lanes = Lanes::new(512, 64);
    let requests: Vec<_> = std::iter::from_fn(|| lanes.request(Refill::Batch)).collect();
    let most: usize = requests.iter().map(|limits| limits.per_tenant).sum();
    assert!(most <= 448, "{most} of 512 places");
}

#[test]
fn beside_another_a_hundred_callbacks_of_a_tenant_begin_at_once_before_its_first_success() {
    let (mut lanes, now) = (Lanes::new(2048, 512), Instant::now());
    let first = lane_of_tenant("~a", 0);
    lanes.enter(&lane_of_tenant("~b", 0));
    lanes.enter(&first);
    lanes.reopen(now + 2 * LOOK_EVERY);
    // Reserves in flight count.
    let requests: Vec<_> = std::iter::from_fn(|| lanes.request(Refill::Any)).take(20).collect();
    let asked = |limits: &ReserveLimits| {
        let own = limits.groups.iter().find(|(name, _)| name == "~a");
        own.map_or(limits.per_tenant, |(_, limit)| *limit)
    };
    assert!((92..=100).contains(&requests.iter().map(asked).sum::<usize>()), "{requests:?}");
    requests.iter().for_each(|limits| lanes.answered(limits));
    assert!((92..=100).contains(&fill_tenant(&mut lanes, "~a")));
    assert!(!lanes.is_open("~a", Refill::Any) && !lanes.is_open(&first, Refill::Any));
    lanes.ended(&first, Some(false), Duration::ZERO, now + 2 * LOOK_EVERY);
    assert!(lanes.is_open("~a", Refill::Any) && fill_tenant(&mut lanes, "~a") > 400);
}

#[test]
fn more_tenants_that_may_begin_nothing_than_can_be_named_leave_one_place_for_each_reserve() {
    let (mut lanes, now) = (Lanes::new(65_536, 64), Instant::now());
    let tenant = |n: usize| format!("~t{n:03}");
    // Nothing counts of the first one while it is alone.
    for n in 0..MAX_NAMED_GROUPS + 2 {
        (0..100).for_each(|i| lanes.enter(&lane_of_tenant(&tenant(n), i)));
        (0..100).for_each(|i| lanes.leave(&lane_of_tenant(&tenant(n), i)));
    }
    lanes.reopen(now);
    lanes.reopen(now + LOOK_EVERY);
    let limits = lanes.request(Refill::Any).unwrap();
    let closed = limits.groups.iter().filter(|(_, limit)| *limit == 0).count();
    assert_eq!((closed, limits.per_tenant), (MAX_NAMED_GROUPS, 1));
}
