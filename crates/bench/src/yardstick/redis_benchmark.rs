//! The yardstick of submits in batches: redis-benchmark, which pipelines a script that stores one job.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::job::{URL, job};
use ringback_testkit::{Child, RedisServer, server_binary};

/// The least that a delay queue must write: the job and its due time.
const SCRIPT: &str =
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])";
/// A placeholder that redis-benchmark replaces with 12 random digits in each command.
const RANDOM: &str = "__rand_int__";
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// Finds redis-benchmark or valkey-benchmark, beside the redis-server or on `PATH`; `None` if there is none.
pub(crate) fn find() -> Option<PathBuf> {
    let server = server_binary();
    let beside = ["redis-benchmark", "valkey-benchmark"].map(|name| server.with_file_name(name));
    beside
        .into_iter()
        .find(|file| file.is_file())
        .or_else(|| ["redis-benchmark", "valkey-benchmark"].iter().find_map(|name| super::program(name)))
}

/// Runs redis-benchmark once. Returns jobs per second.
///
/// # Errors
/// Why there is no figure, with the end of the log.
pub(crate) async fn run(program: &PathBuf, server: &RedisServer, jobs: usize) -> Result<f64, String> {
    let mut client = server.client().await;
    let load = redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut client).await;
    let sha: String = load.map_err(|error| format!("the script: {error}"))?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["-h", "127.0.0.1", "-p", &server.port().to_string(), "-n", &jobs.to_string()]);
    command.args(["-c", "50", "-P", "64", "-r", "1000000000", "-q"]);
    command.args(["EVALSHA", &sha, "2", "{0}:pool", "{0}:bucket"]);
    command.args([&format!("order-0000{RANDOM}"), RANDOM, &job(0, URL, &serde_json::json!({})).to_string()]);
    let mut child = Child::spawn("redis-benchmark", &mut command, &dir.path().join("log"));
    let status = child.wait_exit(RUN_TIMEOUT).await;
    rate(&child.log()).filter(|_| status.success()).ok_or_else(|| format!("{status}: {}", child.log_tail()))
}

/// The last rate in the output; `None` if there is none.
fn rate(log: &str) -> Option<f64> {
    let (before, _) = log.rsplit_once(" requests per second")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn the_rate_is_the_last_one_printed() {
        let log = "EVALSHA x: rps=0.0 (overall: 0.0)\rEVALSHA {\"a\":\"b: 7 c\"}: 88495.58 requests per second, p50=12.4 msec\n\n";
        assert_eq!(rate(log).map(f64::to_bits), Some(88_495.58_f64.to_bits()));
        assert_eq!(rate("Could not connect to Redis"), None);
    }
}
