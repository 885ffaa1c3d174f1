//! Processes that are killed or frozen at a bad moment, and function libraries that Redis loses: no job is lost, early
//! or undone.

use std::collections::HashMap;
use std::ops::RangeFrom;

use jiff::Timestamp;
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{Arrival, Role, variable};

use crate::prelude::*;
use crate::sample_jobs::{sentinel, time};

/// How long a whole storm may take; each lost lease costs two seconds and more.
const STORM: Duration = Duration::from_secs(180);
/// The jobs of a storm, unless `RINGBACK_TEST_JOBS` is set.
const STORM_JOBS: usize = 2_000;
/// The jobs of each later storm: few, so that most of the time is spent on kills.
const LATER_STORM_JOBS: usize = 200;
/// How many kills there are at least, unless `RINGBACK_TEST_KILLS` is set.
const STORM_KILLS: u64 = 40;

#[tokio::test]
async fn kill_9_again_and_again_loses_no_job_and_makes_none_early() {
    let options = Stack::options().count(Role::Carrier, 2).count(Role::Notifier, 2).lock_ttl("500ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    let (mut due, mut count, mut kills) = (HashMap::new(), 0, 0);
    let wanted = variable("RINGBACK_TEST_KILLS").unwrap_or(STORM_KILLS);
    // The processes are killed in turn, over all storms.
    let mut rounds = 0..;
    // A busy machine needs more than one storm for so many kills.
    while kills < wanted {
        let more = if count == 0 { storm_jobs() } else { LATER_STORM_JOBS };
        let jobs: Vec<Value> = (count..count + more)
            .map(|n| {
                let due = with(job(&sink, &format!("job-{n}")), "delay", format!("{}ms", n * 7 % 5_000));
                with(due, "timeout", "1s")
            })
            .collect();
        // Some jobs have arrived twice, so the total says nothing about new jobs.
        let before = sink.seen();
        due.extend(submit_all(&stack, &jobs).await);
        count += jobs.len();
        kills += storm(&mut stack, &sink, before + jobs.len(), (jobs.len() / 60).max(1), &mut rounds).await;
        eprintln!("{kills} kills, {count} jobs");
    }
    let ids: Vec<&String> = due.keys().collect();
    sink.wait_for_jobs(&ids, 1, STORM).await;
    none_is_early(&sink.arrivals(), &due);
    stack.wait_get("/v1/stats", STORM, |stats| stats["states"]["done"] == count).await;
    Reached::new(Figure::Kills, "kill 9 again and again", kills).write();
}

/// Kills and restarts one process after the other until `count` jobs have arrived. After each kill it waits for `step`
/// more arrivals, so that the run neither stalls nor ends early. Returns the number of kills.
async fn storm(
    stack: &mut Stack,
    sink: &Sink,
    count: usize,
    step: usize,
    rounds: &mut RangeFrom<usize>,
) -> u64 {
    let mut kills = 0;
    for round in rounds {
        let seen = sink.seen();
        if seen >= count {
            break;
        }
        let turn = round / 2 % 2;
        let victim = if round % 2 == 0 { &mut stack.notifiers[turn] } else { &mut stack.carriers[turn] };
        victim.restart();
        kills += 1;
        victim.ready(SOON).await;
        let goal = (seen + step).min(count);
        eventually(STORM, "the storm goes on", async || match sink.seen() {
            now if now >= goal => Ok(()),
            now => Err(format!("{now} of {count} arrived")),
        })
        .await;
    }
    kills
}

#[tokio::test]
async fn a_carrier_frozen_past_its_lock_loses_nothing() {
    let options = Stack::options().count(Role::Carrier, 2).lock_ttl("500ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    for (round, frozen) in [0, 1, 0].into_iter().enumerate() {
        stack.carriers[frozen].stop();
        let jobs: Vec<Value> = (0..200)
            .map(|n| with(job(&sink, &format!("{round}-{n}")), "delay", format!("{}ms", n * 5)))
            .collect();
        let due = submit_all(&stack, &jobs).await;
        let ids: Vec<&String> = due.keys().collect();
        // Once all jobs have arrived, the other carrier has taken over the shards of the frozen one.
        sink.wait_for_jobs(&ids, 1, STORM).await;
        stack.carriers[frozen].cont();
        none_is_early(
            &sink.arrivals().into_iter().filter(|a| due.contains_key(a.job_id())).collect::<Vec<_>>(),
            &due,
        );
    }
    sentinel(&stack, &sink, "after").await;
    assert_eq!(sink.seen(), 601, "no lease has run out, so nothing arrives twice");
}

#[tokio::test]
async fn a_notifier_frozen_past_its_lease_cannot_undo_a_success() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    freeze_in_flight(&mut stack, &sink, "frozen").await;
    sink.answer_job("frozen", Answer::status(200));
    stack.add(Role::Notifier).await;
    let done = stack.wait_state(TOPIC, "frozen", "done", STORM).await;
    assert_eq!(done["attempts"], 2, "{done}");

    wakes_up(&mut stack, &sink).await;
    assert_eq!(stack.wait_state(TOPIC, "frozen", "done", SOON).await, done);
    assert_eq!(sink.arrivals_of("frozen").len(), 2);
}

#[tokio::test]
async fn a_notifier_frozen_past_its_lease_cannot_undo_a_cancel() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    freeze_in_flight(&mut stack, &sink, "frozen").await;
    assert_eq!(stack.cancel(TOPIC, "frozen").await.0, 202);
    stack.wait_state(TOPIC, "frozen", "cancelled", STORM).await;

    wakes_up(&mut stack, &sink).await;
    stack.wait_state(TOPIC, "frozen", "cancelled", SOON).await;
    assert_eq!(sink.arrivals_of("frozen").len(), 1);
}

#[tokio::test]
async fn a_job_that_kills_five_notifiers_is_dead_and_kept() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("poison", Answer::status(200).held());
    stack.accept(&with(job(&sink, "poison"), "timeout", "1s")).await;
    for attempt in 1..=5 {
        sink.wait_for_job("poison", attempt, STORM).await;
        stack.notifiers[0].restart();
    }
    let dead = stack.wait_state(TOPIC, "poison", "dead", STORM).await;
    assert_eq!(
        (&dead["reason"], &dead["attempts"], &dead["failures"]),
        (&json!("lost"), &json!(5), &json!(0)),
        "{dead}"
    );
    sentinel(&stack, &sink, "after").await;
}

#[tokio::test]
async fn functions_that_redis_has_flushed_are_loaded_again_unnoticed() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let mut redis = stack.redis().client().await;
    for round in 0..15 {
        let ids: Vec<String> = (0..10).map(|n| format!("{round}-{n}")).collect();
        for id in &ids {
            stack.accept(&with(job(&sink, id), "delay", "50ms")).await;
        }
        redis::cmd("FUNCTION").arg("FLUSH").query_async::<()>(&mut redis).await.expect("FUNCTION FLUSH");
        sink.wait_for_jobs(&ids, 1, SOON).await;
    }
    sentinel(&stack, &sink, "after").await;
    assert_eq!(sink.seen(), 151);
    for process in stack.processes() {
        let log = process.log();
        assert!(!log.contains("Function not found"), "{log}");
    }
}

#[tokio::test]
async fn an_api_killed_after_its_answer_has_kept_the_job() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    for n in 0..5 {
        let id = format!("job-{n}");
        stack.accept(&with(job(&sink, &id), "delay", "300ms")).await;
        stack.apis[0].restart();
        stack.apis[0].ready(SOON).await;
        sink.wait_for_job(&id, 1, SOON).await;
    }
}

/// Submits jobs in batches. Returns the due time of each.
async fn submit_all(stack: &Stack, jobs: &[Value]) -> HashMap<String, Timestamp> {
    let mut due = HashMap::new();
    for chunk in jobs.chunks(500) {
        // A busy machine may refuse some jobs, so the batch is repeated; for accepted jobs that changes nothing.
        let answer = eventually(STORM, "the jobs are accepted", async || match stack.batch(chunk).await {
            (200, answer) if answer["accepted"] == chunk.len() => Ok(answer),
            (status, answer) => Err(format!("{status}: {answer}")),
        })
        .await;
        for result in answer["results"].as_array().expect("results") {
            let job = &result["job"];
            due.insert(job["id"].as_str().expect("an id").to_owned(), time(&job["due_at"]));
        }
    }
    due
}

fn none_is_early(arrivals: &[Arrival], due: &HashMap<String, Timestamp>) {
    for arrival in arrivals {
        let first = due[arrival.job_id()];
        let this = arrival.due_at().expect("ringback-due-at");
        assert!(
            arrival.at >= first && arrival.at >= this,
            "{} at {}, due {first}, {this}",
            arrival.job_id(),
            arrival.at
        );
    }
}

/// Submits a job whose receiver hangs, and freezes the only busy notifier during the attempt.
async fn freeze_in_flight(stack: &mut Stack, sink: &Sink, id: &str) {
    sink.answer_job(id, Answer::status(200).held());
    let policy = json!({"delays": ["100ms"], "jitter": 0});
    stack.accept(&with(with(job(sink, id), "timeout", "1s"), "retry", policy)).await;
    sink.wait_for_job(id, 1, SOON).await;
    stack.notifiers[0].stop();
}

/// Continues the frozen notifier, alone, and waits until it has given up its old call and delivered a later job.
async fn wakes_up(stack: &mut Stack, sink: &Sink) {
    stack.notifiers.truncate(1);
    stack.notifiers[0].cont();
    eventually(SOON, "the old call is given up", async || match sink.hung_up() {
        0 => Err("the receiver is still being waited for"),
        _ => Ok(()),
    })
    .await;
    sentinel(stack, sink, "after").await;
}

fn storm_jobs() -> usize {
    variable("RINGBACK_TEST_JOBS").unwrap_or(STORM_JOBS)
}
