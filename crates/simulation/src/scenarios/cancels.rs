//! Cancels while roles crash, lose the store or its answers, and calls arrive late: a cancelled job is not delivered
//! any more, and a job that was reserved at the cancel is not tried again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::clock::Timestamp;
use ringback_core::state::State;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::random_jobs::pick;
use super::under_faults::{begin_fault, end_fault};
use crate::history::ResponseKind;
use crate::properties::by_job;
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 40;
/// How many jobs were cancelled, and for how many reserved jobs a cancel was requested.
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
            // A notifier that crashes loses its attempts in flight.
            let fault = begin_fault(simulation).await;
            match cancel_surely(simulation, &id).await {
                (200, body) if body["in_flight"] == "unknown" => {}
                (200, _) => cancelled.push(Cancelled::now(simulation, &id)),
                (202, _) => requested.push(Cancelled::now(simulation, &id)),
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

/// A job that was cancelled, or for which a cancel was requested, and how many of its attempts had begun and ended by
/// then. Times would not do: an attempt may begin and end in the millisecond of the cancel.
struct Cancelled {
    job: String,
    at: Timestamp,
    started: usize,
    ended: usize,
}

impl Cancelled {
    fn now(simulation: &Simulation, id: &str) -> Self {
        let job = format!("t/{id}");
        let attempts = by_job(simulation).remove(&job).unwrap_or_default();
        let ended = attempts.iter().filter(|attempt| attempt.ended.is_some()).count();
        Self { job, at: simulation.now(), started: attempts.len(), ended }
    }
}

/// Checks that no attempt of a cancelled job began after the cancel, that a requested cancel let at most the attempt in
/// flight end, and that such a job is cancelled or done.
async fn check(simulation: &Simulation, cancelled: &[Cancelled], requested: &[Cancelled]) {
    let attempts = by_job(simulation);
    let without_more = cancelled.iter().map(|one| (one, one.started));
    let with_one_more = requested.iter().map(|one| (one, one.ended + 1));
    for (Cancelled { job, at, .. }, most) in without_more.chain(with_one_more) {
        let of_job = attempts.get(job).map_or(&[][..], Vec::as_slice);
        assert!(of_job.len() <= most, "{job}, cancelled at {at}: {of_job:?}\n{}", simulation.history.log());
    }
    for job in simulation
        .jobs()
        .await
        .iter()
        .filter(|job| requested.iter().any(|one| one.job == job.key.to_string()))
    {
        let has_ended = matches!(job.state, State::Cancelled | State::Done);
        assert!(has_ended, "{job:?}\n{}", simulation.history.log());
    }
}

/// Sends a cancel again until the API runs and answers with a status other than 503.
async fn cancel_surely(simulation: &Simulation, id: &str) -> (u16, Value) {
    loop {
        match simulation.cancel("t", id).await {
            (0 | 503, _) => sleep(Duration::from_millis(300)).await,
            answer => return answer,
        }
    }
}
