//! A backlog of due jobs, one notifier, a receiver that only counts.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::usage::cpu_seconds;
use super::{Setup, job, report};
use crate::{Role, Sink, Stack};

pub(super) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(60_000, 3_000);
    let sink = Sink::counting().await;
    let options = setup.stack().count(Role::Notifier, 0);
    let mut stack = options.start().await;
    let url = sink.url("/drain");
    let started = Instant::now();
    let all: Vec<_> = (0..jobs).map(|n| job(n, &url, &json!({}))).collect();
    for batch in all.chunks(1000) {
        let (status, answer) = stack.batch(batch).await;
        assert_eq!((status, answer["refused"].as_u64()), (200, Some(0)), "a batch was refused");
    }
    report(
        "drain",
        "submit-batch",
        jobs as f64 / started.elapsed().as_secs_f64(),
        "jobs/s",
        &json!({"per_request": 1000}),
    );

    let calls_before = script_calls(&stack).await;
    stack.add(Role::Notifier).await;
    let started = Instant::now();
    let before = sink.seen();
    sink.wait_until("all have arrived", Duration::from_secs(300), |_| sink.seen() >= jobs).await;
    let seconds = started.elapsed().as_secs_f64();
    let calls = script_calls(&stack).await - calls_before;
    let cpu = json!({
        "jobs": jobs,
        "jobs_per_script_call": jobs as f64 / calls as f64,
        "notifier_cpu_s": cpu_seconds(stack.notifiers[0].pid()),
        "redis_cpu_s": cpu_seconds(stack.redis().pid()),
        "duplicates": sink.counts().values().filter(|n| **n > 1).count(),
    });
    report("drain", "handed-over", (jobs - before) as f64 / seconds, "jobs/s", &cpu);
}

async fn script_calls(stack: &Stack) -> u64 {
    stack.redis().command_calls().await.get("fcall").copied().unwrap_or(0)
}
