//! Cases of pull jobs that are settled by receipt: each outcome, repetitions, renewals, and stale receipts.

use ringback_core::limits::MAX_RENEWED;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::retry::RetryPolicy;
use ringback_core::state::State;
use ringback_core::store_types::{Receipt, RetryContext, SettleResult};
use tokio::time::sleep;

use super::super::job_builders::{LONG, With, ms};
use super::super::workbench::{Workbench, at_most, is_late_enough, now, until};
use super::{bury, fail, over, release, retry};
use crate::sample_jobs::noise;

pub(crate) async fn a_finished_job_is_done_and_only_a_finish_repeats_that(bench: &Workbench) {
    let job = bench.pulled("a").await;
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
    let (known, stats) = (bench.get(&job.key).await, bench.stats().await);
    assert_eq!((known.state, known.attempts, known.failures), (State::Done, 1, 0));
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Replayed);
    for outcome in [retry(ms(0)), bury(), release(ms(0))] {
        assert_eq!(bench.settle_receipt(job.receipt, outcome).await, SettleResult::Stale);
    }
    assert_eq!((bench.get(&job.key).await, bench.stats().await), (known, stats));
    assert_eq!(bench.recover(10).await.next_lease, None, "nothing is left to be looked at");
}

pub(crate) async fn a_retried_job_is_delayed_with_one_more_failure_and_its_error(bench: &Workbench) {
    let job = bench.pulled("a").await;
    sleep(ms(20)).await;
    let (before, reserved) = (ringback_testkit::now(), now());
    assert_eq!(bench.settle_receipt(job.receipt, retry(LONG)).await, SettleResult::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.attempts, known.failures), (State::Delayed, 1, 1));
    assert!(is_late_enough(known.due, before, LONG) && known.due <= now().plus(LONG + ms(1)));
    let last = known.last.expect("the failed attempt");
    assert_eq!((last.error.as_deref(), last.status), (Some("out of paper"), None));
    // When it began, and how long it was in the consumer's hands.
    assert!(last.at < reserved && last.at >= known.created, "{last:?}");
    assert!(last.duration >= ms(20) && last.duration < ms(10_000), "{last:?}");
}

pub(crate) async fn a_bury_by_a_consumer_makes_the_job_dead_by_the_reason_given(bench: &Workbench) {
    let job = bench.pulled("a").await;
    assert_eq!(bench.settle_receipt(job.receipt, bury()).await, SettleResult::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.failures, known.reason.as_deref()), (State::Dead, 1, Some("unwanted")));
    assert!(bench.pull(1, LONG).await.jobs.is_empty());
    let long = bench.pulled("b").await;
    let outcome = Outcome::Bury {
        reason: Reason::Custom("r".repeat(100)),
        last: LastAttempt::by_consumer(Some("ä".repeat(100))),
    };
    assert_eq!(bench.settle_receipt(long.receipt, outcome).await, SettleResult::Applied);
    let known = bench.get(&long.key).await;
    assert_eq!(known.reason, Some("r".repeat(64)));
    assert_eq!(known.last.and_then(|last| last.error), Some("ä".repeat(64)));
}

pub(crate) async fn a_released_job_is_ready_again_at_once_or_after_its_delay(bench: &Workbench) {
    let job = bench.pulled("a").await;
    bench.accept(bench.pull_job("behind")).await;
    assert_eq!(bench.settle_receipt(job.receipt, release(ms(0))).await, SettleResult::Applied);
    let again = bench.pull_one(&job.key, LONG).await;
    assert_eq!(again.attempt, 2);
    assert_eq!(bench.settle_receipt(again.receipt, release(ms(30))).await, SettleResult::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.failures, known.last), (State::Delayed, 0, None));
    bench.promote_until(1).await;
    assert!(now() >= known.due);
}

pub(crate) async fn a_settle_by_receipt_repeats_until_the_next_one(bench: &Workbench) {
    for (n, outcome) in [retry(ms(0)), release(ms(0)), bury()].into_iter().enumerate() {
        let job = bench.pulled(&format!("job-{n}")).await;
        assert_eq!(bench.settle_receipt(job.receipt, outcome.clone()).await, SettleResult::Applied);
        let known = bench.get(&job.key).await;
        assert_eq!(
            bench.settle_receipt(job.receipt, outcome.clone()).await,
            SettleResult::Replayed,
            "{outcome:?}"
        );
        assert_eq!(
            bench.settle_receipt(job.receipt, Outcome::Complete).await,
            SettleResult::Stale,
            "{outcome:?}"
        );
        assert_eq!(bench.get(&job.key).await, known);
        bench.cancel(&job.key).await;
        assert_eq!(
            bench.settle_receipt(job.receipt, outcome).await,
            SettleResult::Replayed,
            "it took effect"
        );
    }
    let job = bench.pulled("next").await;
    bench.settle_receipt(job.receipt, release(ms(0))).await;
    let next = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.settle_receipt(job.receipt, release(ms(0))).await, SettleResult::Replayed);
    assert_eq!(bench.settle_receipt(next.receipt, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.settle_receipt(job.receipt, release(ms(0))).await, SettleResult::Stale);
}

pub(crate) async fn settles_of_many_receipts_are_answered_in_order(bench: &Workbench) {
    let jobs: Vec<_> = (0..20).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let pulled = bench.pull(20, LONG).await.jobs;
    assert_eq!(pulled.len(), 20);
    let outcomes = [Outcome::Complete, retry(LONG), bury(), release(ms(0)), Outcome::Complete];
    let mut items: Vec<_> = pulled.iter().map(|job| job.receipt).zip(outcomes).collect();
    items.push((pulled[0].receipt, Outcome::Complete));
    items.push((pulled[0].receipt, bury()));
    let answers = bench.store().settle_receipts(bench.shard(), &items).await.expect("settle");
    assert_eq!(answers[..5], [SettleResult::Applied; 5]);
    assert_eq!(answers[5..], [SettleResult::Replayed, SettleResult::Stale]);
    let mut states = Vec::new();
    for job in &pulled[..6] {
        states.push(bench.get(&job.key).await.state);
    }
    use State::{Dead, Delayed, Done, Ready, Reserved};
    assert_eq!(states, [Done, Delayed, Dead, Ready, Done, Reserved]);
}

pub(crate) async fn a_stale_receipt_changes_nothing(bench: &Workbench) {
    let job = over(bench, "a").await;
    assert_eq!(fail(bench, job.receipt).await, SettleResult::Applied);
    bench.promote_until(1).await;
    let known = bench.get(&job.key).await;
    assert_eq!(
        bench.settle_receipt(job.receipt, Outcome::Complete).await,
        SettleResult::Stale,
        "it is ready for another"
    );
    let other = bench.pull_one(&job.key, LONG).await;
    assert_eq!(
        bench.settle_receipt(job.receipt, Outcome::Complete).await,
        SettleResult::Stale,
        "it is another's"
    );
    assert_eq!(bench.get(&job.key).await.failures, known.failures);
    assert_eq!(bench.settle_receipt(other.receipt, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.settle_receipt(job.receipt, bury()).await, SettleResult::Stale);

    // A receipt in which only the random bits are wrong.
    let held = bench.pulled("b").await;
    let text = held.receipt.to_string();
    let guessed: Receipt = format!("{}AAAAAAAAAA", &text[..30]).parse().expect("a receipt");
    for outcome in [Outcome::Complete, retry(ms(0)), bury(), release(ms(0))] {
        assert_eq!(bench.settle_receipt(guessed, outcome).await, SettleResult::Stale);
    }
    assert_eq!(bench.get(&held.key).await.state, State::Reserved);
}

pub(crate) async fn a_renewed_receipt_holds_longer_and_a_stale_one_is_not_renewed(bench: &Workbench) {
    let key = bench.accept(bench.pull_job("a")).await.key;
    let job = bench.pull_one(&key, ms(200)).await;
    let before = ringback_testkit::now();
    let renewed = bench.store().renew_receipt(&job.receipt, LONG, MAX_RENEWED).await.expect("renew");
    let deadline = renewed.expect("the receipt is current");
    assert!(is_late_enough(deadline, before, LONG) && deadline <= now().plus(LONG + ms(1)));
    let same = bench.store().renew_receipt(&job.receipt, ms(100), MAX_RENEWED).await.expect("renew");
    assert_eq!(same, Some(deadline), "it is never shortened");
    until(job.deadline.plus(ms(5))).await;
    let recovered = bench.store().recover(bench.shard(), bench.epoch(), at_most(10)).await.expect("recover");
    assert!(recovered.expired.is_empty(), "{recovered:?}");
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.store().renew_receipt(&job.receipt, LONG, MAX_RENEWED).await.expect("renew"), None);
}

pub(crate) async fn a_lease_is_not_renewed_beyond_its_longest_time_since_the_reserve(bench: &Workbench) {
    let renew = async |receipt: &Receipt, within| {
        bench.store().renew_receipt(receipt, 2 * LONG, within).await.expect("renew")
    };
    let key = bench.accept(bench.pull_job("a")).await.key;
    let before = now();
    let job = bench.pull_one(&key, LONG / 2).await;
    let granted = now();
    assert_eq!(renew(&job.receipt, ms(1)).await, Some(job.deadline), "what it has is not shortened");
    let deadline = renew(&job.receipt, LONG).await.expect("the receipt is current");
    assert!(deadline >= before.plus(LONG) && deadline <= granted.plus(LONG), "{deadline}");
    until(granted.plus(ms(20))).await;
    assert_eq!(renew(&job.receipt, LONG).await, Some(deadline), "it counts from the reserve");
    assert!(renew(&job.receipt, 2 * LONG).await > Some(deadline));

    let job = over(bench, "b").await;
    assert_eq!(renew(&job.receipt, ms(1)).await, None, "it is over");
    assert_eq!(bench.get(&job.key).await.state, State::Reserved);
    assert!(renew(&job.receipt, LONG).await > Some(now()));
}

pub(crate) async fn the_receipt_leads_to_what_chooses_the_retry_tier(bench: &Workbench) {
    let policy = RetryPolicy::preset("standard-webhooks");
    for (name, size) in [("inline", 10), ("beside", 3000), ("huge", 200_000)] {
        let mut wanted = bench.pull_job(name).body(noise(b'x', size).into());
        wanted.delivery.retry = policy.clone();
        let own = wanted.delivery.expires.expect("it expires");
        let accepted = bench.accept(wanted).await;
        let (key, first_due) = (accepted.key, accepted.due);
        let job = bench.pull_one(&key, LONG).await;
        let (retry_policy, expires) = (policy.clone(), own.of(first_due, first_due));
        assert_eq!(job.expires, expires);
        let topic = Some(key.topic.clone());
        let tries = RetryContext { failures: 0, first_due, expires, retry: retry_policy, topic };
        assert_eq!(bench.store().lease_info(&job.receipt).await.expect("held"), Some(tries));
        bench.settle_receipt(job.receipt, retry(ms(0))).await;
        assert_eq!(bench.store().lease_info(&job.receipt).await.expect("held"), None);
        bench.promote_until(1).await;
        let again = bench.pull_one(&key, LONG).await;
        let tries = bench.store().lease_info(&again.receipt).await.expect("held").expect("it is held");
        assert_eq!((tries.failures, tries.first_due), (1, first_due));
        assert!(bench.get(&key).await.due > first_due);
    }
}

pub(crate) async fn a_later_job_of_the_same_name_is_not_settled_by_an_old_receipt(bench: &Workbench) {
    let bench = bench.with(|options| options.keep_dead = ms(0)).await;
    let job = bench.pulled("a").await;
    bench.settle_receipt(job.receipt, bury()).await;
    let key = job.key.clone();
    ringback_testkit::eventually(crate::contract::workbench::SOON, "the dead job is gone", async || {
        bench.evict(10).await;
        bench.state(&key).await.map_or(Ok(()), Err)
    })
    .await;
    bench.accept(bench.pull_job("a").content(9)).await;
    assert_eq!(bench.settle_receipt(job.receipt, bury()).await, SettleResult::Stale);
    let again = bench.pull_one(&key, LONG).await;
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!(bench.settle_receipt(again.receipt, Outcome::Complete).await, SettleResult::Applied);
    bench.check().await;
}
