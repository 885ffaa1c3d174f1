//! The list of failing destinations that processes share through the store: how it is read, how reports change it, and
//! how many it keeps. The rules are here, so that they are the same for all stores; these keep texts under names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{DestinationReport, Failures, LimitTarget, tenant_limit};
use crate::breaker::Stage;
use crate::clock::Timestamp;
use crate::destination::Origin;
use crate::flow::Limits;
use crate::job::{Tenant, TenantScope};

/// The most failing destinations that are known. A tenant, or those without one, has at most half of what the others
/// leave.
pub const MAX_FAILING: usize = 2_000;
/// A destination that has not failed for so long makes room for another of its tenant.
pub const FAILING_IDLE: Duration = Duration::from_secs(600);
/// Between the tenant, if any, and the origin in the names under which stores keep destinations.
const SEPARATOR: char = ' ';

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingDestination {
    /// Whose jobs fail there.
    pub tenant: Option<Tenant>,
    /// The origin of their callback URLs.
    pub origin: Box<str>,
    pub failures: Failures,
}

/// A change of the text under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingChange {
    pub name: String,
    /// The text that is there; `None` if there is none. Another text must not be replaced.
    pub before: Option<String>,
    /// The text that is to be there; `None` to remove it.
    pub after: Option<String>,
}

/// All failing destinations as a store has them, at one time.
#[derive(Clone, Debug)]
pub struct SharedFailing {
    now: Timestamp,
    /// The stored texts by name, and what they say. `None` if that is over, or cannot be read.
    entries: BTreeMap<String, (Option<String>, Option<Failures>)>,
}

impl SharedFailing {
    /// Reads the texts that a store keeps, by name. A failure that is over at `now`, or cannot be read, counts as none.
    pub fn new(now: Timestamp, stored: impl IntoIterator<Item = (String, String)>) -> Self {
        let entries = stored.into_iter().map(|(name, text)| {
            let failing =
                serde_json::from_str::<Failures>(&text).ok().filter(|failing| !failing.is_over(now));
            (name, (Some(text), failing))
        });
        Self { now, entries: entries.collect() }
    }

    pub fn destinations(&self, scope: &TenantScope) -> Vec<FailingDestination> {
        let read = |(name, (_, failing)): (&String, &(_, Option<Failures>))| {
            let (tenant, origin) = split_name(name)?;
            Some(FailingDestination { tenant, origin: origin.into(), failures: failing.clone()? })
        };
        let all = self.entries.iter().filter_map(read);
        all.filter(|destination| scope.has_tenant(destination.tenant.as_ref())).collect()
    }

    /// What the breaker of the destination with this name allows.
    pub fn breaker_limits(&self, name: &str) -> Limits {
        let failing = self.entries.get(name).and_then(|(_, failing)| failing.as_ref());
        failing.map(|failing| failing.breaker().limits()).unwrap_or_default()
    }

    /// Merges reports into the list; closes the breakers of their destinations if there are to be none. Returns what
    /// changes in the store, also the removal of entries that are over.
    pub fn report(&mut self, reports: &[DestinationReport], has_breakers: bool) -> Vec<FailingChange> {
        let mut full = BTreeSet::new();
        for report in reports {
            self.take_in(report, has_breakers, &mut full);
        }
        let changes = self.entries.iter().map(|(name, (before, failing))| {
            let after = failing.as_ref().filter(|failing| !failing.is_over(self.now)).map(written);
            FailingChange { name: name.clone(), before: before.clone(), after }
        });
        changes.filter(|change| change.before != change.after).collect()
    }

    /// Merges one report. Ignores a success at a destination that is not in the list, and a failure at one for which
    /// there is no room. `full` collects the tenants without room.
    fn take_in<'r>(
        &mut self,
        report: &'r DestinationReport,
        has_breakers: bool,
        full: &mut BTreeSet<&'r Option<Tenant>>,
    ) {
        let of_tenant = format!("{}{SEPARATOR}", report.tenant.as_ref().map_or("", Tenant::as_str));
        let name = format!("{of_tenant}{}", report.origin);
        let known = self.entries.get(&name).is_some_and(|(_, failing)| failing.is_some());
        if !known && (report.failures.is_none() || full.contains(&report.tenant)) {
            return;
        }
        if !known && !self.has_room(&of_tenant) {
            full.insert(&report.tenant);
            return;
        }
        let (_, entry) = self.entries.entry(name).or_default();
        if let Some(new) = &report.failures {
            match entry {
                Some(entry) => entry.add(new),
                None => *entry = Some(new.clone()),
            }
        }
        if let Some(entry) = entry {
            entry.succeeded(report.success);
            entry.record(report, has_breakers, self.now);
        }
    }

    /// Whether there is room for one more name with this prefix. If not, removes the entry with the prefix that has not
    /// failed for the longest time, if that is [`FAILING_IDLE`] or longer.
    fn has_room(&mut self, prefix: &str) -> bool {
        let alive = self.entries.iter().filter(|(_, (_, failing))| failing.is_some());
        let (mut used, mut own, mut oldest) = (0, 0, None::<(Timestamp, String)>);
        for (name, (_, failing)) in alive {
            used += 1;
            if name.starts_with(prefix) {
                own += 1;
                let last = failing.as_ref().map_or_else(Timestamp::default, Failures::last_at);
                if oldest.as_ref().is_none_or(|(least, _)| last < *least) {
                    oldest = Some((last, name.clone()));
                }
            }
        }
        if own < tenant_limit(u32::MAX, MAX_FAILING as u64, used, own) {
            return true;
        }
        let idle = oldest.filter(|(last, _)| self.now.since(*last) >= FAILING_IDLE);
        let Some((_, entry)) = idle.and_then(|(_, name)| self.entries.get_mut(&name)) else { return false };
        *entry = None;
        true
    }
}

impl FailingChange {
    /// The target of the destination's breaker, if that is not closed, or was not before.
    pub fn breaker(&self) -> Option<LimitTarget> {
        let is_closed = |text: &Option<String>| {
            let failures = text.as_deref().and_then(|text| serde_json::from_str::<Failures>(text).ok());
            failures.is_none_or(|failures| failures.breaker().stage() == Stage::Closed)
        };
        if is_closed(&self.before) && is_closed(&self.after) {
            return None;
        }
        let (tenant, origin) = split_name(&self.name)?;
        Some(LimitTarget::breaker(tenant, &Origin::parse(origin)?))
    }
}

/// The tenant and the origin of a name.
fn split_name(name: &str) -> Option<(Option<Tenant>, &str)> {
    let (tenant, origin) = name.split_once(SEPARATOR)?;
    Some((if tenant.is_empty() { None } else { Some(tenant.parse().ok()?) }, origin))
}

fn written(failing: &Failures) -> String {
    serde_json::to_string(failing).expect("plain data always serialises")
}

#[cfg(test)]
mod tests {
    use super::super::failures::FAILING_RETENTION;
    use super::*;
    use crate::breaker::Counts;
    use crate::clock::millis;

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
        assert_eq!(
            texts.one(110 * S),
            Some((100 * S, 109 * S, 2)),
            "the success was before the last failure"
        );
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
        texts.take(
            S,
            &[report(None, "http://a", Some(S), None), report(Some("t"), "http://b", Some(S), None)],
        );
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
            (from..from + MAX_FAILING)
                .map(|n| report(tenant, &format!("http://{n}"), Some(last), None))
                .collect()
        };
        let mut texts = Texts::default();
        texts.take(S, &many(Some("loud"), 0, S));
        assert_eq!(texts.0.len(), MAX_FAILING / 2);
        texts.take(2 * S, &many(Some("next"), 0, 2 * S));
        assert_eq!(texts.0.len(), MAX_FAILING / 2 + MAX_FAILING / 4);
        texts.take(3 * S, &[report(None, ORIGIN, Some(3 * S), None)]);
        assert_eq!(texts.failing(3 * S, &TenantScope::One(None)).len(), 1);
        let (idle, loud) =
            (S + millis(FAILING_IDLE), TenantScope::One(Some("loud".parse().expect("a tenant"))));
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

    #[test]
    fn a_change_says_what_a_breaker_allows_from_then_on() {
        let outages = |at| DestinationReport {
            counts: Counts { attempts: 20, outages: 20, answers: 0 },
            ..report(Some("t"), ORIGIN, Some(at), None)
        };
        let mut shared = SharedFailing::new(at(S), []);
        let opened = shared.report(&[outages(S)], true).remove(0);
        let target = opened.breaker().expect("it opened");
        assert_eq!(target.name(), "^~t/a.example:81");
        assert_eq!(shared.breaker_limits(&opened.name).in_flight, Some(1));
        let stored = [(opened.name.clone(), opened.after.clone().expect("it fails"))];
        // No success of others, and no time but a week, ends the failure while the breaker is not closed.
        let mut later = SharedFailing::new(at(100 * S), stored.clone());
        let success = report(Some("t"), ORIGIN, None, Some(99 * S));
        assert_eq!(later.report(&[success], true).remove(0).breaker(), Some(target.clone()));
        assert_eq!(later.breaker_limits(&opened.name).in_flight, Some(1));
        // Without breakers it closes.
        let mut without = SharedFailing::new(at(100 * S), stored);
        let closed = without.report(&[outages(100 * S)], false).remove(0);
        assert_eq!(closed.breaker(), Some(target));
        assert!(without.breaker_limits(&closed.name).is_empty());
    }
}
