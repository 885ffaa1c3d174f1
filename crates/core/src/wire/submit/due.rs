//! When a submitted job is wanted, and times as they are written.

use std::time::Duration;

use serde_json::value::RawValue;

use super::super::duration;
use super::super::fields::{Fields, Mistakes, read, shown};
use crate::clock::Timestamp;
use crate::job::{Due, MAX_AHEAD};

/// What a time may look like, for error messages.
pub(in super::super) const TIME: &str = "a time by RFC 3339, such as 2026-11-20T09:30:00Z";

pub(in super::super) fn due(fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> Due {
    const AHEAD: &str = "at most 10 years ahead";
    match (fields.get("delay"), fields.get("at")) {
        (None, None) => Due::In(Duration::ZERO),
        (Some(_), Some(_)) => {
            mistakes.add("delay", "given together with at", "one of delay and at, or neither for now");
            Due::In(Duration::ZERO)
        }
        (Some(raw), None) => match duration::from_json(raw) {
            Ok(delay) if delay <= MAX_AHEAD => Due::In(delay),
            Ok(_) => wrong_due(mistakes, "delay", raw, "too far ahead", AHEAD),
            Err(why) => wrong_due(mistakes, "delay", raw, &why, duration::ALLOWED),
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

/// A time by RFC 3339.
pub(in super::super) fn time(raw: &RawValue) -> Option<Timestamp> {
    let time: jiff::Timestamp = read::<String>(raw)?.parse().ok()?;
    Some(Timestamp::from_millis(millis_up(time)))
}

/// In ms, rounded up so that a job is never early; times before 1970 count as 1970.
pub(in super::super) fn millis_up(t: jiff::Timestamp) -> u64 {
    u64::try_from(t.as_nanosecond().max(0)).map_or(u64::MAX, |ns| ns.div_ceil(1_000_000))
}
