//! Cases of `submit`: jobs become delayed or, if due, ready; due times, repetitions, conflicts, batches and sizes.

use ringback_core::clock::Timestamp;
use ringback_core::job::{MAX_AHEAD, MAX_BODY, NewJob};
use ringback_core::store_types::{SettleResult, SubmitResult};

use super::job_builders::{LONG, STATES, With, ms, new_job};
use super::workbench::{Workbench, is_late_enough, now};
use crate::prelude::*;

pub(crate) async fn a_job_with_a_delay_is_delayed_and_never_due_early(bench: &Workbench) {
    for (name, delay) in [("a", ms(1)), ("b", ms(50)), ("c", Duration::from_micros(20_500)), ("d", LONG)] {
        let (before, moment) = (now(), ringback_testkit::now());
        let job = bench.accept(bench.job(name).after(delay)).await;
        assert_eq!((job.state, job.attempts, job.failures), (State::Delayed, 0, 0));
        assert!(is_late_enough(job.due, moment, delay), "{} is due {}, too early", job.key, job.due);
        assert!(job.due <= now().plus(delay + ms(1)), "{} is due too late", job.key);
        assert!(job.created >= before && job.created <= now());
        assert_eq!(bench.get(&job.key).await, job);
    }
}

pub(crate) async fn a_job_without_a_delay_is_ready(bench: &Workbench) {
    let before = now();
    let job = bench.accept(bench.job("a")).await;
    assert_eq!(job.state, State::Ready);
    assert!(job.due >= before && job.due <= now());
    assert_eq!(bench.get(&job.key).await, job);
    bench.take_one(&job.key).await;
}

pub(crate) async fn a_job_due_in_the_past_is_ready_and_due_now(bench: &Workbench) {
    for (name, time) in [("a", Timestamp::from_millis(0)), ("b", now())] {
        let before = now();
        let job = bench.accept(bench.job(name).at(time)).await;
        assert_eq!(job.state, State::Ready, "due at {time}");
        assert!(job.due >= before && job.due <= now(), "due at {time}: lateness counts from the submit");
    }
}

pub(crate) async fn a_job_due_at_a_time_is_due_exactly_then(bench: &Workbench) {
    let time = now().plus(LONG);
    let job = bench.accept(bench.job("a").at(time)).await;
    assert_eq!((job.state, job.due), (State::Delayed, time));
}

pub(crate) async fn the_same_content_again_returns_the_state_of_the_job(bench: &Workbench) {
    for state in STATES {
        let job = bench.job(state.into());
        let known = bench.job_in(state, job.clone()).await;
        let accepted = bench.stats().await.accepted;
        // The due time differs, but only the hash of the content counts.
        for again in [job.clone(), job.after(LONG)] {
            let answer = bench.submit(&[again]).await.remove(0);
            // A job that was cancelled is never sent, so that is not a repetition.
            let wanted =
                if state == State::Cancelled { SubmitResult::Cancelled } else { SubmitResult::Repeated };
            assert_eq!((answer.answer, &answer.job), (wanted, &known), "{state}");
        }
        assert_eq!(bench.get(&known.key).await, known);
        assert_eq!(bench.stats().await.accepted, accepted);
    }
}

pub(crate) async fn other_content_under_a_known_name_is_a_conflict(bench: &Workbench) {
    for state in STATES {
        let job = bench.job(state.into());
        let known = bench.job_in(state, job.clone()).await;
        let answer = bench.submit(&[job.content(9)]).await.remove(0);
        assert_eq!((answer.answer, &answer.job), (SubmitResult::Conflict, &known), "{state}");
        assert_eq!(bench.get(&known.key).await, known);
    }
    assert_eq!(bench.stats().await.accepted, 6);
}

pub(crate) async fn a_name_twice_in_one_batch_is_submitted_twice(bench: &Workbench) {
    let job = bench.job("a").after(LONG);
    let batch = [job.clone(), bench.job("b"), job.clone(), job.content(9), bench.job("b")];
    let answers: Vec<_> = bench.submit(&batch).await.into_iter().map(|answer| answer.answer).collect();
    use SubmitResult::{Conflict, Created, Repeated};
    assert_eq!(answers, [Created, Created, Repeated, Conflict, Repeated]);
    assert_eq!(bench.stats().await.accepted, 2);
    assert_eq!(bench.take(10).await.len(), 1);
}

pub(crate) async fn a_batch_of_500_jobs_of_mixed_topics_is_answered_in_order(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..500)
        .map(|n| {
            let job = bench.job_of(&format!("topic-{}", n % 50), &format!("job-{n}"));
            if n % 2 == 0 { job } else { job.after(ms(n)) }
        })
        .collect();
    let answers = bench.submit(&jobs).await;
    for (answer, job) in answers.iter().zip(&jobs) {
        assert_eq!((answer.answer, &answer.job.key), (SubmitResult::Created, &job.key));
    }
    let stats = bench.stats().await;
    assert_eq!((stats.accepted, stats.states.ready, stats.states.delayed), (500, 250, 250));
    assert_eq!(stats.topics.len(), 50);
    bench.promote_until(250).await;
    let mut taken = std::collections::HashSet::new();
    while taken.len() < 500 {
        let leases = bench.take(500).await;
        assert!(!leases.is_empty(), "{} of 500 can be reserved", taken.len());
        taken.extend(leases.into_iter().map(|lease| lease.key));
    }
}

pub(crate) async fn a_body_of_200_kb_is_kept_whole_and_goes_with_its_job(bench: &Workbench) {
    let body: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    for (name, outcome) in
        [("a", Outcome::Complete), ("b", super::job_builders::bury()), ("c", Outcome::Complete)]
    {
        let lease = bench.reserved(bench.job(name).body(body.clone())).await;
        assert!(lease.delivery.body.bytes == body, "the body has changed");
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
    }
    let waiting = bench.accept(bench.job("d").body(body).after(LONG)).await;
    bench.cancel(&waiting.key).await;
}

pub(crate) async fn the_longest_name_the_longest_delay_and_the_largest_body_fit(bench: &Workbench) {
    let key = bench.key(&"t".repeat(64), &"i".repeat(120));
    let origin = format!("http://{}.example:65535", "h".repeat(60));
    let job = new_job(key).to(&origin).body(vec![0; MAX_BODY]);
    let far = bench.accept(bench.job("far").after(MAX_AHEAD)).await;
    // The carrier may have to look some minutes before.
    assert_eq!(bench.promote(10).await.next_due.map(|d| d > MAX_AHEAD - 3 * LONG), Some(true));
    assert_eq!(bench.get(&far.key).await, far);
    let lease = bench.reserved(job.clone()).await;
    assert_eq!((&lease.key, &lease.delivery), (&job.key, &job.delivery));
}

pub(crate) async fn shards_add_up_to_one_installation(bench: &Workbench) {
    let store = bench.store();
    for n in 0..60 {
        let key = bench.key("unused", &format!("{n}"));
        let key = ringback_core::job::JobKey { id: format!("job-{n}").parse().expect("an id"), ..key };
        let shard = store.shard_of(&key);
        let answers = store.submit(shard, &[new_job(key.clone())]).await.expect("submit");
        assert_eq!(answers[0].answer, SubmitResult::Created);
        assert_eq!(bench.state(&key).await, Some(State::Ready));
    }
    let mut leases = Vec::new();
    for shard in store.shards() {
        let taken = store.reserve(shard, &bench.ask(60)).await.expect("reserve").leases;
        assert!(taken.len() > 5, "{} of 60 jobs lie in shard {shard}", taken.len());
        assert!(taken.iter().all(|lease| lease.shard() == shard));
        leases.extend(taken);
    }
    assert_eq!(leases.len(), 60);
    assert_eq!(bench.stats().await.states.reserved, 60);
}
