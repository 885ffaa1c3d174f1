//! A year of schedules in four time zones, while carriers crash now and then: each time of a table fires once, and on
//! time. Another program has computed the table.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::written_time::parse_time;
use serde_json::json;

use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 2;
/// The table, which the tests of schedules in the core use too.
const TIMES: &str = include_str!("../../../core/src/schedule/tests/times.txt");
/// The expressions used in each zone: times that clocks skip and repeat, and a weekday of a month.
const EXPRESSIONS: [&str; 3] = ["30 2 * * *", "15,45 1-3 * * SUN", "0 9 * * MON#2"];
/// How late a job may begin. A crash is over before the next time.
const LATE: Duration = Duration::from_millis(20);
const DAY: Duration = Duration::from_secs(86_400);

/// Returns the schedules of 2026 in the table as zone, expression and times.
fn table() -> Vec<(String, String, Vec<Timestamp>)> {
    let lines: Vec<_> = TIMES.lines().collect();
    let cases = lines.chunk_by(|_, line| line.starts_with(' ')).filter_map(|case| {
        let (zone, rest) = case[0].split_once(' ')?;
        let expression = rest.strip_prefix("2026 ")?;
        let times = case[1..].iter().flat_map(|line| line.split_whitespace()).map(|text| {
            let part = |range: std::ops::Range<usize>| &text[range];
            let date = [part(0..4), part(4..6), part(6..8)].join("-");
            parse_time(&format!("{date}T{}:{}:00Z", part(9..11), part(11..13))).expect("a time")
        });
        Some((zone.to_owned(), expression.to_owned(), times.collect()))
    });
    cases.filter(|(_, expression, _)| EXPRESSIONS.contains(&expression.as_str())).collect()
}

#[test]
fn a_year_of_schedules_in_four_zones_is_that_of_the_table() {
    seeds::run(
        "a_year_of_schedules_in_four_zones_is_that_of_the_table",
        SEEDS,
        async |simulation: &mut Simulation| {
            simulation.start(2, 1).await;
            let (begin, end) = (simulation.now(), parse_time("2026-12-31T12:00:00Z").expect("a time"));
            let mut expected = BTreeMap::new();
            for (n, (zone, expression, times)) in table().into_iter().enumerate() {
                let schedule = json!({"cron": expression, "time_zone": zone, "missed": "all", "catchup": "7d",
                    "job": {"topic": format!("t{}", n % 4), "url": "http://one.example/", "body": n}});
                let path = format!("/v1/schedules/s{n:02}");
                let (status, answer) = simulation.call(Method::PUT, &path, &schedule).await;
                assert_eq!(status, 201, "{answer}");
                let times: Vec<_> = times.into_iter().filter(|time| *time > begin && *time <= end).collect();
                expected.insert(format!("s{n:02}"), times);
            }
            assert_eq!(expected.len(), 12);
            // Carriers crash in the middle of days, and are back soon. The first role is the API.
            let mut day = begin;
            while day < end {
                let carrier = 1 + (day.as_millis() / 86_400_000 % 2) as usize;
                simulation.run_until(day.plus(DAY / 2)).await;
                simulation.crash(carrier);
                simulation.run_for(Duration::from_secs(60)).await;
                simulation.restart(carrier).await;
                day = day.plus(7 * DAY);
                simulation.run_until(day.min(end)).await;
            }
            simulation.run_until(end.plus(Duration::from_secs(60))).await;
            check(simulation, &expected, end);
        },
    );
}

/// Checks that each time until `end` has one job, which had one attempt, at most [`LATE`] late.
fn check(simulation: &Simulation, expected: &BTreeMap<String, Vec<Timestamp>>, end: Timestamp) {
    let mut found: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for attempt in simulation.history.attempts() {
        let (_, job) = attempt.job.split_once('/').expect("topic and id");
        let (schedule, text) = job.split_once('~').expect("the id of a firing");
        let part = |range: std::ops::Range<usize>| &text[range];
        let date = [part(0..4), part(4..6), part(6..8)].join("-");
        let of_day = [part(9..11), part(11..13), part(13..15)].join(":");
        let time = parse_time(&format!("{date}T{of_day}Z")).expect("a time");
        if time > end {
            continue;
        }
        assert_eq!(attempt.number, 1, "{job}");
        assert!(attempt.started >= time && attempt.started.since(time) <= LATE, "{job}: {}", attempt.started);
        found.entry(schedule.to_owned()).or_default().push(time);
    }
    for (schedule, times) in expected {
        let differs = found[schedule].iter().zip(times).find(|(found, expected)| found != expected);
        assert_eq!(differs, None, "{schedule}");
        assert_eq!(found[schedule].len(), times.len(), "{schedule}");
    }
}
