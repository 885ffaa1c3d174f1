//! States: one at a time, final ones for good, and changed only by the known transitions (`OneState`).

use ringback_core::store_types::TransitionName;

use super::job::Job;
use super::{Judgement, Run};
use crate::history::entry::JobState;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::OneState;
use crate::history::records::TransitionRecord;

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    let findings = &mut found.findings;
    for seen in job.states {
        findings.checked(OneState);
        if seen.places != 1 {
            let what = format_args!("was found in {} states at once", seen.places);
            findings.violated(OneState, Some(job.name), &[seen.line], what);
        }
    }
    for transition in job.transitions {
        findings.checked(OneState);
        if !is_allowed(transition) {
            let TransitionRecord { transition: name, from, to, .. } = transition;
            let what = format_args!("went from {from:?} to {to:?} by {name:?}");
            findings.violated(OneState, Some(job.name), &[transition.line], what);
        }
    }
    if !job.may_begin_anew(u64::MAX) {
        check_completed_once(job, findings);
        check_final_states(run, job, findings);
    }
}

fn check_completed_once(job: &Job<'_>, findings: &mut Findings) {
    let mut completed =
        job.transitions.iter().filter(|transition| transition.transition == TransitionName::Complete);
    if let (Some(one), Some(two)) = (completed.next(), completed.next()) {
        findings.violated(OneState, Some(job.name), &[one.line, two.line], "was completed twice");
    }
}

/// Checks that a job once seen as done or cancelled is later seen in that state or in none. Ignores what was read
/// while a working master was replaced, because a process may still read from it.
fn check_final_states(run: &Run<'_>, job: &Job<'_>, findings: &mut Findings) {
    let Some(first) = job.states.iter().find(|seen| seen.state.is_terminal()) else { return };
    let later = job.states.iter().filter(|seen| seen.asked > first.known);
    let later = later.filter(|seen| !run.replaced.overlap(seen.asked, seen.known));
    let later = later.map(|seen| (seen.state, seen.line));
    let last = job.last.filter(|last| last.time > first.known).map(|last| (last.state, last.line));
    let changed = later.chain(last).find(|(state, _)| *state != first.state && *state != JobState::Nothing);
    if let Some((state, line)) = changed {
        let what = format_args!("was {:?} and later {state:?}", first.state);
        findings.violated(OneState, Some(job.name), &[first.line, line], what);
    }
}

/// Whether docs/concepts/life-of-a-job.md allows a transition.
fn is_allowed(transition: &TransitionRecord) -> bool {
    use JobState::{Cancelled, Dead, Delayed, Done, Nothing, Ready, Reserved};
    use TransitionName::{
        Bury, Cancel, Complete, Evict, Import, Promote, Purge, Recover, Release, Renew, Reschedule, Reserve,
        Retry, Revive, Run, Submit,
    };
    let (from, to): (&[JobState], &[JobState]) = match transition.transition {
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
        // The cancel of a reserved job is only requested.
        Cancel if transition.from == Reserved => (&[Reserved], &[Reserved]),
        Cancel => (&[Delayed, Ready, Dead], &[Cancelled]),
        Reschedule => (&[Delayed], &[Delayed, Ready]),
        Revive => (&[Dead], &[Ready]),
        Purge | Evict => (&[Dead], &[Nothing]),
    };
    from.contains(&transition.from) && to.contains(&transition.to)
}
