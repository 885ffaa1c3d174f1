//! One line of an import: a job as submitted, or as an export wrote it with its history.

use std::time::Duration;

use ringback_core::job::{ContentHash, History, IfExists, ImportJob, Tenant, TenantScope, Trace};
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;
use ringback_core::topic_policy::Policies;
use ringback_core::written_time::ALLOWED_TIME;

use super::declare::{Request as _, request};
use super::field_parsers::object::{Fields, Mistakes, open};
use super::field_parsers::values::REASON;
use super::kinds::{Part, Text, Whole};
use super::problem::Problem;
use super::schema::{ContentHashText, DeadReason, ErrorMessage, PendingState, TenantName, Time, TraceParent};
use super::submit::{self, Defaults, JobRequest};

const STATES: &str = "delayed, ready, reserved or dead; without it the job is pending";
const CONTENT: &str = "16 hexadecimal digits in lower case";
const PARENT: &str = "a traceparent of version 00 (W3C Trace Context)";
const COUNT: &str = "0 to 4294967295";
const LAST: &str = "an object with at, and optionally status, error and duration_ms";

/// A whole number that is counted.
type Count = Whole<u32, 0, { u32::MAX as u64 }>;

request! {
    /// A line of an import: an exported job, or a job as it is submitted.
    #[example {
        "topic": "pay.notify", "id": "order-2026112000012345", "state": "dead", "at": "2026-11-20T09:30:00.000Z",
        "url": "https://merchant.example/notify", "body": {"status": "PAID"},
        "created_at": "2026-11-20T09:20:00.000Z", "attempts": 3, "failures": 3,
        "last": {"at": "2026-11-20T09:30:00.017Z", "status": 503, "duration_ms": 17},
        "reason": "exhausted", "content": "000102ff10ab0908",
    }]
    pub struct ImportLine of JobRequest without [] {
        /// The tenant whose job it is. Of a key, only its own.
        tenant: Text<TenantName, Tenant> [Tenant::ALLOWED];
        /// The state of an exported job. Only `dead` counts: any other job is pending.
        state: PendingState [STATES];
        /// When it was accepted.
        created_at: Time;
        /// How often it was reserved.
        attempts: Count [COUNT], or 0;
        /// How many of the attempts failed.
        failures: Count [COUNT], or 0;
        /// The last failed attempt.
        last: Part<ImportedAttempt> [LAST];
        /// Why it is dead. Only for a dead job, which must have it.
        reason: DeadReason [REASON];
        /// The hash of its submit. By default that of the fields of this line.
        content: Text<ContentHashText, ContentHash> [CONTENT];
        /// The trace it belongs to.
        traceparent: Text<TraceParent, Trace> [PARENT];
    }
}

request! {
    /// A failed attempt of an imported job.
    #[example {"at": "2026-11-20T09:30:15.017Z", "status": 503, "duration_ms": 17}]
    pub struct ImportedAttempt {
        /// When it was sent.
        at: Time [ALLOWED_TIME], required;
        /// The status of the response.
        status: Whole<u16, 100, 999> ["100 to 999"];
        /// What went wrong.
        error: ErrorMessage ["1 to 128 bytes without control characters, such as timeout"];
        /// How long it took, in milliseconds.
        duration_ms: Count [COUNT], or 0;
    }
}

/// Parses one line and keeps the job's history. A dead job stays dead and keeps its due time. Any other
/// job is pending and due `at` the given time, or at once if that has passed. A line without `content`
/// has the content hash that a submit of its fields has.
///
/// `scope` says whose jobs the caller may import. If that is one tenant, all lines are of it.
///
/// # Errors
/// As [`parse_job`](super::parse_job).
pub fn parse_import(line: &[u8], defaults: Defaults<'_>, scope: &TenantScope) -> Result<ImportJob, Problem> {
    let fields = open(line)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &ImportLine::names(), &mut mistakes);
    if !fields.fit(&submit::LONG, &mut mistakes) {
        return Err(mistakes.into_problem());
    }
    let line = ImportLine::values(&fields, &mut mistakes);
    let tenant = tenant(line.tenant.clone(), scope, &mut mistakes);
    let Defaults { now, make_id, make_token, trace, .. } = defaults;
    let defaults = Defaults {
        now,
        make_id: &mut *make_id,
        make_token: &mut *make_token,
        trace,
        tenant: tenant.as_ref(),
    };
    let job = submit::build_job(&fields, defaults, Some(&Policies::new()), &mut mistakes)?;
    if job.as_ref().is_some_and(|job| job.if_exists != IfExists::Refuse) {
        mistakes.add("if_exists", "given for an import, which changes no job that exists", "refuse, or none");
    }
    let (content, trace) = (line.content, line.traceparent);
    let history = history(&fields, line, &mut mistakes);
    match job {
        Some(mut job) if mistakes.is_empty() => {
            job.content = content.unwrap_or(job.content);
            job.delivery.trace = trace.or(job.delivery.trace);
            Ok(ImportJob { job, history: Some(history).filter(|history| *history != History::default()) })
        }
        _ => Err(mistakes.into_problem()),
    }
}

/// The tenant of a line: that of a caller who may import only its own, else the one that the line names. Adds a mistake
/// if the line names another tenant than that caller's.
fn tenant(named: Option<Tenant>, scope: &TenantScope, mistakes: &mut Mistakes) -> Option<Tenant> {
    let TenantScope::One(own) = scope else { return named };
    if named.is_some() && named != *own {
        mistakes.add("tenant", "not that of the caller", "the tenant of the caller, or none");
    }
    own.clone()
}

fn history(fields: &Fields<'_>, line: ImportLine, mistakes: &mut Mistakes) -> History {
    check_dead(fields, &line, mistakes);
    let ImportLine { state, created_at: created, attempts, failures, last, reason, .. } = line;
    let last = last.and_then(|ImportedAttempt { at, status, error, duration_ms }| {
        Some(LastAttempt { at: at?, status, error, duration: Duration::from_millis(duration_ms.into()) })
    });
    History { dead: reason.filter(|_| state == Some(State::Dead)), created, attempts, failures, last }
}

/// Adds a mistake if a dead job has no reason or has a `delay`, or if another job has a reason.
fn check_dead(fields: &Fields<'_>, line: &ImportLine, mistakes: &mut Mistakes) {
    if line.state == Some(State::Dead) {
        if fields.get("reason").is_none() {
            mistakes.add("reason", "missing; a dead job has one", REASON);
        }
        if fields.get("delay").is_some() {
            mistakes.add("delay", "given for a dead job", "at: when it was last due");
        }
    } else if line.reason.is_some() {
        mistakes.add("reason", "given for a job that is not dead", "only together with state dead");
    }
}

#[cfg(test)]
mod tests;
