//! Idempotency keys: the same key makes one job, and refuses other content (`NoSecondJob`).

use std::collections::HashMap;

use super::Run;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::NoSecondJob;
use crate::history::parsed_lines::Tables;
use crate::history::records::{NONE, SubmitRecord};

pub(super) fn check(run: &Run<'_>, findings: &mut Findings) {
    let tables = run.tables;
    let mut keyed: Vec<&SubmitRecord> = with_keys(tables).filter(|submit| submit.span.is_ok()).collect();
    keyed.sort_unstable_by_key(|submit| (submit.key, submit.span.sent));
    for uses in keyed.chunk_by(|one, other| one.key == other.key) {
        let first = uses[0];
        for other in uses[1..].iter().filter(|other| !run.forgets(first.span.sent, other.span.ended)) {
            findings.checked(NoSecondJob);
            let name = (first.job != NONE).then(|| tables.jobs.name(first.job));
            let lines = [first.span.lines(), other.span.lines()].concat();
            if other.job != first.job {
                let what = format_args!("and another one were made by submits with the same idempotency key");
                findings.violated(NoSecondJob, name, &lines, what);
            } else if !other.is_same(first) {
                let what = format_args!("was answered for other content under the same idempotency key");
                findings.violated(NoSecondJob, name, &lines, what);
            }
        }
    }
}

/// The idempotency keys of submits that were answered with a job, and those jobs.
pub(super) fn used(tables: &Tables) -> HashMap<u32, u32> {
    with_keys(tables).filter(|submit| submit.job != NONE).map(|submit| (submit.key, submit.job)).collect()
}

/// The submits with an idempotency key and no id. A key beside an id only marks repetitions.
fn with_keys(tables: &Tables) -> impl Iterator<Item = &SubmitRecord> {
    tables.submits.iter().filter(|submit| submit.key != NONE && submit.is_anonymous)
}
