//! The waiter of a shard: a notifier that takes due jobs without a promote, while the carrier leaves them to it.

use ringback_core::store_types::{Pass, PassLimits, Reserve, Reserved, Waiting, Wake};
use ringback_store::Wakes;
use tokio::time::Instant;

use crate::contract::job_builders::{LONG, With as _, ms};
use crate::contract::schedules::{add, schedule_at};
use crate::contract::workbench::{Workbench, at_most, next, now, until};
use crate::prelude::*;
use crate::redis_layout::keys::{all, bench};

/// For how long a carrier leaves due jobs to the waiter.
const GRACE: Duration = Duration::from_millis(20);

async fn reserve(bench: &Workbench, caller: &'static str, limit: usize, waiting: Waiting) -> Reserved {
    bench.reserve(&Reserve { caller, waiting, ..bench.ask(limit) }).await
}

async fn wait(bench: &Workbench, limit: usize) -> Reserved {
    reserve(bench, "one", limit, Waiting::Yes).await
}

/// Submits a job of this name, and waits until it is due.
async fn due(bench: &Workbench, name: &str) {
    let job = bench.accept(bench.job(name).after(ms(30))).await;
    until(job.due).await;
}

/// The next wake-up about a due time.
async fn about_due(wakes: &mut Wakes) -> Wake {
    loop {
        let wake = next(wakes).await;
        if matches!(wake, Wake::Due(..) | Wake::Awaited { .. }) {
            return wake;
        }
    }
}

#[tokio::test]
async fn a_waiter_takes_due_jobs_without_a_promote_and_learns_when_the_next_is_due() {
    let (bench, _redis) = bench().await;
    assert_eq!(bench.promote(10).await.moved, 0);
    let mut wakes = bench.wakes().await;
    let before = Instant::now();
    let none = wait(&bench, 10).await;
    assert!(none.leases.is_empty() && none.next_due.expect("it waits") > before + ms(1000), "{none:?}");
    let first = bench.accept(bench.job("first").after(ms(300))).await;
    let Wake::Awaited { shard, after, grace } = about_due(&mut wakes).await else {
        panic!("it is announced")
    };
    assert_eq!((shard, grace), (bench.shard(), GRACE));
    assert!(after > ms(250) && after <= ms(301), "{after:?}");
    let second = bench.accept(bench.job("second").after(ms(600))).await;
    let early = wait(&bench, 10).await;
    assert!(early.leases.is_empty(), "nothing is due");
    until(first.due).await;
    let taken = wait(&bench, 10).await;
    assert_eq!(taken.leases.iter().map(|lease| &lease.key).collect::<Vec<_>>(), [&first.key]);
    let left = second.due.since(now());
    let next_due = taken.next_due.expect("it waits").saturating_duration_since(Instant::now());
    assert!(next_due <= left + ms(2) && next_due + ms(100) > left, "{next_due:?} of {left:?}");
    bench.check().await;
}

#[tokio::test]
async fn only_one_notifier_waits_and_others_get_ready_jobs_only() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    assert!(reserve(&bench, "two", 10, Waiting::Yes).await.next_due.is_none());
    due(&bench, "job").await;
    assert!(reserve(&bench, "two", 10, Waiting::Yes).await.leases.is_empty());
    assert!(reserve(&bench, "two", 10, Waiting::No).await.leases.is_empty());
    assert_eq!(wait(&bench, 10).await.leases.len(), 1);
    bench.accept(bench.job("ready")).await;
    assert_eq!(reserve(&bench, "two", 10, Waiting::Yes).await.leases.len(), 1);
}

#[tokio::test]
async fn a_carrier_leaves_due_jobs_for_a_while_and_then_promotes_them_and_ends_the_wait() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    let job = bench.accept(bench.job("job").after(ms(400))).await;
    let left = job.due.since(now());
    let held = bench.promote(10).await;
    let next_due = held.next_due.expect("a job is delayed");
    assert!(held.moved == 0 && next_due > left && next_due <= left + GRACE + ms(2), "{next_due:?}");
    until(job.due.plus(GRACE)).await;
    assert_eq!(bench.promote(10).await.moved, 1);
    let late = wait(&bench, 10).await;
    assert!(late.leases.len() == 1 && late.next_due.is_none(), "{late:?}");
    let again = bench.accept(bench.job("again").after(ms(30))).await;
    until(again.due).await;
    assert_eq!(bench.promote(10).await.moved, 1, "nobody waits");
    bench.check().await;
}

#[tokio::test]
async fn a_reserve_that_leaves_due_jobs_behind_calls_the_carrier() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    let jobs = [1, 2, 3].map(|n| bench.job(&format!("job-{n}")).after(ms(30)));
    let due = bench.submit(&jobs).await.into_iter().map(|one| one.job.due).max().expect("three");
    until(due).await;
    let mut wakes = bench.wakes().await;
    let taken = wait(&bench, 1).await;
    assert!(taken.leases.len() == 1 && taken.next_due.is_none(), "{taken:?}");
    assert_eq!(about_due(&mut wakes).await, Wake::Due(bench.shard(), Duration::ZERO));
    assert_eq!(bench.promote(10).await.moved, 2);
    bench.check().await;
}

#[tokio::test]
async fn a_notifier_that_waits_no_longer_leaves_due_jobs_to_the_carrier() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    bench.accept(bench.job("later").after(LONG)).await;
    let job = bench.accept(bench.job("job").after(ms(300))).await;
    let mut wakes = bench.wakes().await;
    assert!(reserve(&bench, "one", 0, Waiting::NoLonger).await.next_due.is_none());
    let wake = about_due(&mut wakes).await;
    // Due times are rounded up to milliseconds.
    assert!(matches!(wake, Wake::Due(_, after) if after <= ms(301)), "{wake:?}");
    until(job.due).await;
    assert!(reserve(&bench, "one", 10, Waiting::No).await.leases.is_empty());
    assert_eq!(bench.promote(10).await.moved, 1);
}

#[tokio::test]
async fn due_jobs_of_several_lanes_and_pull_jobs_are_promoted_by_the_waiter() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    let jobs = [
        bench.job("a").after(ms(30)),
        bench.job("b").to("http://other.example").after(ms(30)),
        bench.pull_job("pull").after(ms(30)),
    ];
    let due = bench.submit(&jobs).await.into_iter().map(|one| one.job.due).max().expect("three");
    until(due).await;
    let taken = wait(&bench, 10).await;
    assert!(taken.leases.len() == 2 && taken.next_due.is_some(), "{taken:?}");
    assert_eq!(bench.state(&jobs[2].key).await, Some(State::Ready));
    bench.check().await;
}

#[tokio::test]
async fn a_repeated_reserve_of_the_waiter_returns_its_jobs_also_after_another_notifier_got_some() {
    let (bench, mut redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    due(&bench, "job").await;
    let ask = Reserve { caller: "one", waiting: Waiting::Yes, ..bench.ask(10) };
    let jobs = async || {
        let leases = bench.reserve(&ask).await.leases;
        leases.iter().map(|lease| (lease.key.clone(), lease.attempt)).collect::<Vec<_>>()
    };
    let first = jobs().await;
    assert_eq!(first.len(), 1);
    assert_eq!(all::<String>(&mut redis, "caller:*").await, [""; 0], "it is in the shard's hash");
    assert_eq!(jobs().await, first);
    bench.accept(bench.job("other")).await;
    assert_eq!(reserve(&bench, "two", 10, Waiting::No).await.leases.len(), 1);
    assert_eq!(jobs().await, first);
}

#[tokio::test]
async fn a_carrier_that_only_looks_leaves_the_shard_to_the_waiter_until_it_is_late() {
    let (bench, _redis) = bench().await;
    let look = async || {
        let limits = PassLimits { may_leave: true, ..at_most(10) };
        bench.store().promote(bench.shard(), bench.epoch(), limits).await.expect("a pass")
    };
    assert!(matches!(look().await, Pass::Held { moved: 0, .. }), "nobody waits");
    assert!(wait(&bench, 10).await.next_due.is_some());
    let job = bench.accept(bench.job("job").after(ms(400))).await;
    let left = job.due.since(now());
    let Pass::Left(next) = look().await else { panic!("the job is left to the waiter") };
    assert!(next + ms(20) > left && next <= left + GRACE + ms(2), "{next:?} of {left:?}");
    until(job.due.plus(GRACE)).await;
    assert!(matches!(look().await, Pass::Held { moved: 1, .. }), "the waiter is late");
    bench.check().await;
}

#[tokio::test]
async fn a_notifier_that_polls_reserves_only_where_jobs_are_ready_or_nobody_waits() {
    let (bench, _redis) = bench().await;
    let may_give = async || bench.store().may_give(bench.shard()).await.expect("a look");
    assert!(may_give().await, "nobody waits for due jobs");
    assert!(wait(&bench, 10).await.next_due.is_some());
    assert!(!may_give().await);
    due(&bench, "job").await;
    assert!(!may_give().await, "it is for the waiter");
    bench.accept(bench.job("ready")).await;
    assert!(may_give().await);
    assert_eq!(wait(&bench, 10).await.leases.len(), 2);
    assert!(!may_give().await);
}

#[tokio::test]
async fn a_carrier_that_is_called_for_a_schedule_passes_at_once_though_the_waiter_took_a_due_job() {
    let (bench, _redis) = bench().await;
    assert!(wait(&bench, 10).await.next_due.is_some());
    due(&bench, "job").await;
    let row = schedule_at(&bench, "jobs", "schedule", Some(now().plus(LONG)));
    add(&bench, &row).await;
    let other = bench.job("other").to("http://other.example");
    bench.accept(other).await;
    // By the fast path, and by the script, since several lanes have jobs.
    for left in [1, 1] {
        assert_eq!(wait(&bench, 1).await.leases.len(), left);
    }
    let limits = PassLimits { may_leave: true, ..at_most(10) };
    let passed = bench.store().promote(bench.shard(), bench.epoch(), limits).await.expect("a pass");
    let Pass::Held { next_firing: Some(firing), .. } = passed else { panic!("it is left: {passed:?}") };
    assert!(firing <= LONG && firing + ms(2000) > LONG, "{firing:?}");
    bench.check().await;
}
