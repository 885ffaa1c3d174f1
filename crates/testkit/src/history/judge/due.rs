//! Times of deliveries: never early (`NotEarly`), within the bound (Liveness), and with a known lateness
//! (`LatenessKnown`).

use super::job::Job;
use super::{Judgement, Run, millis};
use crate::history::clock::Moment;
use crate::history::entry::MoveKind;
use crate::history::invariant::Invariant::{LatenessKnown, Liveness, NotEarly};
use crate::history::records::{CallRequest, Delivery, Span, SubmitRecord};

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    check_answers(run, job, found);
    let asked = asked_dues(run, job);
    for delivery in job.deliveries {
        let now = run.tables.clocks.between(job.store(), job.begin(), delivery.start);
        if !before_header(run, job, delivery, now, found) {
            before_due(run, job, &asked, (delivery.start, delivery.line), now, found);
        }
        late(run, job, delivery, found);
    }
    for lease in job.leases {
        let now = run.tables.clocks.between(job.store(), job.begin(), lease.granted);
        before_due(run, job, &asked, (lease.granted, lease.line), now, found);
    }
    check_first_due(job, found);
}

/// A due time that somebody asked for.
struct AskedDue {
    span: Span,
    /// The earliest due time in µs that it can lead to; `None` if the store's clock is not known.
    due: Option<u64>,
    is_reschedule: bool,
}

/// The due times that submits and moves may have given the job, also calls of unknown outcome; `None` where not known.
fn asked_dues(run: &Run<'_>, job: &Job<'_>) -> Vec<AskedDue> {
    let submits = job.possible_submits().map(|submit| AskedDue {
        span: submit.span,
        due: match submit.due {
            Some(due) if submit.span.status != 200 => Some(due * 1_000),
            // The answer to a repetition may have the due time of a retry, and what is asked for by a key alone may
            // have been asked for before.
            _ if submit.is_anonymous && submit.span.status == 200 => None,
            _ => bound(run, job, submit.span, submit.at, submit.delay),
        },
        is_reschedule: false,
    });
    let moves = job.possible_calls(|asked| matches!(asked, CallRequest::Move(_))).map(|call| AskedDue {
        span: call.span,
        due: match call.due {
            Some(due) => Some(due * 1_000),
            None => bound(run, job, call.span, call.at, call.delay),
        },
        is_reschedule: call.asked == CallRequest::Move(MoveKind::Reschedule),
    });
    submits.chain(moves).collect()
}

/// The earliest due time in µs that a request can lead to, by the store's clock. Returns `None` if the request has no
/// `at` and that clock is not known.
fn bound(run: &Run<'_>, job: &Job<'_>, span: Span, at: Option<u64>, delay: u64) -> Option<u64> {
    match at {
        Some(at) => Some(at * 1_000),
        None => {
            let clocks = &run.tables.clocks;
            Some(clocks.between(job.store(), span.sent, span.ended)?.earliest + delay * 1_000)
        }
    }
}

/// Checks that no submit was answered with a due time before the earliest one asked for. Skips jobs that may have been
/// moved or replaced, jobs with an unknown due time, and answers 200 to submits with a key and no id.
fn check_answers(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    if job.possible_calls(|asked| matches!(asked, CallRequest::Move(_))).next().is_some()
        || job.possible_submits().any(|submit| submit.replaces)
    {
        return;
    }
    let bounds = job.possible_submits().map(|submit| bound(run, job, submit.span, submit.at, submit.delay));
    let Some(bound) = bounds.min().flatten() else { return };
    // A 200 to a submit with a key may be about an earlier one, whose answer with the id was lost.
    let is_known = |submit: &&SubmitRecord| !submit.is_anonymous || submit.span.status == 201;
    for submit in job.submits.iter().filter(|submit| submit.span.is_ok()).filter(is_known) {
        let Some(due) = submit.due else { continue };
        found.findings.checked(NotEarly);
        let too_early = bound.saturating_sub(due * 1_000);
        if too_early > run.tables.settings.epsilon {
            let too_early = millis(too_early);
            let what = format_args!("was answered with a due time {too_early} ms before the one asked for");
            found.findings.violated(NotEarly, Some(job.name), &submit.span.lines(), what);
        }
    }
}

/// Reports a delivery before the due time in its header. Returns whether it was early; false if a time is not known.
fn before_header(
    run: &Run<'_>,
    job: &Job<'_>,
    delivery: &Delivery,
    now: Option<Moment>,
    found: &mut Judgement,
) -> bool {
    let Some((now, due)) = now.zip(delivery.due) else { return false };
    found.findings.checked(NotEarly);
    let is_early = now.latest + run.tables.settings.epsilon < due * 1_000;
    if is_early {
        found.counts.totals.early += 1;
        let early = millis(due * 1_000 - now.latest);
        let what = format_args!("was delivered {early} ms before its ringback-due-at");
        found.findings.violated(NotEarly, Some(job.name), &[delivery.line], what);
    }
    is_early
}

/// Checks a delivery or a lease, by its time and line, against the earliest due time in force. Skips it if the store's
/// clock is not known.
fn before_due(
    run: &Run<'_>,
    job: &Job<'_>,
    asked: &[AskedDue],
    (at, line): (u64, u32),
    now: Option<Moment>,
    found: &mut Judgement,
) {
    let Some(now) = now else { return };
    found.findings.checked(NotEarly);
    // A reschedule that was answered puts an end to what was asked before it.
    let is_base = |asked: &&AskedDue| {
        asked.is_reschedule
            && asked.span.is_ok()
            && asked.span.ended <= at
            && !run.forgets(asked.span.sent, at)
    };
    let base = asked.iter().filter(is_base).map(|asked| asked.span.sent).max().unwrap_or_default();
    let in_force = asked.iter().filter(|asked| asked.span.sent <= at && asked.span.ended > base);
    let Some(earliest) = in_force.min_by_key(|asked| asked.due) else { return };
    if let Some(due) = earliest.due.filter(|due| now.latest + run.tables.settings.epsilon < *due) {
        found.counts.totals.early += 1;
        let lines = [earliest.span.lines(), vec![line]].concat();
        let early = millis(due - now.latest);
        let what = format_args!("was delivered {early} ms before its due time");
        found.findings.violated(NotEarly, Some(job.name), &lines, what);
    }
}

fn late(run: &Run<'_>, job: &Job<'_>, delivery: &Delivery, found: &mut Judgement) {
    found.findings.checked(LatenessKnown);
    let Some(due) = delivery.due else {
        let what = format_args!("was delivered without ringback-due-at, so its lateness is not known");
        return found.findings.violated(LatenessKnown, Some(job.name), &[delivery.line], what);
    };
    let now = run.tables.clocks.about(job.store(), delivery.start);
    let lateness = now.saturating_sub(due * 1_000);
    let Some(live) = run.tables.settings.live else { return };
    found.findings.checked(Liveness);
    // The bound counts from the due time, or from the end of a fault before it is over.
    let limit = run.disturbed.end_around((delivery.start + live).saturating_sub(lateness));
    if lateness > live && delivery.start > limit {
        let late = millis(lateness);
        let what = format_args!("was delivered {late} ms late, without a fault that explains it");
        found.findings.violated(Liveness, Some(job.name), &[delivery.line], what);
    }
}

/// Checks that the first attempt has the due time that the submit was answered with. Skips jobs with several submits,
/// jobs that were there already, and jobs that were moved.
fn check_first_due(job: &Job<'_>, found: &mut Judgement) {
    let [submit] = job.submits else { return };
    if submit.span.status == 200 {
        return;
    }
    let Some(first) = job.deliveries.first().filter(|first| first.attempt == 1) else { return };
    let was_moved = job.possible_calls(|asked| matches!(asked, CallRequest::Move(_))).next().is_some();
    if let (Some(answered), Some(due), false) = (submit.due, first.due, was_moved)
        && answered != due
    {
        let lines = [submit.span.lines(), vec![first.line]].concat();
        let what = format_args!("has due time {answered} by the submit and {due} by its first attempt");
        found.findings.violated(LatenessKnown, Some(job.name), &lines, what);
    }
}
