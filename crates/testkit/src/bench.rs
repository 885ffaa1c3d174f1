//! Benchmarks by name, over the real binaries and a private redis-server: a file per scenario. Each figure is a
//! readable line for the terminal and a JSON line in target/bench/report.jsonl; a table comes at the end.
//!
//! Figures are of the machine they were taken on; they are printed, never asserted. What is asserted is that no job
//! is lost, refused or early.

mod args;
mod audit;
mod backlog;
mod drain;
mod embedded;
mod figure;
mod fill;
mod generator;
mod growth;
mod herd;
mod idle;
mod job;
mod latencies;
mod lateness;
mod memory;
mod one_dead_receiver;
mod pull;
mod receiver;
mod redis_cpu;
mod revive;
mod setup;
mod spread;
mod submit_batch;
mod submit_one;
mod table;
mod up;
mod usage;
mod yardstick;

use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::thread::available_parallelism;

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::time::Instant;

pub use self::args::parse;
pub use self::embedded::store_child;
// By these names the scenarios of the embedded store know them.
use self::figure::report;
use self::job::job;
pub use self::setup::{Profile, Setup, Size};
use self::table::Mark;
use self::yardstick::noop;
use crate::now;

/// All scenarios: name and what it measures.
pub const SCENARIOS: [(&str, &str); 15] = [
    ("submit-one", "single submits over HTTP, durable, beside a handler that does nothing"),
    ("submit-batch", "1,000 jobs per request, beside redis-benchmark"),
    ("drain", "a backlog of due jobs handed over, beside BullMQ and a bare HTTP client"),
    ("lateness", "from due to arrival, for jobs due evenly, beside BullMQ"),
    ("memory", "bytes of Redis per pending job, beside BullMQ"),
    ("idle", "what all roles cost while a million jobs wait and nothing is due"),
    ("redis-cpu", "CPU of Redis per life of a job: submit, promote, reserve, complete"),
    ("growth", "rate, lateness and CPU of Redis with more and more pending jobs"),
    ("herd", "a million jobs of one topic due at once, and how other topics fare"),
    ("one-dead-receiver", "one of a hundred receivers hangs and gets half of the jobs"),
    ("revive", "100,000 dead jobs revived at 2,000/s: how well the rate is kept, and how other topics fare"),
    ("pull", "consumers that wait, reserve and finish jobs, and are not heard of again"),
    ("embedded", "the embedded store: durable submits beside bare redb; memory; opening after kill -9"),
    ("audit", "how long an audit of a million jobs takes, and how long Redis is busy at a time"),
    ("up", "one process on the embedded store: single submits over HTTP, and handing over"),
];

/// Runs scenarios one after the other, a broken one too, and prints the table: the names of those that broke.
pub async fn run(names: &[&'static str], setup: &Setup) -> Vec<&'static str> {
    let mark = Mark::now();
    figure::append(&json!({ "machine": {
        "at": now().to_string(),
        "cores": available_parallelism().map_or(0, NonZero::get),
        "available_mib": usage::available_mib(),
        "quick": setup.size == Size::Quick,
        "shards": setup.shards,
        "profiles": setup.profiles.iter().map(|profile| profile.name()).collect::<Vec<_>>(),
        "debug_build": cfg!(debug_assertions),
    } }));
    let mut broken = Vec::new();
    for &name in names {
        begin(name);
        let started = Instant::now();
        // Whatever a scenario leaves behind ends with it: servers, processes and directories.
        if AssertUnwindSafe(scenario(name, setup)).catch_unwind().await.is_err() {
            broken.push(name);
        }
        figure::append(&json!({ "ran": name, "seconds": started.elapsed().as_secs_f64() }));
    }
    mark.print_table();
    broken
}

/// The handler that does nothing, for ever, when the command line asks for that.
pub async fn serve(words: &[String]) -> bool {
    let [word, port] = words else { return false };
    let Some(port) = port.parse().ok().filter(|_| word == noop::WORD) else { return false };
    noop::serve(port).await;
    true
}

async fn scenario(name: &str, setup: &Setup) {
    match name {
        "submit-one" => submit_one::run(setup).await,
        "submit-batch" => submit_batch::run(setup).await,
        "drain" => drain::run(setup).await,
        "lateness" => lateness::run(setup).await,
        "memory" => memory::run(setup).await,
        "idle" => idle::run(setup).await,
        "redis-cpu" => redis_cpu::run(setup).await,
        "growth" => growth::run(setup).await,
        "herd" => herd::run(setup).await,
        "one-dead-receiver" => one_dead_receiver::run(setup).await,
        "revive" => revive::run(setup).await,
        "pull" => pull::run(setup).await,
        "embedded" => embedded::run(setup).await,
        "audit" => audit::run(setup).await,
        "up" => up::run(setup).await,
        _ => unreachable!("names come from the list"),
    }
}

#[expect(clippy::print_stdout, reason = "whoever waits is told what is being done")]
fn begin(name: &str) {
    println!("== {name}");
}
