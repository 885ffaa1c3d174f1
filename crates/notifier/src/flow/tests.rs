//! Tests of [`Flow`](super::Flow).

use super::*;

const MS: Duration = Duration::from_millis(1);
const LANE: &str = "t http://a";
const SHARDS: [Shard; 2] = [Shard(0), Shard(1)];

fn places(first: u64, begin_in: &[u64]) -> Admitted {
    let begin_in = begin_in.iter().map(|ms| Duration::from_millis(*ms)).collect();
    Admitted::Granted { first: PlaceId(first), begin_in }
}

fn flow(waiting: &[(&str, u32)]) -> (Flow, Instant) {
    let (mut flow, now) = (Flow::new(Duration::from_secs(5)), Instant::now());
    for (lane, ready) in waiting {
        flow.waits((*lane).to_owned(), *ready, SHARDS[0], now);
    }
    (flow, now)
}

fn ask(flow: &mut Flow, now: Instant) -> Option<Admission> {
    flow.ask(now, 100, |_| 64)
}

#[test]
fn places_are_used_by_one_reserve_and_given_back_when_callbacks_end() {
    let (mut flow, now) = flow(&[(LANE, 5)]);
    let call = ask(&mut flow, now).unwrap();
    assert_eq!(call.wanted, [(LANE.to_owned(), 5)]);
    assert!(ask(&mut flow, now).is_none() && flow.next().is_none(), "one call at a time");
    assert_eq!(flow.admitted(call, vec![places(7, &[0, 10])], now), [SHARDS[0]]);
    assert_eq!(flow.reserving(SHARDS[1]), []);
    let admitted = flow.reserving(SHARDS[0]);
    assert_eq!(admitted, [(LANE.to_owned(), 2)]);
    assert_eq!(flow.reserving(SHARDS[0]), [], "another reserve does not use them too");
    let taken = [(); 3].map(|()| flow.take(LANE));
    let place = |id, ms| Some(Place { id: Some(PlaceId(id)), begin_at: now + MS * ms, kept_until: None });
    assert_eq!(taken, [place(7, 0), place(8, 10), None]);
    flow.found(SHARDS[0], &admitted, vec![(LANE.to_owned(), 3)], now);
    assert_eq!(flow.reserved(SHARDS[0], &admitted), []);
    assert_eq!(flow.ended(LANE.to_owned(), taken[0].unwrap(), now), None);
    let call = ask(&mut flow, now).unwrap();
    assert_eq!((call.wanted, call.ended), (vec![(LANE.to_owned(), 3)], vec![(LANE.to_owned(), PlaceId(7))]));
}

#[test]
fn places_without_a_job_are_given_back_and_the_lane_is_forgotten() {
    let (mut flow, now) = flow(&[(LANE, 5)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![places(7, &[20, 30, 40])], now);
    let admitted = flow.reserving(SHARDS[0]);
    flow.found(SHARDS[0], &admitted, Vec::new(), now);
    assert!(flow.take(LANE).is_some());
    assert_eq!(flow.reserved(SHARDS[0], &admitted), []);
    assert!(flow.lanes.is_empty());
    let call = ask(&mut flow, now).unwrap();
    assert_eq!((call.wanted, call.unused), (vec![], vec![(LANE.to_owned(), PlaceId(8), 2)]));
    assert!(!flow.is_settled());
    flow.admitted(Admission::default(), Vec::new(), now);
    assert!(flow.is_settled());
}

#[test]
fn places_that_no_reserve_uses_in_time_are_given_back() {
    let (mut flow, now) = flow(&[(LANE, 1)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![places(7, &[20])], now);
    assert!(ask(&mut flow, now).is_none());
    let call = ask(&mut flow, now + UNUSED).unwrap();
    assert_eq!(call.unused, [(LANE.to_owned(), PlaceId(7), 1)]);
}

#[test]
fn a_lane_asks_again_when_the_answer_says_and_ever_less_often_while_all_places_are_in_use() {
    let (mut flow, now) = flow(&[(LANE, 1)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![Admitted::Wait(Some(30 * MS))], now);
    assert_eq!(flow.next(), Some(now + 30 * MS));
    assert!(ask(&mut flow, now + 29 * MS).is_none());
    let mut pauses = Vec::new();
    let mut at = now + 30 * MS;
    for _ in 0..10 {
        let call = ask(&mut flow, at).unwrap();
        flow.admitted(call, vec![Admitted::Wait(None)], at);
        let next = flow.next().unwrap();
        pauses.push((next - at).as_millis());
        at = next;
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
}

#[test]
fn the_lanes_that_wait_longest_share_what_is_free() {
    let (mut flow, now) = flow(&[("a x", 9), ("b x", 9), ("c x", 9)]);
    let call = flow.ask(now + MS, 10, |lane| if lane == "b x" { 2 } else { 64 }).unwrap();
    assert_eq!(call.wanted, [("a x".to_owned(), 9), ("b x".to_owned(), 1)]);
    flow.admitted(call, vec![Admitted::Wait(Some(MS)), Admitted::Wait(Some(MS))], now);
    let call = flow.ask(now + MS + NO_ROOM, 10, |_| 64).unwrap();
    assert_eq!(call.wanted[0], ("c x".to_owned(), 9));
}

#[test]
fn a_call_that_fails_is_repeated_after_a_pause() {
    let (mut flow, now) = flow(&[(LANE, 1)]);
    flow.ended.push((LANE.to_owned(), PlaceId(3)));
    let call = ask(&mut flow, now).unwrap();
    flow.failed(call.clone(), now + 100 * MS);
    assert!(ask(&mut flow, now + 99 * MS).is_none());
    assert_eq!(flow.next(), Some(now + 100 * MS));
    assert_eq!(ask(&mut flow, now + 100 * MS), Some(call));
}

#[test]
fn a_lane_without_a_limit_any_more_gets_its_jobs_and_is_forgotten() {
    let (mut flow, now) = flow(&[(LANE, 2)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![Admitted::Unlimited], now);
    let admitted = flow.reserving(SHARDS[0]);
    assert_eq!(admitted, [(LANE.to_owned(), 2)]);
    let place = flow.take(LANE).unwrap();
    flow.found(SHARDS[0], &admitted, Vec::new(), now);
    assert_eq!(flow.reserved(SHARDS[0], &admitted), []);
    flow.ended(LANE.to_owned(), place, now);
    assert!(flow.lanes.is_empty() && flow.is_settled());
}

#[test]
fn the_place_of_a_long_attempt_is_held_longer() {
    let (mut flow, _) = flow(&[]);
    let place = Place { id: Some(PlaceId(1)), begin_at: Instant::now(), kept_until: None };
    flow.hold(LANE, place, Duration::from_secs(15));
    assert!(flow.held.is_empty());
    flow.hold(LANE, place, Duration::from_secs(60));
    assert_eq!(flow.held, [(LANE.to_owned(), PlaceId(1), Duration::from_millis(66_100))]);
}

#[test]
fn a_job_needs_a_place_if_its_reserve_or_a_failed_one_before_had_one_for_its_lane() {
    let (mut flow, now) = flow(&[(LANE, 2)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![places(7, &[20, 30])], now);
    let admitted = flow.reserving(SHARDS[0]);
    assert!(flow.needs_place(LANE, SHARDS[0], &admitted));
    assert_eq!(flow.reserve_failed(SHARDS[0], admitted), []);
    assert_eq!(flow.unused, [(LANE.to_owned(), PlaceId(7), 2)]);
    // The repetition has no places, but may bring the same jobs.
    assert!(flow.needs_place(LANE, SHARDS[0], &[]) && flow.take(LANE).is_none());
    assert_eq!(flow.reserved(SHARDS[0], &[]), []);
    // Later the store gives jobs of the lane without any place: it has no limit.
    assert!(!flow.needs_place(LANE, SHARDS[0], &[]));
    assert!(flow.lanes.is_empty());
}

#[test]
fn a_place_without_a_token_goes_to_the_lane_with_the_same_limits_that_waits_longest() {
    let (mut flow, now) = flow(&[(LANE, 9), ("u http://a", 9), ("~t/u http://a", 9), ("u http://b", 9)]);
    flow.lanes.get_mut(LANE).unwrap().since = now + MS;
    let place = Place { id: Some(PlaceId(1)), begin_at: now, kept_until: Some(now + LONGEST_KEPT) };
    assert_eq!(flow.ended(LANE.to_owned(), place, now + 2 * MS), Some(SHARDS[0]));
    assert_eq!(flow.reserving(SHARDS[0]), [("u http://a".to_owned(), 1)]);
    assert_eq!(flow.take("u http://a"), Some(Place { begin_at: now + 2 * MS, ..place }));
    assert_eq!(flow.ended(LANE.to_owned(), place, now + 3 * MS), Some(SHARDS[0]));
    assert_eq!(flow.reserving(SHARDS[0]), [(LANE.to_owned(), 1)], "in turn");
    // While its reserve is in flight, a lane gets more places for the next one.
    assert_eq!(flow.ended(LANE.to_owned(), place, now + 4 * MS), None);
    assert_eq!(flow.reserved(SHARDS[0], &[("u http://a".to_owned(), 1)]), SHARDS[..1]);
    // After a second others have their turn.
    assert_eq!(flow.ended(LANE.to_owned(), place, now + LONGEST_KEPT), None);
    assert_eq!(flow.ended, [(LANE.to_owned(), PlaceId(1))]);
}

#[test]
fn at_the_end_and_after_a_failed_call_all_places_are_given_back() {
    let (mut flow, now) = flow(&[(LANE, 9)]);
    let call = ask(&mut flow, now).unwrap();
    flow.admitted(call, vec![places(7, &[20, 30])], now);
    flow.reserving(SHARDS[0]);
    flow.stop();
    let call = ask(&mut flow, now).unwrap();
    assert_eq!(call.unused, [(LANE.to_owned(), PlaceId(7), 2)]);
    flow.failed(call, now);
    let ended = [7, 8].map(|id| (LANE.to_owned(), PlaceId(id)));
    assert_eq!(ask(&mut flow, now).unwrap().ended, ended);
}
