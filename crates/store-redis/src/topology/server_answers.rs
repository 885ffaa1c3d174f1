//! Reads the answers of sentinels, masters and cluster nodes about servers and replicas. Makes no calls.

use std::collections::{BTreeSet, HashMap};

use redis::Value;
use ringback_core::store_types::StoreError;

use super::error::refusal;

/// The host and port of a server, as another server names it.
pub(super) type Address = (String, u16);

/// Sentinels promote no replica that was silent for longer than this, in ms.
const SILENT: u64 = 5_000;
/// The flags of a server that was silent for `down-after-milliseconds`.
const DOWN: [&str; 2] = ["s_down", "o_down"];
/// The flag of a server to which a sentinel has no connection now. A replica that is promoted closes all connections.
const DISCONNECTED: &str = "disconnected";

/// A master as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) address: Address,
    /// Grows with each failover.
    pub(super) epoch: u64,
    /// The replicas that may take over.
    pub(super) candidates: BTreeSet<Address>,
}

/// A replica as a sentinel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) address: Address,
    pub(super) is_reachable: bool,
    /// Whether the sentinel is connected to the replica, and the replica to the master.
    pub(super) is_linked: bool,
    /// Whether the replica says that it is a master itself.
    pub(super) says_master: bool,
}

impl Replica {
    fn of(fields: &HashMap<String, String>) -> Self {
        let field = |name| fields.get(name).map_or("", String::as_str);
        let is_silent = field("last-ok-ping-reply").parse().is_ok_and(|millis: u64| millis > SILENT);
        let flags = field("flags");
        Self {
            address: (field("ip").to_owned(), field("port").parse().unwrap_or(0)),
            is_reachable: !is_down(flags) && !is_silent,
            is_linked: field("master-link-status") == "ok" && !has(flags, DISCONNECTED),
            says_master: field("role-reported") == "master",
        }
    }
}

fn is_down(flags: &str) -> bool {
    DOWN.iter().any(|flag| has(flags, flag))
}

fn has(flags: &str, flag: &str) -> bool {
    flags.split(',').any(|one| one == flag)
}

/// The answers of one sentinel about the master and its replicas.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// The master, without candidates: these follow from the answers of several sentinels.
    pub(super) master: Master,
    pub(super) replicas: Vec<Replica>,
    /// Whether this sentinel is replacing the master, or cannot reach it.
    pub(super) doubts_master: bool,
}

/// Reads the answers to SENTINEL MASTER, GET-MASTER-ADDR-BY-NAME and REPLICAS. Fails if one has another form.
pub(super) fn heard(master: Value, address: Value, replicas: Value) -> Result<Heard, StoreError> {
    let unreadable = || StoreError::Unreadable("the answer of a sentinel");
    let fields: HashMap<String, String> = redis::from_redis_value(master).map_err(|_| unreadable())?;
    let epoch = fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()).ok_or_else(unreadable)?;
    let flags = fields.get("flags").map_or("", String::as_str);
    let doubts_master = is_down(flags) || has(flags, DISCONNECTED) || has(flags, "failover_in_progress");
    let address = redis::from_redis_value(address).map_err(|_| unreadable())?;
    let replicas: Vec<HashMap<String, String>> =
        redis::from_redis_value(replicas).map_err(|_| unreadable())?;
    let master = Master { address, epoch, candidates: BTreeSet::new() };
    Ok(Heard { master, replicas: replicas.iter().map(Replica::of).collect(), doubts_master })
}

/// Whether an error says that a sentinel does not know the name of the master. There is no error code for that.
pub(super) fn is_unknown(error: &StoreError) -> bool {
    refusal(error).is_some_and(|detail| detail.starts_with("No such master"))
}

/// Whether an answer to INFO replication comes from a master.
pub(super) fn is_of_master(info: &str) -> bool {
    info.lines().any(|line| line.trim() == "role:master")
}

/// A replica as its master lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedReplica {
    pub(super) address: Address,
    /// Whether the replica is still copying the data.
    pub(super) is_copying: bool,
    /// Whether it has ever confirmed a change. A replica that loads the copied data has not.
    pub(super) has_confirmed: bool,
    /// For how long the replica was silent, in seconds.
    pub(super) lag: u64,
}

/// Returns the replicas in an answer to INFO replication, without those that cannot be read.
pub(super) fn listed(info: &str) -> Vec<ListedReplica> {
    let read = |line: &str| {
        let (_, line) = line.strip_prefix("slave")?.trim_end().split_once(':')?;
        let fields: HashMap<_, _> = line.split(',').filter_map(|field| field.split_once('=')).collect();
        Some(ListedReplica {
            address: ((*fields.get("ip")?).to_owned(), fields.get("port")?.parse().ok()?),
            is_copying: *fields.get("state")? != "online",
            has_confirmed: *fields.get("offset")? != "0",
            lag: fields.get("lag")?.parse().ok()?,
        })
    };
    info.lines().filter_map(read).collect()
}

/// A node of a cluster, as another one describes it in a line of CLUSTER NODES.
pub(super) struct Node<'a> {
    pub(super) id: &'a str,
    /// `None` if it is not known.
    pub(super) address: Option<Address>,
    pub(super) flags: &'a str,
    pub(super) master: &'a str,
    /// When it last answered, in ms since 1970.
    pub(super) answered: u64,
    pub(super) has_slots: bool,
}

impl<'a> Node<'a> {
    /// Reads a line; `None` if it has too few fields.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [id, address, flags, master, _, answered, _, _, slots @ ..] = &fields[..] else { return None };
        let address = address.split(['@', ',']).next().and_then(|address| address.rsplit_once(':'));
        Some(Self {
            id,
            address: address.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?))),
            flags,
            master,
            answered: answered.parse().unwrap_or(0),
            has_slots: !slots.is_empty(),
        })
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        has(self.flags, flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn what_a_sentinel_says_of_a_master_is_read() {
        let replicas = Value::Array(vec![strings(&["name", "r", "flags", "slave"])]);
        let flags = |flags| strings(&["name", "m", "flags", flags, "config-epoch", "7"]);
        let address = strings(&["10.0.0.1", "6379"]);
        let expected =
            Master { address: ("10.0.0.1".to_owned(), 6379), epoch: 7, candidates: BTreeSet::new() };
        let read = heard(flags("master"), address.clone(), replicas.clone()).unwrap();
        assert_eq!((read.master, read.replicas.len(), read.doubts_master), (expected, 1, false));
        for doubts in
            ["master,failover_in_progress", "master,s_down", "s_down,o_down,master", "master,disconnected"]
        {
            assert!(heard(flags(doubts), address.clone(), replicas.clone()).unwrap().doubts_master);
        }
        assert!(heard(flags("master"), Value::Nil, replicas.clone()).is_err());
        assert!(heard(strings(&["name", "m"]), address, replicas).is_err());
    }

    #[test]
    fn a_replica_that_is_away_that_copies_or_that_was_promoted_differs_from_others() {
        let read = |flags: &str, silent: &str, link: &str, role: &str| {
            let names = ["ip", "port", "flags", "last-ok-ping-reply", "master-link-status", "role-reported"];
            let fields = names.into_iter().zip(["10.0.0.2", "6379", flags, silent, link, role]);
            Replica::of(&fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        };
        let address = ("10.0.0.2".to_owned(), 6379);
        let good = Replica { address, is_reachable: true, is_linked: true, says_master: false };
        assert_eq!(read("slave", "80", "ok", "slave"), good);
        for away in ["s_down,slave", "o_down,slave"] {
            assert_eq!(read(away, "80", "ok", "slave"), Replica { is_reachable: false, ..good.clone() });
        }
        assert!(!read("slave", "5001", "ok", "slave").is_reachable);
        let unlinked = Replica { is_linked: false, ..good };
        assert_eq!(read("slave", "80", "err", "slave"), unlinked);
        assert_eq!(
            read("slave,disconnected", "80", "ok", "slave"),
            unlinked,
            "as all sentinels while it is promoted"
        );
        assert!(read("slave", "80", "ok", "master").says_master);
    }

    #[test]
    fn only_a_master_says_that_it_is_one() {
        assert!(is_of_master("# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"));
        assert!(!is_of_master("# Replication\r\nrole:slave\r\nmaster_host:a\r\n"));
    }

    #[test]
    fn the_replicas_of_a_master_are_read() {
        let info = "role:master\r\nconnected_slaves:3\r\n\
            slave0:ip=10.0.0.2,port=6379,state=online,offset=5,lag=0\r\n\
            slave1:ip=::1,port=6380,state=wait_bgsave,offset=0,lag=0,type=replica\r\n\
            slave2:ip=10.0.0.4,port=6379,state=online,offset=0,lag=7\r\n";
        let one = |ip: &str, port, lag| {
            let address = (ip.to_owned(), port);
            ListedReplica { address, is_copying: false, has_confirmed: true, lag }
        };
        let copying = ListedReplica { is_copying: true, has_confirmed: false, ..one("::1", 6380, 0) };
        let loading = ListedReplica { has_confirmed: false, ..one("10.0.0.4", 6379, 7) };
        assert_eq!(listed(info), [one("10.0.0.2", 6379, 0), copying, loading]);
        assert_eq!(listed("role:slave\r\nslave_repl_offset:7\r\nslave_priority:100\r\n"), []);
    }
}
