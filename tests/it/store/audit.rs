//! The books. The ledger adds up by itself; on Redis every key of the installation is read as well: the
//! states of the records are those of the ledger, and each record has the index entry its state needs. The
//! embedded store does the same with its tables, and finds entries without a record too.

use std::collections::{BTreeMap, HashSet};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};
use ringback_core::store::{Stats, Store};

/// accepted = done + cancelled + purged + delayed + ready + reserved + dead.
pub(super) fn ledger(stats: &Stats) {
    let s = &stats.states;
    let sum = s.done + s.cancelled + s.purged + s.delayed + s.ready + s.reserved + s.dead;
    assert_eq!(stats.accepted, sum, "the ledger does not add up: {stats:?}");
}

/// What the embedded store's own audit finds.
pub(super) async fn tables(store: &Store) {
    let audit = store.audit().await.expect("audit").expect("an embedded store has one");
    assert!(audit.findings.is_empty(), "{:#?}", audit.findings);
}

/// What the scripts read of a record; see the prelude for the layout.
struct Record {
    state: u8,
    flags: u8,
    due: u64,
    deadline: u64,
    topic: String,
    lane: String,
}

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "done", "dead", "cancelled"];
const EXTERNAL: u8 = 2;
const HEAD: usize = 26;

impl Record {
    /// From what was submitted, and the head where it has an entry of its own.
    fn parse(raw: &[u8], head: &[u8]) -> Self {
        let number = |raw: &[u8], at: usize, bytes: usize| {
            raw[at..at + bytes].iter().fold(0, |n, b| n << 8 | u64::from(*b))
        };
        let size = |at: usize, bytes: usize| usize::try_from(number(raw, at, bytes)).expect("a size");
        let text = |at: usize, bytes: usize| String::from_utf8(raw[at..at + bytes].to_vec()).expect("a name");
        Self {
            state: head[0],
            flags: head[1],
            due: number(head, 6, 6),
            deadline: if head.len() > HEAD { number(head, HEAD + 25, 6) } else { 0 },
            topic: text(HEAD + 4, size(HEAD, 1)),
            lane: text(HEAD + 4, size(HEAD + 2, 2)),
        }
    }
}

/// Reads all keys of an installation that lie on one server.
pub(super) async fn keys(redis: &mut MultiplexedConnection, prefix: &str) {
    let mut pools: BTreeMap<String, Vec<(Vec<u8>, Record)>> = BTreeMap::new();
    let mut bodies = HashSet::new();
    let mut bases = HashSet::new();
    for key in scan(redis, prefix).await {
        let end = key.iter().position(|b| *b == b'}').expect("every key has a tag") + 1;
        let (base, name) = (String::from_utf8_lossy(&key[..end]).into_owned(), &key[end..]);
        if name == b":pool" {
            let pool: Vec<(Vec<u8>, Vec<u8>)> = ask(redis, cmd("HGETALL").arg(&key)).await;
            let mut heads: BTreeMap<Vec<u8>, Vec<u8>> =
                ask(redis, cmd("HGETALL").arg(format!("{base}:heads"))).await;
            let records = pool.into_iter().map(|(locator, raw)| {
                let head = heads.remove(&locator).unwrap_or_else(|| raw[..HEAD].to_vec());
                (locator, Record::parse(&raw, &head))
            });
            pools.entry(base.clone()).or_default().extend(records);
            assert!(heads.is_empty(), "{base} has heads without their records: {heads:?}");
        } else if let Some(locator) = name.strip_prefix(b":body:") {
            assert!(bodies.insert((base, locator.to_vec())));
        } else if name == b":shard" {
            bases.insert(base);
        }
    }
    for base in &bases {
        let records = pools.remove(base).unwrap_or_default();
        shard_ledger(redis, base, &records).await;
        for (locator, record) in &records {
            indexed(redis, base, locator, record).await;
            let external = bodies.remove(&(base.clone(), locator.clone()));
            assert_eq!(
                external,
                record.flags & EXTERNAL != 0,
                "a body without its record's flag, or the reverse"
            );
        }
    }
    assert!(pools.is_empty(), "records without a ledger: {:?}", pools.keys());
    assert!(bodies.is_empty(), "bodies without a record: {bodies:?}");
}

async fn shard_ledger(redis: &mut MultiplexedConnection, base: &str, records: &[(Vec<u8>, Record)]) {
    let shard: BTreeMap<String, String> = ask(redis, cmd("HGETALL").arg(format!("{base}:shard"))).await;
    let counters: BTreeMap<_, i64> = shard.iter().filter_map(|(k, n)| Some((k, n.parse().ok()?))).collect();
    let counter = |name: &str| counters.get(&name.to_owned()).copied().unwrap_or(0);
    assert!(counters.values().all(|n| *n >= 0), "{base} has counts below nothing: {counters:?}");
    let sum: i64 = STATES.iter().map(|state| counter(state)).sum::<i64>() + counter("purged");
    assert_eq!(counter("accepted"), sum, "the ledger of {base} does not add up: {counters:?}");
    for (code, state) in (1_u8..).zip(STATES) {
        let kept = records.iter().filter(|(_, record)| record.state == code).count();
        let counted = if matches!(state, "done" | "cancelled") { 0 } else { counter(state) };
        assert_eq!(i64::try_from(kept), Ok(counted), "{state} records of {base}, against {counters:?}");
    }
}

/// That a job is found by the edges that its state leads to.
async fn indexed(redis: &mut MultiplexedConnection, base: &str, locator: &[u8], record: &Record) {
    let Record { state, due, deadline, topic, lane, .. } = record;
    let key = |name: &str| format!("{base}:{name}");
    let word = STATES[usize::from(state - 1)];
    let found = match word {
        "delayed" => {
            let own = score(redis, &key(&format!("bucket:{topic}")), locator).await;
            let turn = score(redis, &key("turns"), topic.as_bytes()).await;
            own == Some(*due) && turn.is_some()
        }
        "ready" => {
            let entry = [locator, &due.to_be_bytes()[2..]].concat();
            let mut position = cmd("LPOS");
            position.arg(key(&format!("ready:{lane}"))).arg(entry);
            let position: Option<u64> = ask(redis, &position).await;
            position.is_some() && score(redis, &key("lanes"), lane.as_bytes()).await.is_some()
        }
        "reserved" => score(redis, &key("leases"), locator).await == Some(*deadline),
        "dead" => score(redis, &key("dead"), locator).await.is_some(),
        other => panic!("a record of a job that is {other}"),
    };
    assert!(found, "a {word} job of {topic} in {base} has no index entry");
}

async fn score(redis: &mut MultiplexedConnection, key: &str, member: &[u8]) -> Option<u64> {
    let score: Option<f64> = ask(redis, cmd("ZSCORE").arg(key).arg(member)).await;
    score.map(|score| score as u64)
}

async fn scan(redis: &mut MultiplexedConnection, prefix: &str) -> HashSet<Vec<u8>> {
    let mut keys = HashSet::new();
    let mut cursor = 0_u64;
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}:*")).arg("COUNT").arg(1000);
        let (next, page): (u64, Vec<Vec<u8>>) = ask(redis, &scan).await;
        keys.extend(page);
        cursor = next;
        if cursor == 0 {
            return keys;
        }
    }
}

async fn ask<T: FromRedisValue>(redis: &mut MultiplexedConnection, cmd: &redis::Cmd) -> T {
    cmd.query_async(redis).await.expect("redis answers")
}
