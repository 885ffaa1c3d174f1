//! Cancels: nothing is delivered afterwards, they can be repeated, and they make nothing (`NotAfterCancel`).

use super::job::Job;
use super::{Judgement, Run, millis};
use crate::history::entry::JobState;
use crate::history::invariant::Invariant::NotAfterCancel;
use crate::history::records::{CallOutcome, CallRecord, CallRequest, Delivery};

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    for cancel in job.calls.iter().filter(|call| call.asked == CallRequest::Cancel && call.span.is_ok()) {
        found.findings.checked(NotAfterCancel);
        if job.submits.iter().all(|submit| submit.span.outcome == CallOutcome::Refused) {
            let what = format_args!("was never submitted, and yet cancelled");
            found.findings.violated(NotAfterCancel, Some(job.name), &cancel.span.lines(), what);
            continue;
        }
        let is_forgotten = job.are_calls_forgotten(u64::MAX) || run.may_lose(&cancel.span);
        if is_forgotten || job.may_be_another(u64::MAX) {
            continue;
        }
        match cancel.state {
            Some(JobState::Cancelled) => {
                check_cancelled(run, job, cancel, found);
                check_repetition(job, cancel, found);
            }
            _ => check_requested(run, job, cancel, found),
        }
    }
}

/// Checks that after the answer `cancelled` no delivery starts, no lease is granted, and the job stays cancelled.
/// Skips a cancel whose answer says that an attempt may be in flight.
fn check_cancelled(run: &Run<'_>, job: &Job<'_>, cancel: &CallRecord, found: &mut Judgement) {
    if cancel.is_in_flight_unknown {
        return;
    }
    let limit = cancel.span.ended + run.tables.settings.epsilon;
    for delivery in job.deliveries.iter().filter(|delivery| delivery.start > limit) {
        let lines = [cancel.span.lines(), delivery.lines()].concat();
        let after = millis(delivery.start - cancel.span.ended);
        let what = format_args!("was delivered {after} ms after its cancel was answered with cancelled");
        found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
    }
    for lease in job.leases.iter().filter(|lease| lease.granted > limit) {
        // The answer to the consumer can come later than the reserve, but not after its deadline.
        let granted = run.tables.clocks.about(job.store(), cancel.span.ended);
        if lease.deadline.saturating_mul(1_000) > granted {
            let lines = [cancel.span.lines(), vec![lease.line]].concat();
            let what = format_args!("was reserved after its cancel was answered with cancelled");
            found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
        }
    }
    let last = job.last.filter(|last| last.state != JobState::Cancelled && last.time > cancel.span.ended);
    if let Some(last) = last {
        let lines = [cancel.span.lines(), vec![last.line]].concat();
        let state = last.state;
        let what = format_args!("was answered as cancelled and is {state:?} at the end");
        found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
    }
}

/// Checks that a later cancel is neither refused nor answered with another state.
fn check_repetition(job: &Job<'_>, cancel: &CallRecord, found: &mut Judgement) {
    let later = |call: &&CallRecord| call.asked == CallRequest::Cancel && call.span.sent > cancel.span.ended;
    for repetition in job.calls.iter().filter(later) {
        let is_other = repetition.span.is_ok() && repetition.state != Some(JobState::Cancelled);
        if repetition.span.outcome == CallOutcome::Refused || is_other {
            let lines = [cancel.span.lines(), repetition.span.lines()].concat();
            let what = format_args!("was cancelled, and a repeated cancel was answered in another way");
            found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
        }
    }
}

/// Checks a cancel with the answer `reserved`: at most one delivery goes on, unless a fault explains more, and the job
/// is not dead or delayed at the end.
fn check_requested(run: &Run<'_>, job: &Job<'_>, cancel: &CallRecord, found: &mut Judgement) {
    let after = |delivery: &&Delivery| job.end_of(delivery) > cancel.span.ended;
    let rest: Vec<_> = job.deliveries.iter().filter(after).collect();
    if let [first, .., last] = rest.as_slice()
        && !run.explains(first.start, last.start)
    {
        let lines = [cancel.span.lines(), first.lines(), last.lines()].concat();
        let what = format_args!("was delivered again after the attempt during which it was cancelled");
        found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
    }
    if let Some(last) =
        job.last.filter(|last| last.state == JobState::Dead || last.state == JobState::Delayed)
    {
        let lines = [cancel.span.lines(), vec![last.line]].concat();
        let state = last.state;
        let what = format_args!("was cancelled during an attempt and is {state:?} at the end");
        found.findings.violated(NotAfterCancel, Some(job.name), &lines, what);
    }
}
