//! Cases of expired leases of pull jobs: they are returned until settled, postponed, renewed, or finished late.

use std::collections::HashSet;

use ringback_core::limits::MAX_RENEWED;
use ringback_core::retry::RetryPolicy;
use ringback_core::store_types::{PulledJob, RetryContext, SettleResult};

use super::super::job_builders::{LONG, ms};
use super::super::workbench::{Workbench, at_most, now, until};
use super::{bury, fail, over, release, retry};
use crate::prelude::*;

pub(crate) async fn an_expired_lease_is_returned_until_it_is_settled_as_failed(bench: &Workbench) {
    let mut wanted = bench.pull_job("a");
    wanted.delivery.retry = RetryPolicy::preset("standard-webhooks");
    let accepted = bench.accept(wanted.clone()).await;
    let (key, first_due) = (accepted.key, accepted.due);
    let job = bench.pull_one(&key, ms(20)).await;
    for _ in 0..2 {
        let expired = bench.expired_leases(1).await;
        assert!(now() >= job.deadline);
        assert_eq!((expired.len(), expired[0].receipt), (1, job.receipt));
        assert_eq!(
            expired[0].tries,
            RetryContext {
                failures: 0,
                first_due,
                expires: wanted.delivery.expires.and_then(|expires| expires.of(first_due, first_due)),
                retry: wanted.delivery.retry.clone(),
                topic: Some(key.topic.clone())
            }
        );
        assert_eq!(bench.get(&key).await.state, State::Reserved);
    }
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Applied);
    let known = bench.get(&key).await;
    assert_eq!((known.state, known.failures), (State::Delayed, 1));
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Stale);
    bench.promote_until(1).await;
    let again = bench.pull_one(&key, LONG).await;
    let recovered = bench.store().recover(bench.shard(), bench.epoch(), at_most(10)).await.expect("recover");
    assert!(recovered.expired.is_empty(), "{recovered:?}");
    assert_eq!((again.attempt, bench.get(&key).await.failures), (2, 1));
}

pub(crate) async fn no_settle_by_an_expired_lease_counts_as_a_repetition(bench: &Workbench) {
    let outcomes = [retry(ms(0)), bury(), release(ms(0)), Outcome::Complete];
    let stale = async |job: &PulledJob, state| {
        for outcome in &outcomes {
            assert_eq!(
                bench.settle_receipt(job.receipt, outcome.clone()).await,
                SettleResult::Stale,
                "{outcome:?}, {state}"
            );
        }
        assert_eq!(bench.get(&job.key).await.state, state);
    };
    let delayed = over(bench, "delayed").await;
    let settled = bench.store().settle_expired(bench.shard(), &[(delayed.receipt, retry(LONG))]).await;
    assert_eq!(settled.expect("settle"), [SettleResult::Applied]);
    stale(&delayed, State::Delayed).await;
    bench.cancel(&delayed.key).await;
    stale(&delayed, State::Cancelled).await;

    let dead = over(bench, "dead").await;
    let settled = bench.store().settle_expired(bench.shard(), &[(dead.receipt, bury())]).await;
    assert_eq!(settled.expect("settle"), [SettleResult::Applied]);
    stale(&dead, State::Dead).await;

    let cancelled = over(bench, "cancelled").await;
    bench.cancel(&cancelled.key).await;
    assert_eq!(fail(bench, cancelled.receipt).await, SettleResult::Applied);
    stale(&cancelled, State::Cancelled).await;

    // The settle by an earlier lease has taken effect.
    let earlier = bench.pulled("earlier").await;
    bench.settle_receipt(earlier.receipt, release(ms(0))).await;
    let job = bench.pull_one(&earlier.key, ms(20)).await;
    bench.expired_leases(1).await;
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Applied);
    stale(&job, State::Delayed).await;
    assert_eq!(bench.settle_receipt(earlier.receipt, release(ms(0))).await, SettleResult::Replayed);
}

pub(crate) async fn expired_leases_that_are_not_settled_are_postponed(bench: &Workbench) {
    let job = over(bench, "a").await;
    let held = bench.recover(10).await;
    assert!(held.next_lease.is_some_and(|wait| wait > ms(0) && wait <= ms(1000)), "{held:?}");
    assert!(held.moved == 0 && bench.promote(10).await.next_lease > Some(ms(0)), "{held:?}");
    if bench.store().kind() == "embedded" {
        crate::contract::audit::tables(bench.store()).await;
    }
    // A second lease beside it runs out in its time.
    let other = bench.accept(bench.pull_job("b")).await;
    let other = bench.pull_one(&other.key, ms(20)).await;
    assert!(bench.expired_leases(1).await.iter().any(|expired| expired.receipt == other.receipt));
    for receipt in [job.receipt, other.receipt] {
        assert_eq!(fail(bench, receipt).await, SettleResult::Applied);
    }
    assert_eq!(bench.recover(10).await.next_lease, None);
    // A cancel and a renewal find what was postponed.
    let job = over(bench, "c").await;
    assert!(bench.store().renew_receipt(&job.receipt, LONG, MAX_RENEWED).await.expect("renew").is_some());
    let job = over(bench, "d").await;
    bench.cancel(&job.key).await;
    bench.recover_until(&job.key, State::Cancelled).await;
}

pub(crate) async fn a_lease_renewed_after_it_ran_out_is_not_settled_as_failed(bench: &Workbench) {
    let job = over(bench, "a").await;
    assert!(bench.store().renew_receipt(&job.receipt, LONG, MAX_RENEWED).await.expect("renew").is_some());
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Stale);
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
}

pub(crate) async fn a_lease_finished_after_it_ran_out_is_not_settled_as_failed(bench: &Workbench) {
    let job = over(bench, "a").await;
    assert_eq!(
        bench.settle_receipt(job.receipt, Outcome::Complete).await,
        SettleResult::Applied,
        "nobody else has it"
    );
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Stale);
    assert_eq!(bench.get(&job.key).await.state, State::Done);
}

pub(crate) async fn a_pass_returns_no_more_expired_leases_than_its_limit(bench: &Workbench) {
    let jobs: Vec<_> = (0..5).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let pulled = bench.pull(5, ms(20)).await.jobs;
    until(pulled[4].deadline.plus(ms(5))).await;
    let mut seen = HashSet::new();
    for count in [2, 2, 1, 0] {
        let recovered =
            bench.store().recover(bench.shard(), bench.epoch(), at_most(2)).await.expect("recover");
        assert_eq!(recovered.expired.len(), count);
        for expired in recovered.expired {
            assert!(seen.insert(expired.receipt.to_string()));
            assert_eq!(fail(bench, expired.receipt).await, SettleResult::Applied);
        }
    }
    assert_eq!(seen.len(), 5);
}
