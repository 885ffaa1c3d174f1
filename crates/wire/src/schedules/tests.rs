//! Tests of the request to put a schedule.

use std::time::Duration;

use ringback_core::schedule::{DEFAULT_CATCHUP, ScheduleState};
use ringback_core::written_time::parse_time;

use super::*;
use crate::parse_policy;

const NOW: &str = "2026-11-26T09:30:00Z";

fn parse_with(
    json: &str,
    stored: Option<&Schedule>,
    policies: Option<&Policies>,
) -> Result<NewSchedule, Problem> {
    let (now, id) = (parse_time(NOW).unwrap(), "daily".parse().unwrap());
    parse_schedule(json.as_bytes(), ScheduleDefaults { now, id: &id, tenant: None, stored }, policies)
}

fn parse(json: &str) -> Result<NewSchedule, Problem> {
    parse_with(json, None, Some(&Policies::new()))
}

fn wrong(json: &str) -> Vec<String> {
    parse(json).unwrap_err().errors.into_iter().map(|error| error.field).collect()
}

const JOB: &str = r#""job":{"topic":"t","url":"http://h/","body":1}"#;

#[test]
fn a_schedule_has_defaults() {
    let new = parse(&format!(r#"{{"cron":"0 8 * * *",{JOB}}}"#)).unwrap();
    let Schedule { rule, missed, catchup, overlap, jitter, from, until, .. } = new.schedule.clone();
    let Rule::Cron(cron) = rule else { panic!() };
    assert_eq!((cron.as_str(), cron.zone().to_string().as_str()), ("0 8 * * *", "UTC"));
    assert_eq!(
        (missed, catchup, overlap, jitter),
        (Missed::One, DEFAULT_CATCHUP, Overlap::Allow, Duration::ZERO)
    );
    assert_eq!((from, until, new.paused, new.schedule.job.to_url_of_topic), (None, None, None, false));
}

#[test]
fn what_is_wrong_is_named_with_the_place_in_the_job() {
    for (json, fields) in [
        ("{}", &["job", "cron"][..]),
        (r#"{"cron":"0 8 * * *","every":"1m","job":{}}"#, &["job.topic", "every"]),
        (r#"{"cron":"0 8 * *","job":{"topic":"t","id":"x","url":"http://h/"}}"#, &["job.id", "cron"]),
        (r#"{"every":"100ms","job":{"topic":"t","delay":"1m"}}"#, &["job.delay", "every"]),
        (r#"{"every":"1m","job":{"topic":"t","expires":"2027-01-01T00:00:00Z"}}"#, &["job.expires"]),
        (r#"{"every":"1m","job":[]}"#, &["job"]),
        (
            r#"{"every":"1m","job":{"topic":"a b"},"missed":"some","overlap":1,"paused":"no"}"#,
            &["job.topic", "missed", "overlap", "paused"],
        ),
        (r#"{"every":"1m","job":{"topic":"t"},"missed":"all","overlap":"skip"}"#, &["overlap"]),
        (r#"{"every":"1m","job":{"topic":"t"},"catchup":"8d","jitter":"25h"}"#, &["catchup", "jitter"]),
        (
            r#"{"cron":"@daily","job":{"topic":"t"},"anchor":"2026-01-01T00:00:00Z","time_zone":"Mars"}"#,
            &["time_zone", "anchor"],
        ),
        (
            r#"{"cron":"@daily","job":{"topic":"t"},"from":"2026-01-01T00:00:00","colour":1}"#,
            &["colour", "from"],
        ),
    ] {
        assert_eq!(wrong(json), fields, "{json}");
    }
}

#[test]
fn the_job_of_a_schedule_has_no_key() {
    let problem = parse(r#"{"every":"1m","job":{"topic":"t","key":"k","url":"http://h/"}}"#).unwrap_err();
    let [error] = &problem.errors[..] else { panic!("{problem:?}") };
    assert_eq!(error.field, "job.key");
    assert!(error.detail.contains("firings of a schedule have no key"), "{error:?}");
}

#[test]
fn what_never_fires_is_refused() {
    assert_eq!(wrong(&format!(r#"{{"cron":"0 0 31 2 *",{JOB}}}"#)), ["cron"]);
    let until = |until: &str| format!(r#"{{"cron":"0 8 * * *","until":"{until}",{JOB}}}"#);
    assert_eq!(wrong(&until("2026-11-27T07:59:59Z")), ["until"]);
    assert!(parse(&until("2026-11-27T08:00:00Z")).is_ok());
    assert_eq!(
        wrong(&format!(
            r#"{{"every":"1h","from":"2027-01-02T00:00:00Z","until":"2027-01-01T00:00:00Z",{JOB}}}"#
        )),
        ["until"]
    );
}

#[test]
fn bounds_are_in_the_time_zone_of_the_schedule() {
    let json =
        format!(r#"{{"cron":"0 8 * * *","time_zone":"Europe/Berlin","from":"2026-12-01T00:00:00",{JOB}}}"#);
    assert_eq!(parse(&json).unwrap().schedule.from, Some(parse_time("2026-11-30T23:00:00Z").unwrap()));
}

#[test]
fn a_period_that_is_put_again_goes_on_as_before() {
    let json = format!(r#"{{"every":"90s",{JOB}}}"#);
    let anchor = |new: &NewSchedule| match new.schedule.rule {
        Rule::Every { anchor, .. } => anchor.to_string(),
        Rule::Cron(_) => panic!(),
    };
    let first = parse(&json).unwrap();
    assert_eq!(anchor(&first), "2026-11-26T09:30:00.000Z");
    let mut stored = first.schedule;
    stored.rule = Rule::Every { period: Duration::from_secs(90), anchor: Timestamp::from_millis(7) };
    let policies = Policies::new();
    let again = |json: &str| anchor(&parse_with(json, Some(&stored), Some(&policies)).unwrap());
    assert_eq!(again(&json), "1970-01-01T00:00:00.007Z");
    assert_eq!(again(&json.replace("90s", "91s")), "2026-11-26T09:30:00.000Z");
    let given = json.replace("90s\"", "90s\",\"anchor\":\"2026-01-01T00:00:00Z\"");
    assert_eq!(again(&given), "2026-01-01T00:00:00.000Z");
    let from = json.replace("90s\"", "90s\",\"from\":\"2027-01-01T00:00:00Z\"");
    assert_eq!(again(&from), "2027-01-01T00:00:00.000Z");
}

#[test]
fn a_job_without_a_target_takes_that_of_its_topic_each_time() {
    let json = r#"{"every":"1m","job":{"topic":"t","timeout":"5s"}}"#;
    let mut policies = Policies::new();
    policies.insert("t".parse().unwrap(), parse_policy(br#"{"url":"http://topic/"}"#).unwrap().into());
    assert!(parse_with(json, None, Some(&policies)).unwrap().schedule.job.to_url_of_topic);
    assert_eq!(wrong(json), ["job.timeout"]);
    assert_eq!(parse_with(json, None, None).unwrap_err().status, 503);
}

#[test]
fn an_exported_schedule_is_put_as_it_was() {
    for json in [
        r#"{"cron":"0 8 * * MON","time_zone":"Europe/Berlin","job":{"topic":"t","url":"http://h/","body":{"a":[1, 2]},"headers":{"x-api-key":"hunter2"},"retry":{"delays":["1s"]},"timeout":"5s","expires":"1h"},"missed":"all","catchup":"2h","jitter":"30s","from":"2026-12-01T00:00:00Z","until":"2027-12-01T00:00:00Z","paused":true}"#,
        r#"{"every":"90s","anchor":"2026-01-01T00:00:00Z","job":{"topic":"t","ttr":"1m"},"overlap":"skip","paused":false}"#,
    ] {
        let NewSchedule { schedule, paused } = parse(json).unwrap();
        let mut state = ScheduleState { schedule: schedule.clone(), progress: Default::default() };
        state.progress.paused = paused.unwrap_or_default();
        let key = ringback_core::schedule::ScheduleKey { tenant: None, id: "daily".parse().unwrap() };
        let line = ScheduleLine::new(&key, state.clone());
        let again = parse(&serde_json::to_string(&line.schedule).unwrap()).unwrap();
        assert_eq!(again, NewSchedule { schedule, paused }, "{json}");
        let shown = serde_json::to_string(&ScheduleResponse::new(&key.id, state)).unwrap();
        assert!(!shown.contains("hunter2"), "{shown}");
        let _: serde_json::Value = serde_json::from_str(&shown).unwrap();
    }
}

#[test]
fn times_that_cannot_be_counted_are_refused() {
    let every = |more: &str| format!(r#"{{"every":"7d",{more},{JOB}}}"#);
    assert_eq!(wrong(&every(r#""anchor":"1960-01-04T09:00:00Z""#)), ["anchor"]);
    assert_eq!(wrong(&every(r#""from":"1960-01-04T09:00:00Z""#)), ["from"]);
    assert_eq!(wrong(&every(r#""from":"9999-06-01T00:00:00Z""#)), ["from"]);
    assert!(parse(&every(r#""anchor":"1970-01-01T00:00:00Z""#)).is_ok());
}
