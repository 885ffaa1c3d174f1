//! Tests of when breakers open, probe and close.

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + ms)
}

fn outages(n: u32) -> Counts {
    Counts { attempts: n, outages: n, answers: 0 }
}

fn answers(n: u32) -> Counts {
    Counts { attempts: n, outages: 0, answers: n }
}

fn is_open(breaker: &Breaker) -> bool {
    matches!(breaker.stage, Stage::Open { .. })
}

fn rate(breaker: &Breaker) -> Option<String> {
    breaker.limits().rate.map(|rate| rate.to_string())
}

/// In how many milliseconds the next callback begins under a limit that is put now.
fn interval_ms(breaker: &Breaker) -> u64 {
    (breaker.limits().rate.unwrap().interval_us() / 1000.0) as u64
}

fn record(breaker: &mut Breaker, new: Counts, ms: u64) {
    breaker.record(new, None, at(ms), 0);
}

fn opened() -> Breaker {
    let mut breaker = Breaker::default();
    breaker.record(outages(20), Some(100), at(0), 0);
    assert!(is_open(&breaker));
    breaker
}

#[test]
fn a_breaker_opens_after_twenty_attempts_of_which_half_met_an_outage_and_none_an_answer() {
    for (counts, opens) in [
        (outages(19), false),
        (outages(20), true),
        (Counts { attempts: 40, outages: 20, answers: 0 }, true),
        (Counts { attempts: 40, outages: 19, answers: 0 }, false),
        (Counts { attempts: 40, outages: 39, answers: 1 }, false),
    ] {
        let mut breaker = Breaker::default();
        record(&mut breaker, counts, 0);
        assert_eq!(is_open(&breaker), opens, "{counts:?}");
    }
}

#[test]
fn only_the_attempts_of_half_a_minute_count() {
    let mut breaker = Breaker::default();
    record(&mut breaker, outages(10), 0);
    record(&mut breaker, outages(9), 16_000);
    assert!(!is_open(&breaker));
    record(&mut breaker, outages(1), 29_000);
    assert!(is_open(&breaker), "twenty in 29 s");
    let mut breaker = Breaker::default();
    record(&mut breaker, outages(19), 0);
    record(&mut breaker, outages(19), 46_000);
    assert!(!is_open(&breaker));
}

#[test]
fn probes_become_rarer_down_to_one_a_minute() {
    let mut breaker = opened();
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..8 {
        let interval = interval_ms(&breaker);
        assert_eq!(breaker.limits().in_flight, Some(1));
        pauses.push(interval.div_euclid(1000));
        // What was in flight when it opened, or when the last probe failed, is none.
        record(&mut breaker, outages(64), now + 100);
        assert_eq!(interval_ms(&breaker), interval);
        now += interval + 1;
        // Neither an outage nor an answer, such as a 429.
        record(&mut breaker, Counts { attempts: 1, outages: 0, answers: 0 }, now);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 15, 30, 60, 60]);
}

#[test]
fn probes_of_breakers_that_opened_together_do_not_stay_together() {
    let first = |jitter| {
        let mut breaker = Breaker::default();
        breaker.record(outages(20), None, at(0), jitter);
        interval_ms(&breaker)
    };
    let all: Vec<_> = (0..1000).map(|n| first(n * 7919)).collect();
    assert!(all.iter().all(|ms| (800..=1000).contains(ms)), "{all:?}");
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert!(distinct.len() > 150, "{}", distinct.len());
}

#[test]
fn an_origin_that_answers_comes_back_twice_as_fast_each_second() {
    let mut breaker = opened();
    record(&mut breaker, answers(1), 10_000);
    assert_eq!(breaker.limits().in_flight, None);
    let mut rates = vec![rate(&breaker).unwrap()];
    for second in 11..19 {
        record(&mut breaker, answers(1), second * 1000 - 500);
        assert_eq!(rate(&breaker).as_ref(), rates.last(), "not before a second is over");
        record(&mut breaker, answers(1), second * 1000);
        rates.push(rate(&breaker).unwrap());
    }
    assert_eq!(rates, ["1/s", "2/s", "4/s", "8/s", "16/s", "32/s", "64/s", "100/s", "100/s"]);
    record(&mut breaker, answers(1), 17_000 + 59_000);
    assert_eq!(rate(&breaker).as_deref(), Some("100/s"));
    record(&mut breaker, answers(1), 17_000 + 60_000);
    assert_eq!(breaker, Breaker::default());
}

#[test]
fn what_is_not_answered_on_the_way_back_holds_the_rate_and_an_outage_opens_again() {
    let mut breaker = opened();
    record(&mut breaker, answers(1), 10_000);
    // A report without attempts, of a process that sends nothing there.
    breaker.record(Counts::default(), Some(7), at(11_500), 0);
    assert_eq!(rate(&breaker).as_deref(), Some("1/s"), "nothing has succeeded in this second");
    record(&mut breaker, answers(1), 11_600);
    for (outages, ms) in [(1, 13_000), (0, 13_500)] {
        record(&mut breaker, Counts { attempts: 2, outages, answers: 1 }, ms);
        assert_eq!(rate(&breaker).as_deref(), Some("2/s"));
    }
    record(&mut breaker, answers(1), 14_400);
    assert_eq!(rate(&breaker).as_deref(), Some("2/s"), "a second has to be clean");
    record(&mut breaker, answers(1), 14_500);
    assert_eq!(rate(&breaker).as_deref(), Some("4/s"));
    record(&mut breaker, outages(1), 15_000);
    assert!(is_open(&breaker));
    assert_eq!(interval_ms(&breaker), 1000);
}

#[test]
fn a_receiver_that_asks_for_it_gets_nothing_until_its_time_but_for_a_minute_at_most() {
    let limited = Counts { attempts: 1, outages: 0, answers: 0 };
    let mut breaker = Breaker::default();
    breaker.slow(at(5_000), at(0));
    assert_eq!((interval_ms(&breaker), breaker.limits().in_flight), (5_000, None));
    breaker.slow(at(4_000), at(1_000));
    assert_eq!(interval_ms(&breaker), 5_000, "the later time counts");
    record(&mut breaker, limited, 4_999);
    assert!(!breaker.limits().is_empty());
    breaker.record(Counts::default(), None, at(5_000), 0);
    assert!(breaker.limits().is_empty(), "it ends without an attempt");
    breaker.slow(at(3_600_000), at(6_000));
    breaker.slow(at(3_600_000), at(7_000));
    assert_eq!(breaker.stage, Stage::Slowed { at: at(7_000), until: at(67_000) });
    assert!((60_000..60_100).contains(&interval_ms(&breaker)));
    record(&mut breaker, outages(20), 8_000);
    assert!(is_open(&breaker), "nobody is there any more");
}

#[test]
fn a_probe_waits_for_the_time_that_a_receiver_has_named() {
    let mut breaker = opened();
    breaker.slow(at(500), at(0));
    assert_eq!(interval_ms(&breaker), 1000, "it is probed later anyway");
    breaker.slow(at(31_000), at(1_000));
    assert_eq!((interval_ms(&breaker), breaker.limits().in_flight), (30_000, Some(1)));
    record(&mut breaker, answers(1), 31_000);
    breaker.slow(at(41_000), at(32_000));
    assert!(is_open(&breaker) && (9_000..9_010).contains(&interval_ms(&breaker)));
    assert_eq!(breaker.limits().in_flight, Some(1));
}
