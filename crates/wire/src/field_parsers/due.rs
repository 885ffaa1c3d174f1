//! The fields `delay`, `at` and `time_zone`, and other fields that are times.

use std::fmt::Display;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::duration::format_duration;
use ringback_core::job::{Due, MAX_AHEAD};
use ringback_core::written_time::{ALLOWED_TIME, TimeError, WrittenTime, Zone, parse_time};
use serde_json::value::RawValue;

use super::object::{Fields, Mistakes, open, read, shown};
use super::values::{DURATION, duration};
use crate::declare::Kind as _;
use crate::schema::ZoneName;

const AHEAD: &str = "at most 10 years ahead";
/// What is allowed in place of a local time without a zone.
const NEEDS_ZONE: &str =
    "an offset, such as 2026-11-20T10:30:00+01:00, or the field time_zone beside it, such as Europe/Berlin";

/// From here on a delay without a unit may be meant in milliseconds, as other systems have it.
const LONG: Duration = Duration::from_secs(86_400);

/// A note for the answer to a request that was accepted with a number over a day (in seconds) as its `delay`: it may
/// have been meant in milliseconds. `None` for other requests.
pub fn delay_note(json: &[u8], due: Due) -> Option<String> {
    let Due::In(delay) = due else { return None };
    if delay <= LONG {
        return None;
    }
    let fields = open(json).ok()?;
    let written = fields.get("delay").map(RawValue::get).filter(|text| !text.starts_with('"'))?;
    let whole = Duration::from_secs(delay.as_secs());
    Some(format!(
        "the delay {written} is in seconds, which is {}; for milliseconds write \"{written}ms\"",
        format_duration(whole)
    ))
}

/// When a job is due: `delay`, `at` with or without `time_zone`, or now without any. Anything wrong adds a mistake.
pub(crate) fn due(fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> Due {
    let due = match (fields.get("delay"), fields.get("at")) {
        (Some(_), Some(_)) => {
            mistakes.add("delay", "given together with at", "one of delay and at, or neither for now");
            None
        }
        (None, Some(raw)) => at(raw, fields, now, mistakes),
        (given, None) => {
            if fields.get("time_zone").is_some() {
                let allowed = "only together with at, which is a local time then";
                mistakes.add("time_zone", "given without at", allowed);
            }
            given.and_then(|raw| delay(raw, mistakes))
        }
    };
    due.unwrap_or(Due::In(Duration::ZERO))
}

fn delay(raw: &RawValue, mistakes: &mut Mistakes) -> Option<Due> {
    match duration(raw) {
        Ok(delay) if delay <= MAX_AHEAD => return Some(Due::In(delay)),
        Ok(_) => wrong(mistakes, "delay", raw, "too far ahead", AHEAD),
        Err(why) => wrong(mistakes, "delay", raw, why, DURATION),
    }
    None
}

fn at(raw: &RawValue, fields: &Fields<'_>, now: Timestamp, mistakes: &mut Mistakes) -> Option<Due> {
    let has_zone = fields.get("time_zone").is_some();
    let zone = ZoneName::read(fields, "time_zone", "", mistakes);
    let Some(text) = read::<String>(raw) else {
        wrong(mistakes, "at", raw, TimeError::Unreadable, ALLOWED_TIME);
        return None;
    };
    let time = WrittenTime::parse(&text).and_then(|written| {
        // An unknown zone is reported already, so a missing one is not.
        if has_zone && zone.is_none() { Ok(now) } else { written.resolve(zone.as_ref()) }
    });
    match time {
        Ok(at) if at.since(now) <= MAX_AHEAD => return Some(Due::At(at)),
        Ok(_) => wrong(mistakes, "at", raw, "too far ahead", AHEAD),
        Err(TimeError::Local) => wrong(mistakes, "at", raw, TimeError::Local, NEEDS_ZONE),
        Err(error) => wrong(mistakes, "at", raw, &error, error.allowed()),
    }
    None
}

fn wrong(mistakes: &mut Mistakes, field: &str, raw: &RawValue, why: impl Display, allowed: &str) {
    mistakes.add(field, format_args!("{}: {why}", shown(raw)), allowed);
}

/// A field that is a point in time, or a local time in `zone`; `None` if missing, or wrong, which adds a mistake.
pub(crate) fn local_time(
    fields: &Fields<'_>,
    name: &str,
    zone: Option<&Zone>,
    mistakes: &mut Mistakes,
) -> Option<Timestamp> {
    let raw = fields.get(name)?;
    let text = read::<String>(raw).ok_or(TimeError::Unreadable);
    let time = text.and_then(|text| WrittenTime::parse(&text)?.resolve(zone));
    let allowed = |error: &TimeError| match error {
        TimeError::Local => NEEDS_ZONE,
        other => other.allowed(),
    };
    time.map_err(|error| wrong(mistakes, name, raw, &error, allowed(&error))).ok()
}

/// A point in time in the field that `path` ends with; `None` if it is missing, or wrong, which adds a mistake.
pub(crate) fn time(fields: &Fields<'_>, path: &str, mistakes: &mut Mistakes) -> Option<Timestamp> {
    let raw = fields.get(path.rsplit('.').next()?)?;
    let time = read::<String>(raw).ok_or(TimeError::Unreadable).and_then(|text| parse_time(&text));
    time.map_err(|error| wrong(mistakes, path, raw, &error, error.allowed())).ok()
}
