//! Jobs that were replaced, postponed or moved in Redis: which former entries and records remain, and how much memory
//! they take.

use ringback_core::job::{Due, Job, NewJob};
use ringback_core::store_types::{FoundJob, MoveResult, SettleResult, StoreError, SubmitResult};
use ringback_core::token::Token;
use ringback_testkit::set_shard_field;

use crate::contract::job_builders::{BRIEF, LONG, With, bury, ms, retry};
use crate::contract::workbench::{Workbench, now};
use crate::prelude::*;
use crate::redis_layout::keys::{self, ask, bench, entry, key, key_of, lane, memory, queued, run};

/// A delay so long that a new job is in a slot.
const HOURS: Duration = Duration::from_secs(2 * 3600);
const WIDTH: u64 = 600_000;
/// The bytes of a tombstone without a token.
const TOMBSTONE: usize = 37;
/// Beyond every lease number that a clock gives for the next hundred years.
const FAR: u64 = 5_000_000_000_000_000;

/// Submits a job, asserts the answer, and returns the job.
async fn submit(bench: &Workbench, job: NewJob, answer: SubmitResult) -> Job {
    let submitted = bench.submit(&[job]).await.remove(0);
    assert_eq!(submitted.answer, answer, "{:?}", submitted.job);
    submitted.job
}

#[tokio::test]
async fn thousands_of_postponements_of_one_far_job_take_less_than_a_kilobyte() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a").after(HOURS)).await;
    let before = memory(&mut redis, &["*"]).await;
    for n in 0..2_000_u32 {
        let new = bench.job("a").after(HOURS + ms(700_000) * (n % 500)).content((n % 250) as u8);
        submit(&bench, bench.postponing(new), SubmitResult::Postponed).await;
    }
    let more = memory(&mut redis, &["*"]).await - before;
    assert!(more < 1024, "2,000 postponements take {more} bytes");
    assert_eq!(bench.get(&job.key).await.created, job.created);
    bench.check().await;
    bench.cancel(&job.key).await;
    let left: Vec<Vec<u8>> = keys::all(&mut redis, "due:*").await;
    assert!(left.is_empty() && keys::all::<Vec<u8>>(&mut redis, "due_lanes").await.is_empty(), "{left:?}");
    bench.check().await;
}

#[tokio::test]
async fn thousands_of_reschedules_of_one_far_job_take_less_than_a_kilobyte() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a").after(HOURS)).await;
    let before = memory(&mut redis, &["*"]).await;
    for n in 0..2_000_u32 {
        let due = Due::In(HOURS + ms(700_000) * (n % 500));
        let moved = bench.store().reschedule(&job.key, due, bench.token()).await.expect("reschedule");
        assert!(matches!(moved, MoveResult::Applied(_)), "{moved:?}");
    }
    let more = memory(&mut redis, &["*"]).await - before;
    assert!(more < 1024, "2,000 reschedules take {more} bytes");
    bench.check().await;
}

#[tokio::test]
async fn a_job_replaced_for_ever_new_origins_leaves_no_lanes_behind() {
    let (bench, mut redis) = bench().await;
    let paused = bench.store().pause(&bench.key("store", "a").topic, None).await.expect("the store answers");
    assert_eq!(paused, Ok(()));
    for due in [HOURS, Duration::ZERO] {
        for n in 0..300 {
            let new = bench.job("a").after(due).to(&format!("http://receiver-{n}.example"));
            bench.submit(&[bench.replacing(new)]).await;
            // A lane of a paused topic is set aside.
            assert!(bench.take(10).await.is_empty());
        }
        bench.check().await;
        // A pause is written to all shards.
        let pools: Vec<String> = keys::all(&mut redis, "pool").await;
        for (name, most) in [("due_lanes", 1_usize), ("lanes", 1), ("paused", 1), ("index", 130)] {
            let key = pools[0].replace(":pool", &format!(":{name}"));
            let members: usize = ask(&mut redis, &[b"ZCARD", key.as_bytes()]).await;
            assert!(members <= most, "{members} members of {name}");
        }
        let queues: Vec<Vec<u8>> = keys::all(&mut redis, "ready:*").await;
        assert!(queues.len() <= 1, "{queues:?}");
    }
}

#[tokio::test]
async fn a_far_job_that_is_moved_takes_no_more_memory_in_the_schedule() {
    const SCHEDULE: [&str; 5] = ["due:*", "due_lanes", "slot:*", "cancelled:*", "slots"];
    let (bench, mut redis) = bench().await;
    let due = now().plus(HOURS);
    let jobs: Vec<_> = (0..500).map(|n| bench.job(&format!("job-{n}")).at(due)).collect();
    bench.submit(&jobs).await;
    let before = memory(&mut redis, &SCHEDULE).await;
    for (n, job) in jobs.into_iter().enumerate() {
        let moved = job.at(due.plus(LONG).plus(ms(n as u64)));
        submit(&bench, bench.postponing(moved), SubmitResult::Postponed).await;
    }
    let after = memory(&mut redis, &SCHEDULE).await;
    assert!(after < before + before / 10, "{before} bytes have become {after}");
    bench.check().await;
}

#[tokio::test]
async fn a_far_job_that_is_moved_leaves_an_entry_in_its_slot_which_nothing_acts_on() {
    let (bench, mut redis) = bench().await;
    let job = bench.accept(bench.job("a").after(HOURS)).await;
    let others =
        [bench.accept(bench.job("b").at(job.due)).await, bench.accept(bench.job("c").at(job.due)).await];
    let slot = job.due.as_millis() / WIDTH;
    let (list, void) =
        (key(&mut redis, &format!("slot:{slot}")).await, key(&mut redis, &format!("cancelled:{slot}")).await);
    let item = [entry(&job), lane()].concat();
    let other = bench.job("a").after(HOURS + LONG).to("http://other.example");
    for is_back in [false, true, false] {
        let new = if is_back { bench.job("a").at(job.due) } else { other.clone() };
        let moved = submit(&bench, bench.postponing(new), SubmitResult::Postponed).await;
        assert_eq!((moved.due == job.due, moved.created), (is_back, job.created));
        bench.check().await;
        let entries: Vec<Vec<u8>> = ask(&mut redis, &[b"LRANGE", list.as_bytes(), b"0", b"-1"]).await;
        assert_eq!(entries.iter().filter(|entry| **entry == item).count(), 1, "{entries:?}");
        let notes: Vec<Vec<u8>> = ask(&mut redis, &[b"SMEMBERS", void.as_bytes()]).await;
        assert_eq!(notes, if is_back { vec![] } else { vec![item.clone()] });
    }
    // Moves the slot to a near time.
    let near = now().as_millis() / WIDTH + 1;
    for (name, from) in [("slot", &list), ("cancelled", &void)] {
        let to = key(&mut redis, &format!("{name}:{near}")).await;
        run(&mut redis, &[b"RENAME", from.as_bytes(), to.as_bytes()]).await;
    }
    let (slots, shard, number) =
        (key(&mut redis, "slots").await, key(&mut redis, "shard").await, near.to_string());
    run(&mut redis, &[b"ZREM", slots.as_bytes(), slot.to_string().as_bytes()]).await;
    run(&mut redis, &[b"ZADD", slots.as_bytes(), number.as_bytes(), number.as_bytes()]).await;
    set_shard_field(&mut redis, &shard, "slot", near as i64).await;
    assert_eq!(bench.promote(10).await.moved, 0);
    let due = key_of(&mut redis, "due:", &lane()).await;
    let mut sorted: Vec<Vec<u8>> = keys::members(&mut redis, &due).await;
    let mut expected = others.each_ref().map(entry).to_vec();
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
    bench.check().await;
}

#[tokio::test]
async fn a_ready_job_that_is_replaced_again_and_again_keeps_its_place_in_the_queue() {
    let (bench, mut redis) = bench().await;
    let (first, last) = (bench.accept(bench.job("first")).await, bench.job("last"));
    bench.accept(last.clone()).await;
    for n in 0..200 {
        submit(&bench, bench.replacing(bench.job("first").content(n)), SubmitResult::Replaced).await;
    }
    assert_eq!(queued(&mut redis).await, 2);
    // A job that is delayed again leaves the queue.
    submit(&bench, bench.postponing(last.after(LONG)), SubmitResult::Postponed).await;
    assert_eq!(queued(&mut redis).await, 1);
    bench.check().await;
    let lease = bench.take_one(&first.key).await;
    assert_eq!((lease.attempt, lease.created), (1, first.created));
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    assert!(bench.take(10).await.is_empty());
}

#[tokio::test]
async fn a_replaced_job_deep_in_its_queue_is_delivered_once() {
    let (bench, mut redis) = bench().await;
    let jobs: Vec<_> = (0..500).map(|n| bench.job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let deep = bench.replacing(jobs[250].clone().content(2));
    let deep = submit(&bench, deep, SubmitResult::Replaced).await;
    let away = bench.postponing(jobs[251].clone().after(LONG));
    submit(&bench, away, SubmitResult::Postponed).await;
    assert_eq!(queued(&mut redis).await, 501);
    bench.check().await;
    let mut taken = Vec::new();
    loop {
        let leases = bench.take(500).await;
        if leases.is_empty() {
            break;
        }
        taken.extend(leases);
    }
    assert_eq!(taken.len(), 499);
    let of_deep: Vec<_> = taken.iter().filter(|lease| lease.key == deep.key).collect();
    assert!(of_deep.len() == 1 && of_deep[0].due == deep.due, "{} leases", of_deep.len());
    bench.check().await;
}

#[tokio::test]
async fn a_job_leaves_its_token_in_its_tombstone_however_it_ends() {
    let (bench, mut redis) = bench().await;
    let plain = bench.job_in(State::Done, bench.job("plain")).await;
    let done = bench.replacing(bench.job("done"));
    bench.job_in(State::Done, done.clone()).await;
    let large = bench.replacing(bench.job("large").body(noise(b'x', 5000).into()));
    bench.job_in(State::Done, large.clone()).await;
    let cancelled = bench.postponing(bench.job("cancelled"));
    bench.job_in(State::Cancelled, cancelled.clone()).await;
    let late = bench.replacing(bench.job("late").timeout(BRIEF));
    let lease = bench.stale_lease(late.clone()).await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Late);
    let pulled = bench.replacing(bench.pull_job("pulled"));
    bench.accept(pulled.clone()).await;
    let receipt = bench.pull_one(&pulled.key, LONG).await.receipt;
    assert_eq!(bench.settle_receipt(receipt, Outcome::Complete).await, SettleResult::Applied);

    let segment: Vec<Vec<u8>> = keys::all(&mut redis, "done:*").await;
    for job in [&done, &large, &cancelled, &late, &pulled] {
        let ended = bench.get(&job.key).await;
        assert_eq!(submit(&bench, job.clone(), SubmitResult::Repeated).await, ended);
        let other = submit(&bench, job.clone().content(9), SubmitResult::Conflict).await;
        assert_eq!(other, ended);
        let tomb: Vec<u8> = ask(&mut redis, &[b"HGET", &segment[0], &job.key.locator().0]).await;
        let Some(Token(token)) = job.if_exists.token() else { panic!("it has one") };
        assert_eq!(tomb[TOMBSTONE..], token, "{}", job.key);
    }
    let tomb: Vec<u8> = ask(&mut redis, &[b"HGET", &segment[0], &plain.key.locator().0]).await;
    assert_eq!(tomb.len(), TOMBSTONE);
    // A new generation removes it. A segment has one more entry.
    submit(&bench, bench.replacing(done), SubmitResult::Created).await;
    let left: usize = ask(&mut redis, &[b"HLEN", &segment[0]]).await;
    assert_eq!(left, 6);
    bench.check().await;
}

#[tokio::test]
async fn a_job_without_a_token_takes_no_bytes_for_it() {
    let (bench, mut redis) = bench().await;
    let plain = bench.accept(bench.job("a").after(HOURS)).await;
    let other = submit(&bench, bench.postponing(bench.job("b").after(HOURS)), SubmitResult::Created).await;
    let pool = key(&mut redis, "pool").await;
    let mut size = async |job: &Job| -> usize {
        ask(&mut redis, &[b"HSTRLEN", pool.as_bytes(), &job.key.locator().0]).await
    };
    let difference = plain.key.id.as_str().len() as isize - other.key.id.as_str().len() as isize;
    assert_eq!(size(&other).await as isize - size(&plain).await as isize + difference, 8);
    let runs: Vec<Vec<u8>> = keys::all(&mut redis, "states").await;
    assert!(runs.is_empty(), "neither needs a job state");
}

#[tokio::test]
async fn a_large_payload_goes_with_the_content_that_it_belongs_to() {
    let (bench, mut redis) = bench().await;
    let key = bench.accept(bench.job("a").after(HOURS).body(noise(b'a', 5000).into())).await.key;
    for body in [noise(b'b', 9000), noise(b'c', 10), noise(b'd', 7000)].map(Vec::from) {
        let is_large = body.len() > 2048;
        let new = bench.replacing(bench.job("a").body(body.clone()));
        submit(&bench, new, SubmitResult::Replaced).await;
        bench.check().await;
        let kept: Vec<Vec<u8>> = keys::all(&mut redis, "body:*").await;
        assert_eq!(kept.len(), usize::from(is_large));
        let lease = bench.take_one(&key).await;
        assert!(lease.delivery.body.bytes == body, "the body of another content");
        bench.settle(lease, bury()).await;
    }
}

#[tokio::test]
async fn a_former_record_never_goes_with_a_new_payload() {
    let (bench, mut redis) = bench().await;
    // With eight bytes less, the new payload and its token are as long as the former one.
    for (id, was, is) in [("a", 5_008, 5_000), ("b", 5_000, 5_000), ("c", 5_000, 9_000), ("d", 9_000, 5_000)]
    {
        let job = |letter, length| bench.job(id).after(HOURS).body(noise(letter, length).into());
        let former = bench.accept(job(b'a', was)).await;
        let pool = key(&mut redis, "pool").await;
        let locator = former.key.locator().0;
        let record: Vec<u8> = ask(&mut redis, &[b"HGET", pool.as_bytes(), &locator]).await;
        submit(&bench, bench.replacing(job(b'b', is)), SubmitResult::Replaced).await;
        let new = bench.store().get_stored(&former.key).await;
        assert!(matches!(new, Ok(Some(FoundJob::Stored(new))) if new.delivery.body.bytes == noise(b'b', is)));
        // Puts back the former record, as a reader sees it that reads the record before the call and the payload after
        // it.
        run(&mut redis, &[b"HSET", pool.as_bytes(), &locator, &record]).await;
        let torn = bench.store().get_stored(&former.key).await;
        assert!(matches!(torn, Err(StoreError::Unreadable(_))), "{id}: {torn:?}");
    }
}

#[tokio::test]
async fn a_lease_of_a_former_life_is_stale_even_if_lease_numbers_are_ahead_of_the_clock() {
    let (bench, mut redis) = bench().await;
    let shard = key(&mut redis, "shard").await;
    set_shard_field(&mut redis, &shard, "lease", FAR as i64).await;
    let lost = bench.stale_lease(bench.job("a").timeout(BRIEF)).await;
    let key = lost.key.clone();
    let new = submit(&bench, bench.replacing(bench.job("a").timeout(BRIEF)), SubmitResult::Replaced).await;
    assert_eq!((new.attempts, new.state), (1, State::Ready));
    assert_eq!(bench.settle(lost, Outcome::Complete).await, SettleResult::Stale);
    assert_eq!(bench.get(&key).await, new);
    // A lost lease of the new generation still counts, after a retry too.
    let late = bench.take_one(&key).await;
    bench.recover_until(&key, State::Ready).await;
    let current = bench.take_one(&key).await;
    bench.settle(current, retry(LONG)).await;
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    bench.check().await;
}
