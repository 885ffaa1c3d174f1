//! Accepted jobs whose rows were removed by hand from the embedded store: a repair counts them as missing, also after a
//! restart, and no longer once they are back.

use ringback_core::store_types::{DamageKind, Repair, Shard, SubmitResult};
use ringback_store::Store;
use ringback_testkit::eventually;

use super::{JOBS, audit, change_row, empty, ground, job, look, mended, open, reserve, submit};
use crate::contract::job_builders::{With, ms};
use crate::contract::workbench::{SOON, at_most};

/// The place of the number of missing jobs in the row of a shard.
const MISSING: usize = 14;
const SHARDS: [u16; 4] = [0, 1, 2, 3];

/// The number of missing jobs in the gauges of all shards.
async fn gauge(store: &Store) -> u64 {
    let mut sum = 0;
    for shard in SHARDS.map(Shard) {
        let epoch = store.take_shard(shard, "carrier").await.expect("claim");
        let (_, gauges) = store.gauges(vec![(shard, epoch)], &[]).await.remove(0);
        sum += gauges.expect("the store answers").expect("the shard is held").missing;
    }
    sum
}

async fn are_missing(store: &Store, jobs: u64) {
    audit::own(store).await;
    assert_eq!(look(store, Repair::No).await.missing, jobs);
    assert_eq!(store.stats().await.expect("stats").states.missing, jobs);
}

#[tokio::test]
async fn jobs_without_a_record_count_as_missing_after_a_repair_and_a_restart() {
    let directory = ground().await;
    let path = directory.path();
    empty(path, JOBS);
    let store = open(path).await;
    let found = look(&store, Repair::No).await;
    assert!(found.found.contains_key(&DamageKind::Ledger) && !found.is_clean(), "{found:#?}");
    assert_eq!(found.missing, 0, "none was counted so far");
    let repaired = look(&store, Repair::Yes).await;
    assert!(repaired.is_clean() && repaired.findings.iter().all(|f| f.is_repaired), "{repaired:#?}");
    // The sixth job was done.
    assert_eq!(repaired.missing, 5, "{repaired:#?}");
    are_missing(&store, 5).await;
    assert_eq!(store.stats().await.expect("stats").states.purged, 0);
    drop(store);

    let store = open(path).await;
    are_missing(&store, 5).await;
    assert_eq!(gauge(&store).await, 5);
    // Remains of the missing jobs do not prevent new jobs with the same ids.
    for id in ["ready", "delayed"] {
        assert_eq!(submit(&store, job(id).after(ms(1))).await.expect("submit"), SubmitResult::Created);
    }
    let mut taken = Vec::new();
    eventually(SOON, "the new jobs are reserved", async || {
        for shard in SHARDS.map(Shard) {
            let epoch = store.take_shard(shard, "carrier").await.expect("claim");
            store.recover(shard, &epoch, at_most(10)).await.expect("recover");
            store.promote(shard, &epoch, at_most(10)).await.expect("promote");
            let leases = reserve(&store, shard, 100 + taken.len() as u64).await;
            taken.extend(leases.into_iter().map(|lease| lease.key.id.to_string()));
        }
        if taken.len() == 2 { Ok(()) } else { Err(format!("{taken:?}")) }
    })
    .await;
    are_missing(&store, 5).await;
}

#[tokio::test]
async fn jobs_that_are_there_after_all_are_no_longer_missing_and_never_fewer_than_none() {
    let directory = ground().await;
    let (path, shard) = (directory.path(), {
        let store = open(directory.path()).await;
        store.shard_of(&job("delayed").key)
    });
    change_row(path, shard, |row| {
        assert_eq!(row[MISSING], 0);
        row[MISSING] = 1;
    });
    mended(path, "one is missing, and none was accepted that is not there", DamageKind::Ledger, 1).await;
    are_missing(&open(path).await, 0).await;
    // First two more jobs were accepted than are known, then one fewer.
    change_row(path, shard, |row| row[5] += 2);
    mended(path, "two are missing", DamageKind::Ledger, 1).await;
    are_missing(&open(path).await, 2).await;
    let accepted = open(path).await.stats().await.expect("stats").accepted;
    change_row(path, shard, |row| {
        assert_eq!(row[MISSING], 2);
        row[5] -= 3;
    });
    mended(path, "one was not counted as accepted", DamageKind::Ledger, 1).await;
    are_missing(&open(path).await, 0).await;
    assert_eq!(open(path).await.stats().await.expect("stats").accepted, accepted - 2);
}
