//! Checks of the servers before they are trusted with jobs: version, eviction policy, and how they keep data.

use ringback_core::contract::{Profile, StoreError};

use super::reply;
use super::topology::Topology;

/// A server's answer to INFO.
struct Info(String);

impl Info {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

/// Reads a section of INFO from every server.
async fn info(topology: &Topology, section: &str) -> Result<Vec<Info>, StoreError> {
    let answers = topology.call_each(redis::cmd("INFO").arg(section)).await?;
    answers.into_iter().map(|answer| Ok(Info(reply::read(answer, "INFO")?))).collect()
}

/// How servers that are fit keep jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) profile: Profile,
    /// Whether every server has a memory limit.
    are_limited: bool,
}

impl Servers {
    /// Warns of what may lose jobs.
    pub(crate) fn warn(self) {
        if !self.are_limited {
            tracing::warn!(
                "the store has no memory limit (maxmemory 0); when the machine runs out, it is killed"
            );
        }
        let risk = match self.profile {
            Profile::Memory => Some("it keeps no append-only file: a restart loses accepted jobs"),
            Profile::Unknown => Some("how it keeps data is not known, since CONFIG is not allowed here"),
            Profile::Everysec => Some("it syncs every second: a crash can lose the last accepted jobs"),
            Profile::Disk => None,
        };
        if let Some(risk) = risk {
            tracing::warn!(profile = self.profile.name(), "the store may lose jobs: {risk}");
        }
    }
}

/// Checks every server, and refuses those that would lose jobs.
pub(crate) async fn servers(topology: &Topology) -> Result<Servers, StoreError> {
    let (mut profile, mut are_limited) = (None, true);
    for info in info(topology, "everything").await? {
        version(&info)?;
        eviction(&info)?;
        are_limited &= info.get("maxmemory") != Some("0");
        let aof = info.get("aof_enabled") == Some("1");
        let this = if aof { Profile::Unknown } else { Profile::Memory };
        profile = profile.min(Some(this)).or(Some(this));
    }
    let profile = fsync(topology).await.or(profile).unwrap_or(Profile::Unknown);
    Ok(Servers { profile, are_limited })
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
    let infos = info(topology, "replication").await?;
    Ok(infos
        .iter()
        .map(|info| Replication { id: id(info, "master_replid"), former: id(info, "master_replid2") })
        .collect())
}

/// The share of its memory limit that the fullest server uses.
pub(crate) async fn memory_share(topology: &Topology) -> Result<f64, StoreError> {
    let mut fullest = 0.0_f64;
    for info in info(topology, "memory").await? {
        let bytes = |name| info.get(name).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        let limit = bytes("maxmemory");
        if limit > 0.0 {
            fullest = fullest.max(bytes("used_memory") / limit);
        }
    }
    Ok(fullest)
}

fn version(info: &Info) -> Result<(), StoreError> {
    // Valkey answers a redis_version of 7.2.4 for old clients; its own counts.
    let (name, version, least) = match info.get("valkey_version") {
        Some(version) => ("Valkey", version, 8),
        None => ("Redis", info.get("redis_version").unwrap_or("0"), 7),
    };
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

/// How the servers keep data, if CONFIG may be read.
async fn fsync(topology: &Topology) -> Option<Profile> {
    let mut least = None;
    for name in ["appendonly", "appendfsync"] {
        for answer in topology.call_each(redis::cmd("CONFIG").arg("GET").arg(name)).await.ok()? {
            let (_, value): (String, String) = reply::read(answer, "CONFIG").ok()?;
            let profile = match (name, value.as_str()) {
                ("appendonly", "no") | ("appendfsync", "no") => Profile::Memory,
                ("appendfsync", "everysec") => Profile::Everysec,
                _ => Profile::Disk,
            };
            least = Some(least.map_or(profile, |l: Profile| l.min(profile)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info(text.replace(' ', "\r\n"))
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
}
