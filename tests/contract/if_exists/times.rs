//! Cases of `if_exists` and times: how far a job is postponed, who is woken, and that jobs of paused topics wait on.

use ringback_core::clock::Timestamp;
use ringback_core::job::{Due, IfExists, Job, NewJob};
use ringback_core::store_types::{SubmitResult, Wake};

use super::{OTHER, answered};
use crate::contract::job_builders::{LONG, TOPIC, With, ms};
use crate::contract::workbench::{Workbench, next, now};
use crate::prelude::*;

fn within(bench: &Workbench, job: NewJob, max_delay: Duration) -> NewJob {
    let if_exists = IfExists::Postpone { token: bench.token(), max_delay: Some(max_delay) };
    NewJob { if_exists, ..job }
}

async fn postponed(bench: &Workbench, job: &NewJob) -> Job {
    answered(bench, job, SubmitResult::Postponed).await
}

pub(crate) async fn a_job_is_postponed_to_its_limit_and_no_further(bench: &Workbench) {
    let job = |wait: Duration| within(bench, bench.job("a").after(wait), LONG);
    let first = answered(bench, &job(LONG / 2), SubmitResult::Created).await;
    let latest = first.created.plus(LONG);
    let moved = postponed(bench, &job(LONG / 4 * 3)).await;
    assert!(moved.due > first.due && moved.due < latest, "{moved:?}");
    for wait in [LONG, LONG * 30] {
        assert_eq!(postponed(bench, &job(wait)).await.due, latest);
    }
    let absolute = within(bench, bench.job("a").at(latest.plus(LONG)), LONG);
    assert_eq!(postponed(bench, &absolute).await.due, latest);
    // The limit of the present submit counts.
    let longer = within(bench, bench.job("a").after(LONG * 30), LONG * 2);
    assert_eq!(postponed(bench, &longer).await.due, first.created.plus(LONG * 2));
    let free = bench.postponing(bench.job("a").after(LONG * 30));
    assert!(postponed(bench, &free).await.due >= first.created.plus(LONG * 30));
    assert_eq!(bench.get(&first.key).await.created, first.created);
}

pub(crate) async fn the_limit_counts_for_the_first_submit_too(bench: &Workbench) {
    let new = within(bench, bench.job("a").after(LONG * 30), LONG);
    let job = answered(bench, &new, SubmitResult::Created).await;
    assert_eq!((job.state, job.due), (State::Delayed, job.created.plus(LONG)));
}

pub(crate) async fn a_ready_job_is_delayed_again_until_its_limit_has_passed(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    let moved = postponed(bench, &within(bench, bench.job("a").after(LONG), LONG * 2)).await;
    assert_eq!(moved.state, State::Delayed);
    assert!(bench.take(1).await.is_empty());
    let at_once = postponed(bench, &within(bench, bench.job("a").after(LONG), ms(0))).await;
    assert_eq!(at_once.state, State::Ready);
    let before = now();
    let stays = postponed(bench, &within(bench, bench.job("a").after(LONG), ms(0))).await;
    assert_eq!((stays.state, stays.created), (State::Ready, job.created));
    assert!(stays.due <= now() && stays.due.plus(LONG) >= before, "{}", stays.due);
    bench.take_one(&job.key).await;
    assert!(bench.take(1).await.is_empty(), "it is there once");
}

pub(crate) async fn a_changed_job_is_delivered_at_its_new_time_and_never_before(bench: &Workbench) {
    let moves = [ms(1), LONG * 20, ms(40), LONG, ms(30)];
    let mut job = bench.accept(bench.job("a").after(ms(5))).await;
    for wait in moves {
        job = answered(bench, &bench.replacing(bench.job("a").after(wait)), SubmitResult::Replaced).await;
    }
    bench.promote_until(1).await;
    assert!(now() >= job.due, "promoted at {} before {}", now(), job.due);
    bench.take_one(&job.key).await;
}

pub(crate) async fn a_change_wakes_whom_a_submit_would(bench: &Workbench) {
    bench.accept(bench.job("a").after(LONG)).await;
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    answered(bench, &bench.postponing(bench.job("a").after(LONG / 2)), SubmitResult::Postponed).await;
    // In a cluster, the wake-up of the first submit may come late.
    while let Wake::Due(shard, wait) = next(&mut wakes).await {
        assert_eq!(shard, bench.shard());
        if wait <= LONG / 2 + ms(2) {
            break;
        }
    }
    // A later time wakes nobody: the next wake-up is that of the job that is ready.
    answered(bench, &bench.postponing(bench.job("a").after(LONG / 4 * 3)), SubmitResult::Postponed).await;
    answered(bench, &bench.replacing(bench.job("a")), SubmitResult::Replaced).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
    // The lane that it goes to was empty, the one that it comes back to is empty again.
    answered(bench, &bench.replacing(bench.job("a").to(OTHER)), SubmitResult::Replaced).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
    answered(bench, &bench.replacing(bench.pull_job("a")), SubmitResult::Replaced).await;
    assert!(matches!(next(&mut wakes).await, Wake::Pull(shard, _) if shard == bench.shard()));
}

pub(crate) async fn a_job_of_a_paused_topic_is_changed_and_waits_on(bench: &Workbench) {
    let topic = TOPIC.parse().expect("a topic");
    bench.accept(bench.job("a")).await;
    bench.store().pause(&topic, None).await.expect("pause").expect("there is room");
    assert!(bench.take(1).await.is_empty());
    let new = bench.job("a").content(2).to(OTHER);
    for _ in 0..2 {
        let changed = answered(bench, &bench.replacing(new.clone()), SubmitResult::Replaced).await;
        assert_eq!(changed.state, State::Ready);
        assert!(bench.take(1).await.is_empty());
    }
    bench.store().resume(&topic).await.expect("resume");
    let lease = bench.take_one(&new.key).await;
    assert_eq!(lease.delivery, new.delivery);
    assert!(bench.take(1).await.is_empty());
}

pub(crate) async fn many_changes_of_one_job_leave_one_job_that_is_delivered_once(bench: &Workbench) {
    let mut last = Timestamp::default();
    for n in 0..300_u64 {
        let wait = [LONG, LONG * 20, ms(0), LONG * 20, LONG * 40][n as usize % 5] + ms(n);
        let new = bench.replacing(bench.job("a").after(wait).content((n % 7) as u8));
        let answer = super::submit(bench, &new).await;
        let wanted = if n == 0 { SubmitResult::Created } else { SubmitResult::Replaced };
        assert_eq!(answer.answer, wanted);
        last = answer.job.due;
    }
    let job = bench.get(&bench.job("a").key).await;
    assert_eq!((job.due, job.attempts), (last, 0));
    bench.check().await;
    let final_one = NewJob { due: Due::In(ms(0)), ..bench.replacing(bench.job("a")) };
    answered(bench, &final_one, SubmitResult::Replaced).await;
    bench.take_one(&job.key).await;
    assert!(bench.take(10).await.is_empty());
    assert_eq!(bench.promote(100).await.moved, 0);
}
