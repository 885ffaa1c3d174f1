//! Cases of outbox entries of done jobs: with the receiver's answer, without bodies, once, and beside that of a death.

use ringback_core::job::{Callback, NewJob};
use ringback_core::store_types::{Lease, SettleResult, Success};
use ringback_wire::notice_of;

use super::{dead_letters, last_lease, tell_all, with_on_dead};
use crate::contract::job_builders::{BRIEF, With as _, bury, ms, release, retry};
use crate::contract::workbench::{Workbench, now, until};
use crate::prelude::*;

const ON_DONE: &str = "https://up.example/done?x=1";

/// The job with an `on_dead` and an `on_done` URL.
fn with_both(job: NewJob) -> NewJob {
    let mut job = with_on_dead(job);
    job.delivery.on_done = Some(Box::new(Callback::parse(ON_DONE).expect("a URL")));
    job
}

fn success() -> Success {
    Success { status: 202, answer: vec![0xff; 1_024].into() }
}

fn answered(mut lease: Lease) -> Lease {
    lease.success = Some(Box::new(success()));
    lease
}

pub(crate) async fn a_success_that_is_noted_has_an_entry_with_its_answer(bench: &Workbench) {
    let first = bench.reserved(with_both(bench.job("a"))).await;
    assert_eq!(bench.settle(first, retry(ms(0))).await, SettleResult::Applied);
    let key = bench.job("a").key;
    bench.promote_until(1).await;
    let lease = bench.take_one(&key).await;
    let before = bench.get(&key).await;
    assert_eq!(bench.settle(answered(lease), Outcome::Complete).await, SettleResult::Applied);
    let plain = bench.reserved(with_both(bench.job("plain"))).await;
    assert_eq!(bench.settle(plain, Outcome::Complete).await, SettleResult::Applied);

    let ends = dead_letters(bench).await;
    assert_eq!(ends.len(), 1, "the other one was not noted");
    let end = &ends[0];
    assert_eq!((end.job.state, end.job.attempts, end.job.failures), (State::Done, 2, 1));
    assert_eq!((&end.job.key, end.job.due, end.job.created), (&key, before.due, before.created));
    assert_eq!((&end.success, &end.job.reason), (&Some(success()), &None));
    assert!(end.at >= before.created);
    assert_eq!(end.url.as_ref().map(ToString::to_string).as_deref(), Some(ON_DONE));
    assert_eq!(end.context.entries(), [("tenant".to_owned(), "a7".to_owned())]);
    tell_all(bench).await;
    assert_eq!(bench.stats().await.pending_notices, 0);
}

pub(crate) async fn successes_of_exchanges_and_of_large_jobs_have_entries_without_bodies(bench: &Workbench) {
    let small = bench.reserved(with_both(bench.job("small"))).await;
    let large = bench.reserved(with_both(bench.job("large")).body(noise(b'x', 200_000).into())).await;
    let items = vec![(answered(small), Outcome::Complete), (answered(large), Outcome::Complete)];
    bench.exchange(items, &bench.ask(1)).await;
    let mut ends = dead_letters(bench).await;
    ends.sort_by_key(|end| end.job.key.to_string());
    let brief: Vec<_> =
        ends.iter().map(|end| (&end.job.key.id.as_str()[..5], end.success.is_some())).collect();
    assert_eq!(brief, [("large", true), ("small", true)]);
    assert!(ends.iter().all(|end| end.url.is_some()), "{ends:?}");
}

/// A receiver's answer is stored with the lease before the outcome is known to be a success.
pub(crate) async fn what_is_no_success_has_no_entry_of_one(bench: &Workbench) {
    for (name, outcome) in [("retried", retry(ms(60_000))), ("released", release(ms(60_000)))] {
        let lease = bench.reserved(with_both(bench.job(name))).await;
        assert_eq!(bench.settle(answered(lease), outcome).await, SettleResult::Applied);
    }
    assert_eq!(dead_letters(bench).await.len(), 0);
    let lease = bench.reserved(with_both(bench.job("buried"))).await;
    assert_eq!(bench.settle(answered(lease), bury()).await, SettleResult::Applied);
    let ends = dead_letters(bench).await;
    assert_eq!((ends.len(), &ends[0].success, ends[0].job.state), (1, &None, State::Dead));
}

pub(crate) async fn a_repeated_success_has_one_entry(bench: &Workbench) {
    let key = bench.accept(with_both(bench.job("a"))).await.key;
    for lease in bench.take_twice(&key).await {
        bench.settle(answered(lease), Outcome::Complete).await;
    }
    assert_eq!(dead_letters(bench).await.len(), 1);
}

pub(crate) async fn a_success_after_a_death_has_an_entry_beside_that_of_the_death(bench: &Workbench) {
    let key = bench.accept(with_both(bench.job("a")).timeout(BRIEF)).await.key;
    let last = last_lease(bench, &key).await;
    bench.recover_until(&key, State::Dead).await;
    assert_eq!(bench.settle(answered(last), Outcome::Complete).await, SettleResult::Late);
    // An embedded store has the second one a millisecond later if both happened in one.
    until(now().plus(ms(2))).await;
    let ends = dead_letters(bench).await;
    let brief: Vec<_> =
        ends.iter().map(|end| (end.job.state, end.job.reason.as_deref(), end.success.is_some())).collect();
    assert_eq!(ends.len(), 2);
    assert!(brief.contains(&(State::Dead, Some("lost"), false)), "{brief:?}");
    assert!(brief.contains(&(State::Done, None, true)), "{brief:?}");
    let names = [0, 1].map(|n| notice_of(&ends[n], None).expect("it is wanted").key);
    assert_ne!(names[0], names[1]);
}
