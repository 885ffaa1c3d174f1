//! The yardstick of delivery, lateness and memory: BullMQ on node, which npm installs into target/bench/bullmq.
//!
//! Its script is in `crates/bench/bullmq/`. When node or npm is missing, or the installation fails, the benchmarks
//! go on without it and report that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::program;
use crate::figure::FOLDER;
use crate::job::filler;
use crate::setup::{Setup, Size};
use ringback_testkit::{Child, RedisServer};

const PACKAGE: &str = include_str!("../../bullmq/package.json");
const SCRIPT: &str = include_str!("../../bullmq/bench.mjs");
/// The limit of the installation.
const INSTALL_WITHIN: Duration = Duration::from_secs(120);
/// The limit of filling a queue; a million jobs take about a minute.
const FILL_WITHIN: Duration = Duration::from_secs(600);

/// The installed BullMQ.
#[derive(Clone, Debug)]
pub(crate) struct Bullmq {
    node: PathBuf,
    folder: PathBuf,
}

/// The number of its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) processes: usize,
    /// Jobs at a time per process.
    pub(crate) concurrency: usize,
}

/// The shapes to try. On two cores neither more processes nor more jobs at a time have helped.
pub(crate) const SHAPES: [Shape; 3] = [
    Shape { processes: 1, concurrency: 50 },
    Shape { processes: 1, concurrency: 200 },
    Shape { processes: 2, concurrency: 100 },
];

impl Shape {
    /// The shape as JSON for the report, with its jobs per second.
    pub(crate) fn json(self, rate: f64) -> Value {
        json!({ "processes": self.processes, "concurrency": self.concurrency, "rate": rate.round() })
    }
}

/// Running workers, which end when this is dropped.
pub(crate) struct Workers {
    _children: Vec<Child>,
    // Dropped after the children, which write their logs there.
    _dir: TempDir,
}

impl Bullmq {
    /// Finds BullMQ. The first call installs it, and later calls return the same result.
    ///
    /// # Errors
    /// Why BullMQ cannot be used.
    pub(crate) async fn get(setup: &Setup) -> Result<Self, String> {
        static FOUND: OnceCell<Result<Bullmq, String>> = OnceCell::const_new();
        FOUND.get_or_init(|| Self::install(setup.size)).await.clone()
    }

    async fn install(size: Size) -> Result<Self, String> {
        let node = program("node").ok_or("there is no node on PATH")?;
        let folder =
            std::path::absolute(Path::new(FOLDER).join("bullmq")).map_err(|error| error.to_string())?;
        let done = folder.join("node_modules/bullmq/package.json").is_file()
            && fs::read_to_string(folder.join("package.json")).is_ok_and(|have| have == PACKAGE);
        let write =
            |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|error| error.to_string());
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        write("bench.mjs", SCRIPT)?;
        if done {
            return Ok(Self { node, folder });
        }
        if size == Size::Quick {
            return Err("a quick run installs nothing".to_owned());
        }
        let npm = program("npm").ok_or("there is no npm on PATH")?;
        let _ = fs::remove_dir_all(folder.join("node_modules"));
        let mut command = Command::new(npm);
        command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder);
        // Last, so that a failed installation is tried again.
        let manifest = folder.join("package.json");
        write("package.json", PACKAGE)?;
        let child = Child::spawn("npm", command.current_dir(&folder), &folder.join("npm.log"));
        let ended = end_of(child, INSTALL_WITHIN).await;
        if let Err(reason) = ended {
            let _ = fs::remove_file(manifest);
            return Err(format!("npm install: {reason}"));
        }
        Ok(Self { node, folder })
    }

    /// Runs a verb of the script that ends by itself: `fill` submits jobs in bulk, `pace` one by one. `more` adds their URL, due times and the like.
    ///
    /// # Errors
    /// The last line that node has printed, or that node has not ended in time.
    pub(crate) async fn run(
        &self,
        verb: &str,
        server: &RedisServer,
        first: usize,
        jobs: usize,
        more: &Value,
    ) -> Result<(), String> {
        let mut options = json!({ "port": server.port(), "first": first, "jobs": jobs, "filler": filler() });
        if let (Some(options), Some(more)) = (options.as_object_mut(), more.as_object()) {
            options.extend(more.clone());
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let child = self.node(verb, &options, &dir.path().join("log"));
        end_of(child, FILL_WITHIN).await
    }

    pub(crate) fn work(&self, server: &RedisServer, shape: Shape) -> Workers {
        let dir = tempfile::tempdir().expect("a temp directory");
        let options = json!({ "port": server.port(), "concurrency": shape.concurrency });
        let start = |n: usize| self.node("work", &options, &dir.path().join(format!("log-{n}")));
        let children = (0..shape.processes).map(start).collect();
        Workers { _children: children, _dir: dir }
    }

    fn node(&self, verb: &str, options: &Value, log: &Path) -> Child {
        let mut command = Command::new(&self.node);
        command.current_dir(&self.folder).args(["bench.mjs", verb, &options.to_string()]);
        Child::spawn("node", &mut command, log)
    }
}

/// Waits for a child that ends by itself. Fails with its last line, or if it does not end within `within`.
async fn end_of(mut child: Child, within: Duration) -> Result<(), String> {
    let ended = timeout(within, child.wait_exit(within * 2)).await;
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}: {}", child.log_tail().lines().last().unwrap_or_default())),
        Err(_) => Err(format!("no end within {within:?}")),
    }
}
