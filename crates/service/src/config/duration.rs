//! Parses durations such as "1h 30m" and checks their range. A day is 24 hours.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Parses a duration. The error is a text for the user.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("a duration needs a unit, such as \"{text}s\" or \"{text}ms\""));
    }
    let span: Span = text.parse().map_err(|_| "must be a duration such as 250ms, 5s or 1h 30m".to_owned())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let length =
        length.map_err(|_| "must be in weeks, days, hours or less: months and years vary".to_owned())?;
    Duration::try_from(length).map_err(|_| "a duration cannot be negative".to_owned())
}

/// Returns `found` if it lies in `range`, else a text for the user.
pub(super) fn within(found: Duration, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    if range.contains(&found) {
        return Ok(found);
    }
    let (start, end) = (friendly(*range.start()), friendly(*range.end()));
    Err(if *range.end() == Duration::MAX {
        format!("must be at least {start}")
    } else {
        format!("must be from {start} to {end}")
    })
}

fn friendly(length: Duration) -> String {
    SignedDuration::try_from(length).map_or_else(|_| format!("{length:?}"), |length| format!("{length:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let cases = [
            ("250ms", 250),
            ("5s", 5_000),
            ("1h 30m", 5_400_000),
            ("1.5s", 1_500),
            ("7d", 604_800_000),
            ("0s", 0),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_rejected_with_a_hint() {
        assert_eq!(parse("30").unwrap_err(), "a duration needs a unit, such as \"30s\" or \"30ms\"");
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "soon", "5 parsecs", "-5s", "5s ago", "1mo", "99999999999999999999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_shown_as_durations() {
        let range = Duration::from_millis(100)..=Duration::from_secs(600);
        assert_eq!(within(Duration::from_secs(1), &range), Ok(Duration::from_secs(1)));
        assert_eq!(within(Duration::ZERO, &range).unwrap_err(), "must be from 100ms to 10m");
        assert_eq!(
            within(Duration::ZERO, &(Duration::from_secs(1)..=Duration::MAX)).unwrap_err(),
            "must be at least 1s"
        );
    }
}
