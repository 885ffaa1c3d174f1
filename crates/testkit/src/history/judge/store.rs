//! The store: its indexes (`RecordsIndexed`) and counts (`CountsAgree`, `LatenessKnown`), honest answers
//! (`DurableAccept`), and that a loss is noticed (`LossNoticed`).

mod alarms;

use super::{Judgement, Run};
use crate::history::entry::{FaultClass, JobState, Ledger};
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::{
    CountsAgree, DurableAccept, LatenessKnown, LossNoticed, RecordsIndexed,
};
use crate::history::parsed_lines::{FaultRecord, Tables};
use crate::history::records::{CallRequest, NEVER, NONE, SubmitRecord};

pub(super) fn check(run: &Run<'_>, found: &mut Judgement) {
    let (tables, findings) = (run.tables, &mut found.findings);
    for (line, check) in &tables.run.checks {
        findings.checked(RecordsIndexed);
        findings.checked(CountsAgree);
        if check.findings > 0 || check.foreign > 0 {
            let (jobs, keys) = (check.findings, check.foreign);
            let what = format_args!("the check has {jobs} findings about jobs and {keys} foreign keys");
            findings.violated(RecordsIndexed, None, &[*line], what);
        }
        if check.miscounts > 0 {
            let what = format_args!("the check has {} findings about counts", check.miscounts);
            findings.violated(CountsAgree, None, &[*line], what);
        }
    }
    if let Some((line, ledger)) = &tables.run.ledger {
        check_ledger(run, *line, ledger, findings);
    }
    check_metrics(tables, findings);
    for (line, asked, answered) in &tables.mistaken {
        let (asked, answered) = (tables.jobs.name(*asked), tables.jobs.name(*answered));
        let what = format_args!("was submitted, and the answer was about {answered}");
        findings.violated(DurableAccept, Some(asked), &[*line], what);
    }
    alarms::check(tables, findings);
    let mut created: Vec<_> = tables.submits.iter().filter(|submit| submit.span.status == 201).collect();
    created.sort_unstable_by_key(|submit| submit.span.sent);
    for fault in &tables.run.faults {
        check_answers(tables, fault, &created, findings);
    }
}

/// The bounds of a count: what was answered, and with it what may have been done.
#[derive(Default)]
struct Bounds {
    least: u64,
    most: u64,
}

impl Bounds {
    fn add(&mut self, is_certain: bool, is_possible: bool) {
        self.least += u64::from(is_certain);
        self.most += u64::from(is_possible);
    }
}

fn check_ledger(run: &Run<'_>, line: u32, ledger: &Ledger, findings: &mut Findings) {
    findings.checked(CountsAgree);
    let Ledger { accepted, delayed, ready, reserved, done, dead, cancelled, purged, missing, .. } = *ledger;
    let sum = delayed + ready + reserved + done + dead + cancelled + purged + missing;
    if accepted != sum {
        let what = format_args!("the ledger has accepted {accepted} jobs, but its states add up to {sum}");
        findings.violated(CountsAgree, None, &[line], what);
    }
    let created = created(run.tables);
    let may_lose = run.is_lossy();
    if missing > 0 && !may_lose {
        let what = format_args!("a repair has found {missing} accepted jobs to be missing");
        findings.violated(CountsAgree, None, &[line], what);
    }
    if accepted > created.most || (accepted < created.least && !may_lose) {
        let Bounds { least, most } = created;
        let what =
            format_args!("the ledger has accepted {accepted} jobs, the clients created {least} to {most}");
        findings.violated(CountsAgree, None, &[line], what);
    }
    let cancels = cancels(run.tables);
    if cancelled > cancels.most || (cancelled < cancels.least && !may_lose) {
        let Bounds { least, most } = cancels;
        let what = format_args!(
            "the ledger has {cancelled} cancelled jobs, the clients cancelled {least} to {most}"
        );
        findings.violated(CountsAgree, None, &[line], what);
    }
    if run.is_dumped() {
        let states = [(JobState::Delayed, delayed), (JobState::Ready, ready)];
        for (state, count) in
            states.into_iter().chain([(JobState::Reserved, reserved), (JobState::Dead, dead)])
        {
            let dumped = run.tables.final_count(state);
            if dumped != count {
                let what = format_args!("the ledger has {count} jobs that are {state:?}, the dump {dumped}");
                findings.violated(CountsAgree, None, &[line], what);
            }
        }
    }
}

/// The bounds of how many jobs the clients created: the answers 201, and with them the submits of unknown outcome.
fn created(tables: &Tables) -> Bounds {
    let mut bounds = Bounds::default();
    for submit in &tables.submits {
        let is_created = submit.span.is_ok() && submit.span.status == 201;
        bounds.add(is_created, is_created || (submit.span.may_count() && !submit.span.is_ok()));
    }
    // A submit that was answered with 200 had been accepted by one whose answer was lost, which is counted above.
    bounds
}

/// The bounds of how many jobs the clients cancelled: the jobs with an answer `cancelled`, and all cancels that may
/// have taken effect.
fn cancels(tables: &Tables) -> Bounds {
    let mut bounds = Bounds::default();
    let cancels: Vec<_> = tables.calls.iter().filter(|call| call.asked == CallRequest::Cancel).collect();
    for calls in cancels.chunk_by(|one, other| one.job == other.job) {
        let is_certain =
            calls.iter().any(|call| call.span.is_ok() && call.state == Some(JobState::Cancelled));
        // A job can be cancelled anew in each of its lives.
        let possible = calls.iter().filter(|call| call.span.may_count()).count() as u64;
        bounds.least += u64::from(is_certain);
        bounds.most += possible;
    }
    bounds
}

/// Checks that counters of the processes agree with the history. If a process was killed, its counts are lost, so only
/// the upper bound is checked.
fn check_metrics(tables: &Tables, findings: &mut Findings) {
    let is_whole = tables.kills() == 0;
    for ((name, label), (value, line)) in &tables.run.metrics {
        let (invariant, bounds) = match (name.as_str(), label.as_str()) {
            ("ringback_api_submitted_jobs_total", "created") => (CountsAgree, created(tables)),
            ("ringback_notifier_attempts_total", "complete") => (CountsAgree, successes(tables)),
            ("ringback_notifier_lateness_seconds_count", _) => (LatenessKnown, deliveries(tables)),
            _ => continue,
        };
        findings.checked(invariant);
        let Bounds { most, least } = bounds;
        let least = if is_whole { least } else { 0 };
        if !(least..=most).contains(value) {
            let what = format_args!("{name}{{{label}}} is {value}, the history has {least} to {most}");
            findings.violated(invariant, None, &[*line], what);
        }
    }
}

fn successes(tables: &Tables) -> Bounds {
    let mut bounds = Bounds::default();
    for delivery in &tables.deliveries {
        let is_success = (200..300).contains(&delivery.status) && !delivery.is_cut && !delivery.is_unexpected;
        let is_quick = delivery.end.saturating_sub(delivery.start) < tables.settings.timeout / 10 * 9;
        let is_calm = tables.run.faults.is_empty();
        bounds.add(is_success && is_quick && is_calm, is_success || delivery.end == NEVER);
    }
    bounds
}

/// The bounds of how many latenesses were measured: one for each delivery; with faults any number more, because an
/// attempt that reached no receiver has one too.
fn deliveries(tables: &Tables) -> Bounds {
    let count = tables.deliveries.len() as u64;
    Bounds { least: count, most: if tables.run.faults.is_empty() { count } else { u64::MAX } }
}

/// Checks that no submit was answered with 201 while the store accepted no writes, or when its loss of data had to be
/// noticed. `created` are the submits with 201, by time.
fn check_answers(tables: &Tables, fault: &FaultRecord, created: &[&SubmitRecord], findings: &mut Findings) {
    let (begin, invariant, what) = match fault.class {
        FaultClass::StoreDown => (fault.begin, DurableAccept, "accepted no writes"),
        FaultClass::Amnesia => (alarms::deadline(tables, fault), LossNoticed, "had lost its data"),
        FaultClass::Process
        | FaultClass::Store
        | FaultClass::Split
        | FaultClass::Network
        | FaultClass::Receiver => return,
    };
    findings.checked(DurableAccept);
    let epsilon = tables.settings.epsilon;
    let first = created.partition_point(|submit| submit.span.sent <= begin + epsilon);
    let within = created[first..].iter().take_while(|submit| submit.span.sent < fault.end);
    for submit in within.filter(|submit| submit.span.ended + epsilon < fault.end) {
        let job = (submit.job != NONE).then(|| tables.jobs.name(submit.job));
        let lines = [vec![fault.line], submit.span.lines()].concat();
        findings.violated(invariant, job, &lines, format_args!("was accepted while the store {what}"));
    }
}
