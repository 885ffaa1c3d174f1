//! Leases of consumers: numbered upwards (Fencing), one at a time (`OneLease`), and only the current one settles
//! (`StaleReceipts`).

use super::job::Job;
use super::{Judgement, Run};
use crate::history::entry::SettleKind;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::{AttemptNumbers, Fencing, OneLease, StaleReceipts};
use crate::history::parsed_lines::Tables;
use crate::history::records::{LeaseRecord, NONE, SettleRecord};

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    let findings = &mut found.findings;
    for (place, lease) in job.leases.iter().enumerate() {
        if job.is_forgotten(lease.granted) {
            continue;
        }
        for earlier in &job.leases[..place] {
            check_tokens(job, earlier, lease, findings);
        }
        if place > 0 {
            check_overlap(run, job, &job.leases[place - 1], lease, findings);
        }
    }
    let is_ok = |settle: &&SettleRecord| settle.span.is_ok() && !job.is_forgotten(settle.span.ended);
    for settle in job.settles.iter().filter(is_ok) {
        findings.checked(StaleReceipts);
        check_current(job, settle, findings);
        check_only(job, settle, findings);
    }
}

/// Checks that no receipt without a known lease has settled a job.
pub(super) fn check_unknown_receipts(tables: &Tables, findings: &mut Findings) {
    for settle in tables.settles.iter().filter(|settle| settle.job == NONE && settle.span.is_ok()) {
        findings.checked(StaleReceipts);
        let what = format_args!("a receipt that nobody was given settled a job");
        findings.violated(StaleReceipts, None, &settle.span.lines(), what);
    }
}

fn check_tokens(job: &Job<'_>, earlier: &LeaseRecord, lease: &LeaseRecord, findings: &mut Findings) {
    findings.checked(Fencing);
    let lines = [earlier.line, lease.line];
    if earlier.token == lease.token {
        if earlier.call != lease.call {
            let what = format_args!("was given to two reserves with the same receipt");
            findings.violated(Fencing, Some(job.name), &lines, what);
        }
    } else if earlier.attempt == lease.attempt {
        let what = format_args!("was reserved twice as attempt {}", lease.attempt);
        findings.violated(Fencing, Some(job.name), &lines, what);
    } else if earlier.attempt > lease.attempt && is_over(job, earlier, lease) {
        let (from, to) = (earlier.attempt, lease.attempt);
        let what = format_args!("was reserved as attempt {to} after attempt {from}");
        findings.violated(AttemptNumbers, Some(job.name), &lines, what);
    }
}

/// Whether a settle of the lease `earlier` was answered before the request for `lease`, so that their order is
/// certain. The time of a grant does not prove it: a process that was stopped sends the answer when it goes on.
fn is_over(job: &Job<'_>, earlier: &LeaseRecord, lease: &LeaseRecord) -> bool {
    settles(job, earlier).any(|settle| settle.span.ended < lease.asked)
}

/// The settles of a lease, renewals aside, that took effect or may have.
fn settles<'a>(job: &Job<'a>, lease: &LeaseRecord) -> impl Iterator<Item = &'a SettleRecord> {
    let token = lease.token;
    let of_lease = move |settle: &&SettleRecord| settle.token == token && settle.kind != SettleKind::Renew;
    job.settles.iter().filter(of_lease).filter(|settle| settle.span.may_count())
}

/// Checks that the lease `next` was granted only after `one` had expired or may have been settled. Skips it if `next`
/// may be the earlier one or the store's clock is not known.
fn check_overlap(
    run: &Run<'_>,
    job: &Job<'_>,
    one: &LeaseRecord,
    next: &LeaseRecord,
    findings: &mut Findings,
) {
    // The lease may have been granted before, with a late answer.
    if next.attempt < one.attempt && next.asked < one.granted {
        return;
    }
    findings.checked(OneLease);
    if one.token == next.token || settles(job, one).any(|settle| settle.span.sent <= next.granted) {
        return;
    }
    let renewals = job.settles.iter().filter(|settle| settle.token == one.token && settle.span.is_ok());
    let renewed = renewals.filter(|settle| settle.span.ended <= next.granted).map(|settle| settle.deadline);
    let deadline = renewed.max().unwrap_or_default().max(one.deadline) * 1_000;
    let Some(now) = run.tables.clocks.between(job.store(), one.granted, next.granted) else { return };
    if now.latest + run.tables.settings.epsilon < deadline {
        let what =
            format_args!("was reserved as attempt {} while attempt {} held it", next.attempt, one.attempt);
        findings.violated(OneLease, Some(job.name), &[one.line, next.line], what);
    }
}

/// Checks that a settle which was accepted came before any later lease of the job. A repetition is not checked.
fn check_current(job: &Job<'_>, settle: &SettleRecord, findings: &mut Findings) {
    let Some(lease) = job.leases.iter().find(|lease| lease.token == settle.token) else { return };
    if settles(job, lease).any(|other| other.span.sent < settle.span.sent) {
        return;
    }
    let is_later = |other: &&LeaseRecord| {
        other.token != lease.token && other.attempt > lease.attempt && other.granted < settle.span.sent
    };
    if let Some(later) = job.leases.iter().find(is_later) {
        let lines = [vec![lease.line, later.line], settle.span.lines()].concat();
        let (kind, attempt) = (settle.kind, lease.attempt);
        let what =
            format_args!("had a {kind:?} of attempt {attempt} accepted after a later attempt had begun");
        findings.violated(StaleReceipts, Some(job.name), &lines, what);
    }
}

/// Checks that after an accepted settle only its repetition is accepted: a finish after a finish, or a retry, bury or
/// release after any of these three.
fn check_only(job: &Job<'_>, settle: &SettleRecord, findings: &mut Findings) {
    let contradicts = |earlier: SettleKind| match settle.kind {
        SettleKind::Finish => earlier != SettleKind::Finish,
        SettleKind::Retry | SettleKind::Bury | SettleKind::Release => earlier == SettleKind::Finish,
        SettleKind::Renew => true,
    };
    let is_earlier = |other: &&SettleRecord| {
        other.token == settle.token
            && other.kind != SettleKind::Renew
            && other.span.is_ok()
            && other.span.ended < settle.span.sent
    };
    if let Some(other) = job.settles.iter().filter(is_earlier).find(|other| contradicts(other.kind)) {
        let lines = [other.span.lines(), settle.span.lines()].concat();
        let (one, two) = (other.kind, settle.kind);
        let what = format_args!("had a {one:?} and then a {two:?} accepted with the same receipt");
        findings.violated(StaleReceipts, Some(job.name), &lines, what);
    }
}
