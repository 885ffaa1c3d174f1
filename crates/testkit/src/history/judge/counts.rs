//! Counts the contents of a history, and measures how late first deliveries and first effects after faults were.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Run;
use super::job::Job;
use crate::history::entry::StallOf;
use crate::history::parsed_lines::Tables;
use crate::history::records::{CallOutcome, NEVER, Span};

/// Longer times count as this one, in µs.
const MAX: u64 = 3_600_000_000;
/// The significant digits that are kept.
const DIGITS: u8 = 3;

/// Times in µs, to a thousandth of themselves.
#[derive(Clone, Debug)]
pub(crate) struct Lateness(Histogram<u64>);

impl Lateness {
    fn new() -> Self {
        Self(Histogram::new_with_bounds(1, MAX, DIGITS).expect("the bounds are in order"))
    }

    /// The number of recorded durations.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn quantile(&self, q: f64) -> u64 {
        self.0.value_at_quantile(q)
    }
}

/// What was counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    pub lines: u64,
    /// Jobs that any line names.
    pub jobs: u64,
    /// Submits that were sent.
    pub submits: u64,
    /// Jobs that were accepted.
    pub accepted: u64,
    pub deliveries: u64,
    pub leases: u64,
    /// Calls whose outcome is unknown.
    pub unknown_outcomes: u64,
    /// Processes that were ended by SIGKILL.
    pub kills: u64,
    /// How long the machine stood still in all, in milliseconds.
    pub stalled_ms: u64,
    /// How long the late answers of the store to the run itself took in all, in milliseconds.
    pub silent_ms: u64,
    pub faults: BTreeMap<String, u64>,
    /// Accepted jobs that are lost.
    pub lost: u64,
    /// Lost jobs that the store may lose; `lost` does not count them.
    pub lost_excused: u64,
    /// Deliveries before their time.
    pub early: u64,
    /// Deliveries that were not submitted so.
    pub invented: u64,
    /// Repeated deliveries that a fault explains.
    pub duplicates_explained: u64,
    /// Repeated deliveries that no fault explains.
    pub duplicates_unexplained: u64,
}

/// The totals, and the times of deliveries.
pub(crate) struct Counts {
    pub(crate) totals: Totals,
    pub(crate) lateness: Lateness,
    pub(crate) lateness_by_fault: BTreeMap<String, Lateness>,
    lateness_by_topic: BTreeMap<String, Lateness>,
    effects: Effects,
}

impl Counts {
    pub(super) fn new(run: &Run<'_>) -> Self {
        let tenants = run.tables.run.tenants.keys();
        let ends = run.tables.run.faults.iter().map(|fault| fault.end);
        Self {
            totals: totals(run.tables),
            lateness: Lateness::new(),
            lateness_by_fault: BTreeMap::new(),
            lateness_by_topic: tenants.map(|topic| (topic.clone(), Lateness::new())).collect(),
            effects: Effects::new(ends),
        }
    }

    pub(super) fn job(&mut self, run: &Run<'_>, job: &Job<'_>) {
        self.totals.jobs += 1;
        self.totals.accepted += u64::from(job.accepted().is_some());
        let deliveries = job.deliveries.iter().map(|delivery| delivery.start);
        deliveries.chain(job.leases.iter().map(|lease| lease.granted)).for_each(|t| self.effects.add(t));
        let Some((first, due)) = job.deliveries.first().and_then(|first| Some((first, first.due?))) else {
            return;
        };
        let lateness = run.tables.clocks.about(job.store(), first.start).saturating_sub(due * 1_000);
        self.lateness.0.saturating_record(lateness);
        if let Some(of_topic) = self.lateness_by_topic.get_mut(job.topic()) {
            of_topic.0.saturating_record(lateness);
        }
        let since = first.start.saturating_sub(lateness);
        if run.explains(since, first.start) {
            let kinds = run.by_kind.iter().filter(|(_, windows)| windows.overlap(since, first.start));
            for (kind, _) in kinds {
                let of_kind = self.lateness_by_fault.entry((*kind).to_owned()).or_insert_with(Lateness::new);
                of_kind.0.saturating_record(lateness);
            }
        }
    }

    /// The 99th percentile of a tenant's lateness in µs; `None` if none is known.
    pub(super) fn p99_of_topic(&self, topic: &str) -> Option<u64> {
        self.lateness_by_topic.get(topic).filter(|of_topic| of_topic.count() > 0).map(|of| of.quantile(0.99))
    }

    /// For each fault that ended, in their order: the time in µs to the first effect after it; `None` if there was none.
    pub(crate) fn recoveries(&self) -> Vec<Option<u64>> {
        self.effects.after_ends()
    }
}

/// The totals that are counted without the single jobs; the others are 0.
fn totals(tables: &Tables) -> Totals {
    let mut faults = BTreeMap::new();
    for fault in &tables.run.faults {
        *faults.entry(fault.kind.clone()).or_default() += 1;
    }
    let is_unknown = |span: &Span| span.outcome == CallOutcome::Unknown;
    let unknown = tables.submits.iter().filter(|submit| is_unknown(&submit.span)).count()
        + tables.calls.iter().filter(|call| is_unknown(&call.span)).count()
        + tables.settles.iter().filter(|settle| is_unknown(&settle.span)).count();
    let stalled_ms = |of| {
        let stalls = tables.run.stalls.iter().filter(|stall| stall.of == of);
        stalls.map(|stall| stall.t - stall.since).sum::<u64>() / 1_000
    };
    Totals {
        lines: tables.lines.into(),
        submits: tables.submits.len() as u64,
        deliveries: tables.deliveries.len() as u64,
        leases: tables.leases.len() as u64,
        unknown_outcomes: unknown as u64 + tables.unknown_reserves,
        kills: tables.kills(),
        stalled_ms: stalled_ms(StallOf::Machine),
        silent_ms: stalled_ms(StallOf::Store),
        faults,
        ..Totals::default()
    }
}

/// The first delivery or lease after each of some times.
struct Effects {
    /// Times, sorted, with the place of each among those that were given.
    ends: Vec<(u64, usize)>,
    /// The first effect after each, and before the next one.
    first: Vec<u64>,
}

impl Effects {
    fn new(ends: impl Iterator<Item = u64>) -> Self {
        let mut ends: Vec<_> = ends.zip(0..).collect();
        ends.sort_unstable();
        let first = vec![NEVER; ends.len()];
        Self { ends, first }
    }

    fn add(&mut self, t: u64) {
        let before = self.ends.partition_point(|(end, _)| *end <= t);
        if let Some(first) = before.checked_sub(1).map(|place| &mut self.first[place]) {
            *first = t.min(*first);
        }
    }

    fn after_ends(&self) -> Vec<Option<u64>> {
        let mut after = vec![None; self.ends.len()];
        let mut first = NEVER;
        for (&(end, place), &here) in self.ends.iter().zip(&self.first).rev() {
            first = first.min(here);
            after[place] = (first != NEVER && end != NEVER).then(|| first - end);
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_effect_after_each_end_is_found() {
        let mut effects = Effects::new([500, 100, NEVER, 200, 900].into_iter());
        [50, 260, 250, 700].into_iter().for_each(|t| effects.add(t));
        assert_eq!(effects.after_ends(), [Some(200), Some(150), None, Some(50), None]);
    }
}
