//! Cancels while roles crash, lose the store or its answers, and calls arrive late: what was cancelled is not delivered
//! any more, and what was reserved is not tried again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::clock::Timestamp;
use ringback_core::state::State;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::jobs::pick;
use super::under_faults::{begin_fault, end_fault};
use crate::history::{Attempt, ResponseKind};
use crate::properties::by_job;
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 40;
/// How many jobs were cancelled, and of how many that was requested.
static CANCELLED: AtomicUsize = AtomicUsize::new(0);
static REQUESTED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn cancels_hold_though_roles_fail() {
    let seeds = seeds::run("cancels_hold_though_roles_fail", SEEDS, async |simulation: &mut Simulation| {
        simulation.start(2, 2).await;
        let (mut cancelled, mut requested) = (Vec::new(), Vec::new());
        for number in 0..3 {
            let id = format!("job-{number}");
            let after = Duration::from_millis(pick(&mut simulation.rng, &[0, 3, 50, 2_500]));
            let answer = ResponseKind::Status(pick(&mut simulation.rng, &[200, 500, 500]));
            simulation.receiver.script(&format!("t/{id}"), vec![Reply { answer, after }]);
            let retry = json!({"delays": ["10ms", "2s"], "max": 5});
            let fields =
                json!({"url": "http://one.example/", "delay": "50ms", "timeout": "3s", "retry": retry});
            simulation.submit_surely("t", &id, &fields).await;
            sleep(Duration::from_millis(simulation.rng.random_range(0..400))).await;
            // What is in flight is lost with a notifier.
            let fault = begin_fault(simulation).await;
            match cancel_surely(simulation, &id).await {
                (200, body) if body["in_flight"] == "unknown" => {}
                (200, _) => cancelled.push((format!("t/{id}"), simulation.now())),
                (202, _) => requested.push((format!("t/{id}"), simulation.now())),
                (409, _) => {}
                (status, body) => panic!("cancel: {status} {body}"),
            }
            let lasts = pick(&mut simulation.rng, &[0, 700, 20_000]);
            simulation.run_for(Duration::from_millis(lasts)).await;
            end_fault(simulation, fault).await;
        }
        simulation.run_to_the_end().await;
        check(simulation, &cancelled, &requested).await;
        CANCELLED.fetch_add(cancelled.len(), Ordering::Relaxed);
        REQUESTED.fetch_add(requested.len(), Ordering::Relaxed);
    });
    let counts = [&CANCELLED, &REQUESTED].map(|count| count.load(Ordering::Relaxed));
    assert!((seeds as u64) < SEEDS || !counts.contains(&0), "{counts:?} cancels");
}

/// Checks jobs by the times at which they were cancelled, and at which that was requested.
async fn check(
    simulation: &Simulation,
    cancelled: &[(String, Timestamp)],
    requested: &[(String, Timestamp)],
) {
    let attempts = by_job(simulation);
    for (most, jobs) in [(0, cancelled), (1, requested)] {
        for (job, at) in jobs {
            let of_job = attempts.get(job).map_or(&[][..], Vec::as_slice);
            let is_later =
                |one: &&Attempt| one.started >= *at || (most > 0 && one.ended.is_none_or(|end| end >= *at));
            let found: Vec<_> = of_job.iter().filter(is_later).collect();
            assert!(found.len() <= most, "{job}, cancelled at {at}: {found:?}\n{}", simulation.history.log());
        }
    }
    for job in simulation
        .jobs()
        .await
        .iter()
        .filter(|job| requested.iter().any(|(name, _)| *name == job.key.to_string()))
    {
        let has_ended = matches!(job.state, State::Cancelled | State::Done);
        assert!(has_ended, "{job:?}\n{}", simulation.history.log());
    }
}

/// Cancels a job until the API answers.
async fn cancel_surely(simulation: &Simulation, id: &str) -> (u16, Value) {
    loop {
        match simulation.cancel("t", id).await {
            (0 | 503, _) => sleep(Duration::from_millis(300)).await,
            answer => return answer,
        }
    }
}
