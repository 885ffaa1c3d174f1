//! The fields `delay` and `at`, and times in RFC 3339.

use std::time::Duration;

use serde_json::value::RawValue;

use super::object::{Fields, Mistakes, read, shown};
use super::values::{DURATION, duration};
use crate::clock::Timestamp;
use crate::job::{Due, MAX_AHEAD};

/// The form of a time, for error messages.
pub(crate) const TIME: &str = "a time by RFC 3339, such as 2026-11-20T09:30:00Z";

/// When a job is due: `delay`, `at`, or now without either.
pub(crate) fn due(fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> Due {
    const AHEAD: &str = "at most 10 years ahead";
    match (fields.get("delay"), fields.get("at")) {
        (None, None) => Due::In(Duration::ZERO),
        (Some(_), Some(_)) => {
            mistakes.add("delay", "given together with at", "one of delay and at, or neither for now");
            Due::In(Duration::ZERO)
        }
        (Some(raw), None) => match duration(raw) {
            Ok(delay) if delay <= MAX_AHEAD => Due::In(delay),
            Ok(_) => wrong_due(mistakes, "delay", raw, "too far ahead", AHEAD),
            Err(why) => wrong_due(mistakes, "delay", raw, &why, DURATION),
        },
        (None, Some(raw)) => match time(raw) {
            Some(at) if at.since(now) <= MAX_AHEAD => Due::At(at),
            Some(_) => wrong_due(mistakes, "at", raw, "too far ahead", AHEAD),
            None => wrong_due(mistakes, "at", raw, "not RFC 3339", TIME),
        },
    }
}

fn wrong_due(mistakes: &mut Mistakes, field: &str, raw: &RawValue, why: &str, allowed: &str) -> Due {
    mistakes.add(field, format!("{}: {why}", shown(raw)), allowed);
    Due::In(Duration::ZERO)
}

/// A time in RFC 3339.
pub(crate) fn time(raw: &RawValue) -> Option<Timestamp> {
    parse_time(&read::<String>(raw)?)
}

/// Parses a time in RFC 3339, in ms rounded up.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(|time| Timestamp::from_millis(millis_up(time)))
}

/// A time in whole milliseconds, rounded up so that a job is never early. Times before 1970 count as 1970.
fn millis_up(time: jiff::Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond().max(0)).map_or(u64::MAX, |ns| ns.div_ceil(1_000_000))
}
