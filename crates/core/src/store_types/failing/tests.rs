//! Tests of the list of failing destinations with a store of texts.

use super::super::PauseLimit;
use super::super::failures::FAILING_RETENTION;
use super::*;
use crate::breaker::Counts;
use crate::clock::millis;
use crate::destination::{Destination, DestinationPause};

const S: u64 = 1_000;
const ORIGIN: &str = "http://a.example:81";

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn report(
    tenant: Option<&str>,
    origin: &str,
    failed: Option<u64>,
    success: Option<u64>,
) -> DestinationReport {
    let failures = failed.map(|ms| Failures::new(at(ms), Some(500), None));
    let tenant = tenant.map(|tenant| tenant.parse().expect("a tenant"));
    DestinationReport {
        tenant,
        origin: origin.into(),
        failures,
        success: success.map(at),
        counts: Counts::default(),
        rate: None,
        slow_until: None,
    }
}

/// A store of texts.
#[derive(Default)]
struct Texts(BTreeMap<String, String>);

impl Texts {
    fn take(&mut self, now: u64, reports: &[DestinationReport]) {
        let mut shared = SharedFailing::new(at(now), self.0.clone());
        for FailingChange { name, before, after } in shared.report(reports, true) {
            assert_eq!(self.0.get(&name), before.as_ref());
            match after {
                Some(after) => drop(self.0.insert(name, after)),
                None => drop(self.0.remove(&name)),
            }
        }
    }

    fn failing(&self, now: u64, scope: &TenantScope) -> Vec<FailingDestination> {
        SharedFailing::new(at(now), self.0.clone()).destinations(scope)
    }

    /// The one failure of all tenants: since, last failure, attempts.
    fn one(&self, now: u64) -> Option<(u64, u64, u64)> {
        let all = self.failing(now, &TenantScope::All);
        all.first().map(|FailingDestination { failures, .. }| {
            (failures.since().as_millis(), failures.last_at().as_millis(), failures.attempts())
        })
    }
}

#[test]
fn a_destination_fails_from_its_first_failure_until_a_success_and_ten_quiet_seconds() {
    let mut texts = Texts::default();
    texts.take(100 * S, &[report(None, ORIGIN, None, Some(99 * S))]);
    assert!(texts.0.is_empty(), "a success of one that does not fail is not stored");
    texts.take(105 * S, &[report(None, ORIGIN, Some(100 * S), None)]);
    texts.take(110 * S, &[report(None, ORIGIN, Some(109 * S), Some(108 * S))]);
    assert_eq!(texts.one(110 * S), Some((100 * S, 109 * S, 2)), "the success was before the last failure");
    texts.take(115 * S, &[report(None, ORIGIN, None, Some(112 * S))]);
    assert_eq!(texts.one(118 * S), Some((100 * S, 109 * S, 2)), "it failed nine seconds ago");
    assert_eq!(texts.one(119 * S), None);
    texts.take(120 * S, &[]);
    assert!(texts.0.is_empty(), "what is over is removed");
}

#[test]
fn a_failure_after_the_end_of_another_begins_anew_and_one_before_it_goes_on() {
    let mut texts = Texts::default();
    texts.take(100 * S, &[report(None, ORIGIN, Some(100 * S), Some(101 * S))]);
    texts.take(109 * S, &[report(None, ORIGIN, Some(109 * S), None)]);
    assert_eq!(texts.one(109 * S), Some((100 * S, 109 * S, 2)));
    texts.take(111 * S, &[report(None, ORIGIN, None, Some(111 * S))]);
    texts.take(130 * S, &[report(None, ORIGIN, Some(129 * S), None)]);
    assert_eq!(texts.one(130 * S), Some((129 * S, 129 * S, 1)));
}

#[test]
fn reports_of_several_processes_are_one_failure_whose_last_attempt_is_shown() {
    let mut first = report(None, ORIGIN, Some(100 * S), None);
    first.add(report(None, ORIGIN, Some(101 * S), Some(99 * S)));
    let timeout = Failures::new(at(103 * S), None, Some("timeout"));
    let other = DestinationReport { failures: Some(timeout), ..report(None, ORIGIN, None, None) };
    let mut texts = Texts::default();
    texts.take(104 * S, &[other, first]);
    let all = texts.failing(104 * S, &TenantScope::All);
    let failing = &all[0].failures;
    assert_eq!((failing.since(), failing.last_at(), failing.attempts()), (at(100 * S), at(103 * S), 3));
    assert_eq!((failing.last_status(), failing.last_error()), (None, Some("timeout")));
    assert_eq!(&*all[0].origin, ORIGIN);
}

#[test]
fn one_that_does_nothing_is_known_for_seven_days() {
    let mut texts = Texts::default();
    texts.take(S, &[report(None, ORIGIN, Some(S), None)]);
    let end = S + millis(FAILING_RETENTION);
    assert!(texts.one(end - 1).is_some() && texts.one(end).is_none());
}

#[test]
fn a_tenant_is_shown_its_own() {
    let mut texts = Texts::default();
    texts.take(S, &[report(None, "http://a", Some(S), None), report(Some("t"), "http://b", Some(S), None)]);
    let origins = |scope: TenantScope| {
        let all = texts.failing(S, &scope).into_iter();
        all.map(|one| one.origin.into_string()).collect::<Vec<_>>()
    };
    assert_eq!(origins(TenantScope::All), ["http://a", "http://b"]);
    assert_eq!(origins(TenantScope::One(None)), ["http://a"]);
    assert_eq!(origins(TenantScope::One(Some("t".parse().expect("a tenant")))), ["http://b"]);
    assert!(origins(TenantScope::One(Some("tt".parse().expect("a tenant")))).is_empty());
}

#[test]
fn a_tenant_with_many_names_leaves_half_of_the_room_and_takes_its_own_idle_places_again() {
    let many = |tenant, from: usize, last| -> Vec<_> {
        (from..from + MAX_FAILING).map(|n| report(tenant, &format!("http://{n}"), Some(last), None)).collect()
    };
    let mut texts = Texts::default();
    texts.take(S, &many(Some("loud"), 0, S));
    assert_eq!(texts.0.len(), MAX_FAILING / 2);
    texts.take(2 * S, &many(Some("next"), 0, 2 * S));
    assert_eq!(texts.0.len(), MAX_FAILING / 2 + MAX_FAILING / 4);
    texts.take(3 * S, &[report(None, ORIGIN, Some(3 * S), None)]);
    assert_eq!(texts.failing(3 * S, &TenantScope::One(None)).len(), 1);
    let (idle, loud) = (S + millis(FAILING_IDLE), TenantScope::One(Some("loud".parse().expect("a tenant"))));
    let origin = "http://new";
    let has_new = |texts: &Texts| texts.failing(idle, &loud).iter().any(|one| &*one.origin == origin);
    texts.take(idle - 1, &[report(Some("loud"), origin, Some(idle - 1), None)]);
    assert!(!has_new(&texts), "none of its own is idle yet");
    texts.take(idle, &[report(Some("loud"), origin, Some(idle), None)]);
    assert!(has_new(&texts));
    assert_eq!(texts.0.len(), MAX_FAILING / 2 + MAX_FAILING / 4 + 1, "it has taken the place of another");
}

#[test]
fn a_text_that_cannot_be_read_is_removed() {
    let mut texts = Texts::default();
    texts.0.insert(" http://a".to_owned(), "{}".to_owned());
    assert_eq!(texts.one(S), None);
    texts.take(S, &[]);
    assert!(texts.0.is_empty());
}

fn outages(at: u64) -> DestinationReport {
    DestinationReport {
        counts: Counts { attempts: 20, outages: 20, answers: 0 },
        ..report(Some("t"), ORIGIN, Some(at), None)
    }
}

#[test]
fn a_change_says_what_a_breaker_allows_from_then_on() {
    let mut shared = SharedFailing::new(at(S), []);
    let opened = shared.report(&[outages(S)], true).remove(0);
    let target = opened.breaker().expect("it opened").0;
    assert_eq!(target.name(), "^~t/a.example:81");
    assert_eq!(shared.breaker_limits(&opened.name).in_flight, Some(1));
    let reported = shared.breakers(&[outages(S)], std::slice::from_ref(&opened));
    assert!(matches!(reported.stages[..], [Stage::Open { .. }]) && reported.opened.len() == 1);
    let stored = [(opened.name.clone(), opened.after.clone().expect("it fails"))];
    // No success of others, and no time but a week, ends the failure while the breaker is not closed.
    let mut later = SharedFailing::new(at(100 * S), stored.clone());
    let success = report(Some("t"), ORIGIN, None, Some(99 * S));
    let change = later.report(std::slice::from_ref(&success), true).remove(0);
    assert_eq!(change.breaker().expect("it is open").0, target);
    assert_eq!(later.breakers(&[success], &[change]).opened, []);
    assert_eq!(later.breaker_limits(&opened.name).in_flight, Some(1));
    // A sum of several tenants shows it.
    let mut sum = Failures::new(at(S), Some(500), None);
    sum.add(&reported.opened[0].failures);
    assert!(sum.breaker().is_open());
    // Without breakers it closes.
    let mut without = SharedFailing::new(at(100 * S), stored);
    let closed = without.report(&[outages(100 * S)], false).remove(0);
    assert_eq!(closed.breaker().expect("it was open").2, Stage::Closed);
    assert!(without.breaker_limits(&closed.name).is_empty());
}

#[test]
fn breakers_that_are_forced_closed_never_open_until_they_are_reset() {
    let of = |scope: &TenantScope, text: &str| {
        DestinationPause::new(scope, Destination::parse(text).expect("a destination"))
    };
    let (all, own) = (TenantScope::All, TenantScope::One(Some("t".parse().expect("a tenant"))));
    for (forced, holds) in [
        (of(&all, "a.example"), true),
        (of(&all, "a.example:81"), true),
        (of(&own, "a.example"), true),
        (of(&own, "a.example:82"), false),
        (of(&TenantScope::One(None), "a.example:81"), false),
    ] {
        let mut shared = SharedFailing::new(at(S), []);
        let opened = shared.report(&[outages(S)], true).remove(0);
        let changes = shared.force_closed(&forced).expect("there is room");
        let stored = changes.iter().map(|one| (one.name.clone(), one.after.clone().expect("a text")));
        let mut later = SharedFailing::new(at(2 * S), stored);
        later.report(&[outages(2 * S)], true);
        assert_eq!(later.breaker_limits(&opened.name).is_empty(), holds, "{forced:?}");
        assert_eq!(later.forced_closed(&own).len(), usize::from(forced.is_of_all() || forced.is_of(&own)));
        assert_eq!(later.reset_breakers(&forced).last().map(|change| &change.after), Some(&None));
        later.report(&[outages(3 * S)], true);
        assert_eq!(later.breaker_limits(&opened.name).in_flight, Some(1));
        later.reset_breakers(&of(&own, "a.example"));
        assert!(later.breaker_limits(&opened.name).is_empty(), "a reset closes it");
    }
}

#[test]
fn there_are_as_many_forced_breakers_as_paused_destinations_at_most() {
    let tenant = |name: &str| TenantScope::One(Some(name.parse().expect("a tenant")));
    let mut shared = SharedFailing::new(at(S), []);
    let force = |shared: &mut SharedFailing, scope: &TenantScope, n: usize| {
        let destination = Destination::parse(&format!("h{n}.example")).expect("a destination");
        shared.force_closed(&DestinationPause::new(scope, destination)).map(drop)
    };
    for n in 0..100 {
        assert_eq!(force(&mut shared, &tenant("t"), n), Ok(()));
    }
    assert_eq!(force(&mut shared, &tenant("t"), 100), Err(PauseLimit::Tenant));
    assert_eq!(force(&mut shared, &tenant("t"), 99), Ok(()), "it is forced already");
    for n in 0..900 {
        assert_eq!(force(&mut shared, &TenantScope::All, n), Ok(()));
    }
    assert_eq!(force(&mut shared, &TenantScope::All, 900), Err(PauseLimit::Installation));
}
