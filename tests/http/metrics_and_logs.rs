//! Metrics and log lines of the processes: counters exist from the start, names are documented, values count, and logs
//! can be JSON.

use std::collections::BTreeSet;

use ringback_testkit::{Answer, Process, Role, Script, Sink, Stack, StackOptions, eventually, http_client};
use serde_json::{Value, json};

use super::gauges::GAUGES;
use crate::sample_jobs::{SOON, TOPIC, job, now, with};

/// What is shown only where Redis has a limit.
const RARE: [&str; 1] = ["ringback_store_memory_ratio"];

#[tokio::test]
async fn every_counter_that_an_alarm_watches_is_there_from_the_start_with_0() {
    let stack = StackOptions::embedded().start().await;
    let rules = include_str!("../../deploy/prometheus/alerts.yaml");
    let watched = rules.split("increase(").skip(1).filter_map(|rest| rest.split(['[', '{']).next());
    let watched: BTreeSet<_> = watched.collect();
    assert!(watched.len() > 2, "{watched:?}");
    for process in &stack.ups {
        let text = process.metrics().await;
        for counter in &watched {
            assert!(text.lines().any(|line| line == format!("{counter} 0")), "no {counter} in {text}");
        }
    }
}

#[tokio::test]
async fn the_metrics_of_each_role_are_those_that_are_documented() {
    let (stack, _sink) = after_some_traffic(Stack::options()).await;
    stack.set_policy(TOPIC, &json!({"metrics": true})).await;
    eventually(SOON, "the topic has metrics", async || {
        let text = stack.carriers[0].metrics().await;
        if text.contains("ringback_topic_jobs") { Ok(()) } else { Err(text) }
    })
    .await;
    let documented = documented_metrics(include_str!("../../docs/reference/metrics.md"));
    for (role, process) in roles(&stack) {
        let text = process.metrics().await;
        let seen = names(&text);
        let own = |name: &&String| {
            let is_of_jobs = role == "carrier" && GAUGES.contains(&name.as_str());
            let is_of_role = name.starts_with(&format!("ringback_{role}_"));
            is_of_jobs || is_of_role || name.starts_with("ringback_log_")
        };
        let missing: Vec<_> = documented
            .iter()
            .filter(own)
            .filter(|name| !seen.contains(*name) && !RARE.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "{role} has no {missing:?}:\n{text}");
        let undocumented: Vec<_> =
            seen.iter().filter(|name| name.starts_with("ringback_") && !documented.contains(*name)).collect();
        assert!(undocumented.is_empty(), "{role} has {undocumented:?}, which no document mentions");
    }
}

#[tokio::test]
async fn the_metrics_count_submits_passes_and_attempts() {
    let (stack, _sink) = after_some_traffic(Stack::options()).await;
    let counts = [
        (&stack.apis[0], r#"ringback_api_submitted_jobs_total{result="created"}"#, 5.0),
        (&stack.apis[0], "ringback_api_pulled_jobs_total", 1.0),
        (&stack.apis[0], r#"ringback_api_submitted_jobs_total{result="repeated"}"#, 1.0),
        (&stack.apis[0], r#"ringback_api_submitted_jobs_total{result="conflict"}"#, 1.0),
        (&stack.apis[0], r#"ringback_api_submitted_jobs_total{result="invalid"}"#, 1.0),
        (&stack.carriers[0], "ringback_carrier_expired_pull_leases_total", 1.0),
        (&stack.notifiers[0], r#"ringback_notifier_attempts_total{result="complete"}"#, 3.0),
        (&stack.notifiers[0], r#"ringback_notifier_attempts_total{result="retry"}"#, 1.0),
        (&stack.notifiers[0], r#"ringback_notifier_attempts_total{result="bury"}"#, 1.0),
        (&stack.notifiers[0], "ringback_notifier_in_flight_jobs", 0.0),
    ];
    for (process, name, value) in counts {
        process.wait_metric(name, value, SOON).await;
    }
}

#[tokio::test]
async fn log_lines_are_json_where_that_is_asked_for() {
    let options = Stack::options().env("RINGBACK_LOG_FORMAT", "json").env("RINGBACK_LOG", "debug");
    let (mut stack, _sink) = after_some_traffic(options).await;
    for process in [&mut stack.apis[0], &mut stack.carriers[0], &mut stack.notifiers[0]] {
        process.term();
        process.wait_exit(SOON).await;
    }
    for (role, process) in roles(&stack) {
        let log = process.log();
        let lines: Vec<Value> = log.lines().map(line).collect();
        assert!(!lines.is_empty(), "{role} has logged nothing");
        for field in ["timestamp", "level", "target", "message"] {
            let without = lines.iter().find(|line| !line[field].is_string());
            assert!(without.is_none(), "{role} has a line without {field}: {without:?}");
        }
    }
    let log = stack.notifiers[0].log();
    let failed = log.lines().map(line).find(|line| line["level"] == "WARN" && line["job.id"] == "retried");
    let failed = failed.unwrap_or_else(|| panic!("no warning of a failed attempt in {log}"));
    assert_eq!((&failed["job.topic"], &failed["status"]), (&json!(TOPIC), &json!(500)), "{failed}");
    assert_eq!((&failed["attempt"], &failed["next"]), (&json!(1), &json!("retry")), "{failed}");
    assert!(failed["lateness_ms"].is_number() && failed["duration_ms"].is_number(), "{failed}");
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A stack that has delivered, retried, buried and refused jobs, fired a schedule and served a listener; its receiver.
async fn after_some_traffic(options: StackOptions) -> (Stack, Sink) {
    let (stack, sink) = (options.start().await, Sink::start().await);
    sink.answer_job("retried", Script::first(1, Answer::status(500)));
    sink.answer_job("gone", Answer::status(410));
    let mut events = http_client().get(stack.url("/v1/events")).send().await.expect("the api answers");
    let later = with(job(&sink, "later"), "delay", "100ms");
    for job in [&job(&sink, "now"), &later, &job(&sink, "retried"), &job(&sink, "gone")] {
        stack.accept(job).await;
    }
    assert_eq!(stack.submit(&later).await.0, 200);
    assert_eq!(stack.submit(&with(later, "body", "other")).await.0, 409);
    assert_eq!(stack.submit(&json!({})).await.0, 422);
    // A consumer takes it, and is not heard of again.
    stack.accept(&json!({"topic": TOPIC, "id": "left", "retry": {"preset": "none"}})).await;
    stack.reserve(TOPIC, &json!({"ttr": "100ms"})).await;
    let ends = [("now", "done"), ("later", "done"), ("retried", "done"), ("gone", "dead"), ("left", "dead")];
    for (id, state) in ends {
        stack.wait_state(TOPIC, id, state, SOON).await;
    }
    let second = json!({"every": "1s", "until": (now() + SOON).to_string(), "job": {"topic": "of-schedule"}});
    stack.put("/v1/schedules/second", &second).await.expect(201);
    stack.wait_get("/v1/schedules/second", SOON, |found| found["fired"].as_u64() >= Some(1)).await;
    stack.delete("/v1/schedules/second").await.expect(200);
    assert!(events.chunk().await.expect("the stream goes on").is_some());
    (stack, sink)
}

fn roles(stack: &Stack) -> [(&'static str, &Process); 3] {
    let [api, carrier, notifier] = [Role::Api, Role::Carrier, Role::Notifier].map(Role::binary);
    let name = |binary: &'static str| binary.trim_start_matches("ringback-");
    [(name(api), &stack.apis[0]), (name(carrier), &stack.carriers[0]), (name(notifier), &stack.notifiers[0])]
}

/// The names in the `# TYPE` lines of a page of metrics.
fn names(metrics: &str) -> BTreeSet<String> {
    let typed = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    typed.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

/// The metrics of the roles that a document names between backticks.
fn documented_metrics(text: &str) -> BTreeSet<String> {
    let is_metric = |name: &&str| {
        let role = |start: &&str| name.starts_with(&format!("ringback_{start}"));
        [
            "api_",
            "carrier_",
            "notifier_",
            "archive_",
            "archiver_",
            "log_",
            "jobs",
            "missing_jobs",
            "tombstones_",
            "store_",
            "audit_log_",
            "oldest_ready",
            "open_breakers",
            "topic_",
        ]
        .iter()
        .any(role)
            && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    text.split('`').filter(is_metric).map(str::to_owned).collect()
}
