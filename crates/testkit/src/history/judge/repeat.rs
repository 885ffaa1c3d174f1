//! Repeated submits (`NoSecondJob`), and repeated deliveries: those after a success, and those beside another
//! (`NoUnexplainedRepeat`, `OneLease`).

use super::job::{DeliveryResult, Job};
use super::{Judgement, Run, millis};
use crate::history::entry::MoveKind;
use crate::history::invariant::Invariant::{NoSecondJob, NoUnexplainedRepeat, OneLease};
use crate::history::records::{CallOutcome, CallRequest, Delivery, SubmitRecord};

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    check_submits(job, found);
    for (place, delivery) in job.deliveries.iter().enumerate() {
        found.findings.checked(NoUnexplainedRepeat);
        if place > 0 {
            check_delivery(run, job, place, delivery, found);
        }
    }
}

fn check_submits(job: &Job<'_>, found: &mut Judgement) {
    let is_free_again =
        job.possible_calls(|asked| asked == CallRequest::Move(MoveKind::Purge)).next().is_some();
    if job.submits.len() < 2 || is_free_again || job.possible_submits().any(|submit| submit.replaces) {
        return;
    }
    let mut accepted = job.submits.iter().filter(|submit| submit.span.is_ok());
    let Some(first) = accepted.next() else { return };
    for other in accepted.filter(|other| !job.are_calls_forgotten(other.span.ended)) {
        found.findings.checked(NoSecondJob);
        let lines = [first.span.lines(), other.span.lines()].concat();
        if !other.is_same(first) {
            let what = format_args!("was answered with 2xx for two different contents");
            found.findings.violated(NoSecondJob, Some(job.name), &lines, what);
        } else if first.span.status == 201 && other.span.status == 201 {
            found.findings.violated(NoSecondJob, Some(job.name), &lines, "was created twice");
        }
    }
    check_refused(job, first, found);
}

/// Checks that no repetition of the accepted submit `first` is refused with 409. Skips jobs that may have been
/// cancelled.
fn check_refused(job: &Job<'_>, first: &SubmitRecord, found: &mut Judgement) {
    if job.possible_calls(|asked| asked == CallRequest::Cancel).next().is_some() {
        return;
    }
    let is_repetition = |other: &&SubmitRecord| other.span.sent > first.span.ended && other.is_same(first);
    for other in job.submits.iter().filter(is_repetition) {
        found.findings.checked(NoSecondJob);
        if other.span.outcome == CallOutcome::Refused && other.span.status == 409 {
            let lines = [first.span.lines(), other.span.lines()].concat();
            let what = format_args!("was accepted, and its repeated submit was refused with 409");
            found.findings.violated(NoSecondJob, Some(job.name), &lines, what);
        }
    }
}

/// Checks that the delivery at `place` neither follows a success nor overlaps an earlier one, unless a fault explains
/// it or the job may have begun anew. Counts the repeats.
fn check_delivery(run: &Run<'_>, job: &Job<'_>, place: usize, delivery: &Delivery, found: &mut Judgement) {
    let earlier = &job.deliveries[..place];
    let success = earlier.iter().find(|other| job.verdict(other) == DeliveryResult::Success);
    let after_success = success.filter(|success| success.end <= delivery.start);
    let beside = earlier.iter().find(|other| job.end_of(other) > delivery.start);
    let Some(other) = after_success.or(beside) else { return };
    if job.may_begin_anew(delivery.start) {
        return;
    }
    if run.explains(other.start, delivery.start) {
        found.counts.totals.duplicates_explained += 1;
        return;
    }
    found.counts.totals.duplicates_unexplained += 1;
    let lines = [other.lines(), delivery.lines()].concat();
    if after_success.is_some() {
        let after = millis(delivery.start - other.end);
        let what = format_args!("was delivered again {after} ms after a success, without a fault");
        found.findings.violated(NoUnexplainedRepeat, Some(job.name), &lines, what);
    } else {
        let what = format_args!("was delivered while an earlier attempt was running, without a fault");
        found.findings.violated(OneLease, Some(job.name), &lines, what);
    }
}
