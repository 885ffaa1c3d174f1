//! The pattern of durations in the OpenAPI document matches exactly what the parser accepts, but negative ones.

use proptest::prelude::*;
use ringback_core::duration::parse_duration;
use serde_json::Value;

use super::examples::document;
use super::schema::matches;

async fn pattern(schema: &str) -> String {
    let found = document().await["components"]["schemas"][schema]["pattern"].take();
    let Value::String(pattern) = found else { panic!("{schema} has no pattern") };
    pattern
}

/// Whether a text has at least two bytes, as the document requires, and matches a pattern.
fn is_valid(pattern: &str, text: &str) -> bool {
    text.len() >= 2 && matches(pattern, text)
}

/// Runs a check for 4,000 values of a strategy. Panics at the first failure, with a smaller example.
fn for_many<T: std::fmt::Debug>(
    values: impl Strategy<Value = T>,
    check: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner.run(&values, check).unwrap_or_else(|error| panic!("{error}"));
}

/// Texts of random parts of durations, most of which are no durations.
fn nearly_durations() -> impl Strategy<Value = String> {
    let parts = "1|0|30|7|1.5|0,25|:|01:30:00|P|T|PT|p|t| |, |,|\t|\n|\\+|-|w|wk|weeks|d|days|day|h|hr|hours|H|m|M|min\
        |mins|minutes|s|S|sec|secs|seconds|ms|millis|msec|milliseconds|us|µs|µsecs|micros|usec|ns|nanos|nsecs|ago|mo|months|y|year";
    let part = prop::sample::select(parts.split('|').map(|part| part.replace('\\', "")).collect::<Vec<_>>());
    prop::collection::vec(part, 1..7).prop_map(|parts| parts.concat())
}

/// Durations in all forms, half of them with one character changed, added or removed.
fn mostly_durations() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["0", "1", "30", "007"]);
    let units = ["weeks", "d", "hr", "minutes", "s", "msecs", "µs", "ns"];
    let last = prop::sample::select(vec!["", ".5", ",123456789", ".1234567890"]);
    let separator = prop::sample::select(vec!["", " ", ", ", ",", "  "]);
    let taken = prop::sample::subsequence(units.to_vec(), 1..=4);
    (number, taken, last, separator, any::<prop::sample::Index>(), 0..6_u8).prop_map(
        |(number, taken, last, separator, at, change)| {
            let count = taken.len();
            let parts: Vec<_> = taken
                .into_iter()
                .enumerate()
                .map(|(n, unit)| format!("{number}{}{unit}", if n + 1 == count { last } else { "" }))
                .collect();
            let mut text: Vec<char> = parts.join(separator).chars().collect();
            let at = at.index(text.len());
            match change {
                0 => drop(text.remove(at)),
                1 => text.insert(at, ' '),
                2 => text.swap(0, at),
                _ => {}
            }
            text.into_iter().collect()
        },
    )
}

#[tokio::test]
async fn the_pattern_of_durations_matches_what_the_parser_takes() {
    let pattern = pattern("FriendlyDuration").await;
    for text in
        ["1h 30m", "250ms", "7d", "PT1H30M", "P1DT2H", "01:30:00", "1d 02:00:00", "1.5h", "90 minutes", "+5s"]
    {
        assert!(is_valid(&pattern, text) && parse_duration(text).is_ok(), "{text}");
    }
    for text in ["", "5", "soon", "-5s", " 5s", "month"] {
        assert!(!is_valid(&pattern, text), "{text}");
    }
    for_many(prop_oneof![nearly_durations(), mostly_durations()], |text| {
        // The parser also accepts negative durations, which the pattern does not match.
        let is_taken = parse_duration(&text).is_ok() && !text.contains('-');
        prop_assert!(is_valid(&pattern, &text) || !is_taken, "{text:?}");
        Ok(())
    });
}
