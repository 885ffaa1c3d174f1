//! Cases of `reserve` by notifiers: what a lease has, limits, lengths of leases, and repetitions after a lost response.

use std::collections::HashSet;

use ringback_core::job::{Context, DEFAULT_TIMEOUT, Headers, Trace};
use ringback_core::retry::RetryPolicy;
use ringback_core::store_types::{Reserve, SettleResult};
use tokio::time::Instant;

use super::job_builders::{LONG, With, ms, release, retry};
use super::workbench::{Workbench, now};
use crate::prelude::*;

/// The longest lease but for its margin.
const STRETCH: Duration = Duration::from_secs(15);

pub(crate) async fn a_lease_carries_all_that_was_submitted(bench: &Workbench) {
    let pairs = |k: &str, v: &str| vec![(k.to_owned(), v.to_owned()), (format!("{k}-2"), String::new())];
    for (name, size) in [("inline", 300), ("empty", 0), ("beside", 3000)] {
        let mut job = bench.job(name).to("https://merchant.example:8443").timeout(ms(2500));
        job.delivery.body.bytes = (0..size).map(|n| [0, 255, b'\n', n as u8][n % 4]).collect();
        job.delivery.body.content_type = Some("application/octet-stream".to_owned());
        job.delivery.headers = Headers::parse(pairs("x-merchant", "88231")).expect("headers");
        job.delivery.context = Context::parse(pairs("Key", "a b")).expect("context");
        job.delivery.retry = RetryPolicy::preset("default");
        job.delivery.trace = Some(Trace { trace_id: [7; 16], parent_id: [8; 8], flags: 1 });
        let known = bench.accept(job.clone()).await;
        let lease = bench.take_one(&known.key).await;
        assert_eq!(lease.delivery, job.delivery);
        assert_eq!((lease.due, lease.created), (known.due, known.created));
        assert_eq!((lease.attempt, lease.failures, lease.shard()), (1, 0, bench.shard()));
        assert_eq!(lease.locator(), known.key.locator());
        let reserved = bench.get(&known.key).await;
        assert_eq!((reserved.state, reserved.attempts), (State::Reserved, 1));
    }
}

pub(crate) async fn each_reserve_is_another_attempt(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    for attempt in 1..=6 {
        let lease = bench.take_one(&job.key).await;
        assert_eq!((lease.attempt, lease.failures), (attempt, attempt / 2));
        if attempt % 2 == 0 {
            bench.settle(lease, release(ms(0))).await;
        } else {
            bench.settle(lease, retry(ms(0))).await;
            bench.promote_until(1).await;
        }
    }
    assert_eq!(bench.get(&job.key).await.attempts, 6);
}

pub(crate) async fn a_reserve_takes_no_more_than_its_limit_and_reports_that_there_is_more(bench: &Workbench) {
    for n in 0..5 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
    }
    for (limit, taken, more) in [(2, 2, true), (2, 2, true), (2, 1, false), (2, 0, false)] {
        let reserved = bench.reserve(&bench.ask(limit)).await;
        assert_eq!((reserved.leases.len(), reserved.more, reserved.full.len()), (taken, more, 0));
    }
}

pub(crate) async fn large_bodies_are_spread_over_several_reserves(bench: &Workbench) {
    const SIZE: usize = 200_000;
    for n in 0..12 {
        let body = if n % 2 == 0 { noise(b'x', SIZE).into() } else { vec![b'x'; SIZE] };
        bench.accept(bench.job(&format!("job-{n}")).body(body)).await;
    }
    let mut taken = 0;
    while taken < 12 {
        let reserved = bench.reserve(&bench.ask(12)).await;
        let count = reserved.leases.len();
        assert!((1..=8).contains(&count), "{count} in one answer");
        assert!(reserved.leases.iter().all(|lease| lease.delivery.body.bytes.len() == SIZE));
        taken += count;
        assert_eq!(reserved.more, taken < 12);
    }
}

pub(crate) async fn a_reserve_of_nothing_is_empty(bench: &Workbench) {
    bench.accept(bench.job("a").after(LONG)).await;
    let reserved = bench.reserve(&bench.ask(10)).await;
    assert!(reserved.leases.is_empty() && !reserved.more && reserved.full.is_empty(), "{reserved:?}");
    let ask = bench.ask(10);
    assert!(bench.reserve(&ask).await.leases.is_empty());
    // No job was given for this sequence, so a repetition may still get one.
    bench.accept(bench.job("b")).await;
    assert_eq!(bench.reserve(&ask).await.leases.len(), 1);
}

pub(crate) async fn a_lease_lasts_for_its_timeout_and_margin_and_never_longer_than_a_stretch(
    bench: &Workbench,
) {
    let margin = ms(1234);
    for (name, timeout, length) in
        [("brief", Some(ms(100)), ms(100)), ("usual", None, DEFAULT_TIMEOUT), ("long", Some(LONG), STRETCH)]
    {
        let job = bench.job(name);
        bench.accept(if let Some(timeout) = timeout { job.timeout(timeout) } else { job }).await;
        let (asked, before) = (Instant::now(), now());
        let reserved = bench.reserve(&Reserve { margin, ..bench.ask(1) }).await;
        let lease = &reserved.leases[0];
        // By the local clock, a lease ends no later than for the store, and at most the time of the answer earlier.
        assert!(lease.deadline() <= Instant::now() + length + margin + ms(2), "{name} is too long");
        assert!(lease.deadline() >= asked + length + margin - ms(1), "{name} is too short");
        let clock = lease.clock();
        assert!(clock.at(Instant::now()) >= before && clock.at(asked) <= now(), "{clock:?}");
    }
}

pub(crate) async fn the_same_sequence_gives_the_same_leases_again(bench: &Workbench) {
    for n in 0..4 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
    }
    let ask = bench.ask(2);
    let first = bench.reserve(&ask).await.leases;
    let again = bench.reserve(&ask).await.leases;
    assert_eq!(first.len(), 2);
    for (one, same) in first.iter().zip(&again) {
        assert_eq!((&one.key, one.attempt, &one.delivery), (&same.key, same.attempt, &same.delivery));
    }
    let next = bench.take(10).await;
    assert_eq!(next.len(), 2, "the next sequence gets the others");
    let names: HashSet<_> = first.iter().chain(&next).map(|lease| lease.key.clone()).collect();
    assert_eq!(names.len(), 4);
    for (one, same) in first.into_iter().zip(again) {
        assert_eq!(bench.settle(one, Outcome::Complete).await, SettleResult::Applied);
        assert_eq!(bench.settle(same, Outcome::Complete).await, SettleResult::Replayed);
    }
}

pub(crate) async fn the_same_sequence_keeps_the_receipts_whatever_bits_are_offered(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    let ask = bench.ask(1);
    assert_eq!(bench.reserve(&ask).await.leases.len(), 1);
    let again = bench.reserve(&Reserve { bits: [0xee; 8], ..ask }).await.leases.remove(0);
    assert_eq!(bench.settle(again, Outcome::Complete).await, SettleResult::Applied);
}

pub(crate) async fn a_repeated_reserve_leaves_out_what_was_settled_meanwhile(bench: &Workbench) {
    for n in 0..3 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
    }
    let ask = bench.ask(3);
    let mut leases = bench.reserve(&ask).await.leases;
    let (done, released) = (leases.remove(0), leases.remove(0));
    bench.settle(done, Outcome::Complete).await;
    bench.settle(released, release(ms(0))).await;
    let other = bench.reserve(&Reserve { caller: "other", ..bench.ask(3) }).await.leases;
    assert_eq!(other.len(), 1, "the released one");
    let again = bench.reserve(&ask).await.leases;
    let names: Vec<_> = again.iter().map(|lease| &lease.key).collect();
    assert_eq!(names, [&leases[0].key]);
}

pub(crate) async fn two_callers_never_hold_the_same_job(bench: &Workbench) {
    for n in 0..60 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
    }
    let mut seen = HashSet::new();
    for sequence in 1..=10 {
        let asks = ["one", "two"].map(|caller| Reserve { caller, sequence, ..bench.ask(3) });
        let (one, two) = tokio::join!(bench.reserve(&asks[0]), bench.reserve(&asks[1]));
        for lease in one.leases.into_iter().chain(two.leases) {
            assert!(seen.insert(lease.key.clone()), "{} has two holders", lease.key);
        }
    }
    assert_eq!(seen.len(), 60);
}

pub(crate) async fn a_cancelled_ready_job_is_passed_over(bench: &Workbench) {
    for name in ["a", "b", "c"] {
        bench.accept(bench.job(name)).await;
    }
    bench.cancel(&bench.job("b").key).await;
    let names: Vec<_> = bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert_eq!(names, [bench.job("a").key, bench.job("c").key]);
    assert!(bench.take(10).await.is_empty());
}

pub(crate) async fn a_small_sequence_of_another_caller_is_no_repetition(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    bench.accept(bench.job("b")).await;
    let ask = |caller| Reserve { caller, sequence: 1, ..bench.ask(1) };
    let one = bench.reserve(&ask("one")).await.leases.remove(0);
    let two = bench.reserve(&ask("two")).await.leases.remove(0);
    assert_ne!(one.key, two.key);
}
