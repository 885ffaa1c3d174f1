//! Cases of `cancel`: delayed, ready and dead jobs are cancelled at once, reserved ones marked; done ones stay done.

use ringback_core::job::JobKey;
use ringback_core::store_types::{Cancelled, SettleResult};

use super::job_builders::{BRIEF, LONG, With, bury, ms, release, retry};
use super::workbench::{Workbench, run_out, until};
use crate::prelude::*;

const CANCELLED: Cancelled = Cancelled::Cancelled { in_flight_unknown: false };
const REQUESTED: Cancelled = Cancelled::Requested { in_flight_unknown: false };

async fn gone(bench: &Workbench, key: &JobKey) {
    assert_eq!(bench.state(key).await, Some(State::Cancelled));
    assert!(bench.take(10).await.is_empty());
    let pass = bench.promote(10).await;
    assert_eq!((pass.moved, pass.next_due), (0, None));
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other, pass.next_lease, pass.next_dead), (0, 0, None, None));
}

pub(crate) async fn a_delayed_job_is_cancelled_and_never_promoted(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(ms(10))).await;
    assert_eq!(bench.cancel(&job.key).await, CANCELLED);
    until(job.due).await;
    gone(bench, &job.key).await;
}

pub(crate) async fn a_ready_job_is_cancelled_and_never_reserved(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    assert_eq!(bench.cancel(&job.key).await, CANCELLED);
    gone(bench, &job.key).await;
    let promoted = bench.accept(bench.job("b").after(ms(1))).await;
    bench.promote_until(1).await;
    assert_eq!(bench.cancel(&promoted.key).await, CANCELLED);
    gone(bench, &promoted.key).await;
}

pub(crate) async fn a_cancelled_dead_job_is_not_evicted(bench: &Workbench) {
    let bench = bench.with(|options| options.keep_dead = ms(1)).await;
    let job = bench.job_in(State::Dead, bench.job("a")).await;
    assert_eq!(bench.cancel(&job.key).await, CANCELLED);
    assert_eq!(bench.evict(10).await.moved, 0);
    gone(&bench, &job.key).await;
    assert_eq!(bench.stats().await.states.purged, 0);
    bench.check().await;
}

pub(crate) async fn a_reserved_job_that_succeeds_is_done_all_the_same(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(bench.cancel(&key).await, REQUESTED);
    assert_eq!(bench.state(&key).await, Some(State::Reserved));
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.state(&key).await, Some(State::Done));
    assert_eq!(bench.cancel(&key).await, Cancelled::TooLate);
}

pub(crate) async fn a_reserved_job_that_does_not_succeed_is_cancelled(bench: &Workbench) {
    for (n, outcome) in
        [retry(ms(0)), retry(LONG), bury(), release(ms(0)), release(LONG)].into_iter().enumerate()
    {
        let key = bench.accept(bench.job(&format!("job-{n}"))).await.key;
        let [lease, same] = bench.take_twice(&key).await;
        assert_eq!(bench.cancel(&key).await, REQUESTED);
        assert_eq!(bench.settle(lease, outcome.clone()).await, SettleResult::Applied, "{outcome:?}");
        gone(bench, &key).await;
        assert_eq!(bench.settle(same, outcome).await, SettleResult::Replayed);
        assert_eq!(bench.cancel(&key).await, CANCELLED);
    }
}

pub(crate) async fn a_done_job_is_too_late_and_an_unknown_one_unknown(bench: &Workbench) {
    let done = bench.job_in(State::Done, bench.job("a")).await;
    assert_eq!(bench.cancel(&done.key).await, Cancelled::TooLate);
    assert_eq!(bench.get(&done.key).await, done);
    let unknown = bench.job("b").key;
    assert_eq!(bench.cancel(&unknown).await, Cancelled::Unknown);
    assert_eq!(bench.state(&unknown).await, None);
    bench.accept(bench.job("b")).await;
}

pub(crate) async fn a_repeated_cancel_gives_the_same_answer(bench: &Workbench) {
    for (state, answer) in [
        (State::Delayed, CANCELLED),
        (State::Ready, CANCELLED),
        (State::Dead, CANCELLED),
        (State::Reserved, REQUESTED),
    ] {
        let job = bench.job_in(state, bench.job(state.into())).await;
        assert_eq!(bench.cancel(&job.key).await, answer, "{state}");
        let stats = bench.stats().await;
        assert_eq!(bench.cancel(&job.key).await, answer, "{state}");
        assert_eq!(bench.stats().await, stats);
    }
}

pub(crate) async fn after_a_lease_ran_out_the_delivery_may_be_in_flight(bench: &Workbench) {
    let ready = bench.stale_lease(bench.job("ready")).await;
    let unknown = Cancelled::Cancelled { in_flight_unknown: true };
    assert_eq!(bench.cancel(&ready.key).await, unknown);
    assert_eq!(bench.cancel(&ready.key).await, unknown, "again");

    let held = bench.reserved(bench.job("held").timeout(BRIEF)).await;
    assert_eq!(bench.cancel(&held.key).await, REQUESTED, "its lease still lasts");
    run_out(&held).await;
    let answer = Cancelled::Requested { in_flight_unknown: true };
    assert_eq!(bench.cancel(&held.key).await, answer, "its lease has run out");
    bench.recover_until(&held.key, State::Cancelled).await;
    assert_eq!(bench.cancel(&held.key).await, unknown, "its outcome is not recorded");
}

/// The notifier that held the expired lease may still begin its request, whatever happened to the job since.
pub(crate) async fn no_later_outcome_hides_that_a_lease_ran_out(bench: &Workbench) {
    let unknown = Cancelled::Cancelled { in_flight_unknown: true };
    for (n, outcome) in [retry(ms(0)), retry(LONG), bury(), release(LONG)].into_iter().enumerate() {
        let stale = bench.stale_lease(bench.job(&format!("job-{n}"))).await;
        let lease = bench.take_one(&stale.key).await;
        bench.settle(lease, outcome.clone()).await;
        assert_eq!(bench.cancel(&stale.key).await, unknown, "{outcome:?}");
        assert_eq!(bench.cancel(&stale.key).await, unknown, "again");
    }
}

pub(crate) async fn neither_does_a_bulk_revive(bench: &Workbench) {
    let dead = bench.stale_lease(bench.job("a")).await;
    let lease = bench.take_one(&dead.key).await;
    bench.settle(lease, bury()).await;
    bench.store().revive(&dead.key, bench.token()).await.expect("revive");
    let unknown = Cancelled::Cancelled { in_flight_unknown: true };
    assert_eq!(bench.cancel(&dead.key).await, unknown);
}
