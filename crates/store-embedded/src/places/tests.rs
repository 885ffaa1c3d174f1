//! Tests of what limits allow: tokens of rates, and places of callbacks in flight.

use super::*;

/// When the store is opened.
const BEGIN: u64 = 1_800_000_000_000_000;
const SECOND: u64 = 1_000_000;

fn limits(rate: &str, burst: u32, in_flight: u32) -> Limits {
    Limits {
        rate: (!rate.is_empty()).then(|| rate.parse().unwrap()),
        burst: Some(burst),
        in_flight: (in_flight > 0).then_some(in_flight),
    }
}

/// Places under limits that a lane of this name has.
struct Limited {
    places: LimitUsage,
    limits: LimitsOfLanes<'static>,
    now: u64,
}

impl Limited {
    /// The lanes with their limits, which are stored ten seconds after the opening.
    fn new(lanes: &[(&'static str, &[(&str, Limits)])]) -> Self {
        let (mut places, now) = (LimitUsage::new(BEGIN), BEGIN + 10 * SECOND);
        let mut of_lanes = LimitsOfLanes::new();
        for (lane, limits) in lanes {
            limits.iter().for_each(|(name, limits)| places.put(&target(name), None, limits, now));
            of_lanes
                .insert(lane, limits.iter().map(|(name, limits)| ((*name).to_owned(), *limits)).collect());
        }
        Self { places, limits: of_lanes, now }
    }

    fn admit(&mut self, ask: Admission) -> Vec<Admitted> {
        let ask = Admission { lasts: Duration::from_secs(30), ahead: Duration::from_millis(100), ..ask };
        self.places.admit(&ask, &self.limits, self.now)
    }

    /// Asks for places, and returns the first one and how many there are.
    fn take(&mut self, lane: &str, n: u32) -> Result<(u64, usize), Option<Duration>> {
        let wanted = vec![(lane.to_owned(), n)];
        match self.admit(Admission { wanted, ..Admission::default() }).remove(0) {
            Admitted::Unlimited => panic!("{lane} is limited"),
            Admitted::Granted { first, begin_in } => Ok((first.0, begin_in.len())),
            Admitted::Wait(wait) => Err(wait),
        }
    }

    fn end(&mut self, lane: &str, place: u64) {
        let ended = vec![(lane.to_owned(), PlaceId(place))];
        self.admit(Admission { ended, ..Admission::default() });
    }
}

fn target(name: &str) -> LimitTarget {
    LimitTarget::from_name(name).unwrap()
}

const NONE_FREE: Result<(u64, usize), Option<Duration>> = Err(None);

#[test]
fn a_lane_without_a_limit_needs_no_places() {
    let wanted = vec![("t http://a".to_owned(), 3)];
    let mut limited = Limited::new(&[]);
    assert_eq!(limited.admit(Admission { wanted, ..Admission::default() }), [Admitted::Unlimited]);
}

#[test]
fn a_rate_gives_places_a_little_ahead_and_then_says_when_to_ask_again() {
    let mut limited = Limited::new(&[("a", &[("a", limits("20/s", 2, 0))])]);
    let wanted = vec![("a".to_owned(), 10), ("b".to_owned(), 1)];
    let answers = limited.admit(Admission { wanted, ..Admission::default() });
    let begin_in = [0, 0, 51_250].map(Duration::from_micros).to_vec();
    let first = PlaceId(limited.now);
    assert_eq!(answers, [Admitted::Granted { first, begin_in }, Admitted::Unlimited]);
    assert_eq!(limited.take("a", 10), Err(Some(Duration::from_micros(2 * 51_250 - 50_000))));
    limited.now += 2 * 51_250 - 50_000;
    assert_eq!(limited.take("a", 10), Ok((first.0 + 52_500, 1)));
    let (in_flight, next_in) = limited.places.state("a", &limits("20/s", 2, 0), limited.now);
    assert_eq!((in_flight, next_in), (0, Duration::from_micros(101_250)));
}

#[test]
fn in_flight_are_no_more_than_the_limit_until_one_ends_or_lapses() {
    let mut limited = Limited::new(&[("a", &[("a", limits("", 1, 3))])]);
    let (first, n) = limited.take("a", 10).unwrap();
    assert_eq!((first, n, limited.take("a", 1)), (limited.now, 3, NONE_FREE));
    limited.end("a", first + 1);
    limited.end("a", first + 1);
    assert_eq!(limited.take("a", 10), Ok((first + 3, 1)), "numbers ascend");
    let held = vec![
        ("a".to_owned(), PlaceId(first), Duration::from_secs(60)),
        ("a".to_owned(), PlaceId(first + 1), Duration::from_secs(60)),
    ];
    limited.admit(Admission { held, ..Admission::default() });
    limited.now += 30 * SECOND;
    assert_eq!(limited.places.state("a", &limits("", 1, 3), limited.now).0, 1, "one is held");
    assert_eq!(limited.take("a", 10).unwrap().1, 2);
    limited.now += 30 * SECOND;
    assert_eq!(limited.take("a", 10).unwrap().1, 3);
}

#[test]
fn tokens_of_unused_places_come_back_if_nobody_got_any_since() {
    let mut limited = Limited::new(&[("a", &[("a", limits("1/s", 5, 9))])]);
    let (first, n) = limited.take("a", 5).unwrap();
    assert_eq!(n, 5);
    let unused = |first: u64, n| Admission {
        unused: vec![("a".to_owned(), PlaceId(first), n)],
        ..Admission::default()
    };
    limited.admit(unused(first + 3, 2));
    limited.admit(unused(first + 2, 1));
    let (next, n) = limited.take("a", 5).unwrap();
    assert_eq!((next, n), (first + 5, 3));
    limited.admit(unused(first, 2));
    assert_eq!(limited.places.state("a", &limits("1/s", 5, 9), limited.now).0, 3, "their places are free");
    assert!(limited.take("a", 5).is_err_and(|wait| wait.is_some()), "but not their tokens");
}

#[test]
fn a_lane_with_two_limits_gets_what_both_allow() {
    let (host, port) = (("host", limits("", 1, 4)), ("host:1", limits("10/s", 3, 0)));
    let mut limited = Limited::new(&[("a", &[host, port]), ("b", &[host])]);
    let (first, n) = limited.take("a", 10).unwrap();
    assert_eq!(n, 3, "by the rate of the port");
    assert_eq!(limited.take("b", 10), Ok((first + 3, 1)), "what is left of the host");
    assert_eq!((limited.take("a", 1), limited.take("b", 1)), (NONE_FREE, NONE_FREE));
    limited.end("a", first);
    limited.end("a", first + 1);
    assert!(limited.take("a", 1).is_err_and(|wait| wait.is_some()), "the rate says when");
    assert_eq!(limited.take("b", 10).unwrap().1, 2);
}

#[test]
fn after_an_opening_a_rate_begins_as_after_a_burst_and_nothing_is_in_flight() {
    let both = limits("1/s", 3, 4);
    let mut limited = Limited::new(&[("a", &[("a", both)])]);
    limited.take("a", 3).unwrap();
    limited.now += 5 * SECOND;
    limited.places = LimitUsage::new(limited.now);
    assert_eq!(limited.places.state("a", &both, limited.now), (0, Duration::from_millis(1025)));
    assert!(limited.take("a", 3).is_err());
    limited.now += 4 * SECOND;
    assert_eq!(limited.take("a", 3).unwrap().1, 3);
}

#[test]
fn another_limit_takes_over_the_places_and_holds_at_once() {
    let (slow, fast) = (limits("1/d", 1, 2), limits("10/s", 1, 3));
    let mut limited = Limited::new(&[("a", &[("a", slow)])]);
    limited.take("a", 2).unwrap();
    limited.places.put(&target("a"), Some(&slow), &fast, limited.now);
    assert_eq!(limited.places.state("a", &fast, limited.now), (1, Duration::from_micros(102_500)));
    limited.places.forget("a");
    limited.places.put(&target("a"), None, &slow, limited.now);
    assert_eq!(limited.places.state("a", &slow, limited.now), (0, Duration::ZERO));
}

#[test]
fn a_breaker_allows_the_first_callback_an_interval_after_each_change() {
    let (fast, slow) = (limits("10/s", 1, 1), limits("1/s", 1, 1));
    let name = "^~/a:80";
    let mut limited = Limited::new(&[("a", &[(name, fast)])]);
    let next_in = |limited: &mut Limited, limits| limited.places.state(name, limits, limited.now).1;
    assert_eq!(next_in(&mut limited, &fast), Duration::from_micros(102_500));
    limited.now += SECOND;
    limited.places.put(&target(name), Some(&fast), &slow, limited.now);
    assert_eq!(next_in(&mut limited, &slow), Duration::from_millis(1025));
}

#[test]
fn places_and_rates_go_on_when_the_time_goes_back() {
    let both = limits("1/s", 1, 2);
    let mut limited = Limited::new(&[("a", &[("a", both)])]);
    limited.take("a", 1).unwrap();
    let before = limited.now;
    limited.now -= 86_400 * SECOND;
    limited.places.set_back(before, limited.now);
    assert_eq!(limited.places.state("a", &both, limited.now), (1, Duration::from_millis(1025)));
    limited.now += 30 * SECOND;
    assert_eq!(limited.places.state("a", &both, limited.now), (0, Duration::ZERO));
}
