//! The list of failing destinations that processes share through the store: how it is read, how reports change it, and
//! how many it keeps. The rules are here, so that they are the same for all stores; these keep texts under names.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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
/// What the names of forced breakers begin with. No tenant has it.
pub(super) const FORCED: char = '^';

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
    /// The names of the destinations whose breakers are forced closed.
    pub(super) forced: BTreeSet<String>,
}

/// What reports have done to the breakers of their destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedBreakers {
    /// What the breaker of each report does now.
    pub stages: Vec<Stage>,
    /// Those that have opened, or opened again.
    pub opened: Vec<FailingDestination>,
}

impl SharedFailing {
    /// Reads the texts that a store keeps, by name. A failure that is over at `now`, or cannot be read, counts as none.
    pub fn new(now: Timestamp, stored: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut entries, mut forced) = (BTreeMap::new(), BTreeSet::new());
        for (name, text) in stored {
            if let Some(of) = name.strip_prefix(FORCED) {
                forced.insert(of.to_owned());
                continue;
            }
            let failing = read(&text).filter(|failing| !failing.is_over(now));
            entries.insert(name, (Some(text), failing));
        }
        Self { now, entries, forced }
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
        self.changes()
    }

    /// What the breakers of these reports do, and which of them these changes have opened.
    pub fn breakers(&self, reports: &[DestinationReport], changes: &[FailingChange]) -> ReportedBreakers {
        let stage = |report: &DestinationReport| {
            let entry = self.entries.get(&name_of(report.tenant.as_ref(), &report.origin));
            entry.and_then(|(_, failing)| failing.as_ref()).map_or(Stage::Closed, |of| of.breaker().stage())
        };
        let opened = changes.iter().filter_map(FailingChange::opened).collect();
        ReportedBreakers { stages: reports.iter().map(stage).collect(), opened }
    }

    /// Changes the failures of each destination. Returns what changes in the store.
    pub(super) fn change_each(
        &mut self,
        mut change: impl FnMut(Option<Tenant>, Origin, &mut Failures),
    ) -> Vec<FailingChange> {
        for (name, (_, failing)) in &mut self.entries {
            if let (Some(failing), Some((tenant, origin))) = (failing, split_name(name))
                && let Some(origin) = Origin::parse(origin)
            {
                change(tenant, origin, failing);
            }
        }
        self.changes()
    }

    fn changes(&self) -> Vec<FailingChange> {
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
        let (of_tenant, name) =
            (name_of(report.tenant.as_ref(), ""), name_of(report.tenant.as_ref(), &report.origin));
        let known = self.entries.get(&name).is_some_and(|(_, failing)| failing.is_some());
        if !known && (report.failures.is_none() || full.contains(&report.tenant)) {
            return;
        }
        if !known && !self.has_room(&of_tenant) {
            full.insert(&report.tenant);
            return;
        }
        let is_off = !has_breakers || self.is_forced_closed(report.tenant.as_ref(), &report.origin);
        let jitter = jitter(&name, self.now);
        let (_, entry) = self.entries.entry(name).or_default();
        if let Some(new) = &report.failures {
            match entry {
                Some(entry) => entry.add(new),
                None => *entry = Some(new.clone()),
            }
        }
        if let Some(entry) = entry {
            entry.succeeded(report.success);
            if is_off {
                entry.reset_breaker();
            } else {
                entry.record(report, self.now, jitter);
            }
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
    /// The target of the destination's breaker, and what it does before and after the change; `None` if it is closed
    /// before and after.
    pub fn breaker(&self) -> Option<(LimitTarget, Stage, Stage)> {
        let (before, after) = (stage(&self.before), stage(&self.after));
        if before == Stage::Closed && after == Stage::Closed {
            return None;
        }
        let (tenant, origin) = split_name(&self.name)?;
        Some((LimitTarget::breaker(tenant, &Origin::parse(origin)?), before, after))
    }

    /// The destination, if its breaker opens by the change.
    fn opened(&self) -> Option<FailingDestination> {
        let is_open = |text| matches!(stage(text), Stage::Open { .. });
        if is_open(&self.before) || !is_open(&self.after) {
            return None;
        }
        let (tenant, origin) = split_name(&self.name)?;
        Some(FailingDestination { tenant, origin: origin.into(), failures: read(self.after.as_deref()?)? })
    }
}

fn name_of(tenant: Option<&Tenant>, origin: &str) -> String {
    format!("{}{SEPARATOR}{origin}", tenant.map_or("", Tenant::as_str))
}

/// The tenant and the origin of a name.
fn split_name(name: &str) -> Option<(Option<Tenant>, &str)> {
    let (tenant, origin) = name.split_once(SEPARATOR)?;
    Some((if tenant.is_empty() { None } else { Some(tenant.parse().ok()?) }, origin))
}

fn written(failing: &Failures) -> String {
    serde_json::to_string(failing).expect("plain data always serialises")
}

fn read(text: &str) -> Option<Failures> {
    serde_json::from_str(text).ok()
}

fn stage(text: &Option<String>) -> Stage {
    text.as_deref().and_then(read).map_or(Stage::Closed, |failures| failures.breaker().stage())
}

/// A number that differs between destinations and times.
fn jitter(name: &str, now: Timestamp) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, now).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
