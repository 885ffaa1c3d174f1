//! Schedules over HTTP: they submit jobs at their times, and can be changed, paused, run, listed, exported and
//! deleted; overlaps, missed times and damage.

mod put;

use std::collections::BTreeSet;

use http::Method;
use jiff::SignedDuration;

use crate::prelude::*;
use crate::raw_post::raw_post;
use crate::sample_jobs::{now, time};

/// A schedule that fires each second.
fn each_second(sink: &Sink) -> Value {
    json!({"every": "1s", "job": {"topic": "tick", "url": sink.url("/tick"), "body": {"n": 1.0}}})
}

async fn put(stack: &Stack, id: &str, schedule: &Value) -> (u16, Value) {
    stack.put(&format!("/v1/schedules/{id}"), schedule).await.parts()
}

async fn get(stack: &Stack, id: &str) -> Value {
    stack.get(&format!("/v1/schedules/{id}")).await.expect(200)
}

async fn act(stack: &Stack, id: &str, action: &str) -> Value {
    stack.post_empty(&format!("/v1/schedules/{id}/{action}")).await.expect(200)
}

/// The ids of the jobs of a schedule that have arrived.
fn arrived(sink: &Sink, id: &str) -> Vec<String> {
    let ids = sink.arrivals().into_iter().map(|arrival| arrival.job_id().to_owned());
    ids.filter(|job| job.starts_with(&format!("{id}~"))).collect()
}

async fn wait_for(sink: &Sink, id: &str, count: usize) -> Vec<String> {
    eventually(SOON, &format!("{count} jobs of {id}"), async || {
        let arrived = arrived(sink, id);
        if arrived.len() >= count { Ok(arrived) } else { Err(arrived.len()) }
    })
    .await
}

#[tokio::test]
async fn a_schedule_submits_a_job_each_time_until_it_is_deleted() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let before = now();
        let (status, put_answer) = put(&stack, "tick", &each_second(&sink)).await;
        assert_eq!((status, &put_answer["fired"]), (201, &json!(0)), "{put_answer}");
        assert!(time(&put_answer["next_at"]) > before);
        let jobs = wait_for(&sink, "tick", 3).await;
        assert_eq!(jobs.iter().collect::<BTreeSet<_>>().len(), jobs.len(), "each once: {jobs:?}");
        let arrival = &sink.arrivals()[0];
        assert_eq!(arrival.body, r#"{"n":1.0}"#);
        assert_eq!(arrival.header("ringback-topic"), Some("tick"));

        let deleted = stack.delete("/v1/schedules/tick").await.expect(200);
        assert!(deleted["fired"].as_u64() >= Some(3), "{deleted}");
        let last = deleted["last"]["id"].as_str().expect("an id").to_owned();
        assert_eq!(stack.get("/v1/schedules/tick").await.status, 404);
        assert_eq!(stack.delete("/v1/schedules/tick").await.status, 404);
        // The next schedule fires later than the deleted one still could.
        put(&stack, "after", &each_second(&sink)).await;
        wait_for(&sink, "after", 2).await;
        assert!(arrived(&sink, "tick").into_iter().all(|id| id <= last), "it fired after its end");
    }
}

#[tokio::test]
async fn the_same_schedule_again_changes_nothing_and_another_one_goes_on_counting() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        put(&stack, "tick", &each_second(&sink)).await;
        wait_for(&sink, "tick", 1).await;
        let (status, again) = put(&stack, "tick", &each_second(&sink)).await;
        assert_eq!((status, &again["anchor"]), (200, &get(&stack, "tick").await["anchor"]), "{again}");
        let mut other = each_second(&sink);
        other["job"]["body"] = json!("other");
        let (status, changed) = put(&stack, "tick", &other).await;
        assert!(status == 200 && changed["fired"].as_u64() >= Some(1), "{changed}");
        eventually(SOON, "the new body arrives", async || {
            sink.arrivals().iter().any(|a| a.body == r#""other""#).then_some(()).ok_or("not yet")
        })
        .await;
        other["job"]["topic"] = json!("elsewhere");
        let (status, refused) = put(&stack, "tick", &other).await;
        assert!(status == 409 && refused["detail"].as_str().is_some_and(|d| d.contains("tick")), "{refused}");
    }
}

#[tokio::test]
async fn a_paused_schedule_does_not_fire_and_what_it_left_out_is_not_missed() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        put(&stack, "tick", &each_second(&sink)).await;
        wait_for(&sink, "tick", 1).await;
        let paused = act(&stack, "tick", "pause").await;
        assert_eq!((&paused["paused"], &paused["next_at"]), (&json!(true), &json!(null)), "{paused}");
        let fired = paused["fired"].clone();
        put(&stack, "other", &each_second(&sink)).await;
        wait_for(&sink, "other", 2).await;
        assert_eq!(get(&stack, "tick").await["fired"], fired);
        // A put without the field leaves it paused.
        assert_eq!(put(&stack, "tick", &each_second(&sink)).await.1["paused"], true);
        let resumed = act(&stack, "tick", "resume").await;
        assert!(time(&resumed["next_at"]) > time(&paused["last"]["at"]), "{resumed}");
        stack.wait_get("/v1/schedules/tick", SOON, |found| found["fired"] != fired).await;
        // A time that comes in the moment of the pause is missed.
        let missed = get(&stack, "tick").await["missed_firings"].clone();
        assert!(missed.as_u64() <= Some(1), "{missed}");
    }
}

#[tokio::test]
async fn a_run_submits_a_job_now_and_with_a_key_once() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let schedule =
            json!({"cron": "0 8 1 1 *", "paused": true, "job": {"topic": "y", "url": sink.url("/")}});
        put(&stack, "yearly", &schedule).await;
        let run = act(&stack, "yearly", "run").await;
        let id = run["last"]["id"].as_str().expect("an id").to_owned();
        assert!(id.starts_with("yearly~run-"), "{id}");
        stack.wait_state("y", &id, "done", SOON).await;
        let again = act(&stack, "yearly", "run").await;
        assert_ne!(again["last"]["id"], id.as_str());
        let url = stack.url("/v1/schedules/yearly/run");
        let mut known = BTreeSet::new();
        for _ in 0..3 {
            let answer =
                raw_post(url.clone(), &[("Idempotency-Key", "\"7\"")], String::new()).await.expect(200);
            known.insert(answer["last"]["id"].as_str().expect("an id").to_owned());
            assert_eq!(answer["fired"], 3, "{answer}");
        }
        let later = act(&stack, "yearly", "run").await["last"]["id"].clone();
        let first = raw_post(url, &[("Idempotency-Key", "\"7\"")], String::new()).await.expect(200);
        assert_ne!(first["last"]["id"], later);
        known.insert(first["last"]["id"].as_str().expect("an id").to_owned());
        assert_eq!(known.len(), 1, "{known:?}");
        wait_for(&sink, "yearly", 4).await;
        assert_eq!(get(&stack, "yearly").await["next_at"], Value::Null, "it stays paused");
    }
}

#[tokio::test]
async fn a_schedule_that_has_fired_for_the_last_time_stays_and_is_not_exported() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let mut schedule = each_second(&sink);
        put(&stack, "goes-on", &schedule).await;
        schedule["until"] = json!((now() + SignedDuration::from_secs(2)).to_string());
        put(&stack, "ends", &schedule).await;
        let ended = stack.wait_get("/v1/schedules/ends", SOON, |found| found["next_at"].is_null()).await;
        assert!(ended["fired"].as_u64() >= Some(1), "{ended}");
        let (status, again) = put(&stack, "ends", &schedule).await;
        assert_eq!((status, again), (200, ended), "it can be put again as it is");
        let exported = stack.get("/v1/export/schedules").await;
        let text = String::from_utf8(exported.body.into()).expect("UTF-8");
        assert!(text.lines().count() == 1 && text.contains("goes-on"), "{text}");
    }
}

#[tokio::test]
async fn with_overlap_skip_a_time_is_left_out_while_the_last_job_has_not_ended() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_path("/tick", Answer::status(200).held());
        let mut schedule = each_second(&sink);
        schedule["overlap"] = json!("skip");
        put(&stack, "tick", &schedule).await;
        wait_for(&sink, "tick", 1).await;
        let is_so = |found: &Value| found["overlapped_firings"].as_u64() >= Some(2);
        stack.wait_get("/v1/schedules/tick", SOON, is_so).await;
        let found = get(&stack, "tick").await;
        assert_eq!((&found["fired"], &found["missed_firings"]), (&json!(1), &json!(0)), "{found}");
        sink.answer_path("/tick", Answer::status(200));
        sink.release();
        wait_for(&sink, "tick", 2).await;
    }
}

#[tokio::test]
async fn times_that_pass_while_no_carrier_runs_are_made_up_for_as_the_schedule_says() {
    let (mut stack, sink) = (Stack::options().start().await, Sink::start().await);
    let anchor = now() - SignedDuration::from_hours(1);
    for missed in ["skip", "one", "all"] {
        let mut schedule = each_second(&sink);
        schedule["missed"] = json!(missed);
        schedule["anchor"] = json!(anchor.to_string());
        put(&stack, missed, &schedule).await;
    }
    for missed in ["skip", "one", "all"] {
        wait_for(&sink, missed, 1).await;
    }
    stack.carriers[0].stop();
    let frozen_at = now();
    eventually(SOON, "some seconds pass", async || {
        let passed = now().duration_since(frozen_at);
        if passed > SignedDuration::from_secs(4) { Ok(()) } else { Err(passed) }
    })
    .await;
    let before: Vec<_> = ["skip", "one", "all"].map(|id| arrived(&sink, id).len()).into();
    stack.carriers[0].cont();
    wait_for(&sink, "all", before[2] + 4).await;
    for id in ["skip", "one", "all"] {
        wait_for(&sink, id, before[0] + 1).await;
        let paused = act(&stack, id, "pause").await;
        let (fired, missed) = (paused["fired"].as_u64(), paused["missed_firings"].as_u64());
        if id == "all" {
            // A time that comes in the moment of the pause is missed.
            assert!(missed <= Some(1), "{paused}");
        } else {
            // The last firing that was missed within a minute is on time.
            assert!(missed >= Some(2), "{paused}");
        }
        let jobs = wait_for(&sink, id, fired.expect("a number") as usize).await;
        assert_eq!(jobs.len(), jobs.iter().collect::<BTreeSet<_>>().len(), "{jobs:?}");
    }
}

#[tokio::test]
async fn the_next_times_of_a_cron_expression_are_shown_in_its_zone() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let schedule = json!({"cron": "30 2 29 3 *", "time_zone": "Europe/Berlin", "from": "2026-12-01T00:00:00",
            "job": {"topic": "t", "ttr": "1m"}});
        let (status, put_answer) = put(&stack, "spring", &schedule).await;
        assert_eq!(
            (status, &put_answer["next_at"]),
            (201, &json!("2027-03-29T00:30:00.000Z")),
            "{put_answer}"
        );
        let next = stack.get("/v1/schedules/spring/next?count=6").await.expect(200);
        let items = next["items"].as_array().expect("a list");
        assert_eq!(items[0]["id"], "spring~20270329T003000Z");
        assert_eq!(items.len(), 6);
        assert_eq!(stack.get("/v1/schedules/spring/next?count=101").await.status, 422);
        let (status, never) =
            put(&stack, "never", &json!({"cron": "0 0 31 2 *", "job": {"topic": "t"}})).await;
        assert!(status == 422 && never["errors"][0]["field"] == "cron", "{never}");
        assert_eq!(stack.get("/v1/schedules/never").await.status, 404, "nothing is half done");
    }
}

#[tokio::test]
async fn schedules_are_listed_page_by_page_and_exported_as_they_can_be_put() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for n in 0..25 {
            let schedule = json!({"cron": "0 8 * * *", "job": {"topic": format!("t{}", n % 3), "ttr": "1m",
                "headers": {"authorization": "hunter2"}}});
            put(&stack, &format!("s-{n:02}"), &schedule).await;
        }
        let pages = stack.pages("/v1/schedules?limit=10").await;
        let ids: Vec<_> =
            pages.iter().flatten().map(|one| one["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(ids, (0..25).map(|n| format!("s-{n:02}")).collect::<Vec<_>>());
        let shown = serde_json::to_string(&pages).expect("JSON");
        assert!(!shown.contains("hunter2"), "secrets are masked");
        let export = String::from_utf8(stack.get("/v1/export/schedules").await.body.to_vec()).expect("UTF-8");
        let lines: Vec<Value> =
            export.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(lines.len() == 25 && export.contains("hunter2"));
        let line = &lines[7];
        let path = format!("/v1/schedules/{}", line["id"].as_str().expect("an id"));
        let before = stack.get(&path).await.expect(200);
        stack.delete(&path).await.expect(200);
        let put = stack.send(Method::PUT, &path, &line["schedule"]).await.expect(201);
        for field in ["cron", "time_zone", "job", "missed", "catchup", "overlap", "next_at"] {
            assert_eq!(put[field], before[field], "{field}");
        }
    }
}

#[tokio::test]
async fn a_schedule_that_nothing_leads_to_is_found_by_the_check_and_repaired() {
    let (mut stack, sink) = (Stack::options().start().await, Sink::start().await);
    stack.skip_check();
    put(&stack, "tick", &each_second(&sink)).await;
    wait_for(&sink, "tick", 1).await;
    act(&stack, "tick", "pause").await;
    act(&stack, "tick", "resume").await;
    stack.carriers[0].stop();
    let mut redis = stack.redis().client().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("*:schedule*").query_async(&mut redis).await.expect("the keys");
    for key in keys.iter().filter(|key| key.ends_with(":schedule-times") || key.contains("{meta}")) {
        redis::cmd("DEL").arg(key).query_async::<()>(&mut redis).await.expect("DEL");
    }
    let found = stack.get("/v1/check").await.expect(200);
    let details: Vec<_> = found["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|finding| finding["kind"] == "schedule")
        .map(|finding| finding["detail"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(details.len(), 2, "{found}");
    assert!(
        details.iter().any(|d| d.contains("does not fire")) && details.iter().any(|d| d.contains("no list"))
    );
    assert_eq!(stack.get("/v1/schedules/tick").await.status, 404);
    let repaired = stack.post_empty("/v1/check/repair").await.expect(200);
    assert_eq!(repaired["clean"], true, "{repaired}");
    stack.carriers[0].cont();
    let fired = get(&stack, "tick").await["fired"].clone();
    stack.wait_get("/v1/schedules/tick", SOON, |found| found["fired"] != fired).await;
}
