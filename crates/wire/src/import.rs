//! One line of an import: a job as submitted, or as an export wrote it with its history.

use std::time::Duration;

use ringback_core::job::{History, IfExists, ImportJob, Tenant, TenantScope, Trace};
use ringback_core::limits::MAX_ERROR;
use ringback_core::outcome::LastAttempt;
use ringback_core::policy::Policies;
use ringback_core::state::State;
use ringback_core::written_time::ALLOWED_TIME;

use super::fields::due::time;
use super::fields::object::{Fields, Mistakes, open, parse_text, read};
use super::fields::values::{REASON, is_line, object, parsed, reason};
use super::problem::Problem;
use super::submit::{self, Defaults};

/// The fields of an import that a submit does not have.
const EXTRA: [&str; 9] =
    ["tenant", "state", "created_at", "attempts", "failures", "last", "reason", "content", "traceparent"];

const STATES: &str = "delayed, ready, reserved or dead; without it the job is pending";
const CONTENT: &str = "16 hexadecimal digits in lower case";
const PARENT: &str = "a traceparent of version 00 (W3C Trace Context)";
const COUNT: &str = "0 to 4294967295";
const LAST: &str = "an object with at, and optionally status, error and duration_ms";

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
    let known: Vec<&str> = submit::KNOWN.into_iter().chain(EXTRA).collect();
    fields.check_names("", &known, &mut mistakes);
    if !fields.fit(&submit::LONG, &mut mistakes) {
        return Err(mistakes.into_problem());
    }
    let tenant = tenant(&fields, scope, &mut mistakes);
    let Defaults { now, make_id, make_token, trace, .. } = defaults;
    let defaults = Defaults {
        now,
        make_id: &mut *make_id,
        make_token: &mut *make_token,
        trace,
        tenant: tenant.as_ref(),
    };
    let job = submit::judge(&fields, defaults, Some(&Policies::new()), &mut mistakes)?;
    if job.as_ref().is_some_and(|job| job.if_exists != IfExists::Refuse) {
        mistakes.add("if_exists", "given for an import, which changes no job that exists", "refuse, or none");
    }
    let history = history(&fields, &mut mistakes);
    let content = parsed(&fields, "content", CONTENT, &mut mistakes, parse_text);
    let trace: Option<Trace> = parsed(&fields, "traceparent", PARENT, &mut mistakes, parse_text);
    match job {
        Some(mut job) if mistakes.is_empty() => {
            job.content = content.unwrap_or(job.content);
            job.delivery.trace = trace.or(job.delivery.trace);
            Ok(ImportJob { job, history: Some(history).filter(|history| *history != History::default()) })
        }
        _ => Err(mistakes.into_problem()),
    }
}

/// The tenant of a line.
fn tenant(fields: &Fields<'_>, scope: &TenantScope, mistakes: &mut Mistakes) -> Option<Tenant> {
    let named: Option<Tenant> = parsed(fields, "tenant", Tenant::ALLOWED, mistakes, parse_text);
    let TenantScope::One(own) = scope else { return named };
    if named.is_some() && named != *own {
        mistakes.add("tenant", "not that of the caller", "the tenant of the caller, or none");
    }
    own.clone()
}

fn history(fields: &Fields<'_>, mistakes: &mut Mistakes) -> History {
    History {
        dead: dead(fields, mistakes),
        created: time(fields, "created_at", mistakes),
        attempts: parsed(fields, "attempts", COUNT, mistakes, read).unwrap_or_default(),
        failures: parsed(fields, "failures", COUNT, mistakes, read).unwrap_or_default(),
        last: last(fields, mistakes),
    }
}

/// The reason, if the job is dead.
fn dead(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let reason = reason(fields, REASON, mistakes);
    let state = parsed(fields, "state", STATES, mistakes, |raw| {
        let name = read::<String>(raw)?;
        name.parse().ok().filter(|state: &State| !state.is_terminal())
    });
    match state {
        Some(State::Dead) => {
            if fields.get("reason").is_none() {
                mistakes.add("reason", "missing; a dead job has one", REASON);
            }
            if fields.get("delay").is_some() {
                mistakes.add("delay", "given for a dead job", "at: when it was last due");
            }
            reason
        }
        _ => {
            if reason.is_some() {
                mistakes.add("reason", "given for a job that is not dead", "only together with state dead");
            }
            None
        }
    }
}

fn last(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<LastAttempt> {
    let fields = object(fields, "last", LAST, mistakes)?;
    fields.check_names("last.", &["at", "status", "error", "duration_ms"], mistakes);
    if fields.get("at").is_none() {
        mistakes.add("last.at", "missing", ALLOWED_TIME);
    }
    let allowed = format!("1 to {MAX_ERROR} bytes without control characters, such as timeout");
    let at = time(&fields, "last.at", mistakes);
    let status = parsed(&fields, "last.status", "100 to 999", mistakes, |raw| {
        read::<u16>(raw).filter(|status| (100..=999).contains(status))
    });
    let error = parsed(&fields, "last.error", &allowed, mistakes, |raw| {
        read::<String>(raw).filter(|text| is_line(text, MAX_ERROR))
    });
    let ms = parsed(&fields, "last.duration_ms", COUNT, mistakes, read::<u32>).unwrap_or_default();
    Some(LastAttempt { at: at?, status, error, duration: Duration::from_millis(ms.into()) })
}

#[cfg(test)]
mod tests;
