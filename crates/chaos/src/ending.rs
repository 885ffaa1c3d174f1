//! The end of a run: waits until no job is pending, and writes the jobs, the counts and the check of the store.

use std::time::Duration;

use reqwest::Method;
use ringback_testkit::history::{Check, End, Entry, Final, History, JobState, Ledger, millis, state};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::clients::{Api, CallOutcome, SubmittedJob};
use crate::installation::Installation;
use crate::redis_client::RedisClient;

/// The longest wait for jobs to end. Jobs that are left then violate a bound.
const DRAIN: Duration = Duration::from_secs(60);
/// The statistics are up to a second old.
const STATS_AGE: Duration = Duration::from_millis(1_200);
/// How often a request is sent, because processes may have just come back.
const TRIES: usize = 40;
/// The kinds of findings that are about counts.
const COUNTS: [&str; 3] = ["ledger", "lane_count", "topic"];

/// Waits until no job is pending, for up to [`DRAIN`]. Returns whether that came true.
pub(crate) async fn drain(api: &Api) -> bool {
    let deadline = Instant::now() + DRAIN;
    let mut since = None;
    while Instant::now() < deadline {
        let stats = ask(api, "/v1/stats").await;
        let pending = ["delayed", "ready", "reserved"].map(|name| stats["states"][name].as_u64());
        if pending == [Some(0); 3] {
            if Instant::now() - *since.get_or_insert_with(Instant::now) > STATS_AGE {
                return true;
            }
        } else {
            since = None;
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

/// Reads the rest of the logs, and writes the last lines of the history: jobs, counts, check and end.
pub(crate) async fn dump(installation: &Installation, api: &Api, known: Vec<SubmittedJob>) {
    let history = &installation.history;
    installation.read_logs().await;
    let is_dumped = left(api, history).await;
    for job in known {
        ended(api, history, &job).await;
    }
    ledger(history, &ask(api, "/v1/stats").await);
    check(installation, &ask(api, "/v1/check").await).await;
    history.write(&Entry::End(End { t: history.t(), dumped: is_dumped, drained: true }));
}

/// Writes the jobs that are pending or dead, from an export. Returns whether an export succeeded.
async fn left(api: &Api, history: &History) -> bool {
    let t = history.t();
    for _ in 0..TRIES {
        let CallOutcome::Ok(_, body) = api.call(Method::GET, "/v1/export", None).await else {
            sleep(Duration::from_millis(250)).await;
            continue;
        };
        for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let job: Value = serde_json::from_slice(line).expect("a line of an export");
            write_final(history, t, &job, &job["at"]);
        }
        return true;
    }
    false
}

/// Writes the final line of a job if it is done or cancelled.
async fn ended(api: &Api, history: &History, job: &SubmittedJob) {
    let answer = ask(api, &format!("/v1/jobs/{}", job.name())).await;
    if matches!(state(&answer["state"]), Some(JobState::Done | JobState::Cancelled)) {
        write_final(history, history.t(), &answer, &answer["due_at"]);
    }
}

fn write_final(history: &History, t: u64, job: &Value, due: &Value) {
    let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| u32::try_from(job[name].as_u64().unwrap_or_default()).unwrap_or(u32::MAX);
    history.write(&Entry::Final(Final {
        t,
        job: &format!("{}/{}", text("topic"), text("id")),
        state: state(&job["state"]).expect("a job has a state"),
        due: millis(due),
        attempts: number("attempts"),
        failures: number("failures"),
        reason: text("reason").into(),
    }));
}

fn ledger(history: &History, stats: &Value) {
    let count = |name: &str| stats["states"][name].as_u64().unwrap_or_default();
    let states = ["delayed", "ready", "reserved", "done", "dead", "cancelled", "purged", "missing"];
    history.write(&Entry::Ledger(Ledger {
        t: history.t(),
        accepted: states.iter().map(|name| count(name)).sum(),
        delayed: count("delayed"),
        ready: count("ready"),
        reserved: count("reserved"),
        done: count("done"),
        dead: count("dead"),
        cancelled: count("cancelled"),
        purged: count("purged"),
        missing: count("missing"),
    }));
}

async fn check(installation: &Installation, check: &Value) {
    let findings = check["findings"].as_array().cloned().unwrap_or_default();
    let is_count = |finding: &&Value| finding["kind"].as_str().is_some_and(|kind| COUNTS.contains(&kind));
    let miscounts = findings.iter().filter(is_count).count() as u64;
    let found = check["found"].as_u64().unwrap_or_default();
    let history = &installation.history;
    history.write(&Entry::Check(Check {
        t: history.t(),
        checked: check["checked"].as_u64().unwrap_or_default(),
        findings: found - miscounts,
        miscounts,
        foreign: foreign_keys(installation).await,
    }));
}

/// The number of keys without the installation's prefix; 0 if the store is not a single Redis or does not answer.
async fn foreign_keys(installation: &Installation) -> u64 {
    if installation.redis.is_none() {
        return 0;
    }
    let mut client = RedisClient::new(installation.redis_port);
    let keys: Vec<String> = client.ask(redis::cmd("KEYS").arg("*")).await.unwrap_or_default();
    keys.iter().filter(|key| !key.starts_with("{ringback") && !key.starts_with("ringback")).count() as u64
}

/// The JSON answer to a `GET`, which is repeated while its outcome is unknown, up to [`TRIES`] times. Null if there is
/// no success.
pub(crate) async fn ask(api: &Api, path: &str) -> Value {
    for _ in 0..TRIES {
        let outcome = api.call(Method::GET, path, None).await;
        if !outcome.is_unknown() {
            return outcome.json();
        }
        sleep(Duration::from_millis(250)).await;
    }
    Value::Null
}
