//! Measures what an installation uses while nothing is due: calls to Redis, and CPU time of Redis and the roles.

use std::collections::BTreeMap;
use std::time::Duration;

use ringback_testkit::{Process, Stack};
use tokio::time::{Instant, sleep};

use crate::setup::Setup;
use crate::usage::cpu_seconds;

/// The calls and the CPU time of a stack at rest.
pub(crate) struct AtRest {
    /// Calls of clients to Redis a second.
    pub(crate) calls: f64,
    pub(crate) by_command: BTreeMap<String, u64>,
    /// How many processes there are besides Redis.
    pub(crate) processes: usize,
    pub(crate) roles_cpu: f64,
    pub(crate) redis_cpu: f64,
}

impl AtRest {
    /// Watches a stack for half a minute, after a pause in which earlier work ends. A quick run takes 3 seconds.
    pub(crate) async fn watch(setup: &Setup, stack: &Stack) -> Self {
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
        Self {
            calls: calls.total() as f64 / seconds,
            by_command: calls.by_command(),
            processes: pids.len(),
            roles_cpu: share(cpu() - cpu_before),
            redis_cpu: share(redis() - redis_before),
        }
    }
}
