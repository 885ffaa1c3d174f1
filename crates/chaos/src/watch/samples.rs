//! Samples of resources: memory, file descriptors and threads of processes, and the memory of Redis for each job.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use ringback_testkit::history::{Entry, History, Limit, Sample};
use tokio::time::sleep;

use crate::clients::Api;
use crate::ending::ask;
use crate::installation::Installation;
use crate::redis_client::RedisClient;

/// The pause between two samples.
const PAUSE: Duration = Duration::from_millis(500);

/// The most of each, and by how many percent a process may have more after the drain than before the load. A process
/// that has worked keeps pages of its allocator, and for ten seconds threads that waited for files and names, of which
/// tokio has 512 at most. Before the load it has 15 handles; after it, it keeps idle connections for a while, at most
/// one for each call that was under way at once, of which a fault that stops everything for a second makes 60. One
/// handle left behind by each delivery is more than both.
const LIMITS: [(&str, u64, Option<u64>); 4] = [
    ("resident_kib", 192 * 1024, Some(200)),
    ("handles", 200, Some(600)),
    ("threads", 600, None),
    (REDIS, 8 * 1024, None),
];
const REDIS: &str = "redis_bytes_per_job";
/// Fewer jobs say nothing of the memory for each: a server that was started again uses a megabyte more or less.
const ENOUGH_JOBS: u64 = 500;

pub(super) fn write_limits(history: &History) {
    for (name, most, leak) in LIMITS {
        history.write(&Entry::Limit(Limit { name, most, leak }));
    }
}

/// Writes samples twice a second until the task is dropped.
pub(super) async fn repeat(installation: Arc<Installation>) {
    loop {
        sleep(PAUSE).await;
        write(&installation).await;
    }
}

/// Writes a sample of each process, except those that a fault is being made to.
pub(super) async fn write(installation: &Installation) {
    let history = &installation.history;
    for (place, member) in installation.members.iter().enumerate() {
        // While a fault is made to it, it is looked at the next time.
        let Ok(running) = member.running.try_lock() else { continue };
        let pid = running.process.pid();
        drop(running);
        let of = format!("{}-{place}", member.role.binary());
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let handles = fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|files| files.count() as u64);
        let values =
            [("resident_kib", field("VmRSS:")), ("threads", field("Threads:")), ("handles", handles)];
        for (name, value) in values {
            // A killed process has no values.
            if let Some(value) = value {
                history.write(&Entry::Sample(Sample { t: history.t(), of: &of, name, value }));
            }
        }
    }
}

/// The memory of the data in Redis before the load; none without a server.
pub(super) struct Memory(Option<u64>);

impl Memory {
    pub(super) async fn read(installation: &Installation) -> Self {
        if installation.redis.is_none() {
            return Self(None);
        }
        let mut client = RedisClient::new(installation.redis_port);
        let info: Option<String> = client.ask(redis::cmd("INFO").arg("memory")).await;
        let used = info.as_deref().and_then(|info| {
            let used = info.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"))?;
            used.trim().parse().ok()
        });
        Self(used)
    }

    /// Writes how many more bytes Redis now uses for each job. Does nothing without a single Redis, or with fewer than
    /// [`ENOUGH_JOBS`] jobs.
    pub(super) async fn write(&self, installation: &Installation, api: &Api) {
        let (Some(before), Some(now)) = (self.0, Self::read(installation).await.0) else { return };
        let states = ask(api, "/v1/stats").await;
        let jobs: u64 = states["states"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.values())
            .filter_map(|n| n.as_u64())
            .sum();
        if jobs < ENOUGH_JOBS {
            return;
        }
        let history = &installation.history;
        let value = now.saturating_sub(before) / jobs;
        history.write(&Entry::Sample(Sample { t: history.t(), of: "redis", name: REDIS, value }));
    }
}
