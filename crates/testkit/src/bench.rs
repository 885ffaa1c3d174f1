//! Benchmarks by name, over the real binaries and a private redis-server. Each prints one
//! JSON line per figure to target/bench/report.jsonl and a readable line to the terminal.
//!
//! Figures are of the machine they were taken on; they are printed, never asserted.

mod drain;
mod embedded;
mod idle;
mod lateness;
mod memory;
mod up;
mod usage;

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use ringback_core::store::Options;
use serde_json::{Value, json};

pub use self::embedded::store_child;

use crate::{Persistence, RedisOptions, RedisServer, Stack, StackOptions};

/// All scenarios: name and what it measures.
pub const SCENARIOS: [(&str, &str); 7] = [
    ("drain", "a backlog of due jobs handed over to a trivial receiver"),
    ("lateness", "from due to arrival, for jobs due evenly"),
    ("idle", "what all roles cost while nothing is due"),
    ("memory", "bytes of Redis per pending job"),
    ("embedded", "the embedded store: durable submits beside bare redb; memory; opening after kill -9"),
    ("up", "one process on the embedded store: single submits over HTTP, and handing over"),
    ("redis-cpu", "CPU of Redis per life of a job: submit, promote, reserve, complete"),
];

/// How large the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For the figures.
    Full,
    /// To see that the benchmarks work.
    Quick,
}

impl Size {
    fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// What can be chosen for a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How large.
    pub size: Size,
    /// `RINGBACK_SHARDS`, where it is not to be the default.
    pub shards: Option<u16>,
}

impl Setup {
    /// A stack with the times of a real installation.
    fn stack(&self) -> StackOptions {
        let options = Stack::options().redis(redis()).lock_ttl("5s").lease_margin("10s");
        match self.shards {
            Some(shards) => options.env("RINGBACK_SHARDS", &shards.to_string()),
            None => options,
        }
    }

    fn store(&self, server: &RedisServer) -> Options {
        let defaults = Options::default_with(Duration::from_secs(10));
        Options { url: server.url(), shards: self.shards.unwrap_or(defaults.shards), ..defaults }
    }
}

/// Runs a scenario; false when there is none of this name.
pub async fn run(name: &str, setup: &Setup) -> bool {
    match name {
        "drain" => drain::run(setup).await,
        "lateness" => lateness::run(setup).await,
        "idle" => idle::run(setup).await,
        "memory" => memory::run(setup).await,
        "embedded" => embedded::run(setup).await,
        "up" => up::run(setup).await,
        "redis-cpu" => memory::run_cpu(setup).await,
        _ => return false,
    }
    true
}

/// A store as users are told to run it.
fn redis() -> RedisOptions {
    RedisServer::options().persistence(Persistence::Always)
}

/// The measured job: body 217 B, URL 49 B, id 22 B, a topic of 10 characters.
fn job(number: usize, url: &str, more: &Value) -> Value {
    let mut job = json!({
        "topic": "pay.notify",
        "id": format!("order-{number:016}"),
        "url": url,
        "body": { "order": format!("{number:016}"), "status": "PAID", "filler": "x".repeat(217 - 56) },
    });
    if let (Some(job), Some(more)) = (job.as_object_mut(), more.as_object()) {
        job.extend(more.clone());
    }
    job
}

/// Prints a figure and appends it to the report.
///
/// # Panics
/// When the report cannot be written.
#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn report(scenario: &str, figure: &str, value: f64, unit: &str, with: &Value) {
    println!("{scenario:10} {figure:28} {value:>12.2} {unit:10} {with}");
    let line = json!({ "scenario": scenario, "figure": figure, "value": value, "unit": unit, "with": with });
    let folder = PathBuf::from("target/bench");
    create_dir_all(&folder).expect("target/bench can be made");
    let file = OpenOptions::new().create(true).append(true).open(folder.join("report.jsonl"));
    writeln!(file.expect("the report can be opened"), "{line}").expect("the report can be written");
}

/// The value that a share of `q` does not exceed; of sorted values.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let index = (sorted.len() as f64 * q).ceil().max(1.0) as usize - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_job_has_the_measured_sizes() {
        let url = format!("https://merchant.example/{}", "p".repeat(24));
        let job = job(7, &url, &json!({}));
        assert_eq!(url.len(), 49);
        assert_eq!(job["id"].as_str().map(str::len), Some(22));
        assert_eq!(job["body"].to_string().len(), 217);
    }
}
