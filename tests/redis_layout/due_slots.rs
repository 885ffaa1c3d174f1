//! Far due times in Redis, which are kept in slots of ten minutes: jobs in slots are ordered, promoted, cancelled,
//! moved and replaced. No test waits for a slot's time: a slot is moved to the present by hand.

use redis::aio::MultiplexedConnection;
use redis::cmd;
use ringback_core::job::{Due, Job};
use ringback_core::store_types::{Cancelled, MoveResult, SettleResult, SubmitResult};
use ringback_testkit::set_shard_field;

use crate::contract::job_builders::{With, ms, release, retry};
use crate::contract::workbench::{SOON, Workbench, now, until};
use crate::prelude::*;
use crate::redis_layout::keys::{self, bench, entry, key, key_of, lane, run};

/// The length of a slot, in ms.
const WIDTH: u64 = 600_000;
/// A delay so long that the job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);

fn present() -> u64 {
    now().as_millis() / WIDTH
}

/// The number of the only slot. Panics if there are more or none.
async fn slot(redis: &mut MultiplexedConnection) -> u64 {
    let slots = key(redis, "slots").await;
    let slots: Vec<u64> = keys::members(redis, slots).await;
    assert_eq!(slots.len(), 1, "{slots:?}");
    slots[0]
}

async fn is_there(redis: &mut MultiplexedConnection, name: &str) -> bool {
    let key = key(redis, name).await;
    cmd("EXISTS").arg(key).query_async(redis).await.expect("EXISTS")
}

/// Gives the only slot another number, and its cancelled entries too.
async fn move_slot(redis: &mut MultiplexedConnection, to: u64) {
    let from = slot(redis).await;
    let (old, new) = (key(redis, &format!("slot:{from}")).await, key(redis, &format!("slot:{to}")).await);
    run(redis, &[b"RENAME", old.as_bytes(), new.as_bytes()]).await;
    if is_there(redis, &format!("cancelled:{from}")).await {
        let (old, new) =
            (key(redis, &format!("cancelled:{from}")).await, key(redis, &format!("cancelled:{to}")).await);
        run(redis, &[b"RENAME", old.as_bytes(), new.as_bytes()]).await;
    }
    let slots = key(redis, "slots").await;
    run(redis, &[b"DEL", slots.as_bytes()]).await;
    tell_slot(redis, to).await;
}

async fn tell_slot(redis: &mut MultiplexedConnection, number: u64) {
    let (slots, shard, name) = (key(redis, "slots").await, key(redis, "shard").await, number.to_string());
    run(redis, &[b"ZADD", slots.as_bytes(), name.as_bytes(), name.as_bytes()]).await;
    set_shard_field(redis, &shard, "slot", number as i64).await;
}

/// Moves jobs that are due soon into a slot of their time, as if no carrier had run for long.
async fn into_slot(redis: &mut MultiplexedConnection, jobs: &[Job]) {
    let number = jobs[0].due.as_millis() / WIDTH;
    let (due, list) = (key_of(redis, "due:", &lane()).await, key(redis, &format!("slot:{number}")).await);
    for job in jobs {
        run(redis, &[b"ZREM", &due, &entry(job)]).await;
        run(redis, &[b"RPUSH", list.as_bytes(), &[entry(job), lane()].concat()]).await;
    }
    tell_slot(redis, number).await;
}

/// Submits jobs that become due in one slot, 300 ms from now.
async fn soon(bench: &Workbench, count: usize) -> Vec<Job> {
    let wait = ms(300);
    if now().plus(wait + ms(100)).as_millis() / WIDTH != present() {
        until(now().plus(wait + ms(100))).await;
    }
    let mut jobs = Vec::new();
    for n in 0..count {
        jobs.push(bench.accept(bench.job(&format!("job-{n}")).after(wait)).await);
    }
    jobs
}

#[tokio::test]
async fn a_far_job_is_delayed_and_can_be_cancelled() {
    let (bench, mut redis) = bench().await;
    let stays = bench.accept(bench.job("stays").after(HOURS)).await;
    let goes = bench.accept(bench.job("goes").after(HOURS)).await;
    assert_eq!((stays.state, bench.state(&goes.key).await), (State::Delayed, Some(State::Delayed)));
    assert_eq!(slot(&mut redis).await, stays.due.as_millis() / WIDTH);
    bench.check().await;
    assert_eq!(bench.cancel(&goes.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    let stats = bench.stats().await.states;
    assert_eq!((stats.delayed, stats.cancelled), (1, 1));
    bench.check().await;
    // A slot is removed with its last job.
    bench.cancel(&stays.key).await;
    for name in ["slot:*", "cancelled:*", "slots"] {
        let left: Vec<String> = keys::all(&mut redis, name).await;
        assert!(left.is_empty(), "{left:?}");
    }
    bench.check().await;
}

#[tokio::test]
async fn a_carrier_looks_at_a_slot_well_before_its_time() {
    let (bench, _redis) = bench().await;
    let job = bench.accept(bench.job("a").after(HOURS)).await;
    let pass = bench.promote(10).await;
    let look = pass.next_due.expect("a slot");
    let start = Duration::from_millis(job.due.as_millis() / WIDTH * WIDTH - now().as_millis());
    assert!(look < start && start - look < Duration::from_millis(2 * WIDTH), "{look:?} for {start:?}");
}

#[tokio::test]
async fn a_slot_whose_time_is_near_is_put_in_order_bit_by_bit() {
    let (bench, mut redis) = bench().await;
    let mut jobs = Vec::new();
    for n in 0..5_u32 {
        jobs.push(bench.accept(bench.job(&format!("job-{n}")).after(HOURS + ms(1) * n)).await);
    }
    bench.cancel(&jobs.remove(1).key).await;
    move_slot(&mut redis, present() + 1).await;
    for round in 0..3 {
        let pass = bench.promote(2).await;
        assert_eq!(pass.moved, 0, "round {round}");
        for job in &jobs {
            assert_eq!(bench.get(&job.key).await, *job);
        }
    }
    let due = key_of(&mut redis, "due:", &lane()).await;
    let kept: Vec<Vec<u8>> = keys::members(&mut redis, &due).await;
    assert_eq!(kept, jobs.iter().map(entry).collect::<Vec<_>>());
    assert!(
        !is_there(&mut redis, "slots").await
            && !is_there(&mut redis, &format!("cancelled:{}", present() + 1)).await
    );
    bench.check().await;
}

#[tokio::test]
async fn nothing_is_promoted_before_an_overdue_slot_is_in_order() {
    let (bench, mut redis) = bench().await;
    let mut jobs = soon(&bench, 6).await;
    // One job is not in the slot; it must not be promoted before the others.
    into_slot(&mut redis, &jobs[1..]).await;
    until(jobs[5].due).await;
    let (first, moved) = (jobs[0].clone(), jobs[1].clone());
    let pass = bench.promote(2).await;
    assert_eq!((pass.moved, pass.next_due), (0, Some(Duration::ZERO)));
    assert_eq!((bench.get(&first.key).await, bench.get(&moved.key).await), (first, moved.clone()));
    // Cancels a job that is in order already, and one that is not.
    for gone in [jobs.remove(1), jobs.remove(4)] {
        bench.cancel(&gone.key).await;
    }
    bench.check().await;
    bench.promote_until(4).await;
    let taken: Vec<_> = bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert_eq!(taken.len(), 4);
    assert!(jobs.iter().all(|job| taken.contains(&job.key)), "{taken:?}");
    bench.check().await;
}

#[tokio::test]
async fn a_far_job_that_was_cancelled_and_comes_again_counts() {
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let new = || bench.job("a").at(due);
    let job = bench.accept(new()).await;
    // While most entries of a slot count, it keeps the others too.
    for name in ["b", "c"] {
        bench.accept(bench.job(name).at(due)).await;
    }
    bench.cancel(&job.key).await;
    keys::remove_tombstones(&mut redis).await;
    assert_eq!(bench.submit(&[new()]).await[0].answer, SubmitResult::Created);
    bench.check().await;
    move_slot(&mut redis, present()).await;
    bench.promote(10).await;
    bench.check().await;
    let due = key_of(&mut redis, "due:", &lane()).await;
    let kept = keys::members::<Vec<u8>>(&mut redis, due).await.len();
    assert_eq!((kept, bench.state(&job.key).await), (3, Some(State::Delayed)));
}

#[tokio::test]
async fn a_retry_that_is_far_off_waits_in_a_slot() {
    let (bench, mut redis) = bench().await;
    let lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(bench.settle(lease, retry(HOURS)).await, SettleResult::Applied);
    let job = bench.get(&key).await;
    assert_eq!((job.state, slot(&mut redis).await), (State::Delayed, job.due.as_millis() / WIDTH));
    bench.check().await;
    bench.cancel(&key).await;
    bench.check().await;
}

#[tokio::test]
async fn a_late_success_ends_a_job_that_waits_in_a_slot() {
    let (bench, mut redis) = bench().await;
    let late = bench.stale_lease(bench.job("a")).await;
    let current = bench.take_one(&late.key).await;
    bench.settle(current, retry(HOURS)).await;
    let due = bench.get(&late.key).await.due;
    for name in ["b", "c"] {
        bench.accept(bench.job(name).at(due)).await;
    }
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    bench.check().await;
    move_slot(&mut redis, present()).await;
    bench.promote(10).await;
    bench.check().await;
    assert_eq!(bench.stats().await.states.delayed, 2);
}

#[tokio::test]
async fn a_far_job_cancelled_twice_stays_cancelled_however_its_slot_is_put_in_order() {
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let others = [bench.accept(bench.job("b").at(due)).await, bench.accept(bench.job("c").at(due)).await];
    for _ in 0..2 {
        let job = bench.accept(bench.job("a").at(due)).await;
        bench.cancel(&job.key).await;
        keys::remove_tombstones(&mut redis).await;
    }
    move_slot(&mut redis, present() + 1).await;
    for _ in 0..4 {
        bench.promote(1).await;
    }
    let due = key_of(&mut redis, "due:", &lane()).await;
    let mut kept: Vec<Vec<u8>> = keys::members(&mut redis, due).await;
    let mut expected = others.each_ref().map(entry).to_vec();
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected);
    bench.check().await;
}

#[tokio::test]
async fn a_far_job_that_comes_again_for_another_origin_goes_to_that_one_alone() {
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let job = bench.accept(bench.job("a").at(due)).await;
    for name in ["b", "c"] {
        bench.accept(bench.job(name).at(due)).await;
    }
    bench.cancel(&job.key).await;
    keys::remove_tombstones(&mut redis).await;
    bench.accept(bench.job("a").at(due).to("http://other.example")).await;
    move_slot(&mut redis, present() + 1).await;
    bench.promote(10).await;
    let due = key_of(&mut redis, "due:", &lane()).await;
    let kept = keys::members::<Vec<u8>>(&mut redis, due).await.len();
    assert_eq!(kept, 2);
    bench.check().await;
}

#[tokio::test]
async fn a_job_that_is_ready_at_once_is_ready_while_a_slot_is_overdue() {
    let (bench, mut redis) = bench().await;
    let far = soon(&bench, 1).await;
    into_slot(&mut redis, &far).await;
    until(far[0].due).await;
    let jobs = [bench.accept(bench.job("a")).await, bench.accept(bench.job("b")).await];
    assert_eq!(bench.get(&jobs[0].key).await.state, State::Ready);
    bench.cancel(&jobs[0].key).await;
    let stats = bench.stats().await.states;
    assert_eq!((stats.delayed, stats.ready, stats.cancelled), (1, 1, 1));
    bench.check().await;
    bench.promote_until(1).await;
    assert_eq!(bench.take(10).await.len(), 2);
    bench.check().await;
}

/// Reschedules a job, and returns the job as it is then. Asserts that the reschedule is applied.
async fn reschedule(bench: &Workbench, job: &Job, due: Due) -> Job {
    let moved = bench.store().reschedule(&job.key, due, bench.token()).await.expect("reschedule");
    assert!(matches!(moved, MoveResult::Applied(_)), "{moved:?}");
    bench.check().await;
    bench.get(&job.key).await
}

async fn run_now(bench: &Workbench, job: &Job) -> Job {
    let moved = bench.store().run(&job.key, bench.token()).await.expect("run");
    assert!(matches!(moved, MoveResult::Applied(_)), "{moved:?}");
    bench.check().await;
    bench.get(&job.key).await
}

#[tokio::test]
async fn jobs_rescheduled_out_of_a_slot_leave_it_and_those_that_came_back_are_in_it_once() {
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let mut jobs = Vec::new();
    for name in ["stays", "near", "run", "back", "twice", "cancelled"] {
        jobs.push(bench.accept(bench.job(name).at(due)).await);
    }
    let [stays, near, hurried, back, twice, cancelled] = jobs.try_into().expect("six");
    let near = reschedule(&bench, &near, Due::In(ms(60_000))).await;
    let hurried = run_now(&bench, &hurried).await;
    reschedule(&bench, &back, Due::In(ms(60_000))).await;
    reschedule(&bench, &back, Due::At(due)).await;
    for _ in 0..2 {
        reschedule(&bench, &twice, Due::In(ms(60_000))).await;
        reschedule(&bench, &twice, Due::At(due)).await;
    }
    reschedule(&bench, &cancelled, Due::In(ms(60_000))).await;
    reschedule(&bench, &cancelled, Due::At(due)).await;
    bench.cancel(&cancelled.key).await;

    move_slot(&mut redis, present() + 1).await;
    for _ in 0..12 {
        assert_eq!(bench.promote(1).await.moved, 0);
        for job in [&stays, &near, &hurried, &back, &twice] {
            assert_eq!(bench.get(&job.key).await, *job);
        }
    }
    assert!(!is_there(&mut redis, "slots").await);
    let due = key_of(&mut redis, "due:", &lane()).await;
    let kept: Vec<Vec<u8>> = keys::members(&mut redis, &due).await;
    let mut wanted: Vec<_> = [&stays, &near, &back, &twice].map(entry).into();
    let mut found = kept.clone();
    wanted.sort();
    found.sort();
    assert_eq!(found, wanted);
    assert_eq!(bench.take_one(&hurried.key).await.due, hurried.due);
}

#[tokio::test]
async fn a_job_is_moved_while_its_slot_is_put_in_order() {
    let (bench, mut redis) = bench().await;
    let jobs = soon(&bench, 8).await;
    into_slot(&mut redis, &jobs).await;
    until(jobs[7].due).await;
    // Some jobs are in order, and the others in the list.
    assert_eq!(bench.promote(4).await.moved, 0);
    let (far, again) = (now().plus(HOURS), now().plus(ms(500)));
    for job in [&jobs[0], &jobs[4]] {
        assert_eq!(reschedule(&bench, job, Due::At(far)).await.due, far);
    }
    for job in [&jobs[1], &jobs[5]] {
        assert_eq!(run_now(&bench, job).await.state, State::Ready);
    }
    for job in [&jobs[2], &jobs[6]] {
        reschedule(&bench, job, Due::At(far)).await;
        reschedule(&bench, job, Due::At(again)).await;
    }
    until(again).await;
    // On a busy machine some may have become ready at once, without a promotion.
    eventually(SOON, "six jobs are ready", async || {
        bench.promote(500).await;
        let ready = bench.stats().await.states.ready;
        if ready == 6 { Ok(()) } else { Err(ready) }
    })
    .await;
    bench.check().await;
    let states = bench.stats().await.states;
    assert_eq!((states.delayed, states.ready), (2, 6));
    let taken: Vec<_> = bench.take(10).await.into_iter().map(|lease| lease.key).collect();
    assert_eq!(taken.len(), 6);
    assert!(!taken.contains(&jobs[0].key) && !taken.contains(&jobs[4].key), "{taken:?}");
}

#[tokio::test]
async fn a_job_that_is_made_ready_is_ready_while_a_slot_is_overdue() {
    let (bench, mut redis) = bench().await;
    let far = soon(&bench, 1).await;
    let [job, other] =
        [bench.accept(bench.job("a").after(HOURS)).await, bench.accept(bench.job("b").after(HOURS)).await];
    let dead = bench.job_in(State::Dead, bench.job("dead")).await;
    into_slot(&mut redis, &far).await;
    until(far[0].due).await;
    let run = run_now(&bench, &job).await;
    let moved = reschedule(&bench, &other, Due::In(ms(0))).await;
    assert_eq!((run.state, moved.state), (State::Ready, State::Ready));
    bench.store().revive(&dead.key, bench.token()).await.expect("revive");
    assert_eq!(bench.get(&dead.key).await.state, State::Ready);
    bench.check().await;
    assert_eq!(bench.cancel(&job.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    bench.check().await;
    // The jobs go back to their queue, and a failure delays them.
    let mut leases = bench.take(10).await;
    assert_eq!(leases.len(), 2);
    for lease in leases.drain(..) {
        assert_eq!(bench.settle(lease, release(ms(0))).await, SettleResult::Applied);
    }
    assert_eq!(bench.get(&other.key).await.state, State::Ready);
    bench.check().await;
    for lease in bench.take(10).await {
        assert_eq!(bench.settle(lease, retry(ms(1))).await, SettleResult::Applied);
    }
    assert_eq!(bench.get(&other.key).await.state, State::Delayed);
    bench.check().await;
}
