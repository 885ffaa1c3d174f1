//! Parsers of values that many requests have: durations, URLs, objects, lists of headers, reasons. A value that is not
//! allowed adds a mistake. Also limits and forms for error messages.

use std::ops::RangeInclusive;
use std::time::Duration;

use ringback_core::duration::{DurationError, parse_duration};
use ringback_core::job::{Callback, Headers, MASK, Refused};
use ringback_core::limits::MAX_REASON;
use serde_json::value::RawValue;

use super::first_entries::FirstEntries;
use super::object::{Fields, Mistakes, read, shown};

/// The longest wait of one reserve.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The longest time for which former secrets go on signing.
pub const MAX_KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest name of a replay.
pub const MAX_REPLAY_NAME: usize = 64;

/// The form of a duration, for error messages.
pub(crate) const DURATION: &str = "seconds as a number (2, 0.25), or a duration such as \"250ms\", \"10s\", \"1h 30m\", \"7d\" with the units w, d, h, m, s and ms; not negative";
/// The form of a reason, for error messages.
pub const REASON: &str = "1 to 64 visible ASCII characters, such as exhausted, gone or lost";
const WRONG_TYPE: &str = "is of the wrong type";

/// A duration: a number of seconds, fractions allowed, or a friendly text. The error says why the value is not one.
pub(crate) fn duration(raw: &RawValue) -> Result<Duration, String> {
    let text = raw.get();
    if text.starts_with('"') {
        let text: String = serde_json::from_str(text).map_err(|e| e.to_string())?;
        return parse_duration(&text).map_err(|error| error.to_string());
    }
    let seconds: f64 =
        serde_json::from_str(text).map_err(|_| "it is neither a number nor a text".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        if seconds < 0.0 { DurationError::Negative.to_string() } else { "it is too large".to_owned() }
    })
}

/// A duration within a range; `None` if it is missing or wrong. A wrong one adds a mistake: the value followed by
/// `wrong`, such as "is no timeout", and the reason if it is not a duration at all.
pub(crate) fn duration_within(
    fields: &Fields<'_>,
    name: &str,
    wrong: &str,
    range: RangeInclusive<Duration>,
    allowed: &str,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    let raw = fields.get(name)?;
    match duration(raw) {
        Ok(found) if range.contains(&found) => return Some(found),
        Ok(_) => mistakes.add(name, format_args!("{} {wrong}", shown(raw)), allowed),
        Err(why) => {
            let allowed = format_args!("{allowed}: {DURATION}");
            mistakes.add(name, format_args!("{} {wrong}: {why}", shown(raw)), allowed);
        }
    }
    None
}

/// A URL; `None` if it is missing or not allowed, which adds a mistake.
pub(crate) fn url(fields: &Fields<'_>, name: &str, mistakes: &mut Mistakes) -> Option<Callback> {
    let text: String = field(fields, name, WRONG_TYPE, Callback::ALLOWED, mistakes, read)?;
    Callback::parse(&text).map_err(|e| mistakes.add(name, e.detail, e.allowed)).ok()
}

/// A field that is an object; `None` if it is missing or of another type, which adds a mistake.
pub(crate) fn object<'a>(
    fields: &Fields<'a>,
    name: &str,
    allowed: &str,
    mistakes: &mut Mistakes,
) -> Option<Fields<'a>> {
    field(fields, name, WRONG_TYPE, allowed, mistakes, |raw| serde_json::from_str(raw.get()).ok())
}

/// An object of strings, parsed by `parse` in the order written; `None` if it is missing or wrong, which adds a
/// mistake. More than `MOST` entries are refused, and the rest of them is not read.
pub(crate) fn entries<const MOST: usize, T>(
    fields: &Fields<'_>,
    name: &str,
    parse: impl FnOnce(Vec<(String, String)>) -> Result<T, Refused>,
    allowed: &str,
    mistakes: &mut Mistakes,
) -> Option<T> {
    let parsed = strings::<MOST>(fields.get(name)?)
        .map_err(|detail| (detail, allowed))
        .and_then(|strings| parse(strings).map_err(|Refused { detail, allowed }| (detail, allowed)));
    parsed.map_err(|(detail, allowed)| mistakes.add(name, detail, allowed)).ok()
}

/// The names and values of an object of strings, or why it is not one of at most `MOST` entries.
fn strings<const MOST: usize>(raw: &RawValue) -> Result<Vec<(String, String)>, String> {
    const WRONG: &str = "not an object of strings";
    let FirstEntries::<MOST> { first, has_more } = serde_json::from_str(raw.get()).map_err(|_| WRONG)?;
    if has_more {
        return Err(format!("more than {MOST} entries"));
    }
    let strings = first.into_iter().map(|(name, value)| Some((name.into_owned(), read::<String>(value)?)));
    strings.collect::<Option<_>>().ok_or_else(|| WRONG.to_owned())
}

/// Adds a mistake for each header with the mask in place of its secret value. In a policy the mask means "keep the
/// stored value", and a new job has none.
pub(crate) fn refuse_masks(headers: &Headers, mistakes: &mut Mistakes) {
    for name in headers.masked_names() {
        let detail = format!(
            "{name} is {MASK}, which is shown in place of a secret value; the value itself is not known here"
        );
        mistakes.add("headers", detail, "the value itself; an export has it");
    }
}

/// The value of a field; `None` if it is missing or `parse` refuses it, which adds a mistake. See [`field`].
pub(crate) fn parsed<'a, T>(
    fields: &Fields<'a>,
    path: &str,
    allowed: &str,
    mistakes: &mut Mistakes,
    parse: impl FnOnce(&'a RawValue) -> Option<T>,
) -> Option<T> {
    field(fields, path, "is not valid", allowed, mistakes, parse)
}

/// The value of a field; `None` if it is missing or `parse` refuses it. The latter adds a mistake: the value followed
/// by `wrong`, such as "is not a timeout". The last part of `path` is the field's name.
pub(crate) fn field<'a, T>(
    fields: &Fields<'a>,
    path: &str,
    wrong: &str,
    allowed: &str,
    mistakes: &mut Mistakes,
    parse: impl FnOnce(&'a RawValue) -> Option<T>,
) -> Option<T> {
    let raw = fields.get(path.rsplit('.').next()?)?;
    let value = parse(raw);
    if value.is_none() {
        mistakes.add(path, format!("{} {wrong}", shown(raw)), allowed);
    }
    value
}

/// Whether a text can be the reason of a dead job: 1 to 64 visible ASCII characters.
pub fn is_reason(text: &str) -> bool {
    (1..=MAX_REASON).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Whether a text is 1 to `max` bytes without control characters.
pub(crate) fn is_line(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Duration, String> {
        duration(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn durations_are_numbers_of_seconds_or_friendly() {
        assert_eq!(read("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(read("\"2s\""), Ok(Duration::from_secs(2)));
    }

    #[test]
    fn a_value_that_is_no_duration_is_refused_with_the_reason() {
        for (bad, why) in [
            ("\"1 month\"", "months and years have no fixed length"),
            ("\"soon\"", "it is not a number with a unit"),
            ("-1", "it is negative"),
            ("\"-5s\"", "it is negative"),
            ("1e300", "it is too large"),
            ("true", "it is neither a number nor a text"),
        ] {
            assert_eq!(read(bad), Err(why.to_owned()), "{bad}");
        }
    }

    #[test]
    fn other_values_are_not_durations() {
        for bad in ["-1", "1e400", "true", "null", "[1]", "{}", "\"NaN\"", "1e300"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
