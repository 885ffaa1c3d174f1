//! Reads the state of the servers: version, eviction policy, durability, run ids, replication and use of memory.
//!
//! Servers that are too old are refused. Everything else is returned as [`Findings`], which the caller judges.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;

use ringback_core::store_types::{Profile, StoreError};

use super::risk::Risk;
use crate::durability::{self, Durability};
use crate::info::{self, Info, run_ids};
use crate::topology::{Node, Topology};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    /// The setting that removes jobs when memory is short, if a server has one.
    pub(crate) eviction: Option<Eviction>,
    pub(crate) durability: Vec<Durability>,
    /// The risks that an operator should know, of all servers together.
    pub(crate) risks: BTreeSet<Risk>,
    /// The run ids of all servers. A server has another one after each start.
    pub(crate) run_ids: BTreeSet<String>,
    /// The servers whose append-only file has to be rewritten after a start.
    pub(crate) rewritten: Vec<AofServer>,
    pub(crate) replication: Vec<Replication>,
    /// Whether calls can wait until replicas have synced a change: all servers have WAITAOF, and sync each change.
    pub(crate) can_wait_for_sync: bool,
}

impl Findings {
    /// Returns how the least durable server keeps data, without its replicas.
    pub(crate) fn profile(&self) -> Profile {
        durability::least(&self.durability)
    }

    pub(crate) fn replication_ids(&self) -> Vec<String> {
        self.replication.iter().filter_map(|server| server.id.clone()).collect()
    }
}

/// The first version of Valkey that is known to drop all of a half-written transaction. No version of Redis is.
const DROPS_HALVES: [u32; 3] = [9, 1, 2];

/// A server that has an append-only file, and may replay half a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AofServer {
    pub(crate) node: Node,
    pub(crate) run_id: String,
    /// Name and version.
    pub(crate) server: String,
}

impl AofServer {
    /// Returns the server; `None` if it needs no rewrite.
    fn of(info: &Info) -> Option<Self> {
        let (name, version) = info.version();
        let drops_halves = name == "Valkey" && info.version_numbers() >= DROPS_HALVES;
        let may_replay = info.get("aof_enabled") == Some("1") && !drops_halves;
        let run_id = info.get("run_id").filter(|_| may_replay)?.to_owned();
        Some(Self { node: info.node.clone(), run_id, server: format!("{name} {version}") })
    }
}

/// Reads the state of every server. Fails if one does not answer, or is too old.
pub(crate) async fn servers(topology: &Topology) -> Result<Findings, StoreError> {
    let all = info::read(topology, &["everything"]).await?;
    for info in &all {
        version(info)?;
    }
    let eviction = all.iter().find_map(Eviction::of);
    let mut risks = BTreeSet::new();
    if all.iter().any(|info| info.get("maxmemory") == Some("0")) {
        risks.insert(Risk::NoMemoryLimit);
    }
    let durability = durability::read(topology, &all).await?;
    risks.extend(durability.iter().filter_map(|server| server.risk));
    let rewritten: Vec<_> = all.iter().filter_map(AofServer::of).collect();
    if !rewritten.is_empty() {
        risks.insert(Risk::ReplaysHalves);
    }
    let (run_ids, replication) = (run_ids(&all), all.iter().map(Replication::of).collect());
    let can_wait_for_sync = all.iter().all(has_waitaof) && durability::least(&durability) == Profile::Disk;
    Ok(Findings { eviction, durability, risks, run_ids, rewritten, replication, can_wait_for_sync })
}

pub(crate) struct Look {
    pub(crate) run_ids: BTreeSet<String>,
    pub(crate) durability: Vec<Durability>,
}

/// Reads run ids and durability of servers that were found fit before.
pub(crate) async fn look(topology: &Topology) -> Result<Look, StoreError> {
    let all = info::read(topology, &["server", "persistence", "replication"]).await?;
    Ok(Look { run_ids: run_ids(&all), durability: durability::read(topology, &all).await? })
}

pub(crate) async fn current_run_ids(topology: &Topology) -> Result<BTreeSet<String>, StoreError> {
    Ok(run_ids(&info::read(topology, &["server"]).await?))
}

/// Checks that every server takes writes. A server whose disk is full (MISCONF) answers INFO, but not PING. The error
/// names that server, if all answer INFO.
pub(crate) async fn all_take_writes(topology: &Topology) -> Result<(), StoreError> {
    let ping = redis::cmd("PING");
    let Err(error) = topology.call_each(&ping).await else { return Ok(()) };
    if !matches!(error, StoreError::Away(_)) {
        return Err(error);
    }
    for info in info::read(topology, &["server"]).await.unwrap_or_default() {
        if let Err(StoreError::Away(why)) = topology.call_node(&ping, &info.node).await {
            let named = format!("the master{} takes no writes: {why}", info.node);
            return Err(StoreError::Away(Arc::new(io::Error::other(named))));
        }
    }
    Err(error)
}

/// The replication ids of a server, which name its data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replication {
    /// The id of the data since the server became a master.
    pub(crate) id: Option<String>,
    /// The id of the master whose replica it was before.
    pub(crate) former: Option<String>,
}

impl Replication {
    fn of(info: &Info) -> Self {
        let id = |name| info.get(name).filter(|id| id.bytes().any(|digit| digit != b'0')).map(str::to_owned);
        Self { id: id("master_replid"), former: id("master_replid2") }
    }
}

fn has_waitaof(info: &Info) -> bool {
    info.version().0 == "Valkey" || info.version_numbers() >= [7, 2, 0]
}

/// Returns the share of its memory limit that the fullest server uses, 0 without limits, and the setting that removes
/// jobs when memory is short, if a server has one.
pub(crate) async fn memory(topology: &Topology) -> Result<(f64, Option<Eviction>), StoreError> {
    if keep_all_without_limit(topology).await {
        return Ok((0.0, None));
    }
    let mut fullest = 0.0_f64;
    let all = info::read(topology, &["memory"]).await?;
    for info in &all {
        let bytes = |name| info.get(name).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        let limit = bytes("maxmemory");
        if limit > 0.0 {
            fullest = fullest.max(bytes("used_memory") / limit);
        }
    }
    Ok((fullest, all.iter().find_map(Eviction::of)))
}

/// Whether CONFIG says that no server has a memory limit, or would remove jobs. It costs a server a fifth of INFO.
async fn keep_all_without_limit(topology: &Topology) -> bool {
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg("maxmemory").arg("maxmemory-policy");
    let Ok(answers) = topology.call_each(&config).await else { return false };
    answers.into_iter().all(|(_, answer)| {
        let settings: HashMap<String, String> = redis::from_redis_value(answer).unwrap_or_default();
        let is = |name, value| settings.get(name).is_some_and(|found| found == value);
        is("maxmemory", "0") && is("maxmemory-policy", "noeviction")
    })
}

fn version(info: &Info) -> Result<(), StoreError> {
    let (name, version) = info.version();
    let least = if name == "Valkey" { 8 } else { 7 };
    if info.version_numbers()[0] < least {
        return Err(StoreError::Unfit(format!("{name} {version} is too old; {least}.0 or later is needed")));
    }
    Ok(())
}

/// The `maxmemory-policy` of a server that removes keys when memory is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Eviction {
    node: Node,
    policy: String,
}

impl Eviction {
    fn of(info: &Info) -> Option<Self> {
        let policy = info.get("maxmemory_policy").filter(|policy| *policy != "noeviction")?;
        Some(Self { node: info.node.clone(), policy: policy.to_owned() })
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, policy } = self;
        write!(
            f,
            "the maxmemory-policy of the store{node} is {policy}, which removes jobs when memory is short; set it to noeviction"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info::of(text)
    }

    #[test]
    fn old_servers_are_refused_and_valkey_is_judged_by_its_own_version() {
        assert!(version(&info("redis_version:6.2.14")).is_err());
        assert!(version(&info("redis_version:7.0.15")).is_ok());
        assert!(version(&info("redis_version:7.2.4 valkey_version:7.2.5")).is_err());
        assert!(version(&info("redis_version:7.2.4 valkey_version:8.0.1")).is_ok());
        assert!(version(&info("nothing:1")).is_err());
    }

    #[test]
    fn only_noeviction_keeps_jobs() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"] {
            let found = Eviction::of(&info(&format!("maxmemory_policy:{policy}")));
            assert!(found.is_some_and(|found| found.to_string().contains(policy)), "{policy}");
        }
        assert_eq!(Eviction::of(&info("maxmemory_policy:noeviction")), None);
    }

    #[test]
    fn servers_with_a_file_are_rewritten_unless_their_version_drops_halves() {
        for (info, is_rewritten) in [
            ("redis_version:7.0.15 aof_enabled:1 run_id:a", true),
            ("redis_version:7.0.15 aof_enabled:0 run_id:a", false),
            ("redis_version:8.6.4 aof_enabled:1 run_id:a", true),
            ("redis_version:7.2.4 valkey_version:8.1.9 aof_enabled:1 run_id:a", true),
            ("redis_version:7.2.4 valkey_version:9.1.1 aof_enabled:1 run_id:a", true),
            ("redis_version:7.2.4 valkey_version:9.1.2 aof_enabled:1 run_id:a", false),
            ("redis_version:7.2.4 valkey_version:10.0.0 aof_enabled:1 run_id:a", false),
        ] {
            assert_eq!(AofServer::of(&Info::of(info)).is_some(), is_rewritten, "{info}");
        }
    }
}
