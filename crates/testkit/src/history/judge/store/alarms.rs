//! Alarms (`LossNoticed`): a loss of the store is noticed in time, and no process says so of a store that has all of
//! its data.

use crate::history::entry::FaultClass;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::LossNoticed;
use crate::history::parsed_lines::{FaultRecord, Tables};
use crate::history::records::NEVER;

/// How soon a loss has to be noticed, in µs: a process to which the store was away tries again after a second at most,
/// loads its functions into a server that has none, and looks. On a machine under full load that took 1.9 s.
const LIMIT: u64 = 2_500_000;
/// How long a process may still speak of a loss that was accepted, in µs: it looks about once a second.
const GRACE: u64 = 2_500_000;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    let amnesia = || tables.run.faults.iter().filter(|fault| fault.class == FaultClass::Amnesia);
    let losses = tables.run.losses.iter().filter(|loss| loss.has_calls());
    let open: Vec<_> = amnesia()
        .map(|fault| (fault.begin, fault.end))
        .chain(losses.map(|loss| (loss.t, end(tables, loss.t))))
        .map(|(begin, end)| begin..=end.saturating_add(GRACE))
        .collect();
    for (line, alarm) in &tables.run.alarms {
        findings.checked(LossNoticed);
        if !open.iter().any(|open| open.contains(&alarm.t)) {
            let what = format_args!("process {} says that the store lost data, which it has not", alarm.pid);
            findings.violated(LossNoticed, None, &[*line], what);
        }
    }
    for fault in amnesia() {
        findings.checked(LossNoticed);
        let in_time = fault.begin..=deadline(tables, fault);
        if !tables.run.alarms.iter().any(|(_, alarm)| in_time.contains(&alarm.t)) {
            let what =
                format_args!("the store lost data, and no process noticed within two and a half seconds");
            findings.violated(LossNoticed, None, &[fault.line], what);
        }
    }
}

/// When a loss has to be noticed at the latest: [`LIMIT`] after the fault began, or after the store answered again.
/// Time in which the machine or the store stood still is added.
pub(super) fn deadline(tables: &Tables, fault: &FaultRecord) -> u64 {
    let losses = tables.run.losses.iter().filter(|loss| loss.t <= fault.end);
    let answered = losses.filter_map(|loss| loss.answered).filter(|answered| *answered <= fault.end).max();
    let mut seen = answered.unwrap_or_default().max(fault.begin);
    let mut deadline = seen.saturating_add(LIMIT);
    let mut stalls = tables.run.stalls.clone();
    stalls.sort_unstable_by_key(|stall| stall.since);
    for stall in stalls {
        // If stalls overlap, each moment is counted once.
        let since = stall.since.max(seen);
        if since < deadline && since < stall.t {
            deadline = deadline.saturating_add(stall.t - since);
            seen = stall.t;
        }
    }
    deadline
}

/// The end of the store's fault during which a loss came; [`NEVER`] without such a fault.
fn end(tables: &Tables, loss: u64) -> u64 {
    let faults = tables.run.faults.iter().filter(|fault| fault.class.is_store());
    let around = faults.filter(|fault| (fault.begin..=fault.end).contains(&loss));
    around.map(|fault| fault.end).max().unwrap_or(NEVER)
}
