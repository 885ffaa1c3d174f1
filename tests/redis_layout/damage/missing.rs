//! Accepted jobs whose records are gone from Redis: a repair counts them as missing, and no longer once they are back.

use ringback_core::store_types::{DamageKind, Repair};

use super::Ground;

impl Ground {
    /// The counts of accepted and missing jobs. Asserts that the check, the statistics and the gauges agree.
    async fn accepted_and_missing(&self) -> (u64, u64) {
        let (stats, check) = (self.bench.stats().await, self.check(Repair::No).await);
        assert_eq!(check.missing, stats.states.missing, "{check:#?}");
        assert_eq!(stats.states.purged, 0);
        let held = vec![(self.bench.shard(), self.bench.epoch().clone())];
        let (_, gauges) = self.bench.store().gauges(held, &[]).await.remove(0);
        let gauges = gauges.expect("the store answers").expect("the shard is held");
        assert_eq!(gauges.missing, check.missing);
        (stats.accepted, check.missing)
    }
}

#[tokio::test]
async fn a_job_whose_record_is_gone_counts_as_missing_after_a_repair() {
    let mut ground = Ground::new().await;
    let pool = ground.key("pool").await;
    let accepted = ground.bench.stats().await.accepted;
    let locator = ground.reserved.key.locator().0;
    ground.run(&[b"HDEL", &pool, &locator]).await;
    let found = ground.check(Repair::No).await;
    let detail = "1 more jobs were accepted than are there or have ended; a repair counts them as missing";
    assert!(found.findings.iter().any(|finding| finding.detail == detail), "{found:#?}");
    assert_eq!(found.missing, 0);
    let kinds = [DamageKind::Ledger, DamageKind::LaneCount, DamageKind::StateRecord];
    ground.mended("a record that is gone", &kinds).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 1));

    let locator = ground.near.key.locator().0;
    ground.run(&[b"HDEL", &pool, &locator]).await;
    ground.mended("another one", &[DamageKind::Ledger, DamageKind::LaneCount]).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 2));
}

#[tokio::test]
async fn jobs_that_are_back_are_no_longer_missing_and_never_fewer_than_none() {
    let mut ground = Ground::new().await;
    let (pool, shard) = (ground.key("pool").await, ground.key("shard").await);
    let accepted = ground.bench.stats().await.accepted;
    let kinds = [DamageKind::Ledger, DamageKind::LaneCount];
    let mut records = Vec::new();
    for locator in [&ground.near, &ground.far].map(|job| job.key.locator().0) {
        records.push((locator, ground.read(&pool, &locator).await));
        ground.run(&[b"HDEL", &pool, &locator]).await;
    }
    ground.mended("two records that are gone", &kinds).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 2));

    let (locator, record) = records.remove(0);
    ground.run(&[b"HSET", &pool, &locator, &record]).await;
    let kinds = [DamageKind::Unindexed, DamageKind::Tag, DamageKind::Ledger, DamageKind::LaneCount];
    ground.mended("one of them is back", &kinds).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 1));

    // Puts back more records than are missing.
    let (locator, record) = records.remove(0);
    ground.run(&[b"HSET", &pool, &locator, &record]).await;
    ground.count(&shard, "accepted", -1).await;
    ground.mended("the other one is back, and one was never counted", &kinds).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 0));
    ground.count(&shard, "missing", 3).await;
    ground.mended("a wrong count", &[DamageKind::Ledger]).await;
    assert_eq!(ground.accepted_and_missing().await, (accepted, 0));
}

#[tokio::test]
async fn a_missing_job_is_not_taken_for_one_whose_end_was_not_counted() {
    let mut ground = Ground::new().await;
    let (pool, shard) = (ground.key("pool").await, ground.key("shard").await);
    let accepted = ground.bench.stats().await.accepted;
    let locator = ground.near.key.locator().0;
    ground.run(&[b"HDEL", &pool, &locator]).await;
    ground.mended("a record that is gone", &[DamageKind::Ledger, DamageKind::LaneCount]).await;
    // Makes the count of tombstones too low by one, and another count wrong.
    ground.count(&shard, "segment_size", -1).await;
    ground.count(&shard, "dead", 1).await;
    let repaired = ground.check(Repair::Yes).await;
    let kinds: Vec<_> = repaired.found.keys().copied().collect();
    assert_eq!((kinds, repaired.repaired), (vec![DamageKind::Ledger], 1), "{repaired:#?}");
    assert_eq!(ground.accepted_and_missing().await, (accepted, 1));
}
