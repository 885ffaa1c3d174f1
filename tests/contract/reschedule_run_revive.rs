//! Cases of `reschedule`, `run`, `revive` and `purge` of one job: each state, repetitions, wake-ups, late successes.

use ringback_core::job::{Due, Job, JobKey};
use ringback_core::store_types::{Cancelled, Filter, MoveResult, SettleResult, SubmitResult, Token, Wake};

use super::job_builders::{BRIEF, LONG, STATES, With, bury, ms, release, retry};
use super::list::{all, all_kept};
use super::workbench::{Workbench, next, now, until};
use crate::prelude::*;

/// A delay so long that Redis keeps the job in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);

fn applied(moved: MoveResult) -> Job {
    match moved {
        MoveResult::Applied(job) => job,
        other => panic!("it should have been done: {other:?}"),
    }
}

/// Reschedules a job, and asserts that the returned job is the stored one.
async fn reschedule(bench: &Workbench, key: &JobKey, due: Due) -> Job {
    let moved = bench.store().reschedule(key, due, bench.token()).await.expect("reschedule");
    as_stored(bench, applied(moved)).await
}

async fn run(bench: &Workbench, key: &JobKey) -> Job {
    let moved = bench.store().run(key, bench.token()).await.expect("run");
    as_stored(bench, applied(moved)).await
}

async fn revive(bench: &Workbench, key: &JobKey) -> Job {
    let moved = bench.store().revive(key, bench.token()).await.expect("revive");
    as_stored(bench, applied(moved)).await
}

async fn as_stored(bench: &Workbench, job: Job) -> Job {
    assert_eq!(bench.get(&job.key).await, job);
    bench.check().await;
    job
}

pub(crate) async fn a_delayed_job_is_rescheduled_to_other_times_far_and_near(bench: &Workbench) {
    // A lane of its own for another job, so that nothing goes to the wrong one.
    bench.accept(bench.job("other").after(HOURS).to("http://other.example")).await;
    let job = bench.accept(bench.job("a").after(LONG / 2)).await;
    let far = now().plus(HOURS);
    let times = [far, job.due, now().plus(LONG / 4), far, far.plus(LONG), far, job.due, far];
    for at in times {
        let moved = reschedule(bench, &job.key, Due::At(at)).await;
        assert_eq!(moved, Job { due: at, ..job.clone() });
    }
    let before = now();
    let moved = reschedule(bench, &job.key, Due::In(LONG)).await;
    assert!(moved.due >= before.plus(LONG) && moved.due <= now().plus(LONG + ms(1)), "{moved:?}");
    assert_eq!(bench.stats().await.states.delayed, 2);
    assert_eq!(bench.promote(10).await.moved, 0);
}

pub(crate) async fn a_job_rescheduled_to_the_time_it_has_stays(bench: &Workbench) {
    for wait in [LONG / 2, HOURS] {
        let job = bench.accept(bench.job(&format!("job-{}", wait.as_secs())).after(wait)).await;
        for _ in 0..2 {
            assert_eq!(reschedule(bench, &job.key, Due::At(job.due)).await, job);
        }
        assert_eq!(run(bench, &job.key).await.state, State::Ready);
        bench.take_one(&job.key).await;
    }
}

pub(crate) async fn a_job_rescheduled_to_now_or_the_past_is_ready(bench: &Workbench) {
    let past = bench.accept(bench.job("earlier").after(LONG)).await.created;
    for (n, due) in [Due::At(past), Due::In(ms(0))].into_iter().enumerate() {
        for (name, wait) in [("near", LONG / 2), ("far", HOURS)] {
            let job = bench.accept(bench.job(&format!("{name}-{n}")).after(wait)).await;
            let before = now();
            let moved = reschedule(bench, &job.key, due).await;
            assert!(moved.due >= before && moved.due <= now(), "{moved:?}");
            assert_eq!(moved, Job { state: State::Ready, due: moved.due, ..job });
            let lease = bench.take_one(&moved.key).await;
            assert_eq!((lease.due, lease.attempt), (moved.due, 1));
        }
    }
}

pub(crate) async fn a_rescheduled_job_is_delivered_at_its_new_time_and_never_before(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(ms(40))).await;
    reschedule(bench, &job.key, Due::At(job.due.plus(LONG))).await;
    until(job.due.plus(ms(1))).await;
    bench.promote(10).await;
    assert!(bench.take(10).await.is_empty(), "its first time is over");
    let later = reschedule(bench, &job.key, Due::In(ms(40))).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&job.key).await;
    assert_eq!((lease.due, lease.attempt, lease.failures), (later.due, 1, 0));
    assert!(now() >= later.due);
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    assert_eq!(bench.get(&job.key).await.due, later.due);

    let job = bench.accept(bench.job("b").after(HOURS)).await;
    reschedule(bench, &job.key, Due::In(ms(5))).await;
    bench.promote_until(1).await;
    bench.take_one(&job.key).await;
}

pub(crate) async fn a_job_that_waits_for_a_retry_keeps_what_it_has_behind_it(bench: &Workbench) {
    for (name, wait) in [("near", LONG / 2), ("far", HOURS)] {
        let lease = bench.reserved(bench.job(name)).await;
        let key = lease.key.clone();
        assert_eq!(bench.settle(lease, retry(wait)).await, SettleResult::Applied);
        let failed = bench.get(&key).await;
        let at = now().plus(HOURS + LONG);
        let moved = reschedule(bench, &key, Due::At(at)).await;
        assert_eq!(moved, Job { due: at, ..failed.clone() });
        let moved = run(bench, &key).await;
        assert_eq!(moved, Job { state: State::Ready, due: moved.due, ..failed });
        let lease = bench.take_one(&key).await;
        assert_eq!((lease.due, lease.attempt, lease.failures), (moved.due, 2, 1));
        // The outcome of an attempt and the mark of a move do not overwrite each other.
        assert_eq!(bench.settle(lease, retry(LONG)).await, SettleResult::Applied);
        let again = reschedule(bench, &key, Due::In(ms(0))).await;
        assert_eq!((again.attempts, again.failures), (2, 2));
        let lease = bench.take_one(&key).await;
        assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
        let dead = bench.get(&key).await;
        assert_eq!((dead.state, dead.reason.as_deref()), (State::Dead, Some("exhausted")));
    }
}

pub(crate) async fn run_makes_a_delayed_job_due_now_and_leaves_what_is_due_as_it_is(bench: &Workbench) {
    for (name, wait) in [("near", LONG / 2), ("far", HOURS)] {
        let job = bench.accept(bench.job(name).after(wait)).await;
        let before = now();
        let ready = run(bench, &job.key).await;
        assert!(ready.due >= before && ready.due <= now(), "{ready:?}");
        assert_eq!(ready, Job { state: State::Ready, due: ready.due, ..job.clone() });
        assert_eq!(run(bench, &job.key).await, ready);
        let lease = bench.take_one(&job.key).await;
        let reserved = bench.get(&job.key).await;
        assert_eq!(run(bench, &job.key).await, reserved);
        // The released job goes back to where it was: ready, for the same time.
        assert_eq!(bench.settle(lease, release(ms(0))).await, SettleResult::Applied);
        assert_eq!(bench.get(&job.key).await, Job { attempts: 1, ..ready });
        let lease = bench.take_one(&job.key).await;
        assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    }
    let job = bench.accept(bench.job("at-once")).await;
    assert_eq!(run(bench, &job.key).await, job);
    bench.promote(10).await;
    bench.take_one(&job.key).await;
}

pub(crate) async fn a_moved_job_whose_lease_runs_out_is_ready_again(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(HOURS).timeout(BRIEF)).await;
    let ready = run(bench, &job.key).await;
    bench.take_one(&job.key).await;
    bench.recover_until(&job.key, State::Ready).await;
    assert_eq!(bench.get(&job.key).await, Job { attempts: 1, ..ready });
    bench.check().await;
    bench.take_one(&job.key).await;
}

pub(crate) async fn a_revived_job_begins_again_but_for_its_attempts(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    bench.settle(lease, retry(ms(0))).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, bury()).await;
    let dead = bench.get(&key).await;
    assert_eq!((dead.attempts, dead.failures, dead.state), (2, 2, State::Dead));

    let before = now();
    let ready = revive(bench, &key).await;
    assert!(ready.due >= before && ready.due <= now(), "{ready:?}");
    assert_eq!(ready, Job { state: State::Ready, due: ready.due, failures: 0, reason: None, ..dead });
    let lease = bench.take_one(&key).await;
    assert_eq!((lease.due, lease.attempt, lease.failures), (ready.due, 3, 0));
    assert_eq!(bench.settle(lease, retry(LONG)).await, SettleResult::Applied);
    let waits = bench.get(&key).await;
    assert_eq!((waits.attempts, waits.failures, waits.state), (3, 1, State::Delayed));
    assert_eq!(bench.evict(10).await.next_dead, None);
}

pub(crate) async fn a_revived_job_counts_its_lost_leases_anew(bench: &Workbench) {
    let key = bench.accept(bench.job("a").timeout(BRIEF)).await.key;
    let lose = async |times: usize, last: State| {
        for n in 1..=times {
            bench.take_one(&key).await;
            bench.recover_until(&key, if n == times { last } else { State::Ready }).await;
        }
    };
    lose(5, State::Dead).await;
    assert_eq!(bench.get(&key).await.reason.as_deref(), Some("lost"));
    assert_eq!(revive(bench, &key).await.attempts, 5);
    lose(5, State::Dead).await;
    let dead = bench.get(&key).await;
    assert_eq!((dead.attempts, dead.failures, dead.reason.as_deref()), (10, 0, Some("lost")));
}

pub(crate) async fn a_late_success_completes_a_job_that_was_moved_and_lost(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(HOURS).timeout(BRIEF)).await;
    run(bench, &job.key).await;
    let late = bench.take_one(&job.key).await;
    bench.recover_until(&job.key, State::Ready).await;
    for n in 2..=5 {
        bench.take_one(&job.key).await;
        bench.recover_until(&job.key, if n == 5 { State::Dead } else { State::Ready }).await;
    }
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    assert_eq!(bench.state(&job.key).await, Some(State::Done));
}

pub(crate) async fn a_state_that_forbids_a_move_is_returned_and_stays(bench: &Workbench) {
    for state in STATES {
        let job = bench.job_in(state, bench.job(state.into())).await;
        let (store, key) = (bench.store(), &job.key);
        let refused = MoveResult::Refused(job.clone());
        if state != State::Delayed {
            let moved = store.reschedule(key, Due::In(LONG), bench.token()).await.expect("reschedule");
            assert_eq!(moved, refused, "reschedule");
        }
        if ![State::Delayed, State::Ready, State::Reserved].contains(&state) {
            assert_eq!(store.run(key, bench.token()).await.expect("run"), refused, "run");
        }
        if state != State::Dead {
            assert_eq!(store.revive(key, bench.token()).await.expect("revive"), refused, "revive");
            assert_eq!(store.purge(key).await.expect("purge"), refused, "purge");
        }
        assert_eq!(bench.get(key).await, job);
        bench.check().await;
    }
    let (store, nobody) = (bench.store(), bench.job("nobody").key);
    let answers = [
        store.reschedule(&nobody, Due::In(LONG), bench.token()).await,
        store.run(&nobody, bench.token()).await,
        store.revive(&nobody, bench.token()).await,
        store.purge(&nobody).await,
    ];
    assert!(answers.into_iter().all(|answer| answer.expect("an answer") == MoveResult::Unknown));
}

/// Makes a call, and repeats it with the same token after each of several steps. Asserts that repetitions change
/// nothing.
async fn repeated(bench: &Workbench, key: &JobKey, call: impl AsyncFn(Token) -> MoveResult) {
    let token = bench.token();
    let first = applied(call(token).await);
    assert_eq!(first.state, State::Ready);
    let same = async || {
        let kept = bench.get(key).await;
        assert_eq!(call(token).await, MoveResult::Applied(kept.clone()));
        assert_eq!(as_stored(bench, kept.clone()).await, kept);
    };
    same().await;
    let lease = bench.take_one(key).await;
    same().await;
    bench.settle(lease, retry(HOURS)).await;
    same().await;
    assert_eq!(bench.get(key).await.failures, 1);
    // Another call has another token, and then the first is no longer known.
    run(bench, key).await;
    let lease = bench.take_one(key).await;
    let kept = bench.get(key).await;
    let again = call(token).await;
    assert!(again == MoveResult::Refused(kept.clone()) || again == MoveResult::Applied(kept), "{again:?}");
    bench.settle(lease, Outcome::Complete).await;
    // The job has ended, and only its end is remembered.
    let done = bench.get(key).await;
    assert_eq!(call(token).await, MoveResult::Refused(done));
}

pub(crate) async fn a_repeated_move_is_known_whatever_became_of_the_job(bench: &Workbench) {
    let store = bench.store();
    let key = bench.job_in(State::Delayed, bench.job("run")).await.key;
    repeated(bench, &key, async |token| store.run(&key, token).await.expect("run")).await;
    let key = bench.job_in(State::Dead, bench.job("revive")).await.key;
    repeated(bench, &key, async |token| store.revive(&key, token).await.expect("revive")).await;
    let key = bench.job_in(State::Delayed, bench.job("reschedule")).await.key;
    let now = Due::In(ms(0));
    repeated(bench, &key, async |token| store.reschedule(&key, now, token).await.expect("reschedule")).await;

    // A delay counts from the first call.
    let key = bench.job_in(State::Delayed, bench.job("delay")).await.key;
    let token = bench.token();
    let call = async || applied(store.reschedule(&key, Due::In(HOURS), token).await.expect("reschedule"));
    let first = call().await;
    until(first.created.plus(ms(3))).await;
    assert_eq!(call().await, first);
    // The same if the job was buried meanwhile.
    run(bench, &key).await;
    let token = bench.token();
    let lease = bench.take_one(&key).await;
    bench.settle(lease, bury()).await;
    applied(store.revive(&key, token).await.expect("revive"));
    let lease = bench.take_one(&key).await;
    bench.settle(lease, bury()).await;
    let dead = bench.get(&key).await;
    assert_eq!(store.revive(&key, token).await.expect("revive"), MoveResult::Applied(dead.clone()));
    assert_eq!(bench.get(&key).await, dead);
}

pub(crate) async fn a_moved_job_can_be_cancelled_and_is_never_delivered(bench: &Workbench) {
    const CANCELLED: Cancelled = Cancelled::Cancelled { in_flight_unknown: false };
    let far = now().plus(HOURS);
    for (name, wait) in [("near", LONG / 2), ("far", HOURS)] {
        let accept = async |end: &str| bench.accept(bench.job(&format!("{name}-{end}")).after(wait)).await;
        let [moved, hurried, soon] = [accept("moved").await, accept("hurried").await, accept("soon").await];
        reschedule(bench, &moved.key, Due::At(far)).await;
        run(bench, &hurried.key).await;
        let due = reschedule(bench, &soon.key, Due::In(ms(20))).await.due;
        for job in [&moved, &hurried, &soon] {
            assert_eq!(bench.cancel(&job.key).await, CANCELLED);
            let gone = bench.get(&job.key).await;
            assert_eq!(gone.state, State::Cancelled);
            bench.check().await;
        }
        assert_eq!(bench.get(&moved.key).await.due, far);
        until(due).await;
        bench.promote(10).await;
        assert!(bench.take(10).await.is_empty());
    }
    let dead = bench.job_in(State::Dead, bench.job("dead")).await;
    revive(bench, &dead.key).await;
    assert_eq!(bench.cancel(&dead.key).await, CANCELLED);
    assert!(bench.take(10).await.is_empty());
}

pub(crate) async fn moved_jobs_are_listed_as_they_are_kept(bench: &Workbench) {
    let near = bench.job_in(State::Delayed, bench.job("near")).await.key;
    let far = bench.accept(bench.job("far").after(HOURS)).await.key;
    let hurried = bench.accept(bench.job("hurried").after(HOURS)).await.key;
    let dead = bench.job_in(State::Dead, bench.job("dead")).await.key;
    let moved = [
        reschedule(bench, &near, Due::In(HOURS)).await,
        reschedule(bench, &far, Due::In(LONG / 2)).await,
        run(bench, &hurried).await,
        revive(bench, &dead).await,
    ];
    let (listed, kept) = (all(bench, &Filter::default()).await, all_kept(bench).await);
    assert_eq!((listed.len(), kept.len()), (4, 4));
    for job in &moved {
        let name = job.key.to_string();
        assert_eq!((&listed[&name], &kept[&name].job), (job, job));
    }
    let ready = Filter { state: Some(State::Ready), ..Filter::default() };
    assert_eq!(all(bench, &ready).await.len(), 2);
    // A repeated submit finds the moved job.
    let again = bench.submit(&[bench.job("far").after(HOURS)]).await.remove(0);
    assert_eq!((again.answer, again.job), (SubmitResult::Repeated, moved[1].clone()));
}

pub(crate) async fn a_move_wakes_whom_it_concerns(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(HOURS)).await;
    let dead = bench.job_in(State::Dead, bench.job_of("other", "dead")).await;
    bench.promote(10).await;
    let mut wakes = bench.wakes().await;
    // A time before the lease of the dead job expires.
    let soon = ms(5000);
    reschedule(bench, &job.key, Due::In(soon)).await;
    let about = |wake: &Wake| matches!(wake, Wake::Due(shard, wait) if *shard == bench.shard() && *wait <= soon + ms(2) && *wait > soon / 2);
    // In a cluster, earlier wake-ups may still be on their way.
    let mut wake = next(&mut wakes).await;
    while !about(&wake) {
        wake = next(&mut wakes).await;
    }
    // A later time wakes no carrier.
    reschedule(bench, &job.key, Due::In(LONG / 2)).await;
    run(bench, &job.key).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
    revive(bench, &dead.key).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
}

pub(crate) async fn a_purged_job_is_gone_and_counted_and_its_id_is_free(bench: &Workbench) {
    let job = bench.job_in(State::Dead, bench.job("a").body(noise(7, 9000).into())).await;
    let stays = bench.job_in(State::Dead, bench.job("b")).await;
    assert_eq!(bench.store().purge(&job.key).await.expect("purge"), MoveResult::Applied(job.clone()));
    assert_eq!(bench.state(&job.key).await, None);
    assert_eq!(bench.store().purge(&job.key).await.expect("purge"), MoveResult::Unknown);
    let states = bench.stats().await.states;
    assert_eq!((states.dead, states.purged), (1, 1));
    bench.check().await;
    assert_eq!(bench.get(&stays.key).await, stays);
    bench.accept(bench.job("a").content(2)).await;
}
