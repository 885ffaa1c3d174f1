//! How long Redis is busy at a time: by its slow log, and by what a PING has to wait, one at a time.

use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::RedisServer;
use crate::bench::latencies::Latencies;

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(5);
/// What the slow log takes in, in microseconds: anything shorter is of no interest.
const SLOWER_THAN: u64 = 500;
/// How many entries it keeps: more than there are in a herd.
const ENTRIES: u64 = 100_000;

/// A running probe.
pub(in crate::bench) struct Probe {
    stop: CancellationToken,
    pings: JoinSet<Latencies>,
}

/// What was seen.
pub(in crate::bench) struct Seen {
    /// Of the slow log; 0 when nothing took longer than half a millisecond.
    pub(in crate::bench) longest_ms: f64,
    /// The name of that command.
    pub(in crate::bench) command: String,
    pub(in crate::bench) pings: u64,
    pub(in crate::bench) ping_max_ms: f64,
}

impl Probe {
    /// Begins to look.
    ///
    /// # Panics
    /// When the server does not answer.
    pub(in crate::bench) async fn start(server: &RedisServer) -> Self {
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

    /// Ends, and tells.
    ///
    /// # Panics
    /// When the server does not answer.
    pub(in crate::bench) async fn end(self, server: &RedisServer) -> Seen {
        self.stop.cancel();
        let pings = self.pings.join_all().await.pop().expect("there is one probe");
        let mut client = server.client().await;
        let log: Vec<Vec<Value>> =
            redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(&mut client).await.expect("SLOWLOG answers");
        let (longest, command) = log.iter().filter_map(|entry| entry_of(entry)).max().unwrap_or_default();
        Seen {
            longest_ms: longest as f64 / 1000.0,
            command,
            pings: pings.count(),
            ping_max_ms: pings.millis(1.0),
        }
    }
}

/// The microseconds and the first word of an entry.
fn entry_of(entry: &[Value]) -> Option<(u64, String)> {
    let micros = redis::from_redis_value_ref(entry.get(2)?).ok()?;
    let words: Vec<String> = redis::from_redis_value_ref(entry.get(3)?).ok()?;
    Some((micros, words.into_iter().next()?))
}

/// One at a time, so whatever lasts is seen once, and at its full length: the longest counts, not quantiles.
async fn ping(mut client: redis::aio::MultiplexedConnection, stop: CancellationToken) -> Latencies {
    let mut seen = Latencies::new();
    let mut turns = interval(EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.is_cancelled() {
        turns.tick().await;
        let sent = Instant::now();
        redis::cmd("PING").exec_async(&mut client).await.expect("PING answers");
        seen.record(sent.elapsed());
    }
    seen
}
