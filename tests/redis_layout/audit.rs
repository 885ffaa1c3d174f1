//! Audits every key of an installation in Redis after a test: the states of the records add up to the counts, each
//! record has the index entries that its state needs, and nothing else is left.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};
use ringback_core::lane::Lane;
use ringback_core::store_types::LimitTarget;
use ringback_testkit::{shard_field, shard_fields};

/// What the scripts read of a job; see the prelude for the layout.
struct Record {
    /// From the run record: 1 for a job that is delayed or ready.
    state: u8,
    flags: u8,
    due: u64,
    lease: Vec<u8>,
    deadline: u64,
    lane: Vec<u8>,
}

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "done", "dead", "cancelled"];
/// States of jobs that have not ended, in the order in which a lane counts them.
const OPEN: [&str; 4] = ["delayed", "ready", "reserved", "dead"];
/// The bytes of a lane's row before its name: four counts of four, and two of six.
const LANE_ROW: usize = 28;
const EXTERNAL: u8 = 2;
/// The length of a slot, in ms.
const WIDTH: u64 = 600_000;

pub(super) fn number(raw: &[u8]) -> u64 {
    raw.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

impl Record {
    /// Parses a record, and its run record if it has one.
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
/// How many jobs of a lane are in each of the states that are [`OPEN`].
type Lanes = BTreeMap<Vec<u8>, [i64; 4]>;

/// Checks all keys of an installation on one server. Panics at the first that is wrong.
pub(crate) async fn keys(redis: &mut MultiplexedConnection, prefix: &str) {
    let mut pools: BTreeMap<String, Vec<(Vec<u8>, Record)>> = BTreeMap::new();
    let (mut bodies, mut archived) = (HashSet::new(), HashSet::new());
    let mut bases = HashSet::new();
    let mut fronts: BTreeMap<String, i64> = BTreeMap::new();
    for key in scan(redis, prefix).await {
        let end = key.iter().position(|b| *b == b'}').expect("every key has a tag") + 1;
        let (base, name) = (String::from_utf8_lossy(&key[..end]).into_owned(), &key[end..]);
        if name == b":pool" {
            let pool: Hash = ask(redis, cmd("HGETALL").arg(&key)).await;
            super::tags::index(redis, &base, &pool).await;
            let mut runs: Hash = ask(redis, cmd("HGETALL").arg(format!("{base}:states"))).await;
            let records = pool.into_iter().map(|(locator, raw)| {
                let record = Record::parse(&raw, runs.remove(&locator).as_deref());
                (locator, record)
            });
            pools.entry(base.clone()).or_default().extend(records);
            assert!(runs.is_empty(), "{base} has runs without their records: {runs:?}");
        } else if let Some(locator) = name.strip_prefix(b":body:") {
            assert!(bodies.insert((base, locator.to_vec())));
        } else if let Some(head) = name.strip_prefix(b":archive:") {
            assert!(archived.insert((base, head.to_vec())));
        } else if name.starts_with(b":front:") {
            *fronts.entry(base).or_default() += 1;
        } else if name == b":shard" {
            bases.insert(base);
        }
    }
    for base in &bases {
        let records = pools.remove(base).unwrap_or_default();
        let mut lanes: Lanes = BTreeMap::new();
        for (locator, record) in &records {
            let state = indexed(redis, base, locator, record).await;
            let place = OPEN.iter().position(|open| *open == state).expect("a state that has a record");
            lanes.entry(record.lane.clone()).or_default()[place] += 1;
            let external = bodies.remove(&(base.clone(), locator.clone()));
            assert_eq!(
                external,
                record.flags & EXTERNAL != 0,
                "a body without its record's flag, or the reverse"
            );
        }
        shard_ledger(redis, base, &lanes).await;
        let counted = shard_field(redis, format!("{base}:shard"), "fronts").await;
        assert_eq!(counted, fronts.remove(base).unwrap_or(0), "lanes of {base} with a front");
        empty_lists(redis, base).await;
        super::order::heads(redis, base).await;
        attempts(redis, base).await;
        outbox(redis, base).await;
        archive(redis, base, &mut archived).await;
    }
    assert!(archived.is_empty(), "payloads without an entry of the archive outbox: {archived:?}");
    assert!(fronts.is_empty(), "fronts without a ledger: {fronts:?}");
    assert!(pools.is_empty(), "records without a ledger: {:?}", pools.keys());
    assert!(bodies.is_empty(), "bodies without a record: {bodies:?}");
}

/// Checks that the counted bytes of the archive outbox are those of its entries and payloads. Takes the payloads that
/// have an entry out of `archived`.
async fn archive(redis: &mut MultiplexedConnection, base: &str, archived: &mut HashSet<(String, Vec<u8>)>) {
    const HEAD: usize = 19;
    let entries: Vec<Vec<u8>> = ask(redis, cmd("LRANGE").arg(format!("{base}:archive")).arg(&[0, -1])).await;
    let mut bytes = 0;
    for entry in entries {
        bytes += entry.len();
        let head = entry[..HEAD].to_vec();
        if archived.remove(&(base.to_owned(), head.clone())) {
            // The last four bytes of a record with a large payload are the size of the payload.
            let size = entry.last_chunk::<4>().map_or(0, |size| u32::from_be_bytes(*size));
            let key = [base.as_bytes(), b":archive:", &head].concat();
            let stored: usize = ask(redis, cmd("STRLEN").arg(key)).await;
            bytes += size as usize;
            assert!(stored >= size as usize, "{stored} bytes of {size}");
        }
    }
    let counted = shard_field(redis, format!("{base}:shard"), "archive_bytes").await;
    assert_eq!(counted, bytes as i64, "bytes of the archive outbox of {base}");
}

/// Checks that the shard's next notice time is not later than the first entry of the outbox.
async fn outbox(redis: &mut MultiplexedConnection, base: &str) {
    let first: Vec<(Vec<u8>, f64)> =
        ask(redis, cmd("ZRANGE").arg(format!("{base}:outbox")).arg(&[0, 0]).arg("WITHSCORES")).await;
    let stored = shard_field(redis, format!("{base}:shard"), "next_notice_at").await as f64;
    let is_right = first.first().map_or(stored == 0.0, |(_, at)| stored > 0.0 && stored <= *at);
    assert!(is_right, "{base} looks at its outbox at {stored}, and {first:?} is the first death");
}

async fn shard_ledger(redis: &mut MultiplexedConnection, base: &str, lanes: &Lanes) {
    let shard: Hash = ask(redis, cmd("HGETALL").arg(format!("{base}:shard"))).await;
    let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).ok();
    let counters = shard_fields(&shard);
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    assert!(counters.values().all(|n| *n >= 0), "{base} has counts below nothing: {counters:?}");
    let ended = counter("purged") + counter("missing");
    let sum: i64 = STATES.iter().map(|state| counter(state)).sum::<i64>() + ended;
    assert_eq!(counter("accepted"), sum, "the ledger of {base} does not add up: {counters:?}");
    // A repair takes more tombstones than these for those of jobs that half a transition has ended.
    let tombstones: i64 = ask(redis, cmd("HLEN").arg(format!("{base}:done:{}", counter("segment")))).await;
    // A segment has one more entry, with a long value.
    let tombstones = (tombstones - 1).max(0);
    let counted = if counter("sized") == counter("segment") { counter("segment_size") } else { 0 };
    assert!(tombstones <= counted, "{tombstones} tombstones in {base}, against {counters:?}");
    for (place, state) in OPEN.iter().enumerate() {
        let kept: i64 = lanes.values().map(|counts| counts[place]).sum();
        assert_eq!(kept, counter(state), "{state} records of {base}, against {counters:?}");
    }
    let dead: i64 = ask(redis, cmd("ZCARD").arg(format!("{base}:dead"))).await;
    assert_eq!(dead, counter("dead"), "entries of dead jobs in {base}");
    let mut stored = Lanes::new();
    let mut topics: BTreeMap<String, i64> = BTreeMap::new();
    let mut ended = [0; 2];
    for (lane, row) in shard.iter().filter(|(name, row)| name.len() == 8 && row.len() > LANE_ROW) {
        let (counts, words) = row.split_at(LANE_ROW);
        add(&mut ended, &counts[16..]);
        let counts = &counts[..16];
        let counts: Vec<i64> = counts.chunks(4).map(|n| number(n) as i64).collect();
        stored.insert(lane.clone(), counts.try_into().expect("four counts"));
        let (topic, _) = words.split_at(words.iter().position(|b| *b == b' ').expect("a topic"));
        *topics.entry(text(topic).expect("a topic is ASCII")).or_default() += 1;
        let member = [topic, b" ", lane].concat();
        assert!(score(redis, format!("{base}:index").as_bytes(), &member).await.is_some(), "{lane:?}");
    }
    assert_eq!(counter("lanes"), stored.len() as i64, "lanes of {base}");
    let resting = shard.get(&b"resting"[..]).map(|ids| ids.chunks(8).collect()).unwrap_or_default();
    let resting: BTreeSet<&[u8]> = resting;
    assert!(resting.len() <= 128, "{} lanes of {base} may rest", resting.len());
    stored.retain(|lane, counts| *counts != [0; 4] || !resting.contains(&**lane));
    assert_eq!(*lanes, stored, "jobs per lane and state of {base}, and what is counted");
    known_topics(redis, base, &shard, &topics).await;
    let held: BTreeSet<String> = shard
        .iter()
        .filter_map(|(name, row)| Some((std::str::from_utf8(name).ok()?.strip_prefix("topic:")?, row)))
        .inspect(|(_, row)| add(&mut ended, &row[9..]))
        .filter(|(_, row)| row[8] > 0)
        .map(|(topic, _)| topic.to_owned())
        .collect();
    // Topics that are forgotten take theirs with them.
    assert!(ended[0] <= counter("done"), "{ended:?} were done, in topics of {base}: {counters:?}");
    assert!(ended[1] <= counter("cancelled"), "{ended:?} were cancelled, in topics of {base}: {counters:?}");
    let pauses: i64 = ask(redis, cmd("HLEN").arg(format!("{base}:destinations"))).await;
    assert_eq!(counter("paused_hosts"), pauses, "paused destinations of {base}");
    let limits: i64 = ask(redis, cmd("HLEN").arg(format!("{base}:limited"))).await;
    assert_eq!(counter("limits"), limits, "limited destinations of {base}");
    assert_eq!(counter("paused"), held.len() as i64, "paused topics of {base}");
    let counted = topics.keys().filter(|topic| !held.contains(*topic)).count() + held.len();
    assert_eq!(counter("topics"), counted as i64, "topics of {base} that have lanes or are paused");
}

/// Adds a row's counts of done and cancelled jobs to `ended`.
fn add(ended: &mut [i64; 2], row: &[u8]) {
    assert_eq!(row.len(), 12);
    ended.iter_mut().zip(row.chunks(6)).for_each(|(sum, n)| *sum += number(n) as i64);
}

/// Checks that each known topic has a row which counts its lanes, that each lane's topic is known, and that both lists
/// have all of them and nothing else. `topics` has the number of lanes of each topic that has some.
async fn known_topics(
    redis: &mut MultiplexedConnection,
    base: &str,
    shard: &Hash,
    topics: &BTreeMap<String, i64>,
) {
    let rows = shard.iter().filter_map(|(name, row)| {
        Some((std::str::from_utf8(name).ok()?.strip_prefix("topic:")?, number(&row[..4]) as i64))
    });
    let known: BTreeMap<&str, i64> = rows.collect();
    let with_lanes: BTreeMap<&str, i64> =
        known.iter().filter(|(_, n)| **n > 0).map(|(topic, n)| (*topic, *n)).collect();
    let wanted: BTreeMap<&str, i64> = topics.iter().map(|(topic, n)| (topic.as_str(), *n)).collect();
    assert_eq!(with_lanes, wanted, "lanes per topic of {base}");
    let by_hour: Vec<String> = ask(redis, cmd("ZRANGE").arg(format!("{base}:topics")).arg(0).arg(-1)).await;
    let by_hour: BTreeSet<&str> = by_hour.iter().map(String::as_str).collect();
    assert_eq!(by_hour, known.keys().copied().collect(), "known topics of {base}");
    let index: Vec<Vec<u8>> = ask(redis, cmd("ZRANGE").arg(format!("{base}:index")).arg(0).arg(-1)).await;
    let (names, lanes): (Vec<_>, Vec<_>) =
        index.iter().partition(|m| m.iter().position(|b| *b == b' ') == Some(m.len() - 1));
    let names: BTreeSet<_> = names.iter().filter_map(|name| std::str::from_utf8(name).ok()).collect();
    assert_eq!(names.iter().map(|name| name.trim_end()).collect::<BTreeSet<_>>(), by_hour);
    assert_eq!(lanes.len() as i64, topics.values().sum::<i64>(), "lanes in the index of {base}");
}

/// Checks that a job is in the indexes that its state needs, and returns the state that this means.
async fn indexed(
    redis: &mut MultiplexedConnection,
    base: &str,
    locator: &[u8],
    record: &Record,
) -> &'static str {
    let Record { state, due, lease, deadline, lane, .. } = record;
    let key = |name: &str, end: &[u8]| [format!("{base}:{name}").as_bytes(), end].concat();
    let entry = [locator, &due.to_be_bytes()[2..]].concat();
    let name = STATES[usize::from(state - 1)];
    let found = match name {
        "delayed" => {
            if score(redis, &key("due:", lane), &entry).await == Some(*due) {
                score(redis, &key("due_lanes", b""), lane).await.is_some()
            } else if is_in(redis, &key(&format!("slot:{}", due / WIDTH), b""), &[&*entry, lane].concat())
                .await
            {
                let is_void: bool = ask(
                    redis,
                    cmd("SISMEMBER")
                        .arg(key(&format!("cancelled:{}", due / WIDTH), b""))
                        .arg([&*entry, lane].concat()),
                )
                .await;
                score(redis, &key("slots", b""), (due / WIDTH).to_string().as_bytes()).await.is_some()
                    && !is_void
            } else {
                if super::order::waits(redis, base, locator, &entry[12..]).await {
                    return "ready";
                }
                let turns = if lane[0] < 128 { "lanes" } else { "pulls" };
                let queued = is_in(redis, &key("ready:", lane), &entry).await
                    || is_in(redis, &key("front:", lane), &entry).await;
                let has_turn = score(redis, &key(turns, b""), lane).await.is_some();
                assert!(
                    queued && (has_turn || is_set_aside(redis, base, lane).await),
                    "a job that waits in {base} has no index entry"
                );
                return "ready";
            }
        }
        "reserved" => {
            let (leases, alone) = (key("leases", b""), [&**lease, locator].concat());
            let (at, alone) = (score(redis, &leases, lease).await, score(redis, &leases, &alone).await);
            let batch: Option<Vec<u8>> = ask(redis, cmd("HGET").arg(key("batches", b"")).arg(lease)).await;
            let is_there = batch.is_some_and(|batch| batch.chunks(12).any(|l| l == locator));
            at.filter(|_| is_there).or(alone).is_some_and(|at| at <= *deadline)
        }
        "dead" => score(redis, &key("dead", b""), &[locator, lane].concat()).await.is_some(),
        other => panic!("a record of a job that is {other}"),
    };
    assert!(found, "a {name} job in {base} has no index entry");
    name
}

/// Checks that no slot is listed without its list, and that the shard's first slot is right.
async fn empty_lists(redis: &mut MultiplexedConnection, base: &str) {
    let slots: Vec<String> = ask(redis, cmd("ZRANGE").arg(format!("{base}:slots")).arg(0).arg(-1)).await;
    for slot in &slots {
        let length: u64 = ask(redis, cmd("LLEN").arg(format!("{base}:slot:{slot}"))).await;
        assert!(length > 0, "slot {slot} of {base} is listed and not there");
    }
    let first = shard_field(redis, format!("{base}:shard"), "slot").await as u64;
    let stored = slots.first().map_or(Ok(0), |slot| slot.parse());
    assert_eq!(Ok(first), stored, "the first slot of {base}");
}

/// Whether a lane is set aside for its topic, which is paused, for a pause of its destination, or for a limit.
async fn is_set_aside(redis: &mut MultiplexedConnection, base: &str, lane: &[u8]) -> bool {
    let shard = format!("{base}:shard");
    let row: Vec<u8> = ask(redis, cmd("HGET").arg(&shard).arg(lane)).await;
    let words = &row[LANE_ROW..];
    let topic = &words[..words.iter().position(|b| *b == b' ').expect("a topic")];
    let of_topic: Vec<u8> = ask(redis, cmd("HGET").arg(&shard).arg([b"topic:", topic].concat())).await;
    let mut holders = if of_topic[8] > 0 { vec![topic.to_vec()] } else { Vec::new() };
    let name = std::str::from_utf8(words).expect("a name");
    let names: Vec<_> = Lane::parse(name).and_then(LimitTarget::names_of).into_iter().flatten().collect();
    let pauses: Vec<String> = ask(redis, cmd("HKEYS").arg(format!("{base}:destinations"))).await;
    let limits: Vec<String> = ask(redis, cmd("HKEYS").arg(format!("{base}:limited"))).await;
    holders.extend(names.iter().any(|name| limits.contains(name)).then(|| b"%".to_vec()));
    let held = names.iter().filter(|name| pauses.contains(name));
    holders.extend(held.map(|name| format!("!{name}").into_bytes()));
    for holder in holders {
        let member = [&*holder, b" ", lane].concat();
        if score(redis, format!("{base}:paused").as_bytes(), &member).await.is_some() {
            return true;
        }
    }
    false
}

/// Checks segments of attempts: only the last three are left, each expires, none is too large, and the size is right.
async fn attempts(redis: &mut MultiplexedConnection, base: &str) {
    let shard = format!("{base}:shard");
    let current = shard_field(redis, &shard, "attempts_segment").await as u64;
    let stored = shard_field(redis, &shard, "attempts_size").await as u64;
    let mut sizes = BTreeMap::new();
    for key in scan(redis, &format!("{base}:attempts")).await {
        let name = String::from_utf8_lossy(&key).into_owned();
        let segment: u64 = name.rsplit(':').next().and_then(|n| n.parse().ok()).expect("a segment");
        let logs: Hash = ask(redis, cmd("HGETALL").arg(&key)).await;
        let lives: i64 = ask(redis, cmd("PTTL").arg(&key)).await;
        assert!(lives > 0, "{name} stays for ever");
        sizes.insert(segment, logs.values().map(|log| log.len() as u64 * 5 / 4 + 96).sum::<u64>());
    }
    assert!(sizes.keys().all(|segment| (current.saturating_sub(2)..=current).contains(segment)), "{sizes:?}");
    let size = sizes.get(&current).copied();
    // A segment that nothing was written to yet is not there.
    assert_eq!(size.unwrap_or(0), stored, "the size of {base}'s attempts");
    // A segment has at most a third of the room of a shard, which has a third of 64 MiB.
    assert!(sizes.values().all(|size| *size <= 64 * 1024 * 1024 / 9), "{sizes:?}");
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

pub(super) async fn ask<T: FromRedisValue>(redis: &mut MultiplexedConnection, cmd: &redis::Cmd) -> T {
    cmd.query_async(redis).await.expect("redis answers")
}
