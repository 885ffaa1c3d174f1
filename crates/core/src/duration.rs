//! Durations as people write them, such as "1h 30m" and "250ms": parser, printer and limits.

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
    #[error("it is negative")]
    Negative,
    /// It is not a number with a known unit, or too large to count with.
    #[error("it is not a number with a unit")]
    Unreadable,
}

/// Parses a friendly duration. A day has 24 hours, a week 7 days. Months and years have no fixed length and are
/// refused, as are negative durations, bare numbers and texts over [`MAX_DURATION`].
///
/// # Errors
/// What is wrong; [`ALLOWED_DURATION`] says what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.len() > MAX_DURATION {
        return Err(DurationError::TooLong);
    }
    let span = text.parse::<Span>().ok().or_else(|| with_whole_days(text)?.parse().ok());
    let span = span.ok_or(DurationError::Unreadable)?;
    if span.get_months() != 0 || span.get_years() != 0 {
        return Err(DurationError::Calendar);
    }
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours());
    Duration::try_from(signed.map_err(|_| DurationError::Unreadable)?).map_err(|_| DurationError::Negative)
}

/// Writes a fraction of days or weeks at the end of a text in nanoseconds: `1.5d` becomes `1d 43200000000000ns`. `None`
/// if the text has no such fraction of 1 to 9 digits.
fn with_whole_days(text: &str) -> Option<String> {
    const DAY: u64 = 86_400_000_000_000;
    let (text, ago) = text.trim_ascii_end().strip_suffix("ago").map_or((text, ""), |text| (text, " ago"));
    let text = text.trim_ascii_end();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let size = match unit {
        "d" | "day" | "days" => DAY,
        "w" | "wk" | "wks" | "week" | "weeks" => 7 * DAY,
        _ => return None,
    };
    let (whole, fraction) = number.trim_ascii_end().rsplit_once(['.', ','])?;
    whole.ends_with(|digit: char| digit.is_ascii_digit()).then_some(())?;
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit()) && (1..=9).contains(&fraction.len());
    let billionths: u64 = format!("{fraction:0<9}").parse().ok().filter(|_| digits)?;
    let nanos = u128::from(size) * u128::from(billionths) / 1_000_000_000;
    Some(format!("{whole}{unit} {nanos}ns{ago}"))
}

/// Writes a duration to the nanosecond, as [`parse_duration`] reads it: `1h 30m`, or `0s` for zero.
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
        for (text, hours) in [
            ("0.5d", 12),
            ("1.5 days", 36),
            ("0,25d", 6),
            ("+1.5d", 36),
            ("0.5w", 84),
            ("1w 0.5d", 180),
            ("1w, 1.25 day ", 198),
            ("30 minutes 90m", 0),
            ("P1DT12H", 36),
        ] {
            let hours = if hours == 0 {
                Err(DurationError::Unreadable)
            } else {
                Ok(Duration::from_secs(hours * 3600))
            };
            assert_eq!(parse_duration(text), hours, "{text}");
        }
        for text in ["30 minutes", "PT30M", "30m", "30 min", "0.5h", "00:30:00"] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(1800)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_for_their_reason() {
        for (bad, why) in [
            ("", DurationError::Unreadable),
            ("x", DurationError::Unreadable),
            ("10", DurationError::Unreadable),
            ("99999999999999d", DurationError::Unreadable),
            (".5d", DurationError::Unreadable),
            ("0 .5d", DurationError::Unreadable),
            ("0.d", DurationError::Unreadable),
            ("3h 0.5d", DurationError::Unreadable),
            ("0.5d 3h", DurationError::Unreadable),
            ("0.5.5d", DurationError::Unreadable),
            ("0.0000000001d", DurationError::Unreadable),
            ("-5s", DurationError::Negative),
            ("-0.5d", DurationError::Negative),
            ("0.5d ago", DurationError::Negative),
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
