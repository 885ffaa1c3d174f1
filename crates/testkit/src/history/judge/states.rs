//! States: one at a time, final ones for good, and changed only by the known edges (I9).

use ringback_core::contract::EdgeName;

use super::job::Job;
use super::{Judgement, Run};
use crate::history::entry::JobState;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::I9;
use crate::history::records::EdgeRecord;

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    let findings = &mut found.findings;
    for seen in job.states {
        findings.checked(I9);
        if seen.places != 1 {
            let what = format_args!("was found in {} states at once", seen.places);
            findings.violated(I9, Some(job.name), &[seen.line], what);
        }
    }
    for edge in job.edges {
        findings.checked(I9);
        if !is_allowed(edge) {
            let EdgeRecord { edge: name, from, to, .. } = edge;
            let what = format_args!("went from {from:?} to {to:?} by {name:?}");
            findings.violated(I9, Some(job.name), &[edge.line], what);
        }
    }
    if !job.may_begin_anew(u64::MAX) {
        check_completed_once(job, findings);
        check_final_states(run, job, findings);
    }
}

fn check_completed_once(job: &Job<'_>, findings: &mut Findings) {
    let mut completed = job.edges.iter().filter(|edge| edge.edge == EdgeName::Complete);
    if let (Some(one), Some(two)) = (completed.next(), completed.next()) {
        let what = format_args!("was completed twice");
        findings.violated(I9, Some(job.name), &[one.line, two.line], what);
    }
}

/// What was done or cancelled stays so. While a master that works is replaced, a process may still read from it.
fn check_final_states(run: &Run<'_>, job: &Job<'_>, findings: &mut Findings) {
    let Some(first) = job.states.iter().find(|seen| seen.state.is_terminal()) else { return };
    let later = job.states.iter().filter(|seen| seen.asked > first.known);
    let later = later.filter(|seen| !run.replaced.overlap(seen.asked, seen.known));
    let later = later.map(|seen| (seen.state, seen.line));
    let last = job.last.filter(|last| last.time > first.known).map(|last| (last.state, last.line));
    let changed = later.chain(last).find(|(state, _)| *state != first.state && *state != JobState::Nothing);
    if let Some((state, line)) = changed {
        let what = format_args!("was {:?} and later {state:?}", first.state);
        findings.violated(I9, Some(job.name), &[first.line, line], what);
    }
}

/// The edges of docs/lifecycle.md.
fn is_allowed(edge: &EdgeRecord) -> bool {
    use EdgeName::{
        Bury, Cancel, Complete, Evict, Import, Promote, Purge, Recover, Redrive, Release, Renew, Reschedule,
        Reserve, Retry, Revive, Run, Submit,
    };
    use JobState::{Cancelled, Dead, Delayed, Done, Nothing, Ready, Reserved};
    let (from, to): (&[JobState], &[JobState]) = match edge.edge {
        Submit => (&[Nothing, Delayed, Ready, Dead], &[Delayed, Ready]),
        Import => (&[Nothing], &[Delayed, Ready, Dead]),
        Promote | Run => (&[Delayed], &[Ready]),
        Reserve => (&[Ready], &[Reserved]),
        Renew => (&[Reserved], &[Reserved]),
        // A success that comes late completes a job in any state that is not final.
        Complete => (&[Delayed, Ready, Reserved, Dead], &[Done]),
        Retry => (&[Reserved], &[Delayed, Cancelled]),
        Bury => (&[Reserved], &[Dead, Cancelled]),
        Release => (&[Reserved], &[Ready, Delayed, Cancelled]),
        Recover => (&[Reserved], &[Ready, Dead, Cancelled]),
        // Of a reserved job the cancel is only requested.
        Cancel if edge.from == Reserved => (&[Reserved], &[Reserved]),
        Cancel => (&[Delayed, Ready, Dead], &[Cancelled]),
        Reschedule => (&[Delayed], &[Delayed, Ready]),
        Revive | Redrive => (&[Dead], &[Ready]),
        Purge | Evict => (&[Dead], &[Nothing]),
    };
    from.contains(&edge.from) && to.contains(&edge.to)
}
