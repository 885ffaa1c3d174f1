//! The audit of the shards' rows: compares the ledger and the number of tombstones with the records
//! that were counted.

use std::collections::BTreeMap;

use ringback_core::contract::{DamageKind, Finding, Shard};
use ringback_core::state::State;

use super::findings::Findings;
use super::repair::Action;
use crate::tables::ShardRow;

/// How many records there are, by shard and name of the state.
pub(crate) type StateCounts = BTreeMap<(u16, &'static str), i64>;

pub(crate) fn check_ledgers(findings: &mut Findings, rows: Vec<(u16, ShardRow)>, counts: &StateCounts) {
    let mut rows: BTreeMap<_, _> = rows.into_iter().collect();
    for (shard, _) in counts.keys() {
        rows.entry(*shard).or_default();
    }
    for (shard, row) in rows {
        let count = |state: State| counts.get(&(shard, state.name())).copied().unwrap_or(0);
        check_ledger(findings, Shard(shard), &row, count);
    }
}

fn check_ledger(findings: &mut Findings, shard: Shard, row: &ShardRow, count: impl Fn(State) -> i64) {
    let (mut off, mut wrong, mut after) = (Vec::new(), Vec::new(), row.ledger.clone());
    for state in State::ALL {
        let (jobs, counted) = (count(state), i64::try_from(row.ledger.of(state)).unwrap_or(i64::MAX));
        // Tombstones are evicted, so there are fewer than jobs that ever ended.
        if jobs > counted || (jobs < counted && !state.is_terminal()) {
            wrong.push(format!("the ledger counts {counted} {state} jobs, and there are {jobs}"));
            off.push((state, jobs - counted));
            after.shift(state, jobs - counted);
        }
    }
    // Lost jobs and jobs that were counted twice look the same, so a ledger that would not add up
    // after the repair stays as it is.
    let can_repair = after.adds_up();
    if !wrong.is_empty() {
        let finding = Finding::new(DamageKind::Ledger, shard, wrong.join("; "));
        findings.add(finding, can_repair.then_some(Action::ShiftLedger(off)));
    }
    if !row.ledger.adds_up() && !can_repair {
        let detail = format!("the counts of all states do not add up to the accepted jobs: {:?}", row.ledger);
        findings.add(Finding::new(DamageKind::Ledger, shard, detail), None);
    }
    let tombstones = count(State::Done) + count(State::Cancelled);
    let counted = i64::try_from(row.tombstones).unwrap_or(i64::MAX);
    if tombstones != counted {
        let detail = format!("{counted} tombstones are counted, and there are {tombstones}");
        let finding = Finding::new(DamageKind::Ledger, shard, detail);
        findings.add(finding, Some(Action::ShiftTombstones(tombstones - counted)));
    }
}
