//! The consumer's side: jobs without a URL, reserved by topic and settled by receipt alone.

use std::collections::HashSet;
use std::time::Duration;

use ringback_core::contract::{
    Cancelled, Filter, PullOutcome, PullReceipt, PulledJob, Renewed, RetryContext, Settled, SubmitResult,
    Wake,
};
use ringback_core::job::{Callback, Context, DEFAULT_TTR, History, ImportJob};
use ringback_core::lane::PullLane;
use ringback_core::retry::RetryPolicy;
use ringback_core::state::State;
use ringback_store::Wakes;
use tokio::time::sleep;

use super::bench::{Bench, is_late_enough, next, now, until};
use super::jobs::{LONG, TOPIC, With, ms};

fn retry(after: Duration) -> PullOutcome {
    PullOutcome::Retry { after, error: Some("out of paper".to_owned()) }
}

fn bury() -> PullOutcome {
    PullOutcome::Bury { reason: "unwanted".to_owned(), error: None }
}

fn release(after: Duration) -> PullOutcome {
    PullOutcome::Release { after }
}

/// A job whose lease has run out and was given back.
async fn over(bench: &Bench, name: &str) -> PulledJob {
    let key = bench.accept(bench.pull_job(name)).await.key;
    let job = bench.pull_one(&key, ms(20)).await;
    let lapsed = bench.lapsed_jobs(1).await;
    assert_eq!(lapsed[0].receipt, job.receipt);
    job
}

/// Settles as failed whatever has run out, due again at once.
async fn fail(bench: &Bench, receipt: PullReceipt) -> Settled {
    let settled = bench.store().settle_expired(bench.shard(), &[(receipt, retry(ms(0)))]).await;
    settled.expect("settle").remove(0)
}

pub(super) async fn a_job_without_a_url_goes_to_who_asks_for_its_topic_and_to_no_notifier(bench: &Bench) {
    let delayed = bench.accept(bench.pull_job("b").after(ms(30))).await;
    let job = bench.accept(bench.pull_job("a")).await;
    let pushed = bench.accept(bench.job("pushed")).await;
    assert_eq!((job.state, delayed.state), (State::Ready, State::Delayed));
    bench.take_one(&pushed.key).await;
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert!(reserved.leases.is_empty() && !reserved.more && reserved.skipped.is_empty(), "{reserved:?}");
    let pulled = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.get(&job.key).await.state, State::Reserved);
    assert!(bench.pull(10, LONG).await.jobs.is_empty());
    bench.promote_until(1).await;
    assert!(bench.take(10).await.is_empty());
    assert!(now() >= delayed.due);
    assert_eq!(bench.pull_one(&delayed.key, LONG).await.attempt, pulled.attempt);
}

pub(super) async fn a_pulled_job_carries_all_that_was_submitted(bench: &Bench) {
    for (name, size) in [("inline", 300), ("empty", 0), ("beside", 3000)] {
        let mut wanted = bench.pull_job(name);
        wanted.delivery.body.bytes = (0..size).map(|n| [0, 255, b'\n', n as u8][n % 4]).collect();
        wanted.delivery.body.content_type = Some("application/octet-stream".to_owned());
        wanted.delivery.context =
            Context::parse(vec![("Key".to_owned(), "a b".to_owned())]).expect("context");
        wanted.delivery.retry = RetryPolicy::preset("none");
        wanted.delivery.timeout = Some(LONG);
        let key = bench.accept(wanted.clone()).await.key;
        let job = bench.pull_one(&key, LONG).await;
        assert_eq!((&job.delivery, job.attempt), (&wanted.delivery, 1));
        assert!(job.delivery.callback.is_pull());
        assert_eq!(job.receipt.shard(), bench.shard());
        assert_eq!(job.receipt.to_string().parse(), Ok(job.receipt));
    }
}

pub(super) async fn a_pull_takes_no_more_than_its_limit_and_tells_of_the_rest(bench: &Bench) {
    let jobs: Vec<_> = (0..5).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let mut names = Vec::new();
    for (taken, more) in [(2, true), (2, true), (1, false), (0, false)] {
        let pulled = bench.pull(2, LONG).await;
        assert_eq!((pulled.jobs.len(), pulled.more), (taken, more));
        names.extend(pulled.jobs.into_iter().map(|job| job.key));
    }
    assert_eq!(names, jobs.into_iter().map(|job| job.key).collect::<Vec<_>>(), "first come, first served");
}

pub(super) async fn a_lease_for_pull_lasts_for_what_was_asked_else_for_what_the_job_says(bench: &Bench) {
    let day = Duration::from_secs(12 * 3600);
    bench.accept(bench.pull_job("own").timeout(day)).await;
    bench.accept(bench.pull_job("none")).await;
    bench.accept(bench.pull_job("asked").timeout(LONG)).await;
    for (sequence, ttr, length) in [(71, None, day), (72, None, DEFAULT_TTR), (73, Some(ms(700)), ms(700))] {
        let before = ringback_testkit::now();
        let job = bench.pull_as(sequence, 1, ttr).await.jobs.remove(0);
        assert!(is_late_enough(job.deadline, before, length), "{}", job.key);
        assert!(job.deadline <= now().plus(length + ms(1)), "{}", job.key);
    }
    bench.accept(bench.pull_job("none-again")).await;
    bench.accept(bench.pull_job("own-again").timeout(ms(300))).await;
    for (sequence, length) in [(74, ms(900)), (75, ms(300))] {
        let before = ringback_testkit::now();
        let job = bench.pull_by(sequence, 1, None, ms(900)).await.jobs.remove(0);
        assert!(is_late_enough(job.deadline, before, length), "{}", job.key);
        assert!(job.deadline <= now().plus(length + ms(1)), "{}", job.key);
    }
}

pub(super) async fn the_same_pull_again_gives_the_same_jobs(bench: &Bench) {
    let jobs: Vec<_> = (0..4).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let first = bench.pull_as(77, 3, None).await.jobs;
    assert_eq!(bench.say(first[1].receipt, PullOutcome::Finish).await, Settled::Applied);
    let again = bench.pull_as(77, 3, None).await.jobs;
    let told = |jobs: &[PulledJob]| jobs.iter().map(|job| (job.key.clone(), job.receipt)).collect::<Vec<_>>();
    assert_eq!(told(&again), told(&[first[0].clone(), first[2].clone()]));
    assert_eq!(bench.pull_as(78, 3, None).await.jobs.len(), 1, "the next one gets the other");
}

pub(super) async fn two_consumers_never_hold_the_same_job(bench: &Bench) {
    let jobs: Vec<_> = (0..40).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let mut seen = HashSet::new();
    for _ in 0..10 {
        let (one, two) = tokio::join!(bench.pull(2, LONG), bench.pull(2, LONG));
        for job in one.jobs.into_iter().chain(two.jobs) {
            assert!(seen.insert(job.key.clone()), "{} has two holders", job.key);
        }
    }
    assert_eq!(seen.len(), 40);
}

pub(super) async fn a_finished_job_is_done_and_only_a_finish_repeats_that(bench: &Bench) {
    let job = bench.pulled("a").await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied);
    let (known, stats) = (bench.get(&job.key).await, bench.stats().await);
    assert_eq!((known.state, known.attempts, known.failures), (State::Done, 1, 0));
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Replayed);
    for word in [retry(ms(0)), bury(), release(ms(0))] {
        assert_eq!(bench.say(job.receipt, word).await, Settled::Stale);
    }
    assert_eq!((bench.get(&job.key).await, bench.stats().await), (known, stats));
    assert_eq!(bench.recover(10).await.next_lease, None, "nothing is left to be looked at");
}

pub(super) async fn a_retried_job_is_delayed_with_one_more_failure_and_its_error(bench: &Bench) {
    let job = bench.pulled("a").await;
    sleep(ms(20)).await;
    let (before, reserved) = (ringback_testkit::now(), now());
    assert_eq!(bench.say(job.receipt, retry(LONG)).await, Settled::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.attempts, known.failures), (State::Delayed, 1, 1));
    assert!(is_late_enough(known.due, before, LONG) && known.due <= now().plus(LONG + ms(1)));
    let last = known.last.expect("the failed attempt");
    assert_eq!((last.error.as_deref(), last.status), (Some("out of paper"), None));
    // When it began, and how long it was in the consumer's hands.
    assert!(last.at < reserved && last.at >= known.created, "{last:?}");
    assert!(last.duration >= ms(20) && last.duration < ms(10_000), "{last:?}");
}

pub(super) async fn a_buried_job_is_dead_by_the_reason_given(bench: &Bench) {
    let job = bench.pulled("a").await;
    assert_eq!(bench.say(job.receipt, bury()).await, Settled::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.failures, known.reason.as_deref()), (State::Dead, 1, Some("unwanted")));
    assert!(bench.pull(1, LONG).await.jobs.is_empty());
    let long = bench.pulled("b").await;
    let word = PullOutcome::Bury { reason: "r".repeat(100), error: Some("ä".repeat(100)) };
    assert_eq!(bench.say(long.receipt, word).await, Settled::Applied);
    let known = bench.get(&long.key).await;
    assert_eq!(known.reason, Some("r".repeat(64)));
    assert_eq!(known.last.and_then(|last| last.error), Some("ä".repeat(64)));
}

pub(super) async fn a_released_job_is_ready_again_at_once_or_after_its_delay(bench: &Bench) {
    let job = bench.pulled("a").await;
    bench.accept(bench.pull_job("behind")).await;
    assert_eq!(bench.say(job.receipt, release(ms(0))).await, Settled::Applied);
    let again = bench.pull_one(&job.key, LONG).await;
    assert_eq!(again.attempt, 2);
    assert_eq!(bench.say(again.receipt, release(ms(30))).await, Settled::Applied);
    let known = bench.get(&job.key).await;
    assert_eq!((known.state, known.failures, known.last), (State::Delayed, 0, None));
    bench.promote_until(1).await;
    assert!(now() >= known.due);
}

pub(super) async fn a_word_is_known_as_a_repetition_until_the_next_one(bench: &Bench) {
    for (n, word) in [retry(ms(0)), release(ms(0)), bury()].into_iter().enumerate() {
        let job = bench.pulled(&format!("job-{n}")).await;
        assert_eq!(bench.say(job.receipt, word.clone()).await, Settled::Applied);
        let known = bench.get(&job.key).await;
        assert_eq!(bench.say(job.receipt, word.clone()).await, Settled::Replayed, "{word:?}");
        assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Stale, "{word:?}");
        assert_eq!(bench.get(&job.key).await, known);
        bench.cancel(&job.key).await;
        assert_eq!(bench.say(job.receipt, word).await, Settled::Replayed, "its word took effect");
    }
    let job = bench.pulled("next").await;
    bench.say(job.receipt, release(ms(0))).await;
    let next = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.say(job.receipt, release(ms(0))).await, Settled::Replayed);
    assert_eq!(bench.say(next.receipt, PullOutcome::Finish).await, Settled::Applied);
    assert_eq!(bench.say(job.receipt, release(ms(0))).await, Settled::Stale);
}

pub(super) async fn words_on_many_jobs_are_answered_in_order(bench: &Bench) {
    let jobs: Vec<_> = (0..20).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let pulled = bench.pull(20, LONG).await.jobs;
    assert_eq!(pulled.len(), 20);
    let words = [PullOutcome::Finish, retry(LONG), bury(), release(ms(0)), PullOutcome::Finish];
    let mut said: Vec<_> = pulled.iter().map(|job| job.receipt).zip(words).collect();
    said.push((pulled[0].receipt, PullOutcome::Finish));
    said.push((pulled[0].receipt, bury()));
    let answers = bench.store().settle_receipts(bench.shard(), &said).await.expect("settle");
    assert_eq!(answers[..5], [Settled::Applied; 5]);
    assert_eq!(answers[5..], [Settled::Replayed, Settled::Stale]);
    let mut states = Vec::new();
    for job in &pulled[..6] {
        states.push(bench.get(&job.key).await.state);
    }
    use State::{Dead, Delayed, Done, Ready, Reserved};
    assert_eq!(states, [Done, Delayed, Dead, Ready, Done, Reserved]);
}

pub(super) async fn a_large_job_is_pulled_and_finished_whole(bench: &Bench) {
    const SIZE: usize = 200_000;
    for n in 0..12 {
        bench.accept(bench.pull_job(&format!("job-{n}")).body(vec![b'x'; SIZE])).await;
    }
    let mut taken = 0;
    while taken < 12 {
        let pulled = bench.pull(12, LONG).await;
        assert!((1..=8).contains(&pulled.jobs.len()), "{} in one answer", pulled.jobs.len());
        taken += pulled.jobs.len();
        assert_eq!(pulled.more, taken < 12);
        for job in pulled.jobs {
            assert_eq!(job.delivery.body.bytes.len(), SIZE);
            assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied);
        }
    }
}

pub(super) async fn what_no_longer_holds_a_job_changes_nothing(bench: &Bench) {
    let job = over(bench, "a").await;
    assert_eq!(fail(bench, job.receipt).await, Settled::Applied);
    bench.promote_until(1).await;
    let known = bench.get(&job.key).await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Stale, "it is ready for another");
    let other = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Stale, "it is another's");
    assert_eq!(bench.get(&job.key).await.failures, known.failures);
    assert_eq!(bench.say(other.receipt, PullOutcome::Finish).await, Settled::Applied);
    assert_eq!(bench.say(job.receipt, bury()).await, Settled::Stale);

    // Nothing but the random bits is wrong.
    let held = bench.pulled("b").await;
    let text = held.receipt.to_string();
    let guessed: PullReceipt = format!("{}AAAAAAAAAA", &text[..30]).parse().expect("a receipt");
    for word in [PullOutcome::Finish, retry(ms(0)), bury(), release(ms(0))] {
        assert_eq!(bench.say(guessed, word).await, Settled::Stale);
    }
    assert_eq!(bench.get(&held.key).await.state, State::Reserved);
}

pub(super) async fn a_renewed_receipt_holds_longer_and_a_stale_one_is_not_renewed(bench: &Bench) {
    let key = bench.accept(bench.pull_job("a")).await.key;
    let job = bench.pull_one(&key, ms(200)).await;
    let before = ringback_testkit::now();
    let (renewed, deadline) = bench.store().renew_receipt(&job.receipt, LONG).await.expect("renew");
    assert_eq!(renewed, Renewed::Extended);
    assert!(is_late_enough(deadline, before, LONG) && deadline <= now().plus(LONG + ms(1)));
    let (_, same) = bench.store().renew_receipt(&job.receipt, ms(100)).await.expect("renew");
    assert_eq!(same, deadline, "it is never shortened");
    until(job.deadline.plus(ms(5))).await;
    let recovered = bench.store().recover(bench.shard(), bench.epoch(), 10, LONG).await.expect("recover");
    assert!(recovered.expired.is_empty(), "{recovered:?}");
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied);
    let (renewed, _) = bench.store().renew_receipt(&job.receipt, LONG).await.expect("renew");
    assert_eq!(renewed, Renewed::Stale);
}

pub(super) async fn a_lease_that_ran_out_is_answered_until_it_is_settled_as_failed(bench: &Bench) {
    let mut wanted = bench.pull_job("a");
    wanted.delivery.retry = RetryPolicy::preset("standard-webhooks");
    let key = bench.accept(wanted.clone()).await.key;
    let job = bench.pull_one(&key, ms(20)).await;
    for _ in 0..2 {
        let lapsed = bench.lapsed_jobs(1).await;
        assert!(now() >= job.deadline);
        assert_eq!((lapsed.len(), lapsed[0].receipt), (1, job.receipt));
        assert_eq!(
            lapsed[0].tries,
            RetryContext {
                failures: 0,
                retry: wanted.delivery.retry.clone(),
                topic: Some(key.topic.clone())
            }
        );
        assert_eq!(bench.get(&key).await.state, State::Reserved);
    }
    assert_eq!(fail(bench, job.receipt).await, Settled::Applied);
    let known = bench.get(&key).await;
    assert_eq!((known.state, known.failures), (State::Delayed, 1));
    assert_eq!(fail(bench, job.receipt).await, Settled::Stale);
    bench.promote_until(1).await;
    let again = bench.pull_one(&key, LONG).await;
    let recovered = bench.store().recover(bench.shard(), bench.epoch(), 10, LONG).await.expect("recover");
    assert!(recovered.expired.is_empty(), "{recovered:?}");
    assert_eq!((again.attempt, bench.get(&key).await.failures), (2, 1));
}

pub(super) async fn no_word_by_a_lease_that_ran_out_counts_as_a_repetition(bench: &Bench) {
    let words = [retry(ms(0)), bury(), release(ms(0)), PullOutcome::Finish];
    let stale = async |job: &PulledJob, state| {
        for word in &words {
            assert_eq!(bench.say(job.receipt, word.clone()).await, Settled::Stale, "{word:?}, {state}");
        }
        assert_eq!(bench.get(&job.key).await.state, state);
    };
    let delayed = over(bench, "delayed").await;
    let lapsed = bench.store().settle_expired(bench.shard(), &[(delayed.receipt, retry(LONG))]).await;
    assert_eq!(lapsed.expect("settle"), [Settled::Applied]);
    stale(&delayed, State::Delayed).await;
    bench.cancel(&delayed.key).await;
    stale(&delayed, State::Cancelled).await;

    let dead = over(bench, "dead").await;
    let lapsed = bench.store().settle_expired(bench.shard(), &[(dead.receipt, bury())]).await;
    assert_eq!(lapsed.expect("settle"), [Settled::Applied]);
    stale(&dead, State::Dead).await;

    let cancelled = over(bench, "cancelled").await;
    bench.cancel(&cancelled.key).await;
    assert_eq!(fail(bench, cancelled.receipt).await, Settled::Applied);
    stale(&cancelled, State::Cancelled).await;

    // What was said by an earlier lease has taken effect.
    let earlier = bench.pulled("earlier").await;
    bench.say(earlier.receipt, release(ms(0))).await;
    let job = bench.pull_one(&earlier.key, ms(20)).await;
    bench.lapsed_jobs(1).await;
    assert_eq!(fail(bench, job.receipt).await, Settled::Applied);
    stale(&job, State::Delayed).await;
    assert_eq!(bench.say(earlier.receipt, release(ms(0))).await, Settled::Replayed);
}

pub(super) async fn leases_that_ran_out_and_are_not_settled_are_put_off(bench: &Bench) {
    let job = over(bench, "a").await;
    let held = bench.recover(10).await;
    assert!(held.next_lease.is_some_and(|wait| wait > ms(0) && wait <= ms(1000)), "{held:?}");
    assert!(held.moved == 0 && bench.promote(10).await.next_lease > Some(ms(0)), "{held:?}");
    if bench.store().kind() == "embedded" {
        super::audit::tables(bench.store()).await;
    }
    // A second lease beside it runs out in its time.
    let other = bench.accept(bench.pull_job("b")).await;
    let other = bench.pull_one(&other.key, ms(20)).await;
    assert!(bench.lapsed_jobs(1).await.iter().any(|lapsed| lapsed.receipt == other.receipt));
    for receipt in [job.receipt, other.receipt] {
        assert_eq!(fail(bench, receipt).await, Settled::Applied);
    }
    assert_eq!(bench.recover(10).await.next_lease, None);
    // A cancel and a renewal find what was put off.
    let job = over(bench, "c").await;
    let (renewed, _) = bench.store().renew_receipt(&job.receipt, LONG).await.expect("renew");
    assert_eq!(renewed, Renewed::Extended);
    let job = over(bench, "d").await;
    bench.cancel(&job.key).await;
    bench.recover_until(&job.key, State::Cancelled).await;
}

pub(super) async fn a_lease_renewed_after_it_ran_out_is_not_settled_as_failed(bench: &Bench) {
    let job = over(bench, "a").await;
    let (renewed, _) = bench.store().renew_receipt(&job.receipt, LONG).await.expect("renew");
    assert_eq!(renewed, Renewed::Extended);
    assert_eq!(fail(bench, job.receipt).await, Settled::Stale);
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied);
}

pub(super) async fn a_lease_finished_after_it_ran_out_is_not_settled_as_failed(bench: &Bench) {
    let job = over(bench, "a").await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied, "nobody else has it");
    assert_eq!(fail(bench, job.receipt).await, Settled::Stale);
    assert_eq!(bench.get(&job.key).await.state, State::Done);
}

pub(super) async fn a_pass_answers_no_more_lapsed_jobs_than_its_limit(bench: &Bench) {
    let jobs: Vec<_> = (0..5).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let pulled = bench.pull(5, ms(20)).await.jobs;
    until(pulled[4].deadline.plus(ms(5))).await;
    let mut seen = HashSet::new();
    for count in [2, 2, 1, 0] {
        let recovered = bench.store().recover(bench.shard(), bench.epoch(), 2, LONG).await.expect("recover");
        assert_eq!(recovered.expired.len(), count);
        for lapsed in recovered.expired {
            assert!(seen.insert(lapsed.receipt.to_string()));
            assert_eq!(fail(bench, lapsed.receipt).await, Settled::Applied);
        }
    }
    assert_eq!(seen.len(), 5);
}

pub(super) async fn what_chooses_the_tier_is_told_by_the_receipt(bench: &Bench) {
    let policy = RetryPolicy::preset("standard-webhooks");
    for (name, size) in [("inline", 10), ("beside", 3000), ("huge", 200_000)] {
        let mut wanted = bench.pull_job(name).body(vec![b'x'; size]);
        wanted.delivery.retry = policy.clone();
        let key = bench.accept(wanted).await.key;
        let job = bench.pull_one(&key, LONG).await;
        let tries = RetryContext { failures: 0, retry: policy.clone(), topic: Some(key.topic.clone()) };
        assert_eq!(bench.store().lease_info(&job.receipt).await.expect("held"), Some(tries));
        bench.say(job.receipt, retry(ms(0))).await;
        assert_eq!(bench.store().lease_info(&job.receipt).await.expect("held"), None);
        bench.promote_until(1).await;
        let again = bench.pull_one(&key, LONG).await;
        let tries = bench.store().lease_info(&again.receipt).await.expect("held").expect("it is held");
        assert_eq!(tries.failures, 1);
    }
}

pub(super) async fn a_cancelled_job_in_a_consumer_s_hands_is_done_when_finished_and_else_cancelled(
    bench: &Bench,
) {
    let words =
        [(PullOutcome::Finish, State::Done), (retry(ms(0)), State::Cancelled), (bury(), State::Cancelled)];
    for (n, (word, state)) in words.into_iter().enumerate() {
        let job = bench.pulled(&format!("job-{n}")).await;
        assert_eq!(bench.cancel(&job.key).await, Cancelled::Requested { in_flight_unknown: false });
        assert_eq!(bench.say(job.receipt, word.clone()).await, Settled::Applied);
        assert_eq!(bench.get(&job.key).await.state, state);
        assert_eq!(bench.say(job.receipt, word).await, Settled::Replayed);
    }
}

pub(super) async fn a_cancelled_job_whose_lease_ran_out_is_cancelled(bench: &Bench) {
    let key = bench.accept(bench.pull_job("a")).await.key;
    let job = bench.pull_one(&key, ms(20)).await;
    bench.cancel(&key).await;
    bench.recover_until(&key, State::Cancelled).await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Stale);
}

pub(super) async fn cancelled_jobs_do_not_stand_before_others(bench: &Bench) {
    let jobs: Vec<_> = (0..6).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    for job in &jobs[..5] {
        assert_eq!(bench.cancel(&job.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    }
    loop {
        let pulled = bench.pull(2, LONG).await;
        if let [job] = pulled.jobs.as_slice() {
            return assert_eq!(job.key, jobs[5].key);
        }
        assert!(pulled.more, "{pulled:?}");
    }
}

pub(super) async fn many_cancelled_jobs_take_few_calls(bench: &Bench) {
    let jobs: Vec<_> = (0..91).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    for job in &jobs[1..90] {
        bench.cancel(&job.key).await;
    }
    let (first, last) = (bench.pull(1, LONG).await, bench.pull(1, LONG).await);
    let names = |jobs: &[PulledJob]| jobs.iter().map(|job| job.key.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first.jobs), [jobs[0].key.clone()]);
    assert_eq!((names(&last.jobs), last.more), (vec![jobs[90].key.clone()], false));
    // No more than was asked for, though it looks at more.
    bench.submit(&(0..5).map(|n| bench.pull_job(&format!("next-{n}"))).collect::<Vec<_>>()).await;
    bench.cancel(&bench.pull_job("next-0").key).await;
    let pulled = bench.pull(2, LONG).await;
    assert_eq!((pulled.jobs.len(), pulled.more), (2, true));
    let pulled = bench.pull(9, LONG).await;
    assert_eq!((pulled.jobs.len(), pulled.more), (2, false));
}

pub(super) async fn a_lane_whose_jobs_were_all_cancelled_is_empty_and_the_next_job_wakes(bench: &Bench) {
    let mut wakes = bench.wakes().await;
    for count in [1, 3] {
        let jobs: Vec<_> = (0..count).map(|n| bench.pull_job(&format!("of-{count}-{n}"))).collect();
        bench.submit(&jobs).await;
        told(bench, &mut wakes).await;
        for job in &jobs {
            bench.cancel(&job.key).await;
        }
        let mut pulled = bench.pull(1, LONG).await;
        while pulled.more {
            pulled = bench.pull(1, LONG).await;
        }
        assert!(pulled.jobs.is_empty(), "{pulled:?}");
        assert_eq!(bench.store().pull_lanes(bench.shard(), 0, 10).await.expect("pulls"), []);
    }
    let next = bench.accept(bench.pull_job("next")).await.key;
    told(bench, &mut wakes).await;
    bench.pull_one(&next, LONG).await;
}

/// The consumers of the bench's topic are told.
async fn told(bench: &Bench, wakes: &mut Wakes) {
    loop {
        match next(wakes).await {
            Wake::Pull(shard, lane) => {
                let wanted = PullLane::of(&TOPIC.parse().expect("a topic"));
                return assert_eq!((shard, lane), (bench.shard(), wanted));
            }
            Wake::Due(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(super) async fn a_lane_that_was_empty_wakes_the_consumers_and_a_full_one_does_not(bench: &Bench) {
    let mut wakes = bench.wakes().await;
    let a = bench.accept(bench.pull_job("a")).await.key;
    told(bench, &mut wakes).await;
    bench.accept(bench.pull_job("b")).await;
    bench.accept(bench.job("pushed")).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()), "of the second nobody is told");
    let job = bench.pull_one(&a, LONG).await;
    bench.pull(1, LONG).await;
    bench.say(job.receipt, release(ms(0))).await;
    told(bench, &mut wakes).await;
    let job = bench.pull_one(&a, LONG).await;
    bench.say(job.receipt, retry(ms(5))).await;
    bench.promote_until(1).await;
    told(bench, &mut wakes).await;
}

pub(super) async fn lanes_that_are_not_empty_are_told_page_by_page(bench: &Bench) {
    let (store, shard) = (bench.store(), bench.shard());
    assert_eq!(store.pull_lanes(shard, 0, 10).await.expect("pulls"), []);
    bench.accept(bench.job("pushed")).await;
    let mut wanted = HashSet::new();
    for topic in ["a", "b", "c"] {
        let mut job = bench.job_of(topic, "job");
        job.delivery.callback = Callback::pull();
        bench.accept(job).await;
        wanted.insert(PullLane::of(&topic.parse().expect("a topic")));
    }
    let mut lanes = store.pull_lanes(shard, 0, 2).await.expect("pulls");
    assert_eq!(lanes.len(), 2);
    lanes.extend(store.pull_lanes(shard, 2, 2).await.expect("pulls"));
    assert_eq!((lanes.len(), lanes.into_iter().collect()), (3, wanted));
    let job = bench.accept(bench.pull_job("mine")).await;
    let mine = PullLane::of(&job.key.topic);
    assert!(store.pull_lanes(shard, 0, 10).await.expect("pulls").contains(&mine));
    bench.pull_one(&job.key, LONG).await;
    assert!(!store.pull_lanes(shard, 0, 10).await.expect("pulls").contains(&mine));
}

pub(super) async fn a_job_of_another_life_is_not_settled_by_an_old_receipt(bench: &Bench) {
    let bench = bench.with(|options| options.keep_dead = ms(0)).await;
    let job = bench.pulled("a").await;
    bench.say(job.receipt, bury()).await;
    let key = job.key.clone();
    ringback_testkit::eventually(super::bench::SOON, "the dead job is gone", async || {
        bench.expire(10).await;
        bench.state(&key).await.map_or(Ok(()), Err)
    })
    .await;
    bench.accept(bench.pull_job("a").content(9)).await;
    assert_eq!(bench.say(job.receipt, bury()).await, Settled::Stale);
    let again = bench.pull_one(&key, LONG).await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Stale);
    assert_eq!(bench.say(again.receipt, PullOutcome::Finish).await, Settled::Applied);
    bench.audit().await;
}

pub(super) async fn an_exported_job_for_pull_is_imported_as_one(bench: &Bench) {
    let job = bench.pulled("a").await;
    bench.say(job.receipt, retry(LONG)).await;
    let page = bench.store().page_stored(&Filter::default(), None, 100).await.expect("page");
    let mut kept = page.items;
    let mut from = page.next;
    while let Some(next) = from {
        let page = bench.store().page_stored(&Filter::default(), Some(next), 100).await.expect("page");
        kept.extend(page.items);
        from = page.next;
    }
    let kept = kept.remove(0);
    assert!(kept.delivery.callback.is_pull());
    let other = bench.with(|_| {}).await;
    let mut new = bench.pull_job("a");
    new.delivery = kept.delivery;
    let history = History { attempts: kept.job.attempts, failures: kept.job.failures, ..History::default() };
    let import = ImportJob { job: new, history: Some(history) };
    let answers = other.store().import(other.shard(), &[import]).await.expect("import");
    assert_eq!(answers[0].answer, SubmitResult::Created);
    let again = other.pull_one(&job.key, LONG).await;
    assert_eq!((again.attempt, other.get(&job.key).await.failures), (2, 1));
    other.audit().await;
}
