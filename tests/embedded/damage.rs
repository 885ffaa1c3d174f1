//! The embedded store's consistency check finds and repairs index entries, turns and counts that were changed by hand.

mod missing_jobs;

use std::path::Path;

use redb::{Database, Key, ReadableTable as _, TableDefinition, Value};
use ringback_core::job::{Callback, JobKey, NewJob, TenantLimits, TenantScope, Topic};
use ringback_core::store_types::{Check, DamageKind, Limit, Repair, Shard, SubmitResult};
use ringback_store::Store;
use strum::VariantArray as _;
use tempfile::{TempDir, tempdir};

use super::{audit, job, open, reserve, settle, submit};
use crate::contract::destinations::pause_of;
use crate::contract::job_builders::{LONG, With, bury};
use crate::prelude::*;

const IDS: TableDefinition<'static, [u8; 12], u64> = TableDefinition::new("ids");
const JOBS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("jobs");
const BODIES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("bodies");
const DUE: TableDefinition<'static, (u16, &str, u64, u64), ()> = TableDefinition::new("due");
const TURNS: TableDefinition<'static, (u16, u64, &str), ()> = TableDefinition::new("turns");
const TOPICS: TableDefinition<'static, (u16, &str), u64> = TableDefinition::new("topics");
const READY: TableDefinition<'static, (u16, &str, i64), u64> = TableDefinition::new("ready");
const LANES: TableDefinition<'static, (u16, u64, &str), ()> = TableDefinition::new("lanes");
const LANE_TURNS: TableDefinition<'static, (u16, &str), u64> = TableDefinition::new("lane_turns");
const LEASES: TableDefinition<'static, (u16, u64, u64), ()> = TableDefinition::new("leases");
const DEAD: TableDefinition<'static, (u16, u64, u64), ()> = TableDefinition::new("dead");
const ENDED: TableDefinition<'static, (u16, u64, u64), ()> = TableDefinition::new("ended");
const TAGS: TableDefinition<'static, (&str, u64), ()> = TableDefinition::new("tags");
const COUNTS: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("counts");
const KNOWN: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("known");
const DESTINATIONS: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("destinations");
const SHARDS: TableDefinition<'static, u16, &[u8]> = TableDefinition::new("shards");

/// A closed store with a job in every state, and a ready pull job.
async fn ground() -> TempDir {
    let directory = tempdir().expect("a directory");
    let store = open(directory.path()).await;
    let mut pull = job("pull");
    pull.delivery.callback = Callback::pull();
    let delayed = job("delayed").after(LONG).tags("customer:42 order:7");
    let all = [job("done").tags("a"), job("dead").tags("a"), job("reserved").timeout(LONG), delayed, pull];
    for job in all {
        let (shard, name) = (store.shard_of(&job.key), job.key.id.to_string());
        submit(&store, job).await.expect("submit");
        if ["done", "dead", "reserved"].contains(&name.as_str()) {
            let lease = reserve(&store, shard, 1 + name.len() as u64).await.remove(0);
            match name.as_str() {
                "done" => drop(settle(&store, lease, Outcome::Complete).await),
                "dead" => drop(settle(&store, lease, bury()).await),
                _ => {}
            }
        }
    }
    submit(&store, job("ready")).await.expect("submit");
    audit::own(&store).await;
    audit::tables(&store).await;
    directory
}

/// Removes every row of a table from the file of a closed store.
fn empty<K: Key + 'static, V: Value + 'static>(directory: &Path, table: TableDefinition<'static, K, V>) {
    let database = Database::open(directory.join("ringback.redb")).expect("it opens");
    let write = database.begin_write().expect("a transaction");
    write.open_table(table).expect("the table").retain(|_, _| false).expect("rows");
    write.commit().expect("a commit");
}

/// Changes the numbers in a shard's row. Those of the ledger begin at the sixth.
fn change_row(directory: &Path, shard: Shard, change: impl FnOnce(&mut Vec<u64>)) {
    let database = Database::open(directory.join("ringback.redb")).expect("it opens");
    let write = database.begin_write().expect("a transaction");
    {
        let mut table = write.open_table(SHARDS).expect("the table");
        let raw = table.get(shard.number()).expect("a row").expect("a row").value().to_vec();
        let mut numbers = Vec::new();
        let mut bytes = raw.iter();
        while let Some(first) = bytes.next() {
            let (mut number, mut shift, mut byte) = (u64::from(first & 127), 7, *first);
            while byte >= 128 {
                byte = *bytes.next().expect("a number ends");
                number |= u64::from(byte & 127) << shift;
                shift += 7;
            }
            numbers.push(number);
        }
        change(&mut numbers);
        let mut row = Vec::new();
        for mut number in numbers {
            while number >= 128 {
                row.push((number % 128) as u8 | 128);
                number /= 128;
            }
            row.push(number as u8);
        }
        table.insert(shard.number(), row.as_slice()).expect("a row");
    }
    write.commit().expect("a commit");
}

async fn look(store: &Store, repair: Repair) -> Check {
    store.check(repair).await.expect("check")
}

/// Asserts that the check finds a damage and repairs it, and that the jobs are as they were.
async fn mended(directory: &Path, damage: &str, kind: DamageKind, count: u64) {
    mended_kinds(directory, damage, &[(kind, count)]).await;
}

async fn mended_kinds(directory: &Path, damage: &str, kinds: &[(DamageKind, u64)]) {
    let store = open(directory).await;
    let found = look(&store, Repair::No).await;
    let (found_kinds, count) =
        (found.found.iter().map(|(kind, n)| (*kind, *n)).collect::<Vec<_>>(), found.total());
    assert_eq!(found_kinds, kinds, "{damage}: {found:#?}");
    let repaired = look(&store, Repair::Yes).await;
    assert_eq!((repaired.total(), repaired.repaired), (count, count), "{damage}: {repaired:#?}");
    audit::own(&store).await;
    audit::tables(&store).await;
    for state in State::VARIANTS.iter().copied().filter(|state| *state != State::Cancelled) {
        let key: JobKey = job(state.into()).key;
        let known = store.get(&key).await.expect("get").unwrap_or_else(|| panic!("{damage}: {key} is gone"));
        assert_eq!(known.state, state, "{damage}");
    }
}

#[tokio::test]
async fn jobs_without_an_index_entry_are_found_and_linked_again() {
    let directory = ground().await;
    let path = directory.path();
    empty(path, DUE);
    mended(path, "due", DamageKind::Unindexed, 1).await;
    empty(path, READY);
    mended(path, "ready", DamageKind::Unindexed, 2).await;
    empty(path, LEASES);
    mended(path, "leases", DamageKind::Unindexed, 1).await;
    empty(path, DEAD);
    mended(path, "dead", DamageKind::Unindexed, 1).await;
    empty(path, ENDED);
    mended(path, "ended", DamageKind::Unindexed, 1).await;
    empty(path, IDS);
    mended(path, "ids", DamageKind::Unindexed, 6).await;
    empty(path, TAGS);
    mended(path, "tags", DamageKind::Tag, 3).await;
    empty(path, TAGS);
    empty(path, DEAD);
    mended_kinds(path, "tags and dead", &[(DamageKind::Unindexed, 1), (DamageKind::Tag, 3)]).await;
}

#[tokio::test]
async fn topics_and_lanes_that_have_no_turn_are_found_and_given_one() {
    let directory = ground().await;
    let path = directory.path();
    empty(path, TURNS);
    mended(path, "turns", DamageKind::Schedule, 1).await;
    empty(path, TOPICS);
    // Lists alone would not show the damage if the topic had no delayed jobs.
    mended_kinds(path, "topics", &[(DamageKind::Schedule, 1), (DamageKind::Topic, 2)]).await;
    empty(path, LANES);
    mended(path, "lanes", DamageKind::Schedule, 2).await;
    empty(path, READY);
    empty(path, LANES);
    empty(path, LANE_TURNS);
    mended(path, "ready queues and their lanes", DamageKind::Unindexed, 2).await;
    empty(path, LANE_TURNS);
    let store = open(path).await;
    assert_eq!(look(&store, Repair::Yes).await.repaired, 2);
    audit::own(&store).await;
    // The turn that the lane had leads to it too.
    assert_eq!(look(&store, Repair::No).await.stale, 1);
}

#[tokio::test]
async fn wrong_counts_are_repaired_where_they_can_be_derived() {
    let directory = ground().await;
    let (path, shard) = (directory.path(), {
        let store = open(directory.path()).await;
        store.shard_of(&job("delayed").key)
    });
    change_row(path, shard, |row| row[6] += 5);
    mended(path, "delayed", DamageKind::Ledger, 1).await;
    change_row(path, shard, |row| row[4] += 5);
    mended(path, "tombstones", DamageKind::Ledger, 1).await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_not_missing() {
    let directory = ground().await;
    spoil_last_record(directory.path());
    let store = open(directory.path()).await;
    for repair in [Repair::No, Repair::Yes] {
        let check = look(&store, repair).await;
        let kinds = [DamageKind::Unreadable, DamageKind::Ledger].map(|kind| check.found.get(&kind));
        assert_eq!((kinds, check.is_clean(), check.missing), ([Some(&1); 2], false, 0), "{check:#?}");
    }
}

/// Makes the record of the last job, which is ready, unreadable.
fn spoil_last_record(directory: &Path) {
    let database = Database::open(directory.join("ringback.redb")).expect("it opens");
    let write = database.begin_write().expect("a transaction");
    {
        let mut table = write.open_table(JOBS).expect("the table");
        let last = table.last().expect("a row").expect("a row").0.value();
        table.insert(last, [255_u8].as_slice()).expect("a row");
    }
    write.commit().expect("a commit");
}

/// Sets one byte of a row, at `place`, in the file of a closed store.
fn change_small(
    directory: &Path,
    table: TableDefinition<'static, (u16, &str), &[u8]>,
    key: (u16, &str),
    place: usize,
    to: u8,
) {
    let database = Database::open(directory.join("ringback.redb")).expect("it opens");
    let write = database.begin_write().expect("a transaction");
    {
        let mut table = write.open_table(table).expect("the table");
        let mut raw = table.get(key).expect("a row").expect("a row").value().to_vec();
        raw[place] = to;
        table.insert(key, raw.as_slice()).expect("a row");
    }
    write.commit().expect("a commit");
}

#[tokio::test]
async fn counts_of_lanes_and_topics_that_are_wrong_are_put_right() {
    let directory = ground().await;
    let (path, shard) = (directory.path(), {
        let store = open(directory.path()).await;
        store.shard_of(&job("delayed").key).number()
    });
    let lane = "store http://receiver.example";
    // The counts of delayed, ready, reserved and dead jobs. Numbers are stored doubled, and odd if negative.
    for (place, to) in [(0, 8), (0, 0), (1, 4), (2, 3), (3, 6)] {
        change_small(path, COUNTS, (shard, lane), place, to);
        mended(path, "a lane", DamageKind::LaneCount, 1).await;
    }
    empty(path, COUNTS);
    // Without counts, the topic rows of each shard count lanes that do not exist.
    mended_kinds(path, "counts", &[(DamageKind::LaneCount, 3), (DamageKind::Topic, 3)]).await;
    change_small(path, KNOWN, (shard, "store"), 0, 7);
    mended(path, "lanes of a topic", DamageKind::Topic, 2).await;
    for place in [0, 2, 3] {
        change_small(path, KNOWN, (shard, ""), place, 7);
        mended(path, "sums of a shard", DamageKind::Topic, 1).await;
    }
    empty(path, KNOWN);
    mended(path, "known topics", DamageKind::Topic, 3).await;
}

#[tokio::test]
async fn counts_of_tenants_are_put_right_and_made_anew() {
    let directory = ground().await;
    let path = directory.path();
    // Puts all jobs into one shard.
    let submitted = async |topic: &str| {
        let store = open(path).await;
        let key = |n: u32| JobKey {
            topic: Topic::from_stored(topic).expect("a topic"),
            id: format!("job-{n}").parse().expect("an id"),
        };
        let key = (0..).map(key).find(|key| store.shard_of(key) == Shard(0)).expect("a key");
        let limits = Some(TenantLimits { topics: 1, lanes: 1 });
        let answer = submit(&store, NewJob { key, limits, ..job("of-tenant") }).await.expect("submit");
        audit::tables(&store).await;
        answer
    };
    assert_eq!(submitted("~t/one").await, SubmitResult::Created);
    for place in [0, 2, 3] {
        change_small(path, KNOWN, (0, "~t"), place, 7);
        mended(path, "sums of a tenant", DamageKind::Topic, 1).await;
    }
    let database = Database::open(path.join("ringback.redb")).expect("it opens");
    let write = database.begin_write().expect("a transaction");
    write.open_table(KNOWN).expect("the table").remove((0, "~t")).expect("a row").expect("a row");
    write.commit().expect("a commit");
    drop(database);
    mended(path, "sums of a tenant that are gone", DamageKind::Topic, 1).await;
    assert_eq!(submitted("~t/two").await, SubmitResult::Full(Limit::TenantTopics));
}

#[tokio::test]
async fn lanes_of_a_paused_topic_are_no_damage_unless_it_is_resumed() {
    let directory = ground().await;
    let path = directory.path();
    let topic = job("ready").key.topic;
    let shard = {
        let store = open(path).await;
        store.pause(&topic, None).await.expect("pause").expect("there is room");
        let shard = store.shard_of(&job("ready").key);
        assert!(reserve(&store, shard, 99).await.is_empty());
        audit::own(&store).await;
        audit::tables(&store).await;
        shard
    };
    // Makes the topic count as resumed, while its lane is still set aside.
    change_small(path, KNOWN, (shard.number(), "store"), 1, 0);
    change_small(path, KNOWN, (shard.number(), ""), 3, 0);
    mended(path, "paused for ever", DamageKind::Schedule, 1).await;
    let store = open(path).await;
    assert_eq!(reserve(&store, shard, 100).await.len(), 1);
}

#[tokio::test]
async fn lanes_of_a_paused_destination_are_no_damage_unless_its_pause_is_gone() {
    let directory = ground().await;
    let path = directory.path();
    let shard = {
        let store = open(path).await;
        let pause = pause_of(&TenantScope::All, "receiver.example:80");
        store.pause_destination(&pause).await.expect("pause").expect("there is room");
        let shard = store.shard_of(&job("ready").key);
        assert!(reserve(&store, shard, 99).await.is_empty());
        audit::own(&store).await;
        audit::tables(&store).await;
        shard
    };
    empty(path, DESTINATIONS);
    mended(path, "paused for ever", DamageKind::Schedule, 1).await;
    let store = open(path).await;
    assert_eq!(reserve(&store, shard, 100).await.len(), 1);
}

#[tokio::test]
async fn an_ended_job_is_reported_and_stays_ended() {
    let directory = ground().await;
    empty(directory.path(), BODIES);
    let store = open(directory.path()).await;
    for repair in [Repair::No, Repair::Yes] {
        let check = look(&store, repair).await;
        assert_eq!((check.found.get(&DamageKind::Body), check.is_clean()), (Some(&5), false), "{check:#?}");
    }
    drop(store);
    empty(directory.path(), JOBS);
    let store = open(directory.path()).await;
    let check = look(&store, Repair::No).await;
    assert!(check.found.contains_key(&DamageKind::Ledger) && check.stale > 5, "{check:#?}");
}
