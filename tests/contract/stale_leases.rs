//! Cases of settles with a lease that is not current: a failure changes nothing, a success completes the job if it can.

use ringback_core::job::JobKey;
use ringback_core::store_types::{Cancelled, Lease, SettleResult, SubmitResult};

use super::job_builders::{BRIEF, LONG, With, bury, ms, release, retry};
use super::workbench::{SOON, Workbench};
use crate::prelude::*;

/// Settles a stale lease with a success, and asserts that the job is done and nothing of it is left to do.
async fn completes(bench: &Workbench, lease: Lease) {
    let key = lease.key.clone();
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Late);
    assert_eq!(bench.state(&key).await, Some(State::Done));
    let pass = bench.promote(10).await;
    assert_eq!((pass.moved, pass.next_dead), (0, None));
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (0, 0));
    assert!(bench.take(1).await.is_empty());
}

/// Settles a stale lease with a success, and asserts that nothing changes.
async fn changes_nothing(bench: &Workbench, lease: Lease) {
    let key = lease.key.clone();
    let before = (bench.get(&key).await, bench.stats().await);
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!((bench.get(&key).await, bench.stats().await), before);
}

pub(crate) async fn a_stale_failure_changes_nothing(bench: &Workbench) {
    for (n, outcome) in [retry(ms(0)), bury(), release(ms(0)), release(LONG)].into_iter().enumerate() {
        let stale = bench.stale_lease(bench.job(&format!("job-{n}"))).await;
        let key = stale.key.clone();
        let current = bench.take_one(&key).await;
        let before = (bench.get(&key).await, bench.stats().await);
        assert_eq!(bench.settle(stale, outcome).await, SettleResult::Stale);
        assert_eq!((bench.get(&key).await, bench.stats().await), before);
        assert_eq!(bench.settle(current, Outcome::Complete).await, SettleResult::Applied);
    }
}

pub(crate) async fn a_late_success_completes_a_ready_job(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    completes(bench, stale).await;
}

pub(crate) async fn a_late_success_completes_a_delayed_job(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&stale.key).await;
    bench.settle(current, retry(LONG)).await;
    completes(bench, stale).await;
}

pub(crate) async fn a_late_success_completes_a_job_reserved_by_another(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&stale.key).await;
    completes(bench, stale).await;
    changes_nothing(bench, current).await;
}

pub(crate) async fn a_late_success_completes_a_job_dead_by_lost(bench: &Workbench) {
    let (first, last) = dead_by_lost(bench, "a").await;
    completes(bench, last).await;
    changes_nothing(bench, first).await;
}

pub(crate) async fn a_late_success_changes_nothing_on_a_job_dead_by_exhausted(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&stale.key).await;
    bench.settle(current, bury()).await;
    changes_nothing(bench, stale).await;
}

pub(crate) async fn a_late_success_changes_nothing_on_a_done_job(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&stale.key).await;
    bench.settle(current, Outcome::Complete).await;
    changes_nothing(bench, stale).await;
}

pub(crate) async fn a_late_success_changes_nothing_on_a_cancelled_job(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    bench.cancel(&stale.key).await;
    changes_nothing(bench, stale).await;

    let requested = bench.reserved(bench.job("b").timeout(BRIEF)).await;
    let answer = bench.cancel(&requested.key).await;
    assert!(matches!(answer, Cancelled::Requested { .. }), "{answer:?}");
    bench.recover_until(&requested.key, State::Cancelled).await;
    changes_nothing(bench, requested).await;
}

pub(crate) async fn a_lease_of_an_earlier_life_completes_nothing(bench: &Workbench) {
    let short = bench.with(|options| options.keep_done = ms(40)).await;
    let stale = short.stale_lease(short.job("a")).await;
    let current = short.take_one(&stale.key).await;
    short.settle(current, Outcome::Complete).await;
    let mut n = 0;
    eventually(SOON, "the id is free", async || {
        n += 1;
        let other = short.reserved(short.job(&format!("other-{n}"))).await;
        short.settle(other, Outcome::Complete).await;
        let answer = short.submit(&[short.job("a").content(2).after(LONG)]).await.remove(0).answer;
        if answer == SubmitResult::Created { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    changes_nothing(&short, stale).await;
    short.check().await;
}

/// The first and the last lease of a job that is dead because five of its leases expired.
async fn dead_by_lost(bench: &Workbench, name: &str) -> (Lease, Lease) {
    let first = bench.stale_lease(bench.job(name)).await;
    let key: JobKey = first.key.clone();
    for _ in 0..3 {
        bench.take_one(&key).await;
        bench.recover_until(&key, State::Ready).await;
    }
    let last = bench.take_one(&key).await;
    bench.recover_until(&key, State::Dead).await;
    assert_eq!(bench.get(&key).await.reason.as_deref(), Some("lost"));
    (first, last)
}

pub(crate) async fn two_leases_of_one_job_in_one_call_are_settled_one_after_the_other(bench: &Workbench) {
    let late = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&late.key).await;
    let key = late.key.clone();
    let settled = bench.settle_all(vec![(current, retry(LONG)), (late, Outcome::Complete)]).await;
    assert_eq!(settled, [SettleResult::Applied, SettleResult::Late]);
    assert_eq!(bench.state(&key).await, Some(State::Done));
    assert_eq!(bench.promote(10).await.moved, 0);
}
