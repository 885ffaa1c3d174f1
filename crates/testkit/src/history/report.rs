//! The report on a history: counts, recovery times, lateness, and the result of each invariant.

mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::findings::Violation;
use super::invariant::Invariant;
use super::judge::{Judgement, Lateness, Totals};
use super::parsed_lines::Tables;

/// Whether an invariant held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvariantResult {
    /// It was checked and held.
    Held,
    Violated,
    /// The history had nothing to check it by.
    NotChecked,
}

/// The result of an invariant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Standing {
    pub invariant: Invariant,
    /// Whether it held.
    pub verdict: InvariantResult,
    /// How often it was checked.
    pub checks: u64,
    /// How often it was violated.
    pub violations: u64,
}

/// Quantiles of times in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Quantiles {
    pub count: u64,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// How soon there was an effect after faults of one kind ended, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Recovery {
    pub faults: u64,
    /// How many of these faults never ended, or had no effect after their end.
    pub without_effect: u64,
    pub median: f64,
    pub max: f64,
}

/// The report on a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    /// Whether no invariant is violated.
    pub clean: bool,
    /// What was counted.
    pub totals: Totals,
    /// How late first deliveries were.
    pub lateness_ms: Quantiles,
    /// How late those were that a fault of this kind met.
    pub lateness_by_fault_ms: BTreeMap<String, Quantiles>,
    /// How soon there was an effect after faults of each kind.
    pub recovery_ms: BTreeMap<String, Recovery>,
    pub invariants: Vec<Standing>,
    /// The first violations of each invariant.
    pub violations: Vec<Violation>,
}

impl Report {
    pub(crate) fn new(tables: &Tables, found: Judgement) -> Self {
        let Judgement { findings, counts } = found;
        let standing = |invariant| {
            let (checks, violations) = (findings.checks(invariant), findings.violations(invariant));
            let verdict = match (checks, violations) {
                (0, 0) => InvariantResult::NotChecked,
                (_, 0) => InvariantResult::Held,
                _ => InvariantResult::Violated,
            };
            Standing { invariant, verdict, checks, violations }
        };
        let invariants: Vec<_> = Invariant::VARIANTS.iter().copied().map(standing).collect();
        let by_fault = counts.lateness_by_fault.iter();
        Self {
            name: tables.settings.name.clone(),
            clean: invariants.iter().all(|standing| standing.verdict != InvariantResult::Violated),
            lateness_ms: quantiles(&counts.lateness),
            lateness_by_fault_ms: by_fault
                .map(|(kind, of_kind)| (kind.clone(), quantiles(of_kind)))
                .collect(),
            recovery_ms: recoveries(tables, &counts.recoveries()),
            totals: counts.totals,
            invariants,
            violations: findings.into_described(),
        }
    }

    pub fn standing(&self, invariant: Invariant) -> Standing {
        self.invariants[invariant.index()]
    }
}

fn quantiles(lateness: &Lateness) -> Quantiles {
    if lateness.count() == 0 {
        return Quantiles::default();
    }
    let millis = |q| lateness.quantile(q) as f64 / 1_000.0;
    Quantiles {
        count: lateness.count(),
        p50: millis(0.5),
        p99: millis(0.99),
        p99_9: millis(0.999),
        max: millis(1.0),
    }
}

fn recoveries(tables: &Tables, after: &[Option<u64>]) -> BTreeMap<String, Recovery> {
    let mut times = BTreeMap::<&str, Vec<Option<u64>>>::new();
    for (fault, after) in tables.run.faults.iter().zip(after) {
        times.entry(&fault.kind).or_default().push(*after);
    }
    let recovery = |all: Vec<Option<u64>>| {
        let mut times: Vec<_> = all.iter().flatten().copied().collect();
        times.sort_unstable();
        let millis = |time: Option<&u64>| time.map_or(0.0, |time| *time as f64 / 1_000.0);
        Recovery {
            faults: all.len() as u64,
            without_effect: (all.len() - times.len()) as u64,
            median: millis(times.get(times.len() / 2)),
            max: millis(times.last()),
        }
    };
    times.into_iter().map(|(kind, all)| (kind.to_owned(), recovery(all))).collect()
}
