//! What a history has of each thing, how late first deliveries were, and how soon there was an effect after a fault.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::Run;
use super::job::Job;
use crate::history::records::NEVER;

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

    /// How many times there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn quantile(&self, q: f64) -> u64 {
        self.0.value_at_quantile(q)
    }
}

/// What was counted.
pub(crate) struct Counts {
    pub(crate) jobs: u64,
    pub(crate) accepted: u64,
    pub(crate) lost: u64,
    pub(crate) lost_excused: u64,
    pub(crate) early: u64,
    pub(crate) invented: u64,
    pub(crate) duplicates_explained: u64,
    pub(crate) duplicates_unexplained: u64,
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
            jobs: 0,
            accepted: 0,
            lost: 0,
            lost_excused: 0,
            early: 0,
            invented: 0,
            duplicates_explained: 0,
            duplicates_unexplained: 0,
            lateness: Lateness::new(),
            lateness_by_fault: BTreeMap::new(),
            lateness_by_topic: tenants.map(|topic| (topic.clone(), Lateness::new())).collect(),
            effects: Effects::new(ends),
        }
    }

    pub(super) fn job(&mut self, run: &Run<'_>, job: &Job<'_>) {
        self.jobs += 1;
        self.accepted += u64::from(job.accepted().is_some());
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

    /// The 99th percentile of a tenant's lateness in µs.
    pub(super) fn p99_of_topic(&self, topic: &str) -> Option<u64> {
        self.lateness_by_topic.get(topic).filter(|of_topic| of_topic.count() > 0).map(|of| of.quantile(0.99))
    }

    /// For each fault that ended, in their order, how long after it the first effect came, in µs.
    pub(crate) fn recoveries(&self) -> Vec<Option<u64>> {
        self.effects.after_ends()
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
