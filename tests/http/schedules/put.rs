//! `PUT` of a schedule: what is refused, that bodies are kept as written, and what becomes of times that have passed.

use http::Method;
use jiff::SignedDuration;

use super::{act, arrived, get, put, wait_for};
use crate::prelude::*;
use crate::sample_jobs::{now, time};

#[tokio::test]
async fn a_cron_expression_that_is_wrong_or_never_fires_is_refused_with_what_to_write() {
    let stack = StackOptions::api_only().start().await;
    for (cron, why) in [
        (", * * * *", "the minute \",\" has an empty item in its list"),
        ("0 8,, * * *", "the hour \"8,,\" has an empty item in its list"),
        ("0 MON * * *", "\"MON\" is not an hour, which is 0 to 23"),
        ("JAN 0 * * *", "\"JAN\" is not a minute, which is 0 to 59"),
        ("0 0 15W99 * *", "\"15W99\" is not a day of the month"),
        ("0 0 * * fr\u{131}", "it has a character that is not printable ASCII"),
        ("0 0 * * FRI#L", "\"FRI#L\" is not a day of the week"),
        (
            "0 0 ? * FRI",
            "\"?\" is not a day of the month, which is 1 to 31, L, LW, or a day with W behind: write *",
        ),
        ("@every 5m", "give it in the field every"),
        ("CRON_TZ=Europe/Berlin 0 8 * * *", "give that in the field time_zone"),
        ("0 0 31 2 *", "never fires: no date is like this"),
        ("0 0 30W 2 *", "never fires: no date is like this"),
        ("* * LW * */7", "never fires: no date is like this"),
    ] {
        let (status, refused) = put(&stack, "wrong", &json!({"cron": cron, "job": {"topic": "t"}})).await;
        let error = &refused["errors"][0];
        assert_eq!((status, &error["field"]), (422, &json!("cron")), "{cron:?}: {refused}");
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{cron:?}: {error}");
    }
    assert_eq!(stack.get("/v1/schedules/wrong").await.status, 404);
}

/// JSON that a value cannot hold, or not as it is written.
const BODIES: [&str; 5] = [
    r#"{"u":"\ud800"}"#,
    r#"{"x":1e400}"#,
    r#"{"x":1.0,"x":1E-400}"#,
    "123456789012345678901234567890.10",
    r#"["\ud800\udc00\udfff"]"#,
];

#[tokio::test]
async fn a_body_is_kept_as_it_is_written_though_it_may_not_be_a_value() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        for (n, body) in BODIES.iter().enumerate() {
            let (id, url) = (format!("s{n}"), sink.url("/x"));
            let path = format!("/v1/schedules/{id}");
            let job = format!(r#"{{"topic":"t","url":"{url}","body":{body}}}"#);
            let schedule = format!(r#"{{"cron":"@yearly","job":{job}}}"#);
            for status in [201, 200] {
                let json = Some(("application/json", schedule.clone().into()));
                let reply = stack.request(Method::PUT, &path, json).await;
                assert_eq!(reply.status, status, "{body}: {:?}", reply.body);
                shows(&reply.body, body);
            }
            shows(&stack.get(&path).await.body, body);
            assert_eq!(stack.post_empty(&format!("{path}/run")).await.status, 200, "{body}");
            wait_for(&sink, &id, 1).await;
            eventually(SOON, "the change is in the audit log", async || {
                let log = String::from_utf8(stack.get("/v1/audit-log").await.body.to_vec()).expect("UTF-8");
                let is_there = log.contains(&format!("\"{id}\"")) && log.contains("put_schedule");
                if is_there { Ok(()) } else { Err(log) }
            })
            .await;
        }
        let export = stack.get("/v1/export/schedules").await.body;
        let list = stack.get("/v1/schedules").await.body;
        for body in BODIES {
            assert!(sink.arrivals().iter().any(|arrival| arrival.body == body), "{body} has arrived");
            shows(&export, body);
            shows(&list, body);
        }
    }
}

fn shows(answer: &[u8], body: &str) {
    let answer = std::str::from_utf8(answer).expect("UTF-8");
    assert!(answer.contains(&format!("\"body\":{body}")), "{body}: {answer}");
}

/// A schedule that fires each full second, whenever it is put.
fn each_second(more: &Value) -> Value {
    let mut schedule =
        json!({"every": "1s", "anchor": "2026-01-01T00:00:00Z", "job": {"topic": "t", "ttr": "1m"}});
    schedule.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    schedule
}

/// Waits until at least three times of a schedule have passed. Returns the first of them.
async fn overdue(stack: &Stack, id: &str) -> Value {
    eventually(SOON, "times of the schedule come", async || {
        let next = get(stack, id).await["next_at"].clone();
        if now().duration_since(time(&next)) > SignedDuration::from_secs(2) { Ok(next) } else { Err(next) }
    })
    .await
}

#[tokio::test]
async fn times_that_have_come_stay_with_the_same_schedule_and_are_missed_with_another() {
    // Without a carrier nothing fires.
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for id in ["same", "other", "paused", "ends"] {
            put(&stack, id, &each_second(&json!({}))).await;
        }
        let due = overdue(&stack, "ends").await;
        let overdue = get(&stack, "same").await["next_at"].clone();
        for again in [
            json!({}),
            json!({"every": 1}),
            json!({"every": "1000ms", "anchor": "2025-01-01T00:00:07Z"}),
            json!({"until": "2036-01-01T00:00:00Z"}),
            json!({"catchup": "2h", "missed": "all"}),
        ] {
            let (status, answer) = put(&stack, "same", &each_second(&again)).await;
            assert_eq!((status, &answer["next_at"]), (200, &overdue), "{again}: {answer}");
            assert_eq!(answer["missed_firings"], 0, "{again}: {answer}");
        }
        let (_, other) = put(&stack, "other", &each_second(&json!({"every": "3h"}))).await;
        let paused = act(&stack, "paused", "pause").await;
        let (_, ends) = put(&stack, "ends", &each_second(&json!({"paused": true}))).await;
        let mut sum = 0;
        for answer in [other, paused, ends] {
            let missed = answer["missed_firings"].as_u64().expect("a number");
            assert!(missed >= 3 && answer["next_at"] != due, "{answer}");
            sum += missed;
        }
        assert_eq!(stack.apis[0].metric("ringback_api_missed_firings_total").await, Some(sum as f64));
    }
}

#[tokio::test]
async fn what_has_come_fires_though_the_schedule_was_set_again_meanwhile() {
    let (mut stack, sink) = (Stack::options().start().await, Sink::start().await);
    let job = json!({"topic": "t", "url": sink.url("/x")});
    let schedule = each_second(&json!({"job": job, "missed": "all"}));
    put(&stack, "tick", &schedule).await;
    wait_for(&sink, "tick", 1).await;
    stack.carriers[0].stop();
    let due = overdue(&stack, "tick").await;
    let (_, answer) =
        put(&stack, "tick", &each_second(&json!({"every": 1, "job": job, "missed": "one"}))).await;
    assert_eq!(answer["next_at"], due);
    put(&stack, "tick", &schedule).await;
    stack.carriers[0].cont();
    let id = format!("tick~{}", due.as_str().expect("a time").replace(['-', ':'], "").replace(".000Z", "Z"));
    eventually(SOON, "the time that had come first", async || {
        let arrived = arrived(&sink, "tick");
        if arrived.contains(&id) { Ok(()) } else { Err(format!("{arrived:?}")) }
    })
    .await;
    let found = get(&stack, "tick").await;
    assert_eq!(found["missed_firings"], 0, "{found}");
}
