//! The patterns of times and durations match what the parsers take, and nothing else.

use proptest::prelude::*;
use ringback_core::duration::parse_duration;
use ringback_core::written_time::parse_time;
use serde_json::Value;

use super::examples::document;
use super::schema::matches;

async fn pattern(schema: &str) -> String {
    let found = document().await["components"]["schemas"][schema]["pattern"].take();
    let Value::String(pattern) = found else { panic!("{schema} has no pattern") };
    pattern
}

/// Whether a text is valid by a pattern and a minimum length of 2, as in the document.
fn is_valid(pattern: &str, text: &str) -> bool {
    text.len() >= 2 && matches(pattern, text)
}

/// Runs a check for many values of a strategy.
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

/// Texts made of what durations are made of, most of which are none.
fn nearly_durations() -> impl Strategy<Value = String> {
    let parts = "1|0|30|7|1.5|0,25|:|01:30:00|P|T|PT|p|t| |, |,|\t|\n|\\+|-|w|wk|weeks|d|days|day|h|hr|hours|H|m|M|min\
        |mins|minutes|s|S|sec|secs|seconds|ms|millis|msec|milliseconds|us|µs|µsecs|micros|usec|ns|nanos|nsecs|ago|mo|months|y|year";
    let part = prop::sample::select(parts.split('|').map(|part| part.replace('\\', "")).collect::<Vec<_>>());
    prop::collection::vec(part, 1..7).prop_map(|parts| parts.concat())
}

/// Durations in all forms, with one character changed or left out now and then.
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
    for text in
        ["", "5", "-5s", "5s ago", "1 month", "1y", "5s,", "PT", "P", "soon", "30m 1h", "1.5h 30m", " 5s"]
    {
        assert!(!is_valid(&pattern, text) && parse_duration(text).is_err(), "{text}");
    }
    for_many(prop_oneof![nearly_durations(), mostly_durations()], |text| {
        // No years, months or nothing are a duration too, and so is none less than nothing.
        let has_odd_zero = ["y", "mo", "-", "ago"].iter().any(|part| text.contains(part));
        // A pattern does not know the largest number of days or hours.
        let is_large = text
            .split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))
            .any(|number| number.split(['.', ',']).next().is_some_and(|whole| whole.len() > 6));
        if has_odd_zero || is_large {
            return Ok(());
        }
        prop_assert_eq!(is_valid(&pattern, &text), parse_duration(&text).is_ok(), "{:?}", text);
        Ok(())
    });
}

#[tokio::test]
async fn the_pattern_of_times_matches_what_the_parser_takes() {
    let pattern = pattern("Time").await;
    let date = prop::sample::select(vec![
        "2026-11-20",
        "20261120",
        "2026-1120",
        "202611-20",
        "26-11-20",
        "2026-13-01",
        "2026-11-32",
    ]);
    let separator = prop::sample::select(vec!["T", "t", " ", "", "_"]);
    let time = "09|09:30|0930|09:30:00|093000|09:30:00.5|09:30:00,123456789|093000.25|24:00|09:60|09:30:60|09:30:61|09:30.5|9:30|0930:00";
    let time = prop::sample::select(time.split('|').collect::<Vec<_>>());
    let offset = "Z|z|+01|-01:00|+0100|+01:00:30|-010030|+23:59|+25:00|01:00||+1|+01:000|[UTC]";
    let offset = prop::sample::select(offset.split('|').collect::<Vec<_>>());
    for_many((date, separator, time, offset), |(date, separator, time, offset)| {
        let text = format!("{date}{separator}{time}{offset}");
        prop_assert_eq!(is_valid(&pattern, &text), parse_time(&text).is_ok(), "{}", text);
        Ok(())
    });
}
