//! `ringback check`: checks indexes and counts, repairs them with `--repair`, and accepts a loss of jobs with
//! `--accept-loss`, or the machine's clock with `--accept-clock`. Findings that remain, and a loss that waits to be
//! accepted, make the exit code 1.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::Method;
use ringback_wire::{CheckFinding, CheckResponse, ClockResponse, JobLoss};

use super::session::{Session, parse};
use crate::args::values;
use crate::client::Call;
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table, note};

const CHECK_EXAMPLES: &str = "\
Examples:
  ringback check
  ringback check --repair
  ringback check --output json | jq '.findings[]'
  ringback check --accept-loss=8b1f0e6f2d6c4a5e9d3c7b1a0f9e8d7c6b5a4f3e
  ringback check --accept-clock

A check can run while jobs are submitted and delivered, one at a time per API process. If the store came back without \
jobs that it had accepted, submits are refused until the loss is accepted. Exit codes: 0 no findings, or all are \
repaired; 1 findings remain, or a loss waits to be accepted.";

/// The options of a check.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Restore missing index entries and correct counts; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Accept a loss of jobs, so that submits are taken again; without a `RUN_ID` the one that a check finds
    #[arg(long, value_name = "RUN_ID", num_args = 0..=1, require_equals = true, conflicts_with = "repair")]
    #[expect(clippy::option_option, reason = "the flag has an optional value")]
    pub(crate) accept_loss: Option<Option<String>>,
    /// Say that the machine's clock is right, where an embedded store once had a time far ahead of it
    #[arg(long, conflicts_with_all = ["repair", "accept_loss"])]
    pub(crate) accept_clock: bool,
    /// Time limit of the check; the response comes only at its end
    #[arg(long = "patience", value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub(crate) time_limit: Duration,
}

pub(crate) async fn run(session: &mut Session, args: &CheckArgs) -> anyhow::Result<CommandOutcome> {
    if args.accept_clock {
        return accept_clock(session).await;
    }
    match &args.accept_loss {
        Some(Some(run_id)) => return accept_loss(session, run_id).await,
        Some(None) => {
            let (_, check) = check(session, args).await?;
            return match check.loss {
                Some(loss) => accept_loss(session, &loss.run_id).await,
                None => {
                    note("no loss of jobs waits to be accepted");
                    Ok(CommandOutcome::No)
                }
            };
        }
        None => {}
    }
    let (body, check) = check(session, args).await?;
    session.print(&body, |check: &CheckResponse, view| tables(check, view.colour))?;
    Ok(if check.clean { CommandOutcome::Done } else { CommandOutcome::No })
}

async fn check(session: &mut Session, args: &CheckArgs) -> anyhow::Result<(Bytes, CheckResponse)> {
    let call = if args.repair {
        Call::new(Method::POST, &["v1", "check", "repair"])
    } else {
        Call::new(Method::GET, &["v1", "check"])
    };
    // The response begins only when the whole check is done.
    let answer = session.client.without_read_timeout()?.ask(call, args.time_limit).await;
    let body = answer.map_err(|error| error.for_route("checks"))?.body;
    let check: CheckResponse = parse(&body)?;
    Ok((body, check))
}

async fn accept_loss(session: &mut Session, run_id: &str) -> anyhow::Result<CommandOutcome> {
    let call = Call::new(Method::POST, &["v1", "check", "accept-loss"]);
    let call = call.json(&serde_json::json!({"run_id": run_id}));
    session
        .show(call, |loss: &JobLoss, view| {
            let JobLoss { run_id, jobs } = loss;
            Table::new([""; 2], view.colour).page(&[
                [Cell::from("accepted loss"), Cell::from(format!("at least {jobs} jobs"))],
                [Cell::from("run_id"), Cell::from(run_id)],
            ])
        })
        .await?;
    Ok(CommandOutcome::Done)
}

async fn accept_clock(session: &mut Session) -> anyhow::Result<CommandOutcome> {
    let call = Call::new(Method::POST, &["v1", "check", "accept-clock"]);
    session
        .show(call, |clock: &ClockResponse, view| {
            let ClockResponse { was_ahead_ms, jobs } = clock;
            Table::new([""; 2], view.colour).page(&[
                [Cell::from("the store's time was"), Cell::from(format!("{} s ahead", was_ahead_ms / 1000))],
                [Cell::from("jobs of that time"), Cell::from(jobs.to_string())],
            ])
        })
        .await?;
    Ok(CommandOutcome::Done)
}

fn tables(check: &CheckResponse, colour: Colour) -> String {
    let mut text = String::new();
    if !check.findings.is_empty() {
        let columns = ["KIND", ">SHARD", "JOB", "REPAIRED", "DETAIL"];
        let rows: Vec<_> = check.findings.iter().map(row).collect();
        text = Table::new(columns, colour).page(&rows);
        let more = check.found.saturating_sub(check.findings.len() as u64);
        if more > 0 {
            text += &format!("and {more} more\n");
        }
        text += "\n";
    }
    if let Some(JobLoss { run_id, jobs }) = &check.loss {
        text += &format!(
            "The store has lost accepted jobs, at least {jobs}. Submits are refused until this is accepted:\n  \
             ringback check --accept-loss={run_id}\n\n"
        );
    }
    let mut rows = vec![
        [Cell::from("clean"), Cell::from(if check.clean { "yes" } else { "no" })],
        [Cell::from("findings"), Cell::from(format!("{}, {} repaired", check.found, check.repaired))],
        [Cell::from("jobs checked"), Cell::from(checked(check))],
        [Cell::from("stale entries"), Cell::from(check.stale)],
        [
            Cell::from("counts compared in"),
            Cell::from(format!("{} of {} shards", check.compared, check.shards)),
        ],
        [Cell::from("duration"), Cell::from(format!("{} ms", check.duration_ms))],
    ];
    if check.missing > 0 {
        rows.insert(3, [Cell::from("missing jobs"), Cell::from(missing(check))]);
    }
    text + &Table::new([""; 2], colour).page(&rows)
}

fn checked(check: &CheckResponse) -> String {
    match check.unverified {
        0 => check.checked.to_string(),
        unverified => format!(
            "{}, {unverified} of them not judged, because their queues moved: check again",
            check.checked
        ),
    }
}

fn missing(check: &CheckResponse) -> String {
    format!("{}, accepted and found to be gone by repairs; they will not be delivered", check.missing)
}

fn row(finding: &CheckFinding) -> [Cell; 5] {
    let job = match (&finding.topic, &finding.id) {
        (Some(topic), Some(id)) => format!("{topic}/{id}"),
        (Some(topic), None) => topic.clone(),
        (None, id) => id.clone().unwrap_or_default(),
    };
    [
        Cell::from(&finding.kind),
        Cell::from(finding.shard),
        Cell::from(job),
        Cell::from(if finding.repaired { "yes" } else { "no" }),
        Cell::from(&finding.detail),
    ]
}
