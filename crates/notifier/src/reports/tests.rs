//! Tests of what is collected for the store.

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn failures(ms: u64) -> Failures {
    Failures::new(at(ms), Some(500), None)
}

fn topic(text: &str) -> Topic {
    Topic::from_stored(text).expect("a topic")
}

fn sorted(reports: &Reports) -> Vec<DestinationReport> {
    let mut all = reports.destinations().take(true, at(0));
    all.sort_by(|one, other| (&one.origin, &one.tenant).cmp(&(&other.origin, &other.tenant)));
    all
}

const OUTAGE: Counts = Counts { attempts: 1, outages: 1, answers: 0 };
const ANSWER: Counts = Counts { attempts: 1, outages: 0, answers: 1 };

#[test]
fn what_attempts_say_is_kept_by_destination_and_tenant_until_it_is_taken() {
    let reports = Reports::default();
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1), None);
    reports.failed(&topic("b"), "http://a", OUTAGE, failures(3), None);
    reports.succeeded(&topic("~t/a"), "http://a", ANSWER, at(5));
    reports.succeeded(&topic("~t/b"), "http://a", ANSWER, at(4));
    reports.succeeded(&topic("a"), "http://a", ANSWER, at(2));
    reports.succeeded(&topic("a"), "http://b", ANSWER, at(6));
    let mut both = failures(1);
    both.add(&failures(3));
    let report = |tenant: Option<&str>, origin: &str, failures, success, counts| DestinationReport {
        tenant: tenant.map(|tenant| tenant.parse().expect("a tenant")),
        origin: origin.into(),
        failures,
        success: Some(at(success)),
        counts,
        rate: None,
        slow_until: None,
    };
    let expected = [
        DestinationReport {
            rate: Some(0),
            ..report(None, "http://a", Some(both), 2, Counts { attempts: 3, outages: 2, answers: 1 })
        },
        report(Some("t"), "http://a", None, 5, Counts { attempts: 2, outages: 0, answers: 2 }),
        report(None, "http://b", None, 6, ANSWER),
    ];
    assert_eq!(sorted(&reports), expected);
    assert_eq!(sorted(&reports), []);
}

#[test]
fn only_what_fails_is_reported_at_once_and_with_the_successes_of_before() {
    let reports = Reports::default();
    for n in 0..600 {
        reports.succeeded(&topic("a"), "http://a", ANSWER, at(1_000_000 + n * 100));
    }
    assert_eq!(reports.destinations().take(false, at(0)), []);
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1_060_000), None);
    let taken = reports.destinations().take(false, at(0));
    assert_eq!(taken.iter().map(|report| report.rate).collect::<Vec<_>>(), [Some(10)]);
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1_060_001), None);
    let taken = reports.destinations().take(false, at(0));
    assert_eq!(taken.iter().map(|report| report.rate).collect::<Vec<_>>(), [None]);
}

#[test]
fn what_the_store_did_not_take_is_in_the_next_report_with_what_came_since() {
    let reports = Reports::default();
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1), None);
    reports.failed(&topic("a"), "http://b", OUTAGE, failures(2), None);
    let taken = reports.destinations().take(true, at(0));
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(3), None);
    reports.destinations().put_back(taken);
    let all = sorted(&reports);
    assert_eq!(all.len(), 2);
    let first = all[0].failures.as_ref().expect("it fails");
    assert_eq!((first.since(), first.last_at(), first.attempts()), (at(1), at(3), 2));
}

#[test]
fn a_report_has_room_for_so_many_destinations() {
    let reports = Reports::default();
    for n in 0..=MAX {
        reports.failed(&topic("a"), &format!("http://{n}"), OUTAGE, failures(1), None);
    }
    assert_eq!(reports.destinations().take(true, at(0)).len(), MAX);
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1), None);
    assert_eq!(reports.destinations().take(true, at(0)).len(), 1, "there is room again");
}

#[test]
fn a_receiver_that_asks_for_fewer_callbacks_is_reported_again_once_its_time_is_over() {
    let reports = Reports::default();
    let stage = Stage::Slowed { at: at(1), until: at(5_000) };
    let take = |all, now| reports.destinations().take(all, at(now));
    reports.failed(
        &topic("~t/a"),
        "http://a",
        Counts { attempts: 1, ..Counts::default() },
        failures(1),
        None,
    );
    reports.failed(&topic("~t/a"), "http://a", Counts::default(), failures(2), Some(at(5_000)));
    let taken = take(false, 2);
    assert_eq!(taken.iter().map(|report| report.slow_until).collect::<Vec<_>>(), [Some(at(5_000))]);
    reports.destinations().learn(&taken, vec![stage]);
    assert_eq!(take(true, 4_999), []);
    let [ended] = &take(false, 5_000)[..] else { panic!("its time is over") };
    assert_eq!((ended.failures.is_some(), ended.counts, ended.slow_until), (false, Counts::default(), None));
    assert_eq!(ended.tenant.as_ref().map(Tenant::as_str), Some("t"));
    reports.destinations().learn(std::slice::from_ref(ended), vec![Stage::Closed]);
    assert_eq!(take(true, 6_000), []);
}

#[test]
fn a_destination_whose_breaker_is_not_closed_is_reported_every_second() {
    let reports = Reports::default();
    reports.failed(&topic("a"), "http://a", OUTAGE, failures(1), None);
    let taken = reports.destinations().take(false, at(2));
    let stage = Stage::Returning { since: at(1), rate: 1, at: at(2) };
    reports.destinations().learn(&taken, vec![stage]);
    // It has not failed for long.
    reports.succeeded(&topic("a"), "http://a", ANSWER, at(60_000));
    let taken = reports.destinations().take(false, at(60_000));
    assert_eq!(taken.len(), 1);
    reports.destinations().learn(&taken, vec![Stage::Closed]);
    reports.succeeded(&topic("a"), "http://a", ANSWER, at(61_000));
    assert_eq!(reports.destinations().take(false, at(61_000)), []);
}
