//! Durations as people write them: "1h 30m", "250ms".

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Parses a friendly duration. A day has 24 hours. Months and years have no fixed length and are
/// refused, as are negative durations and bare numbers.
///
/// # Errors
/// A text that says what is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        |why: String| format!("{text:?} is no duration: {why}; write \"250ms\", \"10s\" or \"1h 30m\"");
    let span: Span = text.parse().map_err(|e: jiff::Error| wrong(e.to_string()))?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|e| wrong(e.to_string()))?;
    Duration::try_from(signed).map_err(|_| wrong("it is negative".to_owned()))
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
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "x", "10", "-5s", "1 month", "5s ago"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }
}
