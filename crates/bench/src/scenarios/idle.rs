//! CPU and Redis calls of all roles while very many jobs are pending and none is due.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::figure::report;
use crate::fill;
use crate::setup::Setup;
use crate::usage::cpu_seconds;
use ringback_testkit::{Process, Role};

pub(crate) const NAME: &str = "idle";

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(1_000_000, 2_000);
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).count(Role::Notifier, 2).start().await;
    fill::far(&setup.open(stack.redis()).await, 0..jobs).await;
    // Work that filling has started ends first.
    sleep(setup.size.pick(Duration::from_secs(5), Duration::from_millis(100))).await;
    let processes = stack.apis.iter().chain(&stack.carriers).chain(&stack.notifiers);
    let pids: Vec<_> = processes.map(Process::pid).collect();
    let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    let redis = || cpu_seconds(stack.redis().pid());

    let calls = stack.redis().watch_calls().await;
    let (cpu_before, redis_before, started) = (cpu(), redis(), Instant::now());
    sleep(setup.size.pick(Duration::from_secs(30), Duration::from_secs(3))).await;
    let seconds = started.elapsed().as_secs_f64();
    let share = |used: f64| used / seconds * 100.0;
    let (roles, redis) = (share(cpu() - cpu_before), share(redis() - redis_before));

    let with = json!({ "pending": jobs, "processes": pids.len(), "by_command": calls.by_command() });
    report(NAME, "calls", calls.total() as f64 / seconds, "calls/s", &with);
    let with = json!({ "pending": jobs, "processes": pids.len() });
    report(NAME, "roles-cpu", roles, "% of core", &with);
    report(NAME, "redis-cpu", redis, "% of core", &with);
    assert_eq!(stack.count_in("delayed").await, jobs as u64, "every job is there");
}
