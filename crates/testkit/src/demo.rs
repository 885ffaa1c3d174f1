//! The demo of `make demo`, against a running Ringback: submits one job of each kind, receives their deliveries, and
//! prints progress, a table of the results, and a sentence for each result that is wrong.
//!
//! The receiver listens on 127.0.0.1, so the notifiers must run on this machine.

mod api;
mod cases;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::ensure;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::api::Api;
use self::cases::{Case, End, cases};
use self::table::DemoResult;
use crate::sink::Sink;
use crate::time::now;

/// The URL of the API of `ringback up` and `make stack`.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7411";

const TOPIC: &str = "demo";
/// The pause between two reads of the jobs.
const POLL: Duration = Duration::from_millis(100);
/// The wait after the last due time for deliveries that should not come.
const QUIET: Duration = Duration::from_millis(500);
/// The limit after the last due time; whatever has not happened by then is missing.
const DEADLINE: Duration = Duration::from_secs(10);

/// A case whose job has been submitted.
struct Submitted {
    case: Case,
    id: String,
    due: Timestamp,
}

/// Runs the demo against the API at `url`, and prints the results.
///
/// # Errors
/// When no Ringback answers there, when a call fails, or when a result is wrong.
pub async fn run(url: &str) -> anyhow::Result<()> {
    let api = Api::new(url);
    api.is_up().await?;
    let sink = Sink::start().await;
    say(&format!("The API is at {url}, the receiver of this run at {}.", sink.url("/")));
    let jobs = submit(&api, &sink).await?;
    say(&format!("{} jobs are submitted to the topic {TOPIC}, one of them cancelled again.\n", jobs.len()));

    let ends = watch(&api, &sink, &jobs).await?;
    let arrivals = |job: &Submitted| sink.arrivals_of(&job.id);
    let seen: Vec<DemoResult> =
        jobs.iter().zip(ends).map(|(job, end)| DemoResult::new(job, &arrivals(job), &end)).collect();
    say(&table::of(&seen));
    let wrong: Vec<String> = seen.into_iter().flat_map(|job| job.wrong).collect();
    ensure!(wrong.is_empty(), "not as it should be:\n  {}", wrong.join("\n  "));
    say("All is as it should be.");
    Ok(())
}

/// Submits one job for each case, with an id of this run, after it has set the receiver's answers to the job. Cancels
/// the jobs of cases that end cancelled.
async fn submit(api: &Api, sink: &Sink) -> anyhow::Result<Vec<Submitted>> {
    let run = format!("{}-{}", now().as_millisecond(), std::process::id());
    let mut jobs = Vec::new();
    for case in cases() {
        let id = format!("{run}-{}", case.name.replace(' ', "-"));
        sink.answer_job(&id, case.answers.clone());
        let mut job = json!({ "topic": TOPIC, "id": id, "url": sink.url("/demo"), "body": { "job": id } });
        if let (Some(job), Some(more)) = (job.as_object_mut(), case.fields.as_object()) {
            job.extend(more.clone());
        }
        let due = api.submit(&job).await?;
        if case.end == End::Cancelled {
            api.cancel(TOPIC, &id).await?;
        }
        jobs.push(Submitted { case, id, due });
    }
    Ok(jobs)
}

/// Prints progress until all jobs have ended and no delivery can follow, or the [`DEADLINE`] is over. Returns the last
/// state of each job. Fails if a job cannot be read.
async fn watch(api: &Api, sink: &Sink, jobs: &[Submitted]) -> anyhow::Result<Vec<Value>> {
    let latest = jobs.iter().map(|job| job.due).max().unwrap_or_else(now);
    let left: Duration = latest.duration_since(now()).try_into().unwrap_or_default();
    let (quiet, give_up) = (Instant::now() + left + QUIET, Instant::now() + left + DEADLINE);
    let attempts: usize = jobs.iter().map(|job| job.case.attempts).sum();
    let mut progress = Progress::start();
    loop {
        let mut looks = Vec::new();
        for job in jobs {
            looks.push(api.look(TOPIC, &job.id).await?);
        }
        let ended = looks.iter().filter(|look| has_ended(look)).count();
        let (seen, total) = (sink.seen(), jobs.len());
        progress.show(&format!("{seen} of {attempts} attempts arrived, {ended} of {total} jobs ended"));
        let complete = ended == total && Instant::now() >= quiet;
        if complete || Instant::now() >= give_up {
            progress.end();
            return Ok(looks);
        }
        sleep(POLL).await;
    }
}

fn has_ended(look: &Value) -> bool {
    ["done", "dead", "cancelled"].iter().any(|state| look["state"] == *state)
}

/// The progress: one line that is overwritten on a terminal, or a line per change elsewhere.
struct Progress {
    started: Instant,
    last: String,
}

impl Progress {
    fn start() -> Self {
        Self { started: Instant::now(), last: String::new() }
    }

    fn show(&mut self, text: &str) {
        let line = format!("{:4.1} s: {text}", self.started.elapsed().as_secs_f64());
        if io::stdout().is_terminal() {
            write(&format!("\r\x1b[K{line}"));
        } else if self.last != text {
            say(&line);
        }
        text.clone_into(&mut self.last);
    }

    fn end(self) {
        say("");
    }
}

fn say(text: &str) {
    write(&format!("{text}\n"));
}

/// Writes to standard output and flushes it. Ignores errors, because standard output may be closed.
fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
