//! Measures the longest time that one command keeps Redis busy, by its slow log and by PINGs sent one at a time.

use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::figure::report;
use crate::latencies::Latencies;
use ringback_testkit::RedisServer;

/// The pause between two PINGs.
const EVERY: Duration = Duration::from_millis(5);
/// The slow log records commands from this many microseconds.
const SLOWER_THAN: u64 = 500;
/// The entries that the slow log keeps: more than one run makes.
const ENTRIES: u64 = 100_000;

/// A probe that runs until [`Probe::end`].
pub(crate) struct Probe {
    stop: CancellationToken,
    pings: JoinSet<Latencies>,
}

/// The longest times that a probe has seen.
pub(crate) struct LongestTimes {
    /// From the slow log; 0 when no command took longer than half a millisecond.
    longest_ms: f64,
    /// The name of the command that took longest.
    command: String,
    pings: u64,
    ping_max_ms: f64,
}

impl Probe {
    pub(crate) async fn start(server: &RedisServer) -> Self {
        let mut client = server.client().await;
        let mut set = redis::pipe();
        set.cmd("CONFIG").arg("SET").arg("slowlog-log-slower-than").arg(SLOWER_THAN);
        set.cmd("CONFIG").arg("SET").arg("slowlog-max-len").arg(ENTRIES).cmd("SLOWLOG").arg("RESET");
        set.exec_async(&mut client).await.expect("a private server takes settings");
        let stop = CancellationToken::new();
        let mut pings = JoinSet::new();
        pings.spawn(ping(client, stop.clone()));
        Self { stop, pings }
    }

    pub(crate) async fn end(self, server: &RedisServer) -> LongestTimes {
        self.stop.cancel();
        let pings = self.pings.join_all().await.pop().expect("there is one probe");
        let mut client = server.client().await;
        let log: Vec<Vec<Value>> =
            redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(&mut client).await.expect("SLOWLOG answers");
        let (longest, command) = log.iter().filter_map(|entry| entry_of(entry)).max().unwrap_or_default();
        LongestTimes {
            longest_ms: longest as f64 / 1000.0,
            command,
            pings: pings.count(),
            ping_max_ms: pings.millis(1.0),
        }
    }
}

impl LongestTimes {
    /// Reports the longest command and the longest PING; `with` describes the load.
    pub(crate) fn report(&self, scenario: &str, with: &serde_json::Value) {
        let and = |name: &str, value: serde_json::Value| {
            let mut with = with.clone();
            with[name] = value;
            with
        };
        let command = and("longest", self.command.clone().into());
        report(scenario, "longest-command", self.longest_ms, "ms", &command);
        report(scenario, "longest-ping", self.ping_max_ms, "ms", &and("pings", self.pings.into()));
    }
}

/// The duration in microseconds and the command of an entry of the slow log; `None` if the entry is something else.
fn entry_of(entry: &[Value]) -> Option<(u64, String)> {
    let micros = redis::from_redis_value_ref(entry.get(2)?).ok()?;
    let command: Vec<String> = redis::from_redis_value_ref(entry.get(3)?).ok()?;
    Some((micros, command.into_iter().next()?))
}

/// Sends PINGs one at a time until `stop`, so that a pause of the server is seen once and at its full length. Only the
/// longest of the returned latencies counts, not their quantiles.
async fn ping(mut client: redis::aio::MultiplexedConnection, stop: CancellationToken) -> Latencies {
    let mut seen = Latencies::new();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.is_cancelled() {
        ticks.tick().await;
        let sent = Instant::now();
        redis::cmd("PING").exec_async(&mut client).await.expect("PING answers");
        seen.record(sent.elapsed());
    }
    seen
}
