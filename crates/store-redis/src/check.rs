//! Checks of the servers before they are trusted with jobs: version, eviction policy, and how they keep data.
//!
//! Servers that would lose jobs are refused. What might lose jobs is returned as [`Findings`].

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use ringback_core::contract::{Profile, StoreError};

use super::info::{self, Info, run_ids};
use super::reply;
use super::topology::{Node, Topology};

/// What the servers are like.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    /// How the least safe server keeps data.
    pub(crate) profile: Profile,
    /// What an operator should know, for all servers together.
    pub(crate) risks: BTreeSet<Risk>,
    /// The run ids of all servers. A server has another one after each start.
    pub(crate) run_ids: BTreeSet<String>,
    /// The servers whose append-only file has to be rewritten after a start.
    pub(crate) rewritten: Vec<AofServer>,
}

impl Findings {
    /// Logs the risks, each once.
    pub(crate) fn warn(&self) {
        for risk in &self.risks {
            tracing::warn!(profile = self.profile.name(), "{risk}");
        }
    }
}

/// The first version of Valkey that is known to drop all of a half transaction. No such version of Redis is known.
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
    /// `None` for a server that needs no rewrite.
    fn of(info: &Info) -> Option<Self> {
        let (name, version) = info.version();
        let may_replay = info.get("aof_enabled") == Some("1") && !drops_halves(name, version);
        let run_id = info.get("run_id").filter(|_| may_replay)?.to_owned();
        Some(Self { node: info.node.clone(), run_id, server: format!("{name} {version}") })
    }
}

fn drops_halves(name: &str, version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    name == "Valkey" && [(); 3].map(|()| parts.next().unwrap_or(0)) >= DROPS_HALVES
}

/// Why jobs may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Risk {
    NoMemoryLimit,
    NoAppendOnlyFile,
    NeverSynced,
    NotSyncedInRewrites,
    SyncedEverySecond,
    ReplaysHalves,
    SettingsUnknown,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMemoryLimit => {
                "the store has no memory limit (maxmemory 0); when the machine runs out, it is killed"
            }
            Self::NoAppendOnlyFile => {
                "the store may lose jobs: it keeps no append-only file, so a restart loses accepted jobs"
            }
            Self::NeverSynced => {
                "the store may lose jobs: it never syncs its append-only file (appendfsync no), so a crash of the machine loses what the operating system has not written; set appendfsync to always"
            }
            Self::NotSyncedInRewrites => {
                "the store may lose jobs: it does not sync its append-only file while it rewrites it or saves a snapshot (no-appendfsync-on-rewrite yes), so a crash of the machine meanwhile loses what the operating system has not written, 30 seconds or more; set no-appendfsync-on-rewrite to no"
            }
            Self::SyncedEverySecond => {
                "the store may lose jobs: it syncs every second, so a crash can lose the last accepted jobs"
            }
            Self::ReplaysHalves => {
                "a crash of the store in the middle of a write can leave half of a change in its append-only file, which this version replays at the second start after it (Redis 7.0.15 does, Valkey 9.1.2 does not); so its file is rewritten after each start"
            }
            Self::SettingsUnknown => {
                "the store may lose jobs: how it keeps data is not known, since CONFIG is not allowed here"
            }
        })
    }
}

/// Checks every server. Refuses servers that would lose jobs.
pub(crate) async fn servers(topology: &Topology) -> Result<Findings, StoreError> {
    let all = info::read(topology, &["everything"]).await?;
    for info in &all {
        version(info)?;
        eviction(info)?;
    }
    let mut risks = BTreeSet::new();
    if all.iter().any(|info| info.get("maxmemory") == Some("0")) {
        risks.insert(Risk::NoMemoryLimit);
    }
    let judged: Vec<_> = match settings(topology).await {
        Some(settings) => settings.iter().map(durability).collect(),
        None => all.iter().map(durability_by_info).collect(),
    };
    risks.extend(judged.iter().filter_map(|(_, risk)| *risk));
    let profile = judged.iter().map(|(profile, _)| *profile).min().unwrap_or(Profile::Unknown);
    let rewritten: Vec<_> = all.iter().filter_map(AofServer::of).collect();
    if !rewritten.is_empty() {
        risks.insert(Risk::ReplaysHalves);
    }
    Ok(Findings { profile, risks, run_ids: run_ids(&all), rewritten })
}

/// The run ids of all servers.
pub(crate) async fn current_run_ids(topology: &Topology) -> Result<BTreeSet<String>, StoreError> {
    Ok(run_ids(&info::read(topology, &["server"]).await?))
}

/// The data of a server by their replication ids.
pub(crate) struct Replication {
    /// The id of the data since the server is a master.
    pub(crate) id: Option<String>,
    /// The id of the master whose replica it was before.
    pub(crate) former: Option<String>,
}

/// Reads whose data the servers have.
pub(crate) async fn replication(topology: &Topology) -> Result<Vec<Replication>, StoreError> {
    let id = |info: &Info, name| {
        info.get(name).filter(|id| id.bytes().any(|digit| digit != b'0')).map(str::to_owned)
    };
    let infos = info::read(topology, &["replication"]).await?;
    Ok(infos
        .iter()
        .map(|info| Replication { id: id(info, "master_replid"), former: id(info, "master_replid2") })
        .collect())
}

/// The share of its memory limit that the fullest server uses.
pub(crate) async fn memory_share(topology: &Topology) -> Result<f64, StoreError> {
    let mut fullest = 0.0_f64;
    for info in info::read(topology, &["memory"]).await? {
        let bytes = |name| info.get(name).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        let limit = bytes("maxmemory");
        if limit > 0.0 {
            fullest = fullest.max(bytes("used_memory") / limit);
        }
    }
    Ok(fullest)
}

fn version(info: &Info) -> Result<(), StoreError> {
    let (name, version) = info.version();
    let least = if name == "Valkey" { 8 } else { 7 };
    let major: u32 = version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
    if major < least {
        return Err(StoreError::Unfit(format!("{name} {version} is too old; {least}.0 or later is needed")));
    }
    Ok(())
}

fn eviction(info: &Info) -> Result<(), StoreError> {
    match info.get("maxmemory_policy") {
        Some("noeviction") | None => Ok(()),
        Some(other) => Err(StoreError::Unfit(format!(
            "the store's maxmemory-policy is {other}, which removes jobs when memory is short; set it to noeviction"
        ))),
    }
}

/// The settings of a server that decide how it keeps data.
type Settings = HashMap<String, String>;

/// Reads the settings of every server; `None` if CONFIG may not be read.
async fn settings(topology: &Topology) -> Option<Vec<Settings>> {
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg(&["appendonly", "appendfsync", "no-appendfsync-on-rewrite"]);
    let answers = topology.call_each(&config).await.ok()?;
    answers.into_iter().map(|(_, answer)| reply::read(answer, "CONFIG").ok()).collect()
}

/// How a server with these settings keeps data, and what it may lose. It is judged by its worst moments: during a
/// rewrite, `no-appendfsync-on-rewrite yes` is the same as `appendfsync no`.
fn durability(settings: &Settings) -> (Profile, Option<Risk>) {
    let get = |name| settings.get(name).map(String::as_str);
    match (get("appendonly"), get("appendfsync"), get("no-appendfsync-on-rewrite")) {
        (Some("no"), ..) => (Profile::Memory, Some(Risk::NoAppendOnlyFile)),
        (_, Some("no"), _) => (Profile::Memory, Some(Risk::NeverSynced)),
        (.., Some("yes")) => (Profile::Memory, Some(Risk::NotSyncedInRewrites)),
        (_, Some("everysec"), _) => (Profile::Everysec, Some(Risk::SyncedEverySecond)),
        (Some(_), Some("always"), _) => (Profile::Disk, None),
        _ => (Profile::Unknown, Some(Risk::SettingsUnknown)),
    }
}

/// How a server keeps data, as far as INFO shows it.
fn durability_by_info(info: &Info) -> (Profile, Option<Risk>) {
    match info.get("aof_enabled") {
        Some("1") => (Profile::Unknown, Some(Risk::SettingsUnknown)),
        _ => (Profile::Memory, Some(Risk::NoAppendOnlyFile)),
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
            assert!(eviction(&info(&format!("maxmemory_policy:{policy}"))).is_err(), "{policy}");
        }
        assert!(eviction(&info("maxmemory_policy:noeviction")).is_ok());
    }

    #[test]
    fn a_server_is_judged_by_its_worst_moments() {
        let always = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        let with = |name: &str, value: &str| {
            let set = |(known, default): (&str, &str)| {
                (known.to_owned(), if known == name { value.to_owned() } else { default.to_owned() })
            };
            durability(&always.map(set).into())
        };
        assert_eq!(with("", ""), (Profile::Disk, None));
        assert_eq!(with("appendonly", "no"), (Profile::Memory, Some(Risk::NoAppendOnlyFile)));
        assert_eq!(with("appendfsync", "no"), (Profile::Memory, Some(Risk::NeverSynced)));
        assert_eq!(with("appendfsync", "everysec"), (Profile::Everysec, Some(Risk::SyncedEverySecond)));
        let in_rewrites = with("no-appendfsync-on-rewrite", "yes");
        assert_eq!(in_rewrites, (Profile::Memory, Some(Risk::NotSyncedInRewrites)));
        assert_eq!(durability(&Settings::new()), (Profile::Unknown, Some(Risk::SettingsUnknown)));
    }

    #[test]
    fn a_warning_names_the_setting_and_what_to_do() {
        let warning = Risk::NotSyncedInRewrites.to_string();
        assert!(warning.contains("(no-appendfsync-on-rewrite yes)"), "{warning}");
        assert!(warning.ends_with("set no-appendfsync-on-rewrite to no"), "{warning}");
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
