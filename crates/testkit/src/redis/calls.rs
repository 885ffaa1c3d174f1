//! How many commands clients send to a server.
//!
//! Neither INFO commandstats, nor `total_commands_processed`, nor the slow log can tell: all three count what
//! scripts call as well. MONITOR can: it marks those with `lua` where a client's address stands otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use redis::Client;
use tokio::task::JoinSet;

/// Counts commands by a MONITOR connection until it is dropped: exact, one per command of a pipeline or a
/// transaction, without those inside scripts. The server pays for each line, so measure rates with it, not
/// throughput.
pub struct CallWatch {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    // Ends the counting when dropped.
    _task: JoinSet<()>,
}

impl CallWatch {
    pub(super) async fn start(port: u16) -> Self {
        let client = Client::open(("127.0.0.1", port)).expect("an address with a port is well formed");
        let monitor = client.get_async_monitor().await.expect("MONITOR answers");
        let counts = Arc::new(Mutex::new(BTreeMap::new()));
        let mut task = JoinSet::new();
        let into = Arc::clone(&counts);
        task.spawn(async move {
            let mut lines = monitor.into_on_message::<String>();
            while let Some(line) = lines.next().await {
                if let Some(name) = client_command(&line) {
                    *into.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_insert(0) += 1;
                }
            }
        });
        Self { counts, _task: task }
    }

    /// The calls so far, by command in lower case.
    #[must_use]
    pub fn by_command(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All calls so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_command().values().sum()
    }
}

/// The command of a line like `1763631780.01 [0 127.0.0.1:50312] "FCALL" "…"`; none for one of a script.
fn client_command(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    let (source, command) = rest.split_once("] ")?;
    if source.ends_with(" lua") {
        return None;
    }
    let name = command.strip_prefix('"')?.split('"').next()?;
    Some(name.to_ascii_lowercase())
}

/// `calls` by command, from INFO commandstats.
pub(super) fn commandstats(info: &str) -> BTreeMap<String, u64> {
    info.lines()
        .filter_map(|line| {
            let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let calls = figures.split(',').next()?.trim().parse().ok()?;
            Some((name.to_owned(), calls))
        })
        .collect()
}
