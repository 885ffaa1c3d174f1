//! The books. The ledger adds up by itself; on Redis every key of the installation is read as well: the
//! states of the records are those of the ledger, and each record has the index entry its state needs. The
//! embedded store does the same with its tables, and finds entries without a record too.

use std::collections::{BTreeMap, HashSet};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};
use ringback_core::store::{Repair, Stats, Store};

/// accepted = done + cancelled + purged + delayed + ready + reserved + dead.
pub(super) fn ledger(stats: &Stats) {
    let s = &stats.states;
    let sum = s.done + s.cancelled + s.purged + s.delayed + s.ready + s.reserved + s.dead;
    assert_eq!(stats.accepted, sum, "the ledger does not add up: {stats:?}");
}

/// What the embedded store's own audit finds.
pub(crate) async fn tables(store: &Store) {
    let audit = store.audit(Repair::No).await.expect("audit");
    assert!(audit.findings.is_empty() && audit.stale == 0, "{audit:#?}");
}

/// That the store's own audit finds nothing, beside what is checked here without it.
pub(crate) async fn own(store: &Store) {
    let audit = store.audit(Repair::No).await.expect("audit");
    assert!(audit.is_clean() && audit.findings.is_empty(), "{audit:#?}");
    let states = store.stats().await.expect("stats").states;
    assert_eq!(audit.checked, states.delayed + states.ready + states.reserved + states.dead);
    assert_eq!((audit.shards, audit.compared), (audit.shards, audit.shards), "nothing moves here");
}

/// What the scripts read of a job; see the prelude for the layout.
struct Record {
    /// As its run says: 1 for one that waits, delayed or ready.
    state: u8,
    flags: u8,
    due: u64,
    lease: Vec<u8>,
    deadline: u64,
    lane: Vec<u8>,
}

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "done", "dead", "cancelled"];
const EXTERNAL: u8 = 2;
/// The time of a slot, in ms.
const WIDTH: u64 = 600_000;

fn number(raw: &[u8]) -> u64 {
    raw.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

impl Record {
    /// From what was submitted, and its run where it has one.
    fn parse(raw: &[u8], run: Option<&[u8]>) -> Self {
        let own_due = run.map_or(0, |run| number(&run[2..8]));
        Self {
            state: run.map_or(1, |run| run[0]),
            flags: raw[12],
            due: if own_due > 0 { own_due } else { number(&raw[..6]) },
            lease: run.map_or(Vec::new(), |run| run[17..25].to_vec()),
            deadline: run.map_or(0, |run| number(&run[33..39])),
            lane: raw[25..33].to_vec(),
        }
    }
}

type Hash = BTreeMap<Vec<u8>, Vec<u8>>;

/// Reads all keys of an installation that lie on one server.
pub(crate) async fn keys(redis: &mut MultiplexedConnection, prefix: &str) {
    let mut pools: BTreeMap<String, Vec<(Vec<u8>, Record)>> = BTreeMap::new();
    let mut bodies = HashSet::new();
    let mut bases = HashSet::new();
    for key in scan(redis, prefix).await {
        let end = key.iter().position(|b| *b == b'}').expect("every key has a tag") + 1;
        let (base, name) = (String::from_utf8_lossy(&key[..end]).into_owned(), &key[end..]);
        if name == b":pool" {
            let pool: Hash = ask(redis, cmd("HGETALL").arg(&key)).await;
            let mut runs: Hash = ask(redis, cmd("HGETALL").arg(format!("{base}:runs"))).await;
            let records = pool.into_iter().map(|(locator, raw)| {
                let record = Record::parse(&raw, runs.remove(&locator).as_deref());
                (locator, record)
            });
            pools.entry(base.clone()).or_default().extend(records);
            assert!(runs.is_empty(), "{base} has runs without their records: {runs:?}");
        } else if let Some(locator) = name.strip_prefix(b":body:") {
            assert!(bodies.insert((base, locator.to_vec())));
        } else if name == b":shard" {
            bases.insert(base);
        }
    }
    for base in &bases {
        let records = pools.remove(base).unwrap_or_default();
        let mut states = BTreeMap::new();
        for (locator, record) in &records {
            let state = indexed(redis, base, locator, record).await;
            *states.entry(state).or_insert(0_i64) += 1;
            let external = bodies.remove(&(base.clone(), locator.clone()));
            assert_eq!(
                external,
                record.flags & EXTERNAL != 0,
                "a body without its record's flag, or the reverse"
            );
        }
        shard_ledger(redis, base, &records, &states).await;
        empty_lists(redis, base).await;
    }
    assert!(pools.is_empty(), "records without a ledger: {:?}", pools.keys());
    assert!(bodies.is_empty(), "bodies without a record: {bodies:?}");
}

async fn shard_ledger(
    redis: &mut MultiplexedConnection,
    base: &str,
    records: &[(Vec<u8>, Record)],
    states: &BTreeMap<&'static str, i64>,
) {
    let shard: Hash = ask(redis, cmd("HGETALL").arg(format!("{base}:shard"))).await;
    let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).ok();
    let counters: BTreeMap<String, i64> =
        shard.iter().filter_map(|(name, n)| Some((text(name)?, text(n)?.parse().ok()?))).collect();
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    assert!(counters.values().all(|n| *n >= 0), "{base} has counts below nothing: {counters:?}");
    let sum: i64 = STATES.iter().map(|state| counter(state)).sum::<i64>() + counter("purged");
    assert_eq!(counter("accepted"), sum, "the ledger of {base} does not add up: {counters:?}");
    for state in ["delayed", "ready", "reserved", "dead"] {
        let kept = states.get(state).copied().unwrap_or(0);
        assert_eq!(kept, counter(state), "{state} records of {base}, against {counters:?}");
    }
    let mut lanes: BTreeMap<&[u8], u64> = BTreeMap::new();
    records.iter().for_each(|(_, record)| *lanes.entry(&record.lane).or_default() += 1);
    let told: BTreeMap<&[u8], u64> = shard
        .iter()
        .filter(|(name, row)| name.len() == 8 && row.len() > 10 && row[10..].contains(&b' '))
        .map(|(lane, row)| (lane.as_slice(), number(&row[..6])))
        .collect();
    assert_eq!(lanes, told, "jobs per lane of {base}, and what is counted");
}

/// Where a job is found by the edges that its state leads to; the state that this means.
async fn indexed(
    redis: &mut MultiplexedConnection,
    base: &str,
    locator: &[u8],
    record: &Record,
) -> &'static str {
    let Record { state, due, lease, deadline, lane, .. } = record;
    let key = |name: &str, end: &[u8]| [format!("{base}:{name}").as_bytes(), end].concat();
    let entry = [locator, &due.to_be_bytes()[2..]].concat();
    let word = STATES[usize::from(state - 1)];
    let found = match word {
        "delayed" => {
            if score(redis, &key("due:", lane), &entry).await == Some(*due) {
                score(redis, &key("turns", b""), lane).await.is_some()
            } else if is_in(redis, &key(&format!("slot:{}", due / WIDTH), b""), &[&*entry, lane].concat())
                .await
            {
                let is_void: bool = ask(
                    redis,
                    cmd("SISMEMBER")
                        .arg(key(&format!("void:{}", due / WIDTH), b""))
                        .arg([&*entry, lane].concat()),
                )
                .await;
                score(redis, &key("slots", b""), (due / WIDTH).to_string().as_bytes()).await.is_some()
                    && !is_void
            } else {
                let turns = if lane[0] < 128 { "lanes" } else { "pulls" };
                let queued = is_in(redis, &key("ready:", lane), &entry).await;
                assert!(
                    queued && score(redis, &key(turns, b""), lane).await.is_some(),
                    "a job that waits in {base} has no index entry"
                );
                return "ready";
            }
        }
        "reserved" => {
            let at = score(redis, &key("leases", b""), lease).await;
            let batch: Option<Vec<u8>> = ask(redis, cmd("HGET").arg(key("batches", b"")).arg(lease)).await;
            at.is_some_and(|at| at <= *deadline)
                && batch.is_some_and(|batch| batch.chunks(12).any(|l| l == locator))
        }
        "dead" => score(redis, &key("dead", b""), locator).await.is_some(),
        other => panic!("a record of a job that is {other}"),
    };
    assert!(found, "a {word} job in {base} has no index entry");
    word
}

/// No due time of a job that is not there, and nothing kept of slots that are over.
async fn empty_lists(redis: &mut MultiplexedConnection, base: &str) {
    let slots: Vec<String> = ask(redis, cmd("ZRANGE").arg(format!("{base}:slots")).arg(0).arg(-1)).await;
    for slot in &slots {
        let length: u64 = ask(redis, cmd("LLEN").arg(format!("{base}:slot:{slot}"))).await;
        assert!(length > 0, "slot {slot} of {base} is told of and not there");
    }
    let first: Option<u64> = ask(redis, cmd("HGET").arg(format!("{base}:shard")).arg("slot")).await;
    let told = slots.first().map_or(Ok(0), |slot| slot.parse());
    assert_eq!(Ok(first.unwrap_or(0)), told, "the first slot of {base}");
}

async fn is_in(redis: &mut MultiplexedConnection, key: &[u8], item: &[u8]) -> bool {
    let position: Option<u64> = ask(redis, cmd("LPOS").arg(key).arg(item)).await;
    position.is_some()
}

async fn score(redis: &mut MultiplexedConnection, key: &[u8], member: &[u8]) -> Option<u64> {
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
