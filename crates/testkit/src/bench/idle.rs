//! Jobs pending in the future and nothing due: CPU and client calls of all roles.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::usage::cpu_seconds;
use super::{Setup, job, report};
use crate::Role;

pub(super) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(100_000, 2_000);
    let options = setup.stack().count(Role::Carrier, 2).count(Role::Notifier, 2);
    let stack = options.start().await;
    let all: Vec<_> =
        (0..jobs).map(|n| job(n, "http://127.0.0.1:9/", &json!({ "delay": 3600 + n / 30 }))).collect();
    for batch in all.chunks(1000) {
        stack.batch(batch).await;
    }
    let window = Duration::from_secs(setup.size.pick(30, 6));
    let pids: Vec<_> =
        stack.apis.iter().chain(&stack.carriers).chain(&stack.notifiers).map(crate::Process::pid).collect();
    let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    let calls = stack.redis().watch_calls().await;
    let (cpu_before, redis_before) = (cpu(), cpu_seconds(stack.redis().pid()));
    let started = Instant::now();
    sleep(window).await;
    let seconds = started.elapsed().as_secs_f64();
    let with = json!({ "pending": jobs, "processes": pids.len(), "by_command": calls.by_command() });
    report("idle", "calls", calls.total() as f64 / seconds, "calls/s", &with);
    report(
        "idle",
        "roles-cpu",
        (cpu() - cpu_before) / seconds * 100.0,
        "% of core",
        &json!({ "pending": jobs }),
    );
    let redis_cpu = cpu_seconds(stack.redis().pid()) - redis_before;
    report("idle", "redis-cpu", redis_cpu / seconds * 100.0, "% of core", &json!({ "pending": jobs }));
}
