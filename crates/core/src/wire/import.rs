//! One line of an import: a job as submitted, or as an export wrote it, with what it has
//! behind it.

use std::time::Duration;

use serde_json::value::RawValue;

use super::Problem;
use super::fields::{Fields, Mistakes, read, shown, wrong_type};
use super::submit::{self, Defaults, TIME, time};
use crate::job::{ContentHash, History, ImportJob, Trace};
use crate::outcome::LastAttempt;
use crate::policy::Policies;
use crate::state::State;

/// The fields that an import knows beside those of a submit.
const EXTRA: [&str; 8] =
    ["state", "created_at", "attempts", "failures", "last", "reason", "content", "traceparent"];

/// The longest reason, in bytes.
pub(super) const MAX_REASON: usize = 64;
/// The longest word for an error, in bytes.
pub(super) const MAX_ERROR: usize = 128;

const STATES: &str = "delayed, ready, reserved or dead; without it the job is pending";
const CONTENT: &str = "16 hexadecimal digits in lower case";
const PARENT: &str = "a traceparent of version 00 (W3C Trace Context)";
const COUNT: &str = "0 to 4294967295";
const LAST: &str = "an object with at, and optionally status, error and duration_ms";

/// Parses one line. What its job has behind it is kept: a dead job stays dead and keeps its
/// due time, any other is pending and due `at` the time given, at once where that has passed.
/// A line without `content` counts as the submit of its fields.
///
/// # Errors
/// Those of [`parse_job`](super::parse_job).
pub fn parse_import(line: &[u8], defaults: Defaults<'_>) -> Result<ImportJob, Problem> {
    let fields = submit::open(line)?;
    let mut mistakes = Mistakes::default();
    let known: Vec<&str> = submit::KNOWN.into_iter().chain(EXTRA).collect();
    fields.check_names("", &known, &mut mistakes);
    let job = submit::judge(&fields, defaults, Some(&Policies::new()), &mut mistakes)?;
    let history = history(&fields, &mut mistakes);
    let content = parsed(&fields, "content", CONTENT, &mut mistakes, |raw| {
        read::<String>(raw)?.parse::<ContentHash>().ok()
    });
    let trace = parsed(&fields, "traceparent", PARENT, &mut mistakes, |raw| {
        read::<String>(raw)?.parse::<Trace>().ok()
    });
    match job {
        Some(mut job) if mistakes.is_empty() => {
            job.content = content.unwrap_or(job.content);
            job.delivery.trace = trace.or(job.delivery.trace);
            Ok(ImportJob { job, history: Some(history).filter(|history| *history != History::default()) })
        }
        _ => Err(Problem::fields(mistakes.into_inner())),
    }
}

fn history(fields: &Fields<'_>, mistakes: &mut Mistakes) -> History {
    let count = |raw: &RawValue| read::<u32>(raw);
    History {
        dead: dead(fields, mistakes),
        created: parsed(fields, "created_at", TIME, mistakes, time),
        attempts: parsed(fields, "attempts", COUNT, mistakes, count).unwrap_or_default(),
        failures: parsed(fields, "failures", COUNT, mistakes, count).unwrap_or_default(),
        last: last(fields, mistakes),
    }
}

/// A field's value, where it is there and right; `path` ends with its name.
fn parsed<T>(
    fields: &Fields<'_>,
    path: &str,
    allowed: &str,
    mistakes: &mut Mistakes,
    parse: impl FnOnce(&RawValue) -> Option<T>,
) -> Option<T> {
    let raw = fields.get(path.rsplit('.').next()?)?;
    let value = parse(raw);
    if value.is_none() {
        mistakes.add(path, format!("{} cannot be it", shown(raw)), allowed);
    }
    value
}

/// Why the job is dead, if it is.
fn dead(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let allowed = format!("1 to {MAX_REASON} visible ASCII characters, such as exhausted, gone or lost");
    let reason = parsed(fields, "reason", &allowed, mistakes, |raw| {
        read::<String>(raw).filter(|text| is_word(text, MAX_REASON))
    });
    let state = parsed(fields, "state", STATES, mistakes, |raw| {
        let name = read::<String>(raw)?;
        State::ALL.into_iter().find(|state| !state.is_terminal() && state.name() == name)
    });
    match state {
        Some(State::Dead) => {
            if fields.get("reason").is_none() {
                mistakes.add("reason", "missing; a dead job has one", &allowed);
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

pub(super) fn is_word(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// What a consumer may say of its failure, in words.
pub(super) fn is_line(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn last(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<LastAttempt> {
    let raw = fields.get("last")?;
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(raw.get()) else {
        return wrong_type(mistakes, "last", raw, LAST);
    };
    fields.check_names("last.", &["at", "status", "error", "duration_ms"], mistakes);
    if fields.get("at").is_none() {
        mistakes.add("last.at", "missing", TIME);
    }
    let word = format!("1 to {MAX_ERROR} bytes without control characters, such as timeout");
    let at = parsed(&fields, "last.at", TIME, mistakes, time);
    let status = parsed(&fields, "last.status", "100 to 999", mistakes, |raw| {
        read::<u16>(raw).filter(|status| (100..=999).contains(status))
    });
    let error = parsed(&fields, "last.error", &word, mistakes, |raw| {
        read::<String>(raw).filter(|text| is_line(text, MAX_ERROR))
    });
    let ms = parsed(&fields, "last.duration_ms", COUNT, mistakes, read::<u32>).unwrap_or_default();
    Some(LastAttempt { at: at?, status, error, duration: Duration::from_millis(ms.into()) })
}

#[cfg(test)]
mod tests;
