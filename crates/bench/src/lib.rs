//! The benchmarks that `make bench` runs, over the real binaries and a private redis-server: one file per scenario
//! in `scenarios/`, and around them the load, the receiver, the yardsticks and the report.
//!
//! Each figure is a readable line for the terminal and a JSON line in target/bench/report.jsonl; a table comes at
//! the end. Figures depend on the machine: they are printed, never asserted. A scenario panics when a job is lost,
//! refused or early, when something takes far longer than it should, or when a server does not answer.

mod args;
mod at_rest;
mod attack;
mod backlog;
mod embedded_store;
mod figure;
mod fill;
mod generator;
mod job;
mod latencies;
mod probe;
mod receiver;
mod scenarios;
mod setup;
mod table;
mod train;
mod usage;
mod yardstick;

use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::thread::available_parallelism;

use futures_util::FutureExt as _;
use ringback_testkit::now;
use serde_json::json;
use tokio::time::Instant;

pub use crate::args::parse;
pub use crate::embedded_store::store_child;
pub use crate::scenarios::{SCENARIOS, Scenario};
pub use crate::setup::{Profile, Setup, Size};
use crate::table::RunStart;
use crate::yardstick::noop;

/// Runs scenarios one after the other, also after one has panicked, and prints the table. Returns those that panicked.
pub async fn run(scenarios: &[&Scenario], setup: &Setup) -> Vec<&'static str> {
    let start = RunStart::now();
    figure::append(&json!({ "machine": {
        "at": now().to_string(),
        "cores": available_parallelism().map_or(0, NonZero::get),
        "available_mib": usage::available_mib(),
        "quick": setup.size == Size::Quick,
        "shards": setup.shards,
        "profiles": setup.profiles,
        "debug_build": cfg!(debug_assertions),
    } }));
    let mut broken = Vec::new();
    for scenario in scenarios {
        announce(scenario.name);
        let started = Instant::now();
        // Servers, processes and directories of a scenario end when its future is dropped.
        if AssertUnwindSafe((scenario.run)(setup)).catch_unwind().await.is_err() {
            broken.push(scenario.name);
        }
        figure::append(&json!({ "ran": scenario.name, "seconds": started.elapsed().as_secs_f64() }));
    }
    start.print_table();
    broken
}

/// Serves the handler that does nothing, or attacks, until killed, if the arguments ask for that; else returns false.
pub async fn serve(args: &[String]) -> bool {
    if attack::serve(args).await {
        return true;
    }
    let [verb, port] = args else { return false };
    let Some(port) = port.parse().ok().filter(|_| verb == noop::VERB) else { return false };
    noop::serve(port).await;
    true
}

#[expect(clippy::print_stdout, reason = "the progress is this program's output")]
fn announce(scenario: &str) {
    println!("== {scenario}");
}
