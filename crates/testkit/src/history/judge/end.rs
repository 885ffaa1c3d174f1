//! How jobs ended: none is lost (`NothingLost`), done only by a success (`OnlySuccessCompletes`), dead only for a
//! reason (`DeadWithReason`), nothing is left over (Liveness), and the numbers of attempts and failures are those of
//! the receivers (`CountsAgree`).

use super::job::{DeliveryResult, Job};
use super::{Judgement, Run};
use crate::history::entry::{JobState, MoveKind, Policy, SettleKind};
use crate::history::invariant::Invariant::{
    CountsAgree, DeadWithReason, Liveness, NothingLost, OneState, OnlySuccessCompletes,
};
use crate::history::records::{CallRequest, Delivery, FinalRecord, NEVER, SubmitRecord};

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    if let Some(accepted) = job.accepted().filter(|_| run.is_dumped()) {
        found.findings.checked(NothingLost);
        if is_gone(job) {
            check_gone(run, job, accepted, found);
        }
    }
    check_success(run, job, found);
    if let Some(last) = job.last {
        check_left(run, job, last, found);
        check_numbers(run, job, last, found);
        if last.state == JobState::Dead {
            found.findings.checked(DeadWithReason);
            check_reason(run, job, last, found);
        }
    }
}

/// Whether a job can only be done: by its final line it is done, or it has none, and no cancel or purge may have
/// removed it.
fn is_gone(job: &Job<'_>) -> bool {
    let is_removed = |asked| matches!(asked, CallRequest::Cancel | CallRequest::Move(MoveKind::Purge));
    let is_done = |state| state == JobState::Done;
    job.last.is_none_or(|last| is_done(last.state)) && job.possible_calls(is_removed).next().is_none()
}

/// Checks that a job which is gone was delivered with success or finished. A job that the store may lose is only
/// counted.
fn check_gone(run: &Run<'_>, job: &Job<'_>, accepted: &SubmitRecord, found: &mut Judgement) {
    let mut lines = accepted.span.lines();
    lines.extend(job.last.map(|last| last.line));
    let was_finished = || {
        let is_finish = |kind| kind == SettleKind::Finish;
        job.settles.iter().any(|settle| is_finish(settle.kind) && settle.span.may_count())
    };
    let (is_handed_over, succeeded) = if job.is_pull() {
        (!job.leases.is_empty(), was_finished())
    } else {
        let mut verdicts = job.deliveries.iter().map(|delivery| job.verdict(delivery));
        (!job.deliveries.is_empty(), verdicts.any(|verdict| verdict != DeliveryResult::Failure))
    };
    found.findings.checked(OnlySuccessCompletes);
    if succeeded {
        return;
    }
    let accepts = job.submits.iter().filter(|submit| submit.span.is_ok());
    let last = accepts.max_by_key(|submit| submit.span.ended);
    if last.is_some_and(|last| run.may_lose(&last.span)) {
        found.counts.totals.lost_excused += 1;
        return;
    }
    if is_handed_over && !job.is_pull() {
        lines.extend(job.deliveries.iter().flat_map(|delivery| delivery.lines()));
        let what = format_args!("counts as done, although no attempt succeeded");
        return found.findings.violated(OnlySuccessCompletes, Some(job.name), &lines, what);
    }
    found.counts.totals.lost += 1;
    lines.extend(job.leases.iter().map(|lease| lease.line));
    let what =
        if is_handed_over { "was reserved, never finished, and is gone" } else { "was accepted and is lost" };
    found.findings.violated(NothingLost, Some(job.name), &lines, what);
}

/// Checks that a job whose delivery succeeded is neither pending nor dead at the end, unless a fault before the next
/// attempt kept the success from being stored. Skips jobs that may have begun anew.
fn check_success(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    let Some(last) = job.last.filter(|last| last.state == JobState::Dead || last.state.is_pending()) else {
        return;
    };
    if job.may_begin_anew(NEVER) {
        return;
    }
    let is_success = |(_, delivery): &(usize, &Delivery)| job.verdict(delivery) == DeliveryResult::Success;
    let successes: Vec<_> = job.deliveries.iter().enumerate().filter(is_success).collect();
    if successes.is_empty() {
        return;
    }
    found.findings.checked(OnlySuccessCompletes);
    let is_lost = || run.tables.texts.name(last.reason) == "lost";
    let until = |place: usize, success: &Delivery| match job.deliveries.get(place + 1) {
        Some(next) => next.start.max(success.end),
        // A success that a fault kept from being stored is followed by another delivery before the job dies.
        None if last.state == JobState::Dead && !is_lost() => success.end,
        None => last.time,
    };
    let is_unexplained =
        |(place, success): &(usize, &Delivery)| !run.explains(success.start, until(*place, success));
    if let Some((_, success)) = successes.into_iter().find(is_unexplained) {
        let lines = [success.lines(), vec![last.line]].concat();
        let state = last.state;
        let what = format_args!("was delivered with success and is {state:?} at the end");
        found.findings.violated(OnlySuccessCompletes, Some(job.name), &lines, what);
    }
}

fn check_left(run: &Run<'_>, job: &Job<'_>, last: &FinalRecord, found: &mut Judgement) {
    let asked_to_cancel =
        job.calls.iter().any(|call| call.asked == CallRequest::Cancel && call.span.may_count());
    if last.state == JobState::Cancelled && !asked_to_cancel {
        let what = format_args!("is cancelled, but nobody asked for that");
        found.findings.violated(OneState, Some(job.name), &[last.line], what);
    }
    if !run.is_drained() {
        return;
    }
    found.findings.checked(Liveness);
    let now = run.tables.clocks.about(job.store(), last.time);
    let is_overdue = last.due.is_some_and(|due| due * 1_000 <= now);
    let is_left = match last.state {
        JobState::Ready | JobState::Reserved => true,
        JobState::Delayed => is_overdue,
        JobState::Done | JobState::Dead | JobState::Cancelled | JobState::Nothing => false,
    };
    if is_left {
        let state = last.state;
        let what = format_args!("is still {state:?} after the run was drained");
        found.findings.violated(Liveness, Some(job.name), &[last.line], what);
    }
}

/// Checks that a final line has no fewer attempts than were seen and, for push jobs, no more failures; for push jobs
/// that no fault hit, exactly as many. Skips jobs that the store lost.
fn check_numbers(run: &Run<'_>, job: &Job<'_>, last: &FinalRecord, found: &mut Judgement) {
    found.findings.checked(CountsAgree);
    let delivered = job.deliveries.iter().map(|delivery| delivery.attempt);
    let leased = job.leases.iter().map(|lease| lease.attempt);
    let seen = delivered.chain(leased).max().unwrap_or_default();
    let is_calm = !run.explains(job.begin(), last.time);
    if job.is_forgotten(last.time) {
        return;
    }
    if last.attempts < seen || (is_calm && !job.is_pull() && last.attempts != seen) {
        let what =
            format_args!("has {} attempts at the end, but attempt {seen} was seen last", last.attempts);
        found.findings.violated(CountsAgree, Some(job.name), &[last.line], what);
    }
    if job.is_pull() || job.may_begin_anew(NEVER) || run.unreachable.overlap(job.begin(), last.time) {
        return;
    }
    // A fault of the store or of a process never costs a failure: the receiver has seen each one.
    found.findings.checked(DeadWithReason);
    let failed = job.deliveries.iter().filter(|delivery| job.verdict(delivery) != DeliveryResult::Success);
    let failed = u32::try_from(failed.count()).unwrap_or(u32::MAX);
    if last.failures > failed {
        let what = format_args!("has {} failures, but only {failed} attempts failed", last.failures);
        found.findings.violated(DeadWithReason, Some(job.name), &[last.line], what);
    } else if is_calm && last.failures < failed {
        let what = format_args!("has {} failures, but {failed} attempts failed", last.failures);
        found.findings.violated(CountsAgree, Some(job.name), &[last.line], what);
    }
}

fn check_reason(run: &Run<'_>, job: &Job<'_>, last: &FinalRecord, found: &mut Judgement) {
    let reason = run.tables.texts.name(last.reason);
    // Any submit of a replaced job may be the one that counts.
    let policies = || job.possible_submits().map(|submit| run.tables.run.policies.get(&submit.policy));
    let is_used_up = |policy: &Policy| policy.max > 0 && last.failures >= policy.max;
    let has_bury_call =
        || job.settles.iter().any(|settle| settle.kind == SettleKind::Bury && settle.span.may_count());
    let is_right = match reason {
        "exhausted" => policies().next().is_none() || policies().any(|policy| policy.is_none_or(is_used_up)),
        "gone" => job.deliveries.iter().any(|delivery| delivery.status == 410),
        "lost" => run.explains(job.begin(), last.time) && last.attempts >= 5,
        // No policy of a history has statuses that bury, and no job expires.
        "rejected" | "expired" => false,
        "forbidden-address" => job.deliveries.is_empty(),
        _ => has_bury_call(),
    };
    if !is_right {
        let failures = last.failures;
        let what = format_args!(
            "is dead by {reason:?} after {failures} failures, which the history does not explain"
        );
        found.findings.violated(DeadWithReason, Some(job.name), &[last.line], what);
    }
}
