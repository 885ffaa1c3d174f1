//! Counts the commands that clients send to a server. INFO commandstats, `total_commands_processed` and the slow log
//! also count commands that scripts call. MONITOR prints `lua` for those in place of a client's address, so they can
//! be left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use redis::Client;
use tokio::task::JoinSet;

/// Counts commands with a MONITOR connection until it is dropped. The count is exact: each command of a pipeline or a
/// transaction counts, and those inside scripts do not. MONITOR slows the server down, so use it for rates, not for
/// throughput.
pub struct CallWatch {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    functions: Arc<Mutex<BTreeMap<String, u64>>>,
    // Ends the counting when dropped.
    _task: JoinSet<()>,
}

impl CallWatch {
    pub(crate) async fn start(port: u16) -> Self {
        let client = Client::open(("127.0.0.1", port)).expect("an address with a port is well formed");
        let monitor = client.get_async_monitor().await.expect("MONITOR answers");
        let (counts, functions) = (Arc::default(), Arc::default());
        let mut task = JoinSet::new();
        let (into, functions_into) = (Arc::clone(&counts), Arc::clone(&functions));
        task.spawn(async move {
            let mut lines = monitor.into_on_message::<String>();
            while let Some(line) = lines.next().await {
                if let Some((name, function)) = client_command(&line) {
                    add(&into, name);
                    function.into_iter().for_each(|function| add(&functions_into, function));
                }
            }
        });
        Self { counts, functions, _task: task }
    }

    /// The number of calls of each command, in lower case.
    pub fn by_command(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of calls of each function of a library, such as `ringback_1a2b3c4d_submit`.
    pub fn by_function(&self) -> BTreeMap<String, u64> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn total(&self) -> u64 {
        self.by_command().values().sum()
    }
}

fn add(counts: &Mutex<BTreeMap<String, u64>>, name: String) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_insert(0) += 1;
}

/// Parses a line of MONITOR such as `1763631780.01 [0 127.0.0.1:50312] "FCALL" "…"`. Returns the command in lower case
/// and, for FCALL, the function; `None` for a command of a script.
fn client_command(line: &str) -> Option<(String, Option<String>)> {
    let (_, rest) = line.split_once('[')?;
    let (source, command) = rest.split_once("] ")?;
    if source.ends_with(" lua") {
        return None;
    }
    let mut words = command.split('"').skip(1).step_by(2);
    let name = words.next()?.to_ascii_lowercase();
    let function = words.next().filter(|_| name == "fcall").map(str::to_owned);
    Some((name, function))
}

/// The number of calls of each command, parsed from INFO commandstats.
pub(crate) fn commandstats(info: &str) -> BTreeMap<String, u64> {
    info.lines()
        .filter_map(|line| {
            let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let calls = figures.split(',').next()?.trim().parse().ok()?;
            Some((name.to_owned(), calls))
        })
        .collect()
}
