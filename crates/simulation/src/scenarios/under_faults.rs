//! Random jobs while roles crash, restart, lose the store for longer than a lease, get errors, lose answers or give up
//! calls that arrive later, and while the whole machine is suspended. Nothing is lost, early or invented; after the
//! last fault everything drains.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::state::State;
use tokio::time::{advance, sleep};

use super::random_jobs::{pick, random_job};
use super::without_faults::check_all;
use crate::calls::Line;
use crate::properties::LATE;
use crate::seeds;
use crate::world::{Kind, Simulation};

const SEEDS: u64 = 400;
/// With this many seeds at least one fault has an effect.
const ENOUGH: usize = 300;
/// How long the roles run on after a fault: calls without an answer time out, and failed work is retried. A leap of
/// time before that would only prolong the fault.
const AFTERMATH: Duration = Duration::from_secs(10);
/// How many attempts began late, or ended neither as a success nor as a failure, which only faults cause.
static HARMED: AtomicU32 = AtomicU32::new(0);

#[test]
fn jobs_under_faults_are_not_lost() {
    let seeds = seeds::run("jobs_under_faults_are_not_lost", SEEDS, jobs_under_faults);
    let harmed = HARMED.load(Ordering::Relaxed);
    assert!(seeds < ENOUGH || harmed > 0, "the faults have no effect");
}

/// Submits random jobs, half of them during a fault, and checks them at the end. `repeatable` runs this too.
pub(super) async fn jobs_under_faults(simulation: &mut Simulation) {
    simulation.start(2, 2).await;
    let (mut jobs, mut has_leapt) = (Vec::new(), false);
    for number in 0..simulation.rng.random_range(1..5) {
        let (job, fields) = random_job(simulation, "t", format!("job-{number}"));
        let fault = simulation.rng.random_bool(0.5);
        let during = if fault { Some(begin_fault(simulation).await) } else { None };
        simulation.submit_surely(job.topic, &job.id, &fields).await;
        jobs.push(job);
        let pause = pick(&mut simulation.rng, &[0, 1, 40, 700, 9_000, 30_000]);
        simulation.run_for(Duration::from_millis(pause)).await;
        if let Some(fault) = during {
            has_leapt |= matches!(fault.what, What::Suspend);
            end_fault(simulation, fault).await;
        }
    }
    simulation.run_to_the_end().await;
    for job in &mut jobs {
        // The job may have been accepted after its due time.
        let found = simulation.jobs().await.into_iter().find(|found| found.key.id.as_str() == job.id);
        job.due = job.due.max(found.expect("an accepted job is known").created);
    }
    check_all(simulation, &jobs).await;
    for job in simulation.jobs().await {
        let settled = job.failures + u32::from(job.state == State::Done);
        HARMED.fetch_add(job.attempts.saturating_sub(settled), Ordering::Relaxed);
    }
    // A leap of time makes all jobs late that are due in it, whatever the roles do.
    if !has_leapt {
        let attempts = simulation.history.attempts();
        let late = attempts.iter().filter(|one| one.started.since(one.due) > LATE).count();
        HARMED.fetch_add(u32::try_from(late).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// A fault that has begun, for [`end_fault`].
pub(super) struct Fault {
    role: usize,
    what: What,
    place: usize,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Crash,
    Line(Line),
    ShutDown,
    Suspend,
}

/// Begins a random fault of a random role, and records it. The API is restarted at once, and never cut from the store,
/// since clients need it. A suspension is over when this returns.
pub(super) async fn begin_fault(simulation: &mut Simulation) -> Fault {
    let role = simulation.rng.random_range(0..simulation.roles());
    let lines = [Line::Slow, Line::Flaky(5), Line::Flaky(30), Line::Late(20), Line::Cut].map(What::Line);
    let what = pick(
        &mut simulation.rng,
        &[lines.as_slice(), &[What::Crash, What::Crash, What::ShutDown, What::Suspend]].concat(),
    );
    let place = simulation.history.fault(format_args!("{what:?} of {:?} {role}", simulation.kind(role)));
    match what {
        What::Crash => {
            simulation.crash(role);
            // The API is needed for the next submit.
            if simulation.kind(role) == Kind::Api {
                simulation.restart(role).await;
            }
        }
        What::Line(line) => simulation.line(role, line),
        What::ShutDown => {
            simulation.shut_down(role).await;
            if simulation.kind(role) == Kind::Api {
                simulation.restart(role).await;
            }
        }
        What::Suspend => {
            let time = pick(&mut simulation.rng, &[1_000, 12_000, 90_000]);
            advance(Duration::from_millis(time)).await;
        }
    }
    // A client cannot submit without the store.
    if simulation.kind(role) == Kind::Api && matches!(what, What::Line(Line::Cut)) {
        simulation.line(role, Line::Flaky(40));
    }
    Fault { role, what, place }
}

/// Ends a fault and records that, then waits [`AFTERMATH`], so that the roles recover.
pub(super) async fn end_fault(simulation: &mut Simulation, fault: Fault) {
    match fault.what {
        What::Crash | What::ShutDown if simulation.kind(fault.role) != Kind::Api => {
            simulation.restart(fault.role).await;
        }
        What::Line(_) => simulation.line(fault.role, Line::Good),
        What::Crash | What::ShutDown | What::Suspend => {}
    }
    simulation.history.fault_ends(fault.place);
    sleep(AFTERMATH).await;
}
