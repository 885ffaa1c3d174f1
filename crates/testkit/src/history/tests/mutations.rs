//! A right history with one thing changed: the checker names the invariant that the change violates, and no other.

mod jobs;
mod leases;
mod run;
mod times;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use strum::VariantArray as _;

use super::lines::Lines;
use super::{history, report};
use crate::history::{Invariant, InvariantResult};

/// A change that a fault of the product could have made.
struct Mutation {
    /// What the product would have done wrong.
    name: &'static str,
    violates: &'static [Invariant],
    /// Whether the history has faults before the change.
    has_faults: bool,
    change: fn(&mut Lines),
}

const fn calm(name: &'static str, violates: &'static [Invariant], change: fn(&mut Lines)) -> Mutation {
    Mutation { name, violates, has_faults: false, change }
}

const fn faulty(name: &'static str, violates: &'static [Invariant], change: fn(&mut Lines)) -> Mutation {
    Mutation { name, violates, has_faults: true, change }
}

const TABLES: [&[Mutation]; 4] = [jobs::MUTATIONS, times::MUTATIONS, leases::MUTATIONS, run::MUTATIONS];

fn right(has_faults: bool) -> Lines {
    static RIGHT: [OnceLock<Lines>; 2] = [const { OnceLock::new() }; 2];
    RIGHT[usize::from(has_faults)].get_or_init(|| Lines::read(&history(7, 1_200, has_faults))).clone()
}

/// Makes each change of a table, and asserts that exactly its invariants are violated and that proofs name existing
/// lines.
fn check_table(table: &[Mutation]) {
    let mut wrong = Vec::new();
    for mutation in table {
        let mut lines = right(mutation.has_faults);
        (mutation.change)(&mut lines);
        let report = report(&lines.text());
        let violated =
            report.invariants.iter().filter(|standing| standing.verdict == InvariantResult::Violated);
        let violated: BTreeSet<_> = violated.map(|standing| standing.invariant).collect();
        let lines = report.totals.lines;
        let is_proved = report.violations.iter().all(|violation| {
            let lines_exist = violation.lines.iter().all(|&line| line > 0 && u64::from(line) <= lines);
            lines_exist && (!violation.lines.is_empty() || violation.invariant == Invariant::TenantsApart)
        });
        if violated != mutation.violates.iter().copied().collect() || !is_proved {
            wrong.push(format!("{}: {violated:?}, {:#?}", mutation.name, report.violations));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn wrong_fates_and_contents_of_jobs_are_found() {
    check_table(jobs::MUTATIONS);
}

#[test]
fn wrong_times_and_attempts_are_found() {
    check_table(times::MUTATIONS);
}

#[test]
fn wrong_leases_locks_and_states_are_found() {
    check_table(leases::MUTATIONS);
}

#[test]
fn wrong_counts_processes_and_stores_are_found() {
    check_table(run::MUTATIONS);
}

#[test]
fn each_invariant_has_two_mutations() {
    let mutations: Vec<_> = TABLES.into_iter().flatten().collect();
    let names: BTreeSet<_> = mutations.iter().map(|mutation| mutation.name).collect();
    assert_eq!(names.len(), mutations.len(), "the names differ");
    for &invariant in Invariant::VARIANTS {
        let count = mutations.iter().filter(|mutation| mutation.violates.contains(&invariant)).count();
        assert!(count >= 2, "{invariant:?} has {count}");
    }
}
