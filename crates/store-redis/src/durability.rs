//! Finds out, from settings or INFO, how durably each server keeps data, and checks that against what is required.

use std::collections::HashMap;

use ringback_core::store_types::{Profile, StoreError};

use super::info::Info;
use super::reply;
use super::server_checks::Risk;
use super::topology::{Node, Topology};

/// How a server keeps data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Durability {
    node: Node,
    /// How durably the server itself keeps data, without its replicas.
    pub(crate) profile: Profile,
    /// Why the server may lose data, if it may.
    pub(crate) risk: Option<Risk>,
    replicas: Replicas,
}

/// The replicas of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replicas {
    /// No replica is connected, and none was since the start.
    None,
    /// No replica is connected; one was, or may have been before the server was started again.
    Away,
    Connected,
}

/// How long the replicas of a master that was started again may take to connect, in seconds. Until then a process that
/// starts waits for them, where masters are replaced automatically.
const RECONNECT: u64 = 60;

impl Replicas {
    /// Reads the replicas from INFO. `is_replaced` says that masters are replaced automatically: then the replicas of a
    /// server that has just started may still be about to connect.
    fn of(info: &Info, is_replaced: bool) -> Self {
        let is_none = |name| info.get(name).is_none_or(|number| number == "0");
        let has_had_none = is_none("repl_backlog_active") && !(is_replaced && has_just_started(info));
        match (is_none("connected_slaves"), has_had_none) {
            (false, _) => Self::Connected,
            (true, false) => Self::Away,
            (true, true) => Self::None,
        }
    }
}

fn has_just_started(info: &Info) -> bool {
    let uptime = info.get("uptime_in_seconds").and_then(|seconds| seconds.parse::<u64>().ok());
    uptime.is_some_and(|seconds| seconds < RECONNECT)
}

/// Reads how every server keeps data: by its settings or, if CONFIG may not be read, by INFO. `infos` are the sections
/// `server`, `persistence` and `replication` of all servers. Fails if a server does not answer.
pub(crate) async fn read(topology: &Topology, infos: &[Info]) -> Result<Vec<Durability>, StoreError> {
    let settings = settings(topology).await?;
    let judged = |info: &Info| {
        if duplicates_keys(info) {
            return (Profile::Memory, Some(Risk::DuplicatesKeys));
        }
        let Some(all) = &settings else { return by_info(info) };
        let of_node = all.iter().find(|(node, _)| *node == info.node);
        of_node.map_or_else(|| by_info(info), |(_, settings)| by_settings(settings))
    };
    let one = |info: &Info| {
        let (profile, risk) = judged(info);
        let replicas = Replicas::of(info, topology.replaces_masters());
        Durability { node: info.node.clone(), profile, risk, replicas }
    };
    Ok(infos.iter().map(one).collect())
}

/// Returns how the least durable server keeps data; `Unknown` without servers.
pub(crate) fn least(servers: &[Durability]) -> Profile {
    servers.iter().map(|server| server.profile).min().unwrap_or(Profile::Unknown)
}

/// Fails with `Weaker` if a server is less durable than `asked`, `NoReplica` if a required replica is not connected.
pub(crate) fn check(asked: Profile, servers: &[Durability]) -> Result<(), StoreError> {
    servers.iter().try_for_each(|server| server.check(asked))
}

impl Durability {
    /// Checks one server. A server with replicas need not sync each change, but it must keep a file: without one it would
    /// be empty after a crash, and so would its replicas.
    fn check(&self, asked: Profile) -> Result<(), StoreError> {
        let needed = if asked == Profile::Replicated { Profile::Everysec } else { asked };
        if self.profile < needed {
            return Err(self.weaker(asked));
        }
        match (asked, self.replicas) {
            (Profile::Replicated, Replicas::None) => Err(self.without_replica()),
            (Profile::Replicated, Replicas::Away) => Err(StoreError::NoReplica),
            _ => Ok(()),
        }
    }

    fn weaker(&self, asked: Profile) -> StoreError {
        let Self { node, profile: found, risk, .. } = self;
        let remedy = risk.map_or("", Risk::remedy);
        let other = if *found == Profile::Unknown { Profile::Memory } else { *found };
        StoreError::Weaker(format!(
            "RINGBACK_DURABILITY is {asked}, and the store{node} is {found}: {remedy}; or set RINGBACK_DURABILITY to {other}, or leave it unset"
        ))
    }

    fn without_replica(&self) -> StoreError {
        let (node, found) = (&self.node, self.profile);
        StoreError::Weaker(format!(
            "RINGBACK_DURABILITY is replicated, and the store{node} is {found} and has no replica: start one (REPLICAOF); or set RINGBACK_DURABILITY to {found}, or leave it unset"
        ))
    }
}

/// The settings of a server that decide how it keeps data.
type Settings = HashMap<String, String>;

/// Reads the settings of every server; `None` if CONFIG may not be read.
async fn settings(topology: &Topology) -> Result<Option<Vec<(Node, Settings)>>, StoreError> {
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg(&["appendonly", "appendfsync", "no-appendfsync-on-rewrite"]);
    match topology.call_each(&config).await {
        Ok(answers) => {
            let read = |(node, answer)| Some((node, reply::read(answer, "CONFIG").ok()?));
            Ok(answers.into_iter().map(read).collect())
        }
        Err(StoreError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns how a server with these settings keeps data, and why it may lose some. Its worst moments count: during a
/// rewrite, `no-appendfsync-on-rewrite yes` is the same as `appendfsync no`.
fn by_settings(settings: &Settings) -> (Profile, Option<Risk>) {
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

/// Returns how a server keeps data, as far as INFO shows it, and why it may lose some.
fn by_info(info: &Info) -> (Profile, Option<Risk>) {
    match info.get("aof_enabled") {
        Some("1") => (Profile::Unknown, Some(Risk::SettingsUnknown)),
        _ => (Profile::Memory, Some(Risk::NoAppendOnlyFile)),
    }
}

/// The versions of Valkey that put keys of a transaction into wrong slots when they load an append-only file: from the
/// first of these on, and before the second.
const DUPLICATE_KEYS: [[u32; 3]; 2] = [[9, 0, 0], [9, 0, 2]];

/// Whether a server may have keys twice after a start: Valkey of these versions in a cluster, with an append-only file.
fn duplicates_keys(info: &Info) -> bool {
    let [first, mended] = DUPLICATE_KEYS;
    let (name, version) = (info.version().0, info.version_numbers());
    // The field has the other name with `extended-redis-compatibility`.
    let is_of_cluster = info.get("server_mode").or_else(|| info.get("redis_mode")) == Some("cluster");
    name == "Valkey"
        && (first..mended).contains(&version)
        && is_of_cluster
        && info.get("aof_enabled") == Some("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_a_version_that_has_keys_twice_after_a_start_keeps_nothing() {
        let of = |version, mode, aof| {
            let info =
                format!("redis_version:7.2.4 valkey_version:{version} server_mode:{mode} aof_enabled:{aof}");
            duplicates_keys(&Info::of(&info))
        };
        assert!(of("9.0.0", "cluster", 1) && of("9.0.1", "cluster", 1));
        assert!(!of("8.1.1", "cluster", 1) && !of("9.0.2", "cluster", 1) && !of("9.1.2", "cluster", 1));
        let compatible = "redis_version:7.2.4 valkey_version:9.0.0 redis_mode:cluster aof_enabled:1";
        assert!(duplicates_keys(&Info::of(compatible)));
        assert!(!of("9.0.0", "standalone", 1) && !of("9.0.0", "cluster", 0));
    }

    #[test]
    fn a_server_is_judged_by_its_worst_moments() {
        let always = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        let with = |name: &str, value: &str| {
            let set = |(known, default): (&str, &str)| {
                (known.to_owned(), if known == name { value.to_owned() } else { default.to_owned() })
            };
            by_settings(&always.map(set).into())
        };
        assert_eq!(with("", ""), (Profile::Disk, None));
        assert_eq!(with("appendonly", "no"), (Profile::Memory, Some(Risk::NoAppendOnlyFile)));
        assert_eq!(with("appendfsync", "no"), (Profile::Memory, Some(Risk::NeverSynced)));
        assert_eq!(with("appendfsync", "everysec"), (Profile::Everysec, Some(Risk::SyncedEverySecond)));
        let in_rewrites = with("no-appendfsync-on-rewrite", "yes");
        assert_eq!(in_rewrites, (Profile::Memory, Some(Risk::NotSyncedInRewrites)));
        assert_eq!(by_settings(&Settings::new()), (Profile::Unknown, Some(Risk::SettingsUnknown)));
    }

    fn server(profile: Profile, replicas: Replicas) -> Durability {
        Durability { node: Node::only(), profile, risk: None, replicas }
    }

    #[test]
    fn a_server_that_is_weaker_than_asked_is_refused() {
        use Profile::{Disk, Everysec, Memory, Replicated, Unknown};
        let found = [Memory, Unknown, Everysec, Disk];
        for (asked, fit) in [(Memory, 4), (Everysec, 2), (Disk, 1), (Replicated, 2)] {
            let is_fit = |profile: &Profile| check(asked, &[server(*profile, Replicas::Connected)]).is_ok();
            let fit: Vec<_> = found[found.len() - fit..].to_vec();
            assert_eq!(found.into_iter().filter(is_fit).collect::<Vec<_>>(), fit, "{asked:?}");
        }
    }

    #[test]
    fn a_replica_that_is_away_is_waited_for_and_one_that_never_was_is_not() {
        let replicated = |text| {
            let replicas = Replicas::of(&Info::of(text), true);
            check(Profile::Replicated, &[server(Profile::Disk, replicas)])
        };
        assert!(replicated("connected_slaves:1 repl_backlog_active:1").is_ok());
        assert!(matches!(replicated("connected_slaves:0 repl_backlog_active:1"), Err(StoreError::NoReplica)));
        let never = replicated("connected_slaves:0 repl_backlog_active:0");
        assert!(matches!(never, Err(StoreError::Weaker(why)) if why.contains("REPLICAOF")));
    }

    #[test]
    fn a_master_that_has_just_started_may_have_replicas_where_masters_are_replaced() {
        let is_away = |uptime: u64, is_replaced| {
            let info = format!("connected_slaves:0 repl_backlog_active:0 uptime_in_seconds:{uptime}");
            Replicas::of(&Info::of(&info), is_replaced) == Replicas::Away
        };
        assert!(is_away(3, true));
        assert!(!is_away(3, false) && !is_away(90, true));
    }

    #[test]
    fn a_refusal_names_what_is_asked_what_was_found_and_what_to_change() {
        let (profile, risk) = (Profile::Everysec, Some(Risk::SyncedEverySecond));
        let server = Durability { risk, ..server(profile, Replicas::None) };
        let error = check(Profile::Disk, &[server]).expect_err("it is weaker").to_string();
        for part in
            ["RINGBACK_DURABILITY is disk", "is everysec", "appendfsync is everysec: set it to always"]
        {
            assert!(error.contains(part), "{error}");
        }
    }
}
