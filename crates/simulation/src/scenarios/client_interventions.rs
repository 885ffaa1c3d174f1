//! Interventions by clients: cancels that race with deliveries, paused topics, submits that postpone a job, policies
//! that change between two attempts, and bulk revives of dead jobs.

use std::time::Duration;

use http::Method;
use rand::RngExt as _;
use ringback_core::clock::Timestamp;
use ringback_core::state::State;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::random_jobs::pick;
use crate::history::{Attempt, ResponseKind};
use crate::properties::by_job;
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 160;
const BURSTS: u64 = 400;
const URL: &str = "http://one.example/";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn always(status: u16, after: u64) -> Vec<Reply> {
    vec![Reply { answer: ResponseKind::Status(status), after: ms(after) }]
}

#[test]
fn a_cancelled_job_is_not_delivered_any_more() {
    seeds::run("a_cancelled_job_is_not_delivered_any_more", SEEDS, async |simulation: &mut Simulation| {
        simulation.start(1, 2).await;
        let mut cancelled: Vec<(String, Timestamp)> = Vec::new();
        for number in 0..3 {
            let id = format!("job-{number}");
            let status = pick(&mut simulation.rng, &[200, 500]);
            let latency = pick(&mut simulation.rng, &[0, 3, 50]);
            simulation.receiver.script(&format!("t/{id}"), always(status, latency));
            let fields =
                json!({"url": URL, "delay": "100ms", "retry": {"delays": ["10ms", "40ms"], "max": 20}});
            simulation.submit_surely("t", &id, &fields).await;
            // From before it is due until after it has ended.
            let wait = simulation.rng.random_range(90..260);
            sleep(ms(wait)).await;
            let (answered, body) = simulation.cancel("t", &id).await;
            let at = simulation.now();
            match (answered, body["state"].as_str()) {
                (200, Some("cancelled")) => cancelled.push((id, at)),
                (202, Some("reserved")) => {
                    // The attempt in flight may end, and none follows.
                    let begun = count(simulation, &id);
                    sleep(ms(2_000)).await;
                    assert_eq!(count(simulation, &id), begun, "{}", simulation.history.log());
                }
                (409, _) => assert_eq!(status, 200, "{}", simulation.history.log()),
                _ => panic!("cancel: {answered} {body}"),
            }
        }
        simulation.run_to_the_end().await;
        let attempts = by_job(simulation);
        for (id, at) in cancelled {
            let later = |attempt: &&Attempt| attempt.started >= at;
            let found = attempts.get(&format!("t/{id}")).and_then(|all| all.iter().find(later));
            assert!(found.is_none(), "cancelled at {at}: {found:?}\n{}", simulation.history.log());
        }
    });
}

fn count(simulation: &Simulation, id: &str) -> usize {
    by_job(simulation).get(&format!("t/{id}")).map_or(0, Vec::len)
}

#[test]
fn nothing_is_delivered_while_a_topic_is_paused() {
    seeds::run("nothing_is_delivered_while_a_topic_is_paused", SEEDS, async |simulation: &mut Simulation| {
        simulation.start(2, 2).await;
        for number in 0..8 {
            let delay = simulation.rng.random_range(0..2_000);
            let fields = json!({"url": URL, "delay": format!("{delay}ms")});
            simulation.submit_surely("t", &format!("job-{number}"), &fields).await;
        }
        let wait = simulation.rng.random_range(0..1_500);
        sleep(ms(wait)).await;
        assert_eq!(simulation.post("/v1/topics/t/pause", &Value::Null).await.0, 200);
        let paused = simulation.now();
        let length = pick(&mut simulation.rng, &[500, 5_000, 90_000]);
        sleep(ms(length)).await;
        let resumed = simulation.now();
        assert_eq!(simulation.post("/v1/topics/t/resume", &Value::Null).await.0, 200);
        simulation.run_to_the_end().await;
        for attempt in simulation.history.attempts() {
            // A reserve that was answered before the pause begins its attempts in the same moment.
            let is_in_pause = attempt.started > paused && attempt.started < resumed;
            assert!(!is_in_pause, "{attempt:?}\n{}", simulation.history.log());
            let latest = if attempt.due < paused { attempt.due } else { attempt.due.max(resumed) };
            let late = attempt.started.since(latest);
            assert!(late < ms(30) || attempt.due < paused, "{late:?}: {attempt:?}");
        }
        assert_eq!(simulation.history.attempts().len(), 8, "{}", simulation.history.log());
    });
}

#[test]
fn a_burst_of_submits_is_one_delivery_when_it_ends() {
    seeds::run(
        "a_burst_of_submits_is_one_delivery_when_it_ends",
        BURSTS,
        async |simulation: &mut Simulation| {
            simulation.start(1, 1).await;
            let (first, limit) = (simulation.now(), pick(&mut simulation.rng, &[None, Some(20_000)]));
            let (mut due, mut last) = (first, 0);
            for number in 0..simulation.rng.random_range(1..8) {
                let mut fields = json!({"url": URL, "delay": "8s", "body": number, "if_exists": "postpone"});
                if let Some(limit) = limit {
                    fields["max_delay"] = json!(format!("{limit}ms"));
                }
                let bound = limit.map_or(Timestamp::from_millis(u64::MAX), |limit| first.plus(ms(limit)));
                if simulation.now().plus(ms(8_000)) >= bound.plus(ms(7_000)) {
                    break;
                }
                due = simulation.now().plus(ms(8_000)).min(bound);
                last = number;
                simulation.submit_surely("t", "burst", &fields).await;
                let pause = simulation.rng.random_range(0..6_000);
                if due <= simulation.now().plus(ms(pause + 10)) {
                    break;
                }
                simulation.run_for(ms(pause)).await;
            }
            simulation.run_to_the_end().await;
            let attempts = simulation.history.attempts();
            let [attempt] = attempts.as_slice() else {
                panic!("{attempts:#?}\n{}", simulation.history.log())
            };
            assert_eq!((attempt.body.as_str(), attempt.due), (last.to_string().as_str(), due));
            assert!(attempt.started.since(due) < ms(10), "{attempt:?}");
        },
    );
}

#[test]
fn a_policy_that_changes_counts_from_the_next_failure_on() {
    seeds::run(
        "a_policy_that_changes_counts_from_the_next_failure_on",
        SEEDS,
        async |simulation: &mut Simulation| {
            simulation.start(1, 1).await;
            simulation.receiver.script("t/a", always(500, 5));
            let mut last_wait = 0;
            for number in 0..3 {
                let wait = pick(&mut simulation.rng, &[50, 3_000, 600_000, 86_400_000]);
                let retry = json!({"delays": [format!("{wait}ms")], "max": -1, "jitter": 0});
                let policy = json!({"retry": retry});
                let (status, answer) = simulation.call(Method::PUT, "/v1/topics/t", &policy).await;
                assert!(matches!(status, 200 | 201), "{answer}");
                // The other processes read the policy within a second.
                sleep(ms(1_000)).await;
                if number == 0 {
                    simulation.submit_surely("t", "a", &json!({"url": URL})).await;
                } else {
                    let run = simulation.post("/v1/jobs/t/a/run", &Value::Null).await;
                    assert_eq!(run.0, 200, "{run:?}\n{}", simulation.history.log());
                }
                sleep(ms(20)).await;
                last_wait = wait;
            }
            let jobs = simulation.jobs().await;
            let attempts = &by_job(simulation)["t/a"];
            let last = attempts.last().expect("an attempt");
            let ended = last.ended.expect("it has ended");
            if jobs[0].state == State::Delayed {
                let due = jobs[0].due;
                let [earliest, latest] = [last_wait, last_wait + 30].map(|wait| ended.plus(ms(wait)));
                assert!(due >= earliest && due <= latest, "{due} is {last_wait} ms after {ended}");
            }
            assert_eq!(simulation.cancel("t", "a").await.0 / 100, 2);
        },
    );
}

#[test]
fn a_bulk_revive_delivers_each_dead_letter_once_at_its_rate() {
    seeds::run(
        "a_bulk_revive_delivers_each_dead_letter_once_at_its_rate",
        SEEDS / 4,
        async |simulation: &mut Simulation| {
            simulation.start(2, 1).await;
            let jobs = simulation.rng.random_range(1..20);
            for number in 0..jobs {
                let failed = Reply { answer: ResponseKind::Status(500), after: ms(1) };
                let delivered = Reply { answer: ResponseKind::Status(200), after: ms(1) };
                let id = format!("job-{number}");
                simulation.receiver.script(&format!("t/{id}"), vec![failed, delivered]);
                let fields = json!({"url": URL, "retry": {"preset": "none"}});
                simulation.submit_surely("t", &id, &fields).await;
            }
            simulation.run_to_the_end().await;
            let rate = pick(&mut simulation.rng, &[2, 10, 1_000]);
            let (status, answer) = simulation.post("/v1/topics/t/dead/revive", &json!({"rate": rate})).await;
            assert_eq!(status, 202, "{answer}");
            let began = simulation.now();
            // A carrier crashes during the revive, and the other one goes on after the claim has expired.
            sleep(ms(simulation.rng.random_range(1..2_000))).await;
            simulation.crash(1);
            sleep(ms(30_000)).await;
            let delivered = simulation.history.attempts().split_off(jobs);
            assert_eq!(delivered.len(), jobs, "{}", simulation.history.log());
            assert!(delivered.iter().all(Attempt::is_success));
            let shortest = Duration::from_secs(jobs as u64 - 1) / rate;
            let last = delivered.iter().map(|attempt| attempt.started).max().expect("some");
            // The first jobs may come at once, up to those of one second.
            assert!(last.since(began) + Duration::from_secs(1) >= shortest, "{:?}", last.since(began));
            simulation.restart(1).await;
        },
    );
}
