//! The risks of losing jobs on a server, and their texts for operators.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Risk {
    NoMemoryLimit,
    NoAppendOnlyFile,
    NeverSynced,
    NotSyncedInRewrites,
    SyncedEverySecond,
    ReplaysHalves,
    DuplicatesKeys,
    SettingsUnknown,
    ReplicasNotSynced,
}

impl Risk {
    /// Returns the setting of a server with this risk, and what to change; empty if the risk does not lower its profile.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::NoAppendOnlyFile => "appendonly is no: set it to yes, and appendfsync to always",
            Self::NeverSynced => "appendfsync is no: set it to always",
            Self::NotSyncedInRewrites => "no-appendfsync-on-rewrite is yes: set it to no",
            Self::SyncedEverySecond => "appendfsync is everysec: set it to always",
            Self::DuplicatesKeys => {
                "Valkey 9.0.0 and 9.0.1 lose data of a cluster when they load an append-only file: use 9.0.2 or later"
            }
            Self::SettingsUnknown => "CONFIG is not allowed: allow this user CONFIG GET (ACL +config|get)",
            Self::NoMemoryLimit | Self::ReplaysHalves | Self::ReplicasNotSynced => "",
        }
    }
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
            Self::DuplicatesKeys => {
                "the store may lose jobs: in a cluster this version of Valkey loads its append-only file wrongly (valkey-io/valkey issue 2995), so a node that is started again has some keys twice and its replicas end; use 9.0.2 or later"
            }
            Self::SettingsUnknown => {
                "the store may lose jobs: how it keeps data is not known, since CONFIG is not allowed here"
            }
            Self::ReplicasNotSynced => {
                "a change is acknowledged when a replica has it in memory: no replica has synced it to disk in time (WAITAOF); set appendonly to yes and appendfsync to always on the replicas too"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_setting_and_what_to_do() {
        let warning = Risk::NotSyncedInRewrites.to_string();
        assert!(warning.contains("(no-appendfsync-on-rewrite yes)"), "{warning}");
        assert!(warning.ends_with("set no-appendfsync-on-rewrite to no"), "{warning}");
    }
}
