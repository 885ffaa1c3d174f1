//! The body of a reschedule, and the empty body of all calls without fields, such as cancel, run or pause.

use ringback_core::clock::Timestamp;
use ringback_core::job::Due;
use ringback_core::limits::name_start;

use super::declare::request;
use super::field_parsers::due::due;
use super::field_parsers::object::{Mistakes, open, open_or_empty};
use super::kinds::Given;
use super::problem::Problem;
use super::schema::{Delay, DueTime, ZoneName};

request! {
    /// The new due time of a delayed job: exactly one of `delay` and `at`.
    #[example {"delay": "10m"}]
    pub struct RescheduleRequest(open) {
        /// How long after this call; 0 means now.
        delay: Given<Delay>;
        /// A time at most 10 years ahead, as in a submit. A time in the past means now.
        at: Given<DueTime>;
        /// The time zone of `at`, as in a submit. Only together with `at`.
        time_zone: Given<ZoneName>;
    }
}

/// Parses the body of a reschedule: exactly one of `delay` and `at`, and with `at` a `time_zone`, in the form
/// of a submit.
///
/// # Errors
/// As [`parse_job`](super::parse_job).
pub fn parse_reschedule(json: &[u8], now: Timestamp) -> Result<Due, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    RescheduleRequest::read(&fields, &mut mistakes);
    let due = due(&fields, now, &mut mistakes);
    if fields.get("delay").is_none() && fields.get("at").is_none() {
        mistakes.add("delay", "missing, and so is at", "one of delay and at; a delay of 0 means now");
    }
    mistakes.or(due)
}

request! {
    /// A body without fields, which may be left out.
    #[example {}]
    pub struct EmptyRequest(open_or_empty) {}
}

/// Checks the body of a call without fields: it may be empty or an empty object.
///
/// # Errors
/// A 400 problem if it is not a JSON object in UTF-8, 422 with the fields that it has.
pub fn parse_nothing(json: &[u8]) -> Result<(), Problem> {
    let mut mistakes = Mistakes::default();
    for (name, _) in open_or_empty(json)?.iter() {
        let shown = name_start(name);
        mistakes.add(shown, "unknown field", "no fields: this call takes no body");
    }
    mistakes.or(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_763_600_000_000);

    fn fields(json: &str) -> Vec<String> {
        let problem = parse_reschedule(json.as_bytes(), NOW).unwrap_err();
        assert_eq!(problem.status, 422, "{json}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_delay_or_a_time_is_read() {
        let due = |json: &str| parse_reschedule(json.as_bytes(), NOW).unwrap();
        assert_eq!(due(r#"{"delay":"1h 30m"}"#), Due::In(Duration::from_secs(5400)));
        assert_eq!(due(r#"{"delay":0.25,"at":null}"#), Due::In(Duration::from_millis(250)));
        assert_eq!(due(r#"{"at":"1970-01-01T00:00:01Z"}"#), Due::At(Timestamp::from_millis(1000)));
        let local = due(r#"{"at":"2026-11-23T09:00","time_zone":"Europe/Berlin"}"#);
        assert_eq!(local, due(r#"{"at":"2026-11-23T08:00:00Z"}"#));
    }

    #[test]
    fn wrong_fields_are_named() {
        assert_eq!(fields("{}"), ["delay"]);
        assert_eq!(fields(r#"{"delay":null}"#), ["delay"]);
        assert_eq!(fields(r#"{"delay":1,"at":"2030-01-01T00:00:00Z"}"#), ["delay"]);
        assert_eq!(fields(r#"{"at":"tomorrow"}"#), ["at"]);
        assert_eq!(fields(r#"{"at":"2026-11-23T09:00"}"#), ["at"]);
        assert_eq!(fields(r#"{"delay":1,"time_zone":"Europe/Berlin"}"#), ["time_zone"]);
        assert_eq!(fields(r#"{"delay":-1}"#), ["delay"]);
        assert_eq!(fields(r#"{"delay":"11y"}"#), ["delay"]);
        assert_eq!(fields(r#"{"delay":1,"url":"http://h/","colour":1}"#), ["url", "colour"]);
        assert_eq!(fields(r#"{"delay":1,"delay":2}"#), ["delay"]);
        for bad in ["", "[]", "5", "{", "\u{feff}{}"] {
            assert_eq!(parse_reschedule(bad.as_bytes(), NOW).unwrap_err().status, 400, "{bad:?}");
        }
    }

    #[test]
    fn a_call_without_fields_takes_an_empty_body_only() {
        for fine in ["", " \r\n", "{}", " { } "] {
            assert_eq!(parse_nothing(fine.as_bytes()), Ok(()), "{fine:?}");
        }
        let problem = parse_nothing(br#"{"delay":"5s","at":1}"#).unwrap_err();
        let named: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!((problem.status, named), (422, vec!["delay", "at"]));
        for bad in ["x", "[]", "null"] {
            assert_eq!(parse_nothing(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }
}
