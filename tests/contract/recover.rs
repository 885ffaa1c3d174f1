//! Cases of `recover`: a reserved job past its deadline becomes ready, dead after five expired leases, or cancelled;
//! within limits, and not with an old epoch.

use ringback_core::job::DEFAULT_TIMEOUT;
use ringback_core::store_types::{Pass, SettleResult};

use super::job_builders::{BRIEF, With, ms, retry};
use super::workbench::{Workbench, at_most, run_out};
use crate::prelude::*;

/// Reserves a job `times` times, and lets each lease expire.
async fn lose(bench: &Workbench, key: &ringback_core::job::JobKey, times: usize) {
    for _ in 0..times {
        bench.take_one(key).await;
        bench.recover_until(key, State::Ready).await;
    }
}

pub(crate) async fn a_lease_that_ran_out_is_ready_again_at_the_front(bench: &Workbench) {
    let job = bench.accept(bench.job("a").timeout(BRIEF)).await;
    let behind = bench.accept(bench.job("b")).await;
    lose(bench, &job.key, 1).await;
    let recovered = bench.get(&job.key).await;
    assert_eq!((recovered.attempts, recovered.failures, recovered.due), (1, 0, job.due));
    let lease = bench.take_one(&job.key).await;
    assert_eq!((lease.attempt, lease.failures), (2, 0));
    bench.take_one(&behind.key).await;
}

pub(crate) async fn a_lease_before_its_deadline_is_left(bench: &Workbench) {
    assert_eq!(bench.recover(10).await.next_lease, None);
    let lease = bench.reserved(bench.job("a")).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (0, 0));
    assert!(pass.next_lease.is_some_and(|next| next <= DEFAULT_TIMEOUT + ms(1)), "{pass:?}");
    assert!(pass.next_lease.is_some_and(|next| next > DEFAULT_TIMEOUT / 2), "{pass:?}");
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
}

pub(crate) async fn five_lost_leases_in_a_row_bury_the_job(bench: &Workbench) {
    let key = bench.accept(bench.job("a").timeout(BRIEF)).await.key;
    lose(bench, &key, 4).await;
    let lease = bench.take_one(&key).await;
    run_out(&lease).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (0, 1));
    let job = bench.get(&key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Dead, 5, 0));
    assert_eq!(job.reason.as_deref(), Some("lost"));
    assert!(bench.take(1).await.is_empty());
    assert!(pass.next_dead.is_some());
}

pub(crate) async fn an_outcome_in_between_starts_the_count_again(bench: &Workbench) {
    let key = bench.accept(bench.job("a").timeout(BRIEF)).await.key;
    lose(bench, &key, 4).await;
    let lease = bench.take_one(&key).await;
    assert_eq!(bench.settle(lease, retry(ms(0))).await, SettleResult::Applied);
    bench.promote_until(1).await;
    lose(bench, &key, 4).await;
    assert_eq!(bench.get(&key).await.attempts, 9);
    bench.take_one(&key).await;
    bench.recover_until(&key, State::Dead).await;
}

pub(crate) async fn a_job_with_a_cancel_request_is_cancelled(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    bench.cancel(&lease.key).await;
    assert_eq!(bench.recover(10).await.moved, 0, "not before the lease has run out");
    bench.recover_until(&lease.key, State::Cancelled).await;
    assert!(bench.take(1).await.is_empty());
}

pub(crate) async fn a_pass_recovers_no_more_than_its_limit(bench: &Workbench) {
    for n in 0..5 {
        bench.accept(bench.job(&format!("job-{n}")).timeout(BRIEF)).await;
    }
    let leases = bench.take(5).await;
    run_out(&leases[4]).await;
    let mut moved = Vec::new();
    for _ in 0..4 {
        let pass = bench.recover(2).await;
        moved.push(pass.moved);
        let more = moved.iter().sum::<u32>() < 5;
        assert_eq!(pass.next_lease, more.then_some(ms(0)), "after {moved:?}");
    }
    assert_eq!(moved, [2, 2, 1, 0]);
    assert_eq!(bench.take(5).await.len(), 5);
}

pub(crate) async fn a_fenced_pass_recovers_nothing(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    run_out(&lease).await;
    let (store, shard) = (bench.store(), bench.shard());
    let epoch = store.take_shard(shard, "another").await.expect("claim");
    let pass = store.recover(shard, bench.epoch(), at_most(10)).await.expect("recover").pass;
    assert_eq!(pass, Pass::Fenced);
    assert_eq!(bench.state(&lease.key).await, Some(State::Reserved));
    let pass = store.recover(shard, &epoch, at_most(10)).await.expect("recover").pass;
    assert!(matches!(pass, Pass::Held { moved: 1, other: 0, .. }), "{pass:?}");
}
