//! Schedules on Redis whose carriers are killed at crash points around firings: each time fires once.

use std::collections::BTreeSet;
use std::fs;

use jiff::{SignedDuration, Timestamp};
use ringback_testkit::{Role, Sink, Stack, eventually, variable};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, now, time};

/// How many kills there are, unless `RINGBACK_TEST_KILLS` is set.
const KILLS: usize = 100;
/// Where a carrier is killed: before, in between and after the call that fires.
const POINTS: [&str; 3] = ["carrier.after_due_schedules", "carrier.before_fire", "carrier.after_fire"];
/// How many schedules fire each second.
const SCHEDULES: u64 = 12;

#[tokio::test]
async fn a_carrier_killed_at_its_firings_loses_none_and_makes_none_twice() {
    let kills = variable("RINGBACK_TEST_KILLS").unwrap_or(KILLS);
    let files = tempfile::tempdir().expect("a directory");
    let (plan, log) = (files.path().join("plan"), files.path().join("log"));
    // Arms one kill at the next point. Clears the log, because a point that is in the log is not done again.
    let arm = |kill: usize| {
        fs::write(&plan, format!("{} kill 1\n", POINTS[kill % POINTS.len()])).expect("a plan");
        fs::write(&log, "").expect("a log");
    };
    arm(0);
    let options = Stack::options()
        .count(Role::Carrier, 2)
        .lock_ttl("500ms")
        .role_env(Role::Carrier, "FAULT_PLAN", &plan.display().to_string())
        .role_env(Role::Carrier, "FAULT_LOG", &log.display().to_string());
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    let ids: Vec<_> = (0..SCHEDULES).map(|n| format!("tick-{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        let anchor = Timestamp::UNIX_EPOCH + SignedDuration::from_millis(n as i64 * 83);
        let schedule = json!({"every": "1s", "anchor": anchor.to_string(), "missed": "all",
            "job": {"topic": format!("t{}", n % 5), "url": sink.url("/")}});
        stack.put(&format!("/v1/schedules/{id}"), &schedule).await.expect(201);
    }

    // Checks all carriers for a kill, because nothing else tells of one.
    let mut killed = 0;
    eventually(SOON * 6, &format!("{kills} kills"), async || {
        for carrier in &mut stack.carriers {
            if carrier.exit_status().is_some() {
                killed += 1;
                arm(killed);
                carrier.restart();
            }
        }
        if killed >= kills { Ok(()) } else { Err(killed) }
    })
    .await;
    fs::write(&plan, "").expect("a plan of nothing");
    for carrier in &mut stack.carriers {
        carrier.restart();
    }
    let mut made = 0;
    for id in &ids {
        made += fires_each_time_once(&stack, &sink, id).await;
    }
    eprintln!("{kills} kills, {made} firings");
    assert!(made > kills, "{made} firings");
}

/// Pauses a schedule between two firings, and asserts that each second has fired once and all jobs have arrived.
/// Returns the number of firings.
async fn fires_each_time_once(stack: &Stack, sink: &Sink, id: &str) -> usize {
    let path = format!("/v1/schedules/{id}");
    // The schedule must not fire at the moment of the pause.
    let is_ahead = |found: &Value| time(&found["next_at"]) > now() + SignedDuration::from_millis(300);
    stack.wait_get(&path, SOON, is_ahead).await;
    let paused = stack.post_empty(&format!("{path}/pause")).await.expect(200);
    let fired = paused["fired"].as_u64().expect("a number") as usize;
    let of = |id: &str| format!("{id}~");
    let arrived = eventually(SOON, "all jobs arrive", async || {
        let arrivals = sink.arrivals();
        let own: Vec<_> =
            arrivals.iter().map(|a| a.job_id().to_owned()).filter(|job| job.starts_with(&of(id))).collect();
        if own.len() >= fired { Ok(own) } else { Err(format!("{} of {fired}", own.len())) }
    })
    .await;
    let distinct: BTreeSet<_> = arrived.iter().collect();
    assert_eq!((arrived.len(), distinct.len()), (fired, fired), "{id}: {arrived:?}");
    assert_eq!(paused["missed_firings"], Value::from(0), "{paused}");
    // The times are all seconds from the first to the last.
    let times: Vec<_> = distinct.into_iter().map(|job| time_of(job)).collect();
    for pair in times.windows(2) {
        assert_eq!(pair[1].duration_since(pair[0]), SignedDuration::from_secs(1), "{id}: {times:?}");
    }
    fired
}

/// The time in the id of a firing's job.
fn time_of(job: &str) -> Timestamp {
    let (_, text) = job.split_once('~').expect("the id of a firing");
    let part = |range: std::ops::Range<usize>| &text[range];
    let rest = text[15..].trim_end_matches('Z');
    let (date, of_day) = (
        format!("{}-{}-{}", part(0..4), part(4..6), part(6..8)),
        format!("{}:{}:{}{rest}", part(9..11), part(11..13), part(13..15)),
    );
    format!("{date}T{of_day}Z").parse().expect("a time")
}
