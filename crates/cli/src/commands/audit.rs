//! `ringback audit`: checks indexes and counts, repairs them with `--repair`, and accepts a loss of jobs with
//! `--accept-loss`, or the machine's clock with `--accept-clock`. Findings that remain, and a loss that waits to be accepted, make the exit code 1.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::Method;
use ringback_core::wire::{AuditAnswer, ClockAnswer, FindingAnswer, LossAnswer};

use super::session::{Session, parse};
use crate::args::values;
use crate::client::Call;
use crate::failure::Verdict;
use crate::output::{Cell, Colour, Table, note};

const AUDIT_EXAMPLES: &str = "\
Examples:
  ringback audit
  ringback audit --repair
  ringback audit --output json | jq '.findings[]'
  ringback audit --accept-loss=8b1f0e6f2d6c4a5e9d3c7b1a0f9e8d7c6b5a4f3e
  ringback audit --accept-clock

An audit can run while jobs are submitted and delivered, one at a time per API process. If the store came back without \
jobs that it had accepted, submits are refused until the loss is accepted. Exit codes: 0 no findings, or all are \
repaired; 1 findings remain, or a loss waits to be accepted.";

/// The options of an audit.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Restore missing index entries and correct counts; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Accept a loss of jobs, so that submits are taken again; without a `RUN_ID` the one that an audit finds
    #[arg(long, value_name = "RUN_ID", num_args = 0..=1, require_equals = true, conflicts_with = "repair")]
    #[expect(clippy::option_option, reason = "the flag has an optional value")]
    pub(crate) accept_loss: Option<Option<String>>,
    /// Say that the machine's clock is right, where an embedded store once had a time far ahead of it
    #[arg(long, conflicts_with_all = ["repair", "accept_loss"])]
    pub(crate) accept_clock: bool,
    /// Time limit of the audit; the response comes only at its end
    #[arg(long = "patience", value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub(crate) time_limit: Duration,
}

pub(crate) async fn run(session: &mut Session, args: &AuditArgs) -> anyhow::Result<Verdict> {
    if args.accept_clock {
        return accept_clock(session).await;
    }
    match &args.accept_loss {
        Some(Some(run_id)) => return accept_loss(session, run_id).await,
        Some(None) => {
            let (_, audit) = audit(session, args).await?;
            return match audit.loss {
                Some(loss) => accept_loss(session, &loss.run_id).await,
                None => {
                    note("no loss of jobs waits to be accepted");
                    Ok(Verdict::No)
                }
            };
        }
        None => {}
    }
    let (body, audit) = audit(session, args).await?;
    session.print(&body, |audit: &AuditAnswer, view| tables(audit, view.colour))?;
    Ok(if audit.clean { Verdict::Done } else { Verdict::No })
}

async fn audit(session: &mut Session, args: &AuditArgs) -> anyhow::Result<(Bytes, AuditAnswer)> {
    let call = if args.repair {
        Call::new(Method::POST, &["v1", "audit", "repair"])
    } else {
        Call::new(Method::GET, &["v1", "audit"])
    };
    // The response begins only when the whole audit is done.
    let answer = session.client.without_read_timeout()?.ask(call, args.time_limit).await;
    let body = answer.map_err(|error| error.for_route("audits"))?.body;
    let audit: AuditAnswer = parse(&body)?;
    Ok((body, audit))
}

async fn accept_loss(session: &mut Session, run_id: &str) -> anyhow::Result<Verdict> {
    let call = Call::new(Method::POST, &["v1", "audit", "accept-loss"]);
    let call = call.json(&serde_json::json!({"run_id": run_id}));
    session
        .show(call, |loss: &LossAnswer, view| {
            let LossAnswer { run_id, jobs } = loss;
            Table::new([""; 2], view.colour).page(&[
                [Cell::from("accepted loss"), Cell::from(format!("at least {jobs} jobs"))],
                [Cell::from("run_id"), Cell::from(run_id)],
            ])
        })
        .await?;
    Ok(Verdict::Done)
}

async fn accept_clock(session: &mut Session) -> anyhow::Result<Verdict> {
    let call = Call::new(Method::POST, &["v1", "audit", "accept-clock"]);
    session
        .show(call, |clock: &ClockAnswer, view| {
            let ClockAnswer { was_ahead_ms, jobs } = clock;
            Table::new([""; 2], view.colour).page(&[
                [Cell::from("the store's time was"), Cell::from(format!("{} s ahead", was_ahead_ms / 1000))],
                [Cell::from("jobs of that time"), Cell::from(jobs.to_string())],
            ])
        })
        .await?;
    Ok(Verdict::Done)
}

fn tables(audit: &AuditAnswer, colour: Colour) -> String {
    let mut text = String::new();
    if !audit.findings.is_empty() {
        let columns = ["KIND", ">SHARD", "JOB", "REPAIRED", "DETAIL"];
        let rows: Vec<_> = audit.findings.iter().map(row).collect();
        text = Table::new(columns, colour).page(&rows);
        let more = audit.found.saturating_sub(audit.findings.len() as u64);
        if more > 0 {
            text += &format!("and {more} more\n");
        }
        text += "\n";
    }
    if let Some(LossAnswer { run_id, jobs }) = &audit.loss {
        text += &format!(
            "The store has lost accepted jobs, at least {jobs}. Submits are refused until this is accepted:\n  \
             ringback audit --accept-loss={run_id}\n\n"
        );
    }
    let mut rows = vec![
        [Cell::from("clean"), Cell::from(if audit.clean { "yes" } else { "no" })],
        [Cell::from("findings"), Cell::from(format!("{}, {} repaired", audit.found, audit.repaired))],
        [Cell::from("jobs checked"), Cell::from(checked(audit))],
        [Cell::from("stale entries"), Cell::from(audit.stale)],
        [
            Cell::from("counts compared in"),
            Cell::from(format!("{} of {} shards", audit.compared, audit.shards)),
        ],
        [Cell::from("duration"), Cell::from(format!("{} ms", audit.duration_ms))],
    ];
    if audit.missing > 0 {
        rows.insert(3, [Cell::from("missing jobs"), Cell::from(missing(audit))]);
    }
    text + &Table::new([""; 2], colour).page(&rows)
}

fn checked(audit: &AuditAnswer) -> String {
    match audit.unjudged {
        0 => audit.checked.to_string(),
        unjudged => format!(
            "{}, {unjudged} of them not judged, because their queues moved: audit again",
            audit.checked
        ),
    }
}

fn missing(audit: &AuditAnswer) -> String {
    format!("{}, accepted and found to be gone by repairs; they will not be delivered", audit.missing)
}

fn row(finding: &FindingAnswer) -> [Cell; 5] {
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
