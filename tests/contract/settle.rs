//! Cases of `settle` by notifiers: each outcome of a reserved job, repetitions, many at once, and lateness.

use ringback_core::outcome::{LastAttempt, Reason};
use ringback_core::store_types::{Cancelled, Lateness, SettleResult};

use super::job_builders::{LONG, bury, ms, release, retry, seen};
use super::workbench::{Workbench, is_late_enough, now};
use crate::prelude::*;

pub(crate) async fn a_completed_job_is_done_and_remembered(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, retry(ms(0))).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&job.key).await;
    let due = lease.due;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    let done = bench.get(&job.key).await;
    assert_eq!((done.state, done.attempts, done.failures), (State::Done, 2, 1));
    assert_eq!((done.created, done.due), (job.created, due));
    assert!(bench.take(1).await.is_empty());
    assert_eq!(bench.recover(10).await.next_lease, None);
}

pub(crate) async fn a_returned_job_is_ready_again_and_its_next_attempt_has_the_same_number(
    bench: &Workbench,
) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(lease.attempt, 1);
    assert_eq!(bench.settle(lease, Outcome::Return).await, SettleResult::Applied);
    let job = bench.get(&key).await;
    assert_eq!((job.state, job.attempts, job.failures, job.last), (State::Ready, 0, 0, None));
    let lease = bench.take_one(&key).await;
    assert_eq!(lease.attempt, 1);
    bench.settle(lease, retry(ms(0))).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&key).await;
    assert_eq!(lease.attempt, 2);
    bench.settle(lease, Outcome::Return).await;
    let job = bench.get(&key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Ready, 1, 1));
    assert_eq!(bench.recover(10).await.next_lease, None);
}

pub(crate) async fn the_return_of_a_job_whose_cancel_was_requested_cancels_it(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(bench.cancel(&key).await, Cancelled::Requested { in_flight_unknown: false });
    assert_eq!(bench.settle(lease, Outcome::Return).await, SettleResult::Applied);
    assert_eq!(bench.get(&key).await.state, State::Cancelled);
}

pub(crate) async fn a_retried_job_is_delayed_with_one_more_failure(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    let last = LastAttempt { error: Some("timeout".to_owned()), status: None, ..seen() };
    let before = ringback_testkit::now();
    let outcome = Outcome::Retry { after: LONG, last: last.clone() };
    assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
    let job = bench.get(&key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Delayed, 1, 1));
    assert_eq!((job.last, job.reason), (Some(last), None));
    assert!(is_late_enough(job.due, before, LONG) && job.due <= now().plus(LONG + ms(1)), "due {}", job.due);
    let pass = bench.promote(10).await;
    assert_eq!(pass.moved, 0);
    assert!(pass.next_due.is_some_and(|next| next <= LONG + ms(1)), "{pass:?}");
    assert_eq!(bench.recover(10).await.next_lease, None);
}

pub(crate) async fn a_retry_without_a_delay_is_due_at_once(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    bench.settle(lease, retry(ms(0))).await;
    bench.promote_until(1).await;
    assert_eq!(bench.take_one(&key).await.failures, 1);
}

pub(crate) async fn a_bury_makes_the_job_dead_with_a_reason(bench: &Workbench) {
    for reason in [Reason::Exhausted, Reason::Gone] {
        let lease = bench.reserved(bench.job(reason.as_ref())).await;
        let key = lease.key.clone();
        let outcome = Outcome::Bury { reason: reason.clone(), last: seen() };
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
        let job = bench.get(&key).await;
        assert_eq!((job.state, job.attempts, job.failures), (State::Dead, 1, 1));
        assert_eq!((job.last, job.reason.as_deref()), (Some(seen()), Some(reason.as_ref())));
    }
    assert!(bench.take(1).await.is_empty());
    assert!(bench.promote(10).await.next_dead.is_some());
}

pub(crate) async fn a_released_job_is_ready_without_a_failure(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    bench.accept(bench.job("b")).await;
    let lease = bench.take_one(&job.key).await;
    assert_eq!(bench.settle(lease, release(ms(0))).await, SettleResult::Applied);
    let released = bench.get(&job.key).await;
    assert_eq!((released.state, released.attempts, released.failures), (State::Ready, 1, 0));
    assert_eq!((released.due, released.last), (job.due, None));
    // The released job is reserved before the other one again.
    assert_eq!(bench.take_one(&job.key).await.attempt, 2);
}

pub(crate) async fn a_job_released_with_a_delay_is_delayed_without_a_failure(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    let before = ringback_testkit::now();
    assert_eq!(bench.settle(lease, release(ms(50))).await, SettleResult::Applied);
    let job = bench.get(&key).await;
    assert_eq!((job.state, job.attempts, job.failures), (State::Delayed, 1, 0));
    assert!(is_late_enough(job.due, before, ms(50)), "due {}", job.due);
    bench.promote_until(1).await;
    assert!(now() >= job.due);
    bench.take_one(&key).await;
}

pub(crate) async fn a_repeated_settle_is_known_and_changes_nothing(bench: &Workbench) {
    let outcomes = [Outcome::Complete, retry(LONG), bury(), release(ms(0)), release(LONG), Outcome::Return];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let key = bench.accept(bench.job(&format!("job-{n}"))).await.key;
        let [lease, same] = bench.take_twice(&key).await;
        assert_eq!(bench.settle(lease, outcome.clone()).await, SettleResult::Applied, "{outcome:?}");
        let (job, stats) = (bench.get(&key).await, bench.stats().await);
        assert_eq!(bench.settle(same, outcome.clone()).await, SettleResult::Replayed, "{outcome:?}");
        assert_eq!((bench.get(&key).await, bench.stats().await), (job, stats), "{outcome:?}");
        bench.cancel(&key).await;
    }
}

pub(crate) async fn a_failure_after_the_next_delivery_is_still_known_as_a_repetition(bench: &Workbench) {
    let key = bench.accept(bench.job("a")).await.key;
    let [lease, same] = bench.take_twice(&key).await;
    assert_eq!(bench.settle(lease, retry(ms(0))).await, SettleResult::Applied);
    bench.promote_until(1).await;
    let next = bench.take_one(&key).await;
    assert_eq!(bench.settle(same, retry(ms(0))).await, SettleResult::Replayed);
    assert_eq!(bench.get(&key).await.failures, 1);
    assert_eq!(bench.settle(next, Outcome::Complete).await, SettleResult::Applied);
}

pub(crate) async fn many_outcomes_in_one_call_are_answered_in_order(bench: &Workbench) {
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        bench.accept(bench.job(name)).await;
    }
    let ask = bench.ask(5);
    let leases = bench.reserve(&ask).await.leases;
    let again = bench.reserve(&ask).await.leases.remove(0);
    let keys: Vec<_> = leases.iter().map(|lease| lease.key.clone()).collect();
    let outcomes = [Outcome::Complete, retry(LONG), bury(), release(ms(0)), release(LONG)];
    let mut items: Vec<_> = leases.into_iter().zip(outcomes).collect();
    items.push((again, Outcome::Complete));
    let answers = bench.settle_all(items).await;
    assert_eq!(answers[..5], [SettleResult::Applied; 5]);
    assert_eq!(answers[5], SettleResult::Replayed);
    let mut states = Vec::new();
    for key in &keys {
        states.push(bench.get(key).await.state);
    }
    use State::{Dead, Delayed, Done, Ready};
    assert_eq!(states, [Done, Delayed, Dead, Ready, Delayed]);
}

pub(crate) async fn an_error_of_any_length_and_script_stays_readable(bench: &Workbench) {
    for (name, error) in [("a", "x".repeat(300)), ("b", "ä".repeat(200)), ("c", "試".repeat(100))] {
        let lease = bench.reserved(bench.job(name)).await;
        let key = lease.key.clone();
        let last = LastAttempt { error: Some(error.clone()), ..seen() };
        bench.settle(lease, Outcome::Retry { after: ms(0), last }).await;
        let kept = bench.get(&key).await.last.and_then(|last| last.error).expect("an error");
        assert!(error.starts_with(&kept) && kept.len() > 100, "{kept}");
        bench.promote_until(1).await;
        bench.take_one(&key).await;
    }
}

pub(crate) async fn lateness_adds_up_in_the_statistics(bench: &Workbench) {
    for late in [[1, 20], [300, 2], [20, 2]] {
        let mut lateness = Lateness::default();
        late.into_iter().for_each(|n| lateness.record(ms(n)));
        bench.store().add_lateness(bench.shard(), &lateness).await.expect("it is added");
    }
    let lateness = bench.stats().await.lateness;
    assert_eq!((lateness.count(), lateness.max_ms()), (6, Some(300.0)));
    let median = lateness.quantile_ms(0.5).map(|ms| Duration::from_secs_f64(ms / 1000.0));
    assert!(median.is_some_and(|median| median >= ms(2) && median < ms(3)), "{median:?}");
}
