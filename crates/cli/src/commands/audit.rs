//! `ringback audit`: checks indexes and counts, and repairs them with `--repair`. Findings that remain make the exit
//! code 1.

use std::time::Duration;

use clap::Args;
use http::Method;
use ringback_core::wire::{AuditAnswer, FindingAnswer};

use super::session::{Session, parse};
use crate::args::values;
use crate::client::Call;
use crate::failure::Verdict;
use crate::output::{Cell, Colour, Table};

const AUDIT_EXAMPLES: &str = "\
Examples:
  ringback audit
  ringback audit --repair
  ringback audit --output json | jq '.findings[]'

An audit can run while jobs are submitted and delivered, one at a time per API process. Exit codes: 0 no findings, or \
all are repaired; 1 findings remain.";

/// The options of an audit.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Restore missing index entries and correct counts; no job is removed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Time limit of the audit; the response comes only at its end
    #[arg(long = "patience", value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub(crate) time_limit: Duration,
}

pub(crate) async fn run(session: &mut Session, args: &AuditArgs) -> anyhow::Result<Verdict> {
    let call = if args.repair {
        Call::new(Method::POST, &["v1", "audit", "repair"])
    } else {
        Call::new(Method::GET, &["v1", "audit"])
    };
    // The response begins only when the whole audit is done.
    let answer = session.client.without_read_timeout()?.ask(call, args.time_limit).await;
    let body = answer.map_err(|error| error.for_route("audits"))?.body;
    let audit: AuditAnswer = parse(&body)?;
    session.print(&body, |audit: &AuditAnswer, view| tables(audit, view.colour))?;
    Ok(if audit.clean { Verdict::Done } else { Verdict::No })
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
    let rows = [
        [Cell::from("clean"), Cell::from(if audit.clean { "yes" } else { "no" })],
        [Cell::from("findings"), Cell::from(format!("{}, {} repaired", audit.found, audit.repaired))],
        [Cell::from("jobs checked"), Cell::from(audit.checked)],
        [Cell::from("stale entries"), Cell::from(audit.stale)],
        [
            Cell::from("counts compared in"),
            Cell::from(format!("{} of {} shards", audit.compared, audit.shards)),
        ],
        [Cell::from("duration"), Cell::from(format!("{} ms", audit.duration_ms))],
    ];
    text + &Table::new([""; 2], colour).page(&rows)
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
