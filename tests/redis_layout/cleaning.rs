//! Queues and slots in Redis stay short without deliveries, though jobs are replaced, postponed, cancelled or moved.

use redis::aio::MultiplexedConnection;
use ringback_core::job::{Due, NewJob};
use ringback_core::store_types::{MoveResult, SettleResult, SubmitResult};

use crate::contract::job_builders::{LONG, TOPIC, With, ms, release};
use crate::contract::workbench::{Workbench, now, until};
use crate::prelude::*;
use crate::redis_layout::keys::{self, ask, bench, key_of, lane, memory, queued};

/// Most of them are far from both ends of their queue.
const JOBS: usize = 1_000;
/// A delay so long that a new job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);

/// A bench with a paused topic whose queue has [`JOBS`] jobs.
async fn paused() -> (Workbench, MultiplexedConnection, Vec<NewJob>) {
    let (bench, redis) = bench().await;
    bench.store().pause(&bench.key(TOPIC, "a").topic, None).await.expect("pause").expect("there is room");
    let jobs: Vec<_> = (0..JOBS).map(|n| bench.job(&format!("job-{n}"))).collect();
    for part in jobs.chunks(500) {
        bench.submit(part).await;
    }
    assert!(bench.take(10).await.is_empty(), "the lane is set aside");
    (bench, redis, jobs)
}

/// Resumes the topic, and asserts that each of `count` jobs is reserved once and that no entry is left.
async fn all_are_delivered_once(bench: &Workbench, redis: &mut MultiplexedConnection, count: usize) {
    bench.check().await;
    bench.store().resume(&bench.key(TOPIC, "a").topic).await.expect("resume");
    let mut keys = Vec::new();
    loop {
        let leases = bench.take(77).await;
        if leases.is_empty() {
            break;
        }
        keys.extend(leases.into_iter().map(|lease| lease.key.to_string()));
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count);
    let left: Vec<Vec<u8>> = keys::all(redis, "front:*").await;
    assert_eq!((queued(redis).await, left.len()), (0, 0));
    bench.check().await;
}

/// Submits jobs, and asserts that each has this answer.
async fn submit(bench: &Workbench, jobs: &[NewJob], answer: SubmitResult) {
    let answers = bench.submit(jobs).await;
    assert!(answers.iter().all(|submitted| submitted.answer == answer), "{answers:?}");
}

#[tokio::test]
async fn ready_jobs_replaced_in_turn_leave_no_growing_queue() {
    let (bench, mut redis, jobs) = paused().await;
    let mut before = 0;
    for round in 0..8_u8 {
        // Replaces one job per call, then many per call.
        for part in jobs.chunks(if round < 3 { 1 } else { 250 }) {
            let part: Vec<_> = part.iter().map(|job| bench.replacing(job.clone().content(round))).collect();
            submit(&bench, &part, SubmitResult::Replaced).await;
        }
        let entries = queued(&mut redis).await;
        assert!(
            entries < 3 * JOBS,
            "{entries} entries after {} replacements",
            (usize::from(round) + 1) * JOBS
        );
        let bytes = memory(&mut redis, &["*"]).await;
        if round == 2 {
            before = bytes;
        }
        assert!(round < 3 || bytes < before + 64 * 1024, "{before} bytes have become {bytes}");
    }
    all_are_delivered_once(&bench, &mut redis, JOBS).await;
}

#[tokio::test]
async fn ready_jobs_postponed_and_called_back_leave_no_growing_queue() {
    let (bench, mut redis, jobs) = paused().await;
    for round in 0..6_u8 {
        for part in jobs.chunks(if round < 3 { 1 } else { 250 }) {
            for wait in [LONG, ms(0)] {
                let part: Vec<_> =
                    part.iter().map(|job| bench.replacing(job.clone().after(wait).content(round))).collect();
                submit(&bench, &part, SubmitResult::Replaced).await;
            }
        }
        let entries = queued(&mut redis).await;
        assert!(entries < 3 * JOBS, "{entries} entries after {} ways back", (usize::from(round) + 1) * JOBS);
    }
    all_are_delivered_once(&bench, &mut redis, JOBS).await;
}

#[tokio::test]
async fn ready_jobs_cancelled_and_submitted_again_leave_no_growing_queue() {
    let (bench, mut redis, jobs) = paused().await;
    for round in 0..4_u8 {
        for job in &jobs {
            bench.cancel(&job.key).await;
            submit(&bench, &[bench.replacing(job.clone().content(round))], SubmitResult::Created).await;
        }
        let entries = queued(&mut redis).await;
        assert!(entries < 3 * JOBS, "{entries} entries after {} cancels", (usize::from(round) + 1) * JOBS);
    }
    all_are_delivered_once(&bench, &mut redis, JOBS).await;
}

#[tokio::test]
async fn a_lane_whose_last_job_is_cancelled_leaves_no_queue_and_no_turn() {
    let (bench, mut redis) = bench().await;
    bench.store().pause(&bench.key(TOPIC, "a").topic, None).await.expect("pause").expect("there is room");
    let jobs = [bench.job("a"), bench.pull_job("b"), bench.job("c").to("http://other.example")];
    bench.submit(&jobs).await;
    assert!(bench.take(10).await.is_empty(), "the lanes are set aside");
    for job in &jobs {
        bench.cancel(&job.key).await;
    }
    for name in ["ready:*", "front:*", "lanes", "pulls", "paused"] {
        let left: Vec<Vec<u8>> = keys::all(&mut redis, name).await;
        assert!(left.is_empty(), "{left:?}");
    }
    bench.check().await;
}

/// Cancels jobs until their queue has been cleaned in part. Returns the jobs that are left.
async fn partly_cleaned(
    bench: &Workbench,
    redis: &mut MultiplexedConnection,
    mut jobs: Vec<NewJob>,
    queue: &[u8],
) -> Vec<NewJob> {
    // The first jobs are older.
    bench.submit(&jobs[..5]).await;
    until(now().plus(ms(20))).await;
    bench.submit(&jobs[5..]).await;
    let mut others = jobs.split_off(220);
    for job in &jobs[5..] {
        bench.cancel(&job.key).await;
    }
    others.splice(0..0, jobs.drain(..5));
    let (front, list) = (key_of(redis, "front:", queue).await, key_of(redis, "ready:", queue).await);
    let in_front: usize = ask(redis, &[b"LLEN", &front]).await;
    let in_list: usize = ask(redis, &[b"LLEN", &list]).await;
    assert!(in_front > 0 && in_list > 0, "{in_front} and {in_list} entries");
    bench.check().await;
    others
}

#[tokio::test]
async fn a_queue_that_was_cleaned_in_part_is_reserved_in_its_order() {
    let (bench, mut redis) = bench().await;
    let jobs = (0..400).map(|n| bench.job(&format!("job-{n}"))).collect();
    let mut others = partly_cleaned(&bench, &mut redis, jobs, &lane()).await;
    let (oldest, begun) = (bench.get(&others[0].key).await, now());
    let gauges = bench.store().gauges(vec![(bench.shard(), bench.epoch().clone())], &[]).await.remove(0).1;
    let age = gauges.expect("the store answers").expect("the shard is held").all.oldest_ready;
    assert!(age >= Some(begun.since(oldest.due)), "{age:?}");
    // A released job is reserved again, and a replaced one keeps its place.
    let first = bench.take_one(&others[0].key).await;
    assert_eq!(bench.settle(first, release(ms(0))).await, SettleResult::Applied);
    submit(&bench, &[bench.replacing(others[1].clone().content(1))], SubmitResult::Replaced).await;
    bench.check().await;
    let mut taken = Vec::new();
    loop {
        let leases = bench.take(3).await;
        if leases.is_empty() {
            break;
        }
        taken.extend(leases.into_iter().map(|lease| lease.key));
    }
    let released = others.remove(0).key;
    let at = taken.iter().position(|key| *key == released).expect("it is delivered again");
    taken.remove(at);
    assert_eq!(taken, others.into_iter().map(|job| job.key).collect::<Vec<_>>());
    assert_eq!(queued(&mut redis).await, 0);
    bench.check().await;
}

#[tokio::test]
async fn consumers_take_from_a_queue_that_was_cleaned_in_part() {
    let (bench, mut redis) = bench().await;
    let jobs: Vec<_> = (0..400).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    let queue = keys::lane_of(&format!("{} ", jobs[0].key.topic));
    let others = partly_cleaned(&bench, &mut redis, jobs, &queue).await;
    let mut taken = Vec::new();
    loop {
        let pulled = bench.pull(7, LONG).await;
        if pulled.jobs.is_empty() && !pulled.more {
            break;
        }
        for job in pulled.jobs {
            taken.push(job.key);
            assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
        }
    }
    assert_eq!(taken, others.into_iter().map(|job| job.key).collect::<Vec<_>>());
    let left: Vec<Vec<u8>> = keys::all(&mut redis, "front:*").await;
    assert!(left.is_empty(), "{left:?}");
    bench.check().await;
}

/// The number of entries in all slots, and of cancelled entries noted beside them.
async fn in_slots(redis: &mut MultiplexedConnection) -> (usize, usize) {
    let (mut entries, mut notes) = (0, 0);
    for key in keys::all::<Vec<u8>>(redis, "slot:*").await {
        entries += ask::<usize>(redis, &[b"LLEN", &key]).await;
    }
    for key in keys::all::<Vec<u8>>(redis, "cancelled:*").await {
        notes += ask::<usize>(redis, &[b"SCARD", &key]).await;
    }
    (entries, notes)
}

#[tokio::test]
async fn far_jobs_cancelled_moved_and_run_leave_no_growing_slot() {
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let jobs: Vec<_> = (0..100).map(|n| bench.job(&format!("job-{n}")).at(due)).collect();
    bench.submit(&jobs).await;
    let mut expected = jobs.len();
    for n in 0..1_500_u64 {
        let key = bench.accept(bench.job(&format!("short-{n}")).at(due.plus(ms(n)))).await.key;
        match n % 3 {
            0 => drop(bench.cancel(&key).await),
            1 => drop(bench.store().run(&key, bench.token()).await.expect("run")),
            _ => {
                let later = Due::At(due.plus(3 * HOURS));
                let moved = bench.store().reschedule(&key, later, bench.token()).await.expect("reschedule");
                assert!(matches!(moved, MoveResult::Applied(_)), "{moved:?}");
                expected += 1;
            }
        }
    }
    let (entries, notes) = in_slots(&mut redis).await;
    assert!(entries - notes == expected && notes <= jobs.len() + 100, "{entries} entries, {notes} cancelled");
    bench.check().await;
}
