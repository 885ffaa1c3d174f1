//! Runs a scenario with many seeds. A seed that fails is printed with the command that repeats it.

use std::panic::resume_unwind;
use std::thread;

use ringback_service::random;
use tokio::runtime::Builder;

use crate::properties::check_store;
use crate::world::Simulation;

/// Seeds that failed once. Every scenario runs them, before new ones.
const FAILED_ONCE: [u64; 0] = [];

/// Runs a scenario with `count` seeds, or as many as `RINGBACK_SIMULATION_SEEDS` says, or only with the seed
/// `RINGBACK_SIMULATION_SEED`. Returns the number of seeds.
///
/// If a seed fails, prints the command that repeats it and panics.
pub(crate) fn run(name: &str, count: u64, scenario: impl AsyncFn(&mut Simulation) + Sync) -> usize {
    let one: Option<u64> = variable("RINGBACK_SIMULATION_SEED");
    let count = variable("RINGBACK_SIMULATION_SEEDS").unwrap_or(count);
    let first = first_seed();
    let seeds = FAILED_ONCE.into_iter().chain(first..first + count);
    let seeds: Vec<_> = one.map_or_else(|| seeds.collect(), |seed| vec![seed]);
    for &seed in &seeds {
        if let Err(panic) = thread::scope(|scope| scope.spawn(|| drop(simulate(seed, &scenario))).join()) {
            report(name, seed);
            resume_unwind(panic);
        }
    }
    seeds.len()
}

/// Runs a scenario once, on this thread, checks the store and returns the log. The thread must be a new one: some
/// generators live as long as their thread.
pub(crate) fn simulate(seed: u64, scenario: &impl AsyncFn(&mut Simulation)) -> String {
    random::seed_thread(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let mut simulation = Simulation::new(seed);
        scenario(&mut simulation).await;
        check_store(&simulation).await;
        simulation.end().await;
        simulation.history.log()
    })
}

/// Returns a first seed that follows from the time in seconds, so that each run of the tests tries new seeds.
fn first_seed() -> u64 {
    use ringback_core::clock::{Clock as _, SystemClock};
    SystemClock.now().as_millis() / 1000 * 100_000
}

fn variable(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

fn report(name: &str, seed: u64) {
    eprintln!(
        "the scenario {name} failed with seed {seed}; to repeat: RINGBACK_SIMULATION_SEED={seed} cargo nextest run --package ringback-simulation {name}"
    );
}
