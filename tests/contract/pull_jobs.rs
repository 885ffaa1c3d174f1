//! Cases of pull jobs: reserves by topic, limits, lengths of leases, repetitions, wake-ups, lists of topics, and export.

mod cancelled;
mod expired_leases;
mod settle;

use std::collections::HashSet;

use ringback_core::job::{Callback, Context, DEFAULT_TTR, History, ImportJob};
use ringback_core::outcome::{LastAttempt, Reason};
use ringback_core::retry::RetryPolicy;
use ringback_core::store_types::{Filter, PulledJob, Receipt, SettleResult, SubmitResult, Wake};
use ringback_store::Wakes;

pub(crate) use self::cancelled::*;
pub(crate) use self::expired_leases::*;
pub(crate) use self::settle::*;
use super::job_builders::{LONG, TOPIC, With, ms};
use super::workbench::{Workbench, is_late_enough, next, now};
use crate::prelude::*;

fn retry(after: Duration) -> Outcome {
    Outcome::Retry { after, last: LastAttempt::by_consumer(Some("out of paper".to_owned())) }
}

fn bury() -> Outcome {
    Outcome::Bury { reason: Reason::Custom("unwanted".to_owned()), last: LastAttempt::by_consumer(None) }
}

fn release(after: Duration) -> Outcome {
    Outcome::Release { after }
}

/// Submits and reserves a job, lets its lease expire and recovers it.
async fn over(bench: &Workbench, name: &str) -> PulledJob {
    let key = bench.accept(bench.pull_job(name)).await.key;
    let job = bench.pull_one(&key, ms(20)).await;
    let expired = bench.expired_leases(1).await;
    assert_eq!(expired[0].receipt, job.receipt);
    job
}

/// Settles an expired lease as failed, with the next attempt due at once.
async fn fail(bench: &Workbench, receipt: Receipt) -> SettleResult {
    let settled = bench.store().settle_expired(bench.shard(), &[(receipt, retry(ms(0)))]).await;
    settled.expect("settle").remove(0)
}

pub(crate) async fn a_pull_job_goes_to_consumers_of_its_topic_and_to_no_notifier(bench: &Workbench) {
    let delayed = bench.accept(bench.pull_job("b").after(ms(30))).await;
    let job = bench.accept(bench.pull_job("a")).await;
    let pushed = bench.accept(bench.job("pushed")).await;
    assert_eq!((job.state, delayed.state), (State::Ready, State::Delayed));
    bench.take_one(&pushed.key).await;
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert!(reserved.leases.is_empty() && !reserved.more && reserved.full.is_empty(), "{reserved:?}");
    let pulled = bench.pull_one(&job.key, LONG).await;
    assert_eq!(bench.get(&job.key).await.state, State::Reserved);
    assert!(bench.pull(10, LONG).await.jobs.is_empty());
    bench.promote_until(1).await;
    assert!(bench.take(10).await.is_empty());
    assert!(now() >= delayed.due);
    assert_eq!(bench.pull_one(&delayed.key, LONG).await.attempt, pulled.attempt);
}

pub(crate) async fn a_pulled_job_carries_all_that_was_submitted(bench: &Workbench) {
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
        assert_eq!(job.receipt.shard, bench.shard());
        assert_eq!(job.receipt.to_string().parse(), Ok(job.receipt));
    }
}

pub(crate) async fn a_pull_takes_no_more_than_its_limit_and_reports_that_there_is_more(bench: &Workbench) {
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

pub(crate) async fn a_pull_lease_lasts_for_the_ttr_of_the_request_else_of_the_job(bench: &Workbench) {
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

pub(crate) async fn the_same_pull_again_gives_the_same_jobs(bench: &Workbench) {
    let jobs: Vec<_> = (0..4).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let first = bench.pull_as(77, 3, None).await.jobs;
    assert_eq!(bench.settle_receipt(first[1].receipt, Outcome::Complete).await, SettleResult::Applied);
    let again = bench.pull_as(77, 3, None).await.jobs;
    let leases =
        |jobs: &[PulledJob]| jobs.iter().map(|job| (job.key.clone(), job.receipt)).collect::<Vec<_>>();
    assert_eq!(leases(&again), leases(&[first[0].clone(), first[2].clone()]));
    assert_eq!(bench.pull_as(78, 3, None).await.jobs.len(), 1, "the next one gets the other");
}

pub(crate) async fn two_consumers_never_hold_the_same_job(bench: &Workbench) {
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

pub(crate) async fn a_large_job_is_pulled_and_finished_whole(bench: &Workbench) {
    const SIZE: usize = 200_000;
    for n in 0..12 {
        let body = if n % 2 == 0 { noise(b'x', SIZE).into() } else { vec![b'x'; SIZE] };
        bench.accept(bench.pull_job(&format!("job-{n}")).body(body)).await;
    }
    let mut taken = 0;
    while taken < 12 {
        let pulled = bench.pull(12, LONG).await;
        assert!((1..=8).contains(&pulled.jobs.len()), "{} in one answer", pulled.jobs.len());
        taken += pulled.jobs.len();
        assert_eq!(pulled.more, taken < 12);
        for job in pulled.jobs {
            assert_eq!(job.delivery.body.bytes.len(), SIZE);
            assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
        }
    }
}

/// Waits for a wake-up for consumers of the bench's topic. Panics for others, except about due times.
async fn woken(bench: &Workbench, wakes: &mut Wakes) {
    loop {
        match next(wakes).await {
            Wake::Pull(shard, topic) => {
                return assert_eq!((shard, topic.as_str()), (bench.shard(), TOPIC));
            }
            Wake::Due(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn a_lane_that_was_empty_wakes_the_consumers_and_a_full_one_does_not(bench: &Workbench) {
    let mut wakes = bench.wakes().await;
    let a = bench.accept(bench.pull_job("a")).await.key;
    woken(bench, &mut wakes).await;
    bench.accept(bench.pull_job("b")).await;
    bench.accept(bench.job("pushed")).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()), "the second job wakes nobody");
    let job = bench.pull_one(&a, LONG).await;
    bench.pull(1, LONG).await;
    bench.settle_receipt(job.receipt, release(ms(0))).await;
    woken(bench, &mut wakes).await;
    let job = bench.pull_one(&a, LONG).await;
    bench.settle_receipt(job.receipt, retry(ms(5))).await;
    bench.promote_until(1).await;
    woken(bench, &mut wakes).await;
}

pub(crate) async fn topics_with_ready_pull_jobs_are_listed_page_by_page(bench: &Workbench) {
    let (store, shard) = (bench.store(), bench.shard());
    assert_eq!(store.pull_topics(shard, 0, 10).await.expect("pulls"), (Vec::new(), 0));
    bench.accept(bench.job("pushed")).await;
    let mut wanted = HashSet::new();
    for topic in ["a", "b", "c"] {
        let mut job = bench.job_of(topic, "job");
        job.delivery.callback = Callback::pull();
        bench.accept(job).await;
        wanted.insert(topic.parse().expect("a topic"));
    }
    let (mut topics, looked_at) = store.pull_topics(shard, 0, 2).await.expect("pulls");
    assert_eq!((topics.len(), looked_at), (2, 2));
    let (more, looked_at) = store.pull_topics(shard, 2, 2).await.expect("pulls");
    topics.extend(more);
    assert_eq!((topics.len(), looked_at, topics.into_iter().collect()), (3, 1, wanted));
    let job = bench.accept(bench.pull_job("mine")).await;
    let mine = job.key.topic.clone();
    assert!(store.pull_topics(shard, 0, 10).await.expect("pulls").0.contains(&mine));
    bench.pull_one(&job.key, LONG).await;
    assert!(!store.pull_topics(shard, 0, 10).await.expect("pulls").0.contains(&mine));
}

pub(crate) async fn an_exported_pull_job_is_imported_as_one(bench: &Workbench) {
    let job = bench.pulled("a").await;
    bench.settle_receipt(job.receipt, retry(LONG)).await;
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
    other.check().await;
}
