//! Random jobs without faults: every attempt is on time, within the narrow bounds of `properties`, and every job ends
//! as its receiver answered.

use std::time::Duration;

use rand::RngExt as _;
use ringback_core::clock::Timestamp;

use super::random_jobs::random_job;
use crate::properties::{Submitted, by_job, check_job};
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 500;

#[test]
fn jobs_without_faults_are_exact() {
    seeds::run("jobs_without_faults_are_exact", SEEDS, exact_jobs);
}

/// Runs random jobs on a random number of roles and checks them at the end. `repeatable` runs this too.
pub(super) async fn exact_jobs(simulation: &mut Simulation) {
    let (carriers, notifiers) = (simulation.rng.random_range(1..3), simulation.rng.random_range(1..3));
    simulation.start(carriers, notifiers).await;
    let jobs = submit_some(simulation).await;
    simulation.run_to_the_end().await;
    check_all(simulation, &jobs).await;
}

/// Submits one to three random jobs, up to 3 s apart, and returns them with the due times that the store uses.
pub(super) async fn submit_some(simulation: &mut Simulation) -> Vec<Submitted> {
    let mut jobs = Vec::new();
    for number in 0..simulation.rng.random_range(1..4) {
        let (mut job, fields) = random_job(simulation, "t", format!("job-{number}"));
        let began = simulation.now();
        simulation.submit_surely(job.topic, &job.id, &fields).await;
        // A time in the past means the time at which it was accepted.
        job.due = job.due.max(accepted_at(simulation, &job, began).await);
        jobs.push(job);
        let pause = Duration::from_millis(simulation.rng.random_range(0..3_000));
        simulation.run_for(pause).await;
    }
    jobs
}

async fn accepted_at(simulation: &Simulation, job: &Submitted, began: Timestamp) -> Timestamp {
    let found = simulation.jobs().await.into_iter().find(|found| found.key.id.as_str() == job.id);
    found.map_or(began, |found| found.created)
}

pub(super) async fn check_all(simulation: &Simulation, jobs: &[Submitted]) {
    let (found, attempts) = (simulation.jobs().await, by_job(simulation));
    for job in jobs {
        let found = found.iter().find(|found| found.key.id.as_str() == job.id);
        let found = found.unwrap_or_else(|| panic!("lost: {job:?}\n{}", simulation.history.log()));
        let attempts = attempts.get(&job.name()).map_or(&[][..], Vec::as_slice);
        check_job(simulation, job, found, attempts);
    }
}
