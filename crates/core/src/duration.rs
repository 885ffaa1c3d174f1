//! Durations as people write them: "1h 30m", "250ms".

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// The form of a duration, for error messages.
pub const ALLOWED_DURATION: &str =
    "write \"250ms\", \"10s\", \"1h 30m\" or \"7d\"; the units are w, d, h, m, s and ms";

/// The longest text of a duration, in bytes.
pub const MAX_DURATION: usize = 1024;

/// A text that is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It is longer than [`MAX_DURATION`].
    #[error("it is longer than {} bytes", MAX_DURATION)]
    TooLong,
    /// It has months or years.
    #[error("months and years have no fixed length")]
    Calendar,
    /// It is negative.
    #[error("it is negative")]
    Negative,
    /// It is no number with a known unit, or too large to count with.
    #[error("it is not a number with a unit")]
    Unreadable,
}

/// Parses a friendly duration. A day has 24 hours, a week 7 days. Months and years have no fixed length and
/// are refused, as are negative durations and bare numbers.
///
/// # Errors
/// What is wrong; [`ALLOWED_DURATION`] says what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.len() > MAX_DURATION {
        return Err(DurationError::TooLong);
    }
    let span: Span = text.parse().map_err(|_| DurationError::Unreadable)?;
    if span.get_months() != 0 || span.get_years() != 0 {
        return Err(DurationError::Calendar);
    }
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours());
    Duration::try_from(signed.map_err(|_| DurationError::Unreadable)?).map_err(|_| DurationError::Negative)
}

/// Writes a duration as [`parse_duration`] reads it, to the nanosecond: `1h 30m`.
pub fn format_duration(duration: Duration) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut left = duration.as_nanos();
    let mut parts = Vec::new();
    for (unit, size) in UNITS {
        let count = left / size;
        left %= size;
        if count > 0 {
            parts.push(format!("{count}{unit}"));
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_duration_is_read_as_it_is_written(seconds in 0..=315_360_000_u64, nanos in 0..1_000_000_000_u32) {
            let duration = Duration::new(seconds, nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            let whole = Duration::from_secs(seconds);
            prop_assert_eq!(parse_duration(&format_duration(whole)), Ok(whole));
        }
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        assert_eq!(format_duration(Duration::from_secs(5400)), "1h 30m");
        assert_eq!(format_duration(Duration::from_millis(90_250)), "1m 30s 250ms");
        assert_eq!(format_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn friendly_durations_are_read() {
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(parse_duration("2w"), Ok(Duration::from_secs(14 * 86_400)));
    }

    #[test]
    fn other_texts_are_refused_for_their_reason() {
        for (bad, why) in [
            ("", DurationError::Unreadable),
            ("x", DurationError::Unreadable),
            ("10", DurationError::Unreadable),
            ("99999999999999d", DurationError::Unreadable),
            ("-5s", DurationError::Negative),
            ("5s ago", DurationError::Negative),
            ("1 month", DurationError::Calendar),
            ("2 months 3 days", DurationError::Calendar),
            ("1 month ago", DurationError::Calendar),
            ("1y", DurationError::Calendar),
            ("P1M", DurationError::Calendar),
        ] {
            assert_eq!(parse_duration(bad), Err(why), "{bad:?}");
        }
        let padded = |length: usize| format!("{:<length$}", "5s");
        assert_eq!(parse_duration(&padded(MAX_DURATION)), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration(&padded(MAX_DURATION + 1)), Err(DurationError::TooLong));
    }
}
