//! Clocks that are far ahead for a while: of the machine beside an embedded store, of Redis, and of one API; and a
//! process whose clock is far behind.

use jiff::{SignedDuration, Timestamp};
use ringback_testkit::{Preload, Process, ProcessSpec, RedisServer, Role, Seen};

use crate::prelude::*;
use crate::sample_jobs::{now, time};

const DAY: Duration = Duration::from_secs(86_400);

fn preload() -> Preload {
    Preload::compile().expect("there is a C compiler, which links these tests too")
}

/// The options with which processes of a role see a clock.
fn seeing(options: StackOptions, role: Role, seen: &Seen) -> StackOptions {
    seen.env().iter().fold(options, |options, (name, value)| options.role_env(role, name, value))
}

fn set_ahead(seen: &Seen, by: Duration) {
    seen.set_ahead(by.as_micros() as i64);
}

async fn readiness(process: &Process) -> String {
    process.readiness().await.expect("the admin port answers").1
}

/// Waits until the readiness of a process contains `what`; without `what`, until it says nothing of a clock.
async fn says(process: &Process, what: Option<&str>) {
    eventually(SOON, &format!("readiness says {what:?}"), async || {
        let text = readiness(process).await;
        let is_said = what.map_or(!text.contains("clock"), |what| text.contains(what));
        if is_said { Ok(()) } else { Err(text) }
    })
    .await;
}

/// The seconds by which the store's time is ahead, from the metric of a process.
async fn ahead(process: &Process) -> f64 {
    process.metric("ringback_store_clock_ahead_seconds").await.expect("the gauge")
}

#[tokio::test]
async fn an_embedded_store_whose_clock_was_ahead_says_so_delivers_nothing_early_and_takes_a_word() {
    let preload = preload();
    let seen = preload.seen();
    let (mut stack, sink) =
        (seeing(StackOptions::embedded(), Role::Up, &seen).start().await, Sink::start().await);
    let tomorrow = (now() + SignedDuration::from_hours(24)).to_string();
    stack.post_empty("/v1/topics/paused/pause").await.expect(200);
    stack.accept(&with(with(job(&sink, "early"), "topic", "paused"), "at", tomorrow.as_str())).await;
    // One hour more, so that the clock is still thirty whole days ahead when readiness is asked.
    set_ahead(&seen, DAY * 30 + Duration::from_secs(3600));
    stack.wait_state("paused", "early", "ready", SOON).await;
    stack.accept(&job(&sink, "meanwhile")).await;
    stack.wait_state(TOPIC, "meanwhile", "done", SOON).await;
    set_ahead(&seen, Duration::ZERO);
    stack.wait_state("paused", "early", "delayed", SOON).await;
    stack.post_empty("/v1/topics/paused/resume").await.expect(200);

    for _ in 0..2 {
        says(&stack.ups[0], Some("30 days ahead of this machine's clock")).await;
        assert!(stack.ups[0].log().contains("ringback check --accept-clock"), "{}", stack.ups[0].log());
        assert!((ahead(&stack.ups[0]).await - DAY.as_secs_f64() * 30.0).abs() < 7200.0);
        let store = stack.stats().await["store"].clone();
        assert!(store["clock_ahead_ms"].as_i64().is_some_and(|ms| ms > 86_400_000 * 29), "{store}");
        stack.ups[0].restart();
        stack.ready(SOON).await;
    }
    stack.accept(&with(job(&sink, "later"), "at", tomorrow.as_str())).await;
    stack.accept(&job(&sink, "now")).await;
    let arrived = sink.wait_for_job("now", 1, SOON).await;
    let sent: i64 = arrived[0].header("webhook-timestamp").expect("it is signed").parse().expect("seconds");
    assert!((sent - now().as_second()).abs() < 60, "{sent}");

    let accepted = stack.post_empty("/v1/check/accept-clock").await.expect(200);
    assert_eq!(accepted["jobs"], 1);
    stack.post_empty("/v1/check/accept-clock").await.expect(409);
    says(&stack.ups[0], None).await;
    assert_eq!(ahead(&stack.ups[0]).await, 0.0);
    assert_eq!(stack.job("paused", "early").await.1["state"], "delayed");
    assert_eq!(stack.job(TOPIC, "later").await.1["state"], "delayed");
    assert!(sink.arrivals_of("early").is_empty() && sink.arrivals_of("later").is_empty());
}

#[tokio::test]
async fn schedules_go_on_after_a_clock_of_redis_that_was_far_ahead() {
    let stack = Stack::options().redis(RedisServer::options().behind_proxies(preload())).start().await;
    let sink = Sink::start().await;
    let seen = stack.redis().seen().expect("it has the library");
    let fired =
        async || stack.get("/v1/schedules/tick").await.expect(200)["fired"].as_u64().expect("a number");
    let schedule = json!({"every": "1s", "missed": "skip", "job": {"topic": "tick", "url": sink.url("/")}});
    stack.put("/v1/schedules/tick", &schedule).await.expect(201);
    eventually(SOON, "it fires", async || match fired().await {
        0 | 1 => Err("it does not"),
        _ => Ok(()),
    })
    .await;
    for by in [Duration::from_secs(7200), DAY * 400] {
        set_ahead(seen, by);
        says(&stack.carriers[0], Some("ahead of this machine's")).await;
        assert!(ahead(&stack.carriers[0]).await > by.as_secs_f64() - 60.0);
        let far = |next: Timestamp| {
            next.duration_since(now()) > SignedDuration::try_from(by / 2).expect("a duration")
        };
        eventually(SOON, "it fires by the wrong clock", async || {
            let next = time(&stack.get("/v1/schedules/tick").await.expect(200)["next_at"]);
            if far(next) { Ok(()) } else { Err(next) }
        })
        .await;
        set_ahead(seen, Duration::ZERO);
        let before = fired().await;
        eventually(SOON, "it fires again", async || {
            let after = fired().await;
            if after > before + 1 { Ok(()) } else { Err(after) }
        })
        .await;
    }
    says(&stack.carriers[0], None).await;
}

#[tokio::test]
async fn a_clock_of_an_api_that_is_a_day_ahead_is_said_and_anchors_and_refuses_nothing() {
    let seen = preload().seen();
    set_ahead(&seen, DAY);
    let (stack, sink) = (seeing(Stack::options(), Role::Api, &seen).start().await, Sink::start().await);
    says(&stack.apis[0], Some("behind this machine's")).await;
    assert!((ahead(&stack.apis[0]).await + DAY.as_secs_f64()).abs() < 60.0);
    let schedule = json!({"every": "1h", "job": {"topic": "tick", "url": sink.url("/")}});
    let put = stack.put("/v1/schedules/tick", &schedule).await.expect(201);
    assert!(time(&put["next_at"]).duration_since(now()) <= SignedDuration::from_hours(1), "{put}");
    // Ten years from now, which are a day less by the wrong clock.
    let latest = now() + SignedDuration::from_hours(24 * 3652 + 12);
    let answer = stack.submit(&with(job(&sink, "far"), "at", latest.to_string())).await;
    assert_eq!(answer.0, 422, "{answer:?}");
}

#[test]
fn a_process_whose_clock_has_lost_its_time_does_not_start() {
    let seen = preload().seen();
    seen.set_ahead(-now().as_microsecond());
    for binary in ["ringback-api", "ringback-carrier", "ringback-notifier"] {
        let spec =
            seen.env().iter().fold(ProcessSpec::new(binary), |spec, (name, value)| spec.env(name, value));
        let output = spec.command().output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("1970-01-01") && text.contains("set it"), "{text}");
    }
}
