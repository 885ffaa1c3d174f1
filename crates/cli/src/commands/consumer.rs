//! The commands of consumers: `ringback reserve` reserves pull jobs and prints their receipts; `finish`, `retry`, `bury`
//! and `release` settle a job by its receipt, and `renew` extends its lease.

use std::time::Duration;

use clap::Args;
use http::Method;
use ringback_wire::{MAX_WAIT, RenewResponse, ReserveResponse, ReservedJob};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::session::{Session, object};
use crate::args::TopicArgs;
use crate::args::values::Wait;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, View};

const RESERVE_EXAMPLES: &str = "\
Examples:
  ringback reserve thumbnails
  ringback reserve thumbnails --max 10 --ttr 2m --wait 20s --output json | jq -r '.jobs[].receipt'

The exit code is 0 also when no job is ready.";

/// The examples of all commands that take a receipt.
pub(crate) const RECEIPT_EXAMPLES: &str = "\
Examples:
  ringback finish \"$receipt\"
  ringback retry \"$receipt\" --delay 5m --error 'the printer is out of paper'
  ringback renew \"$receipt\" --ttr 10m
  ringback bury \"$receipt\" --reason unwanted
  ringback release \"$receipt\"";

/// The limit of the call: the longest wait of the API, and some time for the response.
const CALL_TIMEOUT: Duration = MAX_WAIT.saturating_add(SHORT);

/// The jobs to reserve.
#[derive(Debug, Args)]
#[command(after_help = RESERVE_EXAMPLES)]
pub(crate) struct ReserveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Maximum number of jobs, 1 to 100
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) max: u32,
    /// Lease: how long to work on each job, 100ms to 12h [default: that of the job or of its topic, else 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    /// How long to wait when no job is ready, at most 60s [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<Wait>,
}

/// A reserved job, by its receipt.
#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    /// Receipt that `reserve` printed
    pub(crate) receipt: String,
}

/// A failure of a reserved job.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Delay until the next attempt [default: that of the retry policy]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// Error message to record
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A new lease.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Lease from now, 100ms to 12h [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
}

/// A job to make dead.
#[derive(Debug, Args)]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Why, in one word [default: buried]
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Error message to record
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// A job to release.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) of: ReceiptArgs,
    /// Delay until the job is ready again [default: none]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
}

pub(crate) async fn reserve(session: &mut Session, args: ReserveArgs) -> anyhow::Result<CommandOutcome> {
    let ask = [("max", Some(args.max.into())), duration("ttr", args.ttr), duration("wait", args.wait)];
    let call = Call::topic(Method::POST, &args.of.topic, &["reserve"]).json(&object(ask));
    let body = session.client.ask(call, CALL_TIMEOUT).await?.body;
    let rows = |answer: &ReserveResponse, view: &View| {
        let row = |job: &ReservedJob| {
            let deadline = Cell::from(view.time(&job.deadline));
            [Cell::from(&job.id), job.attempt.into(), deadline, Cell::from(&job.receipt)]
        };
        answer.jobs.iter().map(row).collect()
    };
    session.print_rows(&body, ["ID", ">ATTEMPT", "DEADLINE", "RECEIPT"], rows, "no job is ready")
}

/// A field of a request and its value, if it was given.
type Field = (&'static str, Option<Value>);

pub(crate) async fn finish(session: &mut Session, args: &ReceiptArgs) -> anyhow::Result<CommandOutcome> {
    settle(session, args, "finish", [], "the job is done").await
}

pub(crate) async fn retry(session: &mut Session, args: RetryArgs) -> anyhow::Result<CommandOutcome> {
    let fields = [duration("delay", args.delay), text("error", args.error)];
    settle(session, &args.of, "retry", fields, "the failure is recorded").await
}

pub(crate) async fn bury(session: &mut Session, args: BuryArgs) -> anyhow::Result<CommandOutcome> {
    let fields = [text("reason", args.reason), text("error", args.error)];
    settle(session, &args.of, "bury", fields, "the job is dead").await
}

pub(crate) async fn release(session: &mut Session, args: ReleaseArgs) -> anyhow::Result<CommandOutcome> {
    settle(session, &args.of, "release", [duration("delay", args.delay)], "the job is released").await
}

pub(crate) async fn renew(session: &mut Session, args: RenewArgs) -> anyhow::Result<CommandOutcome> {
    let call = call(&args.of, "renew", [duration("ttr", args.ttr)]);
    let text = |renewed: &RenewResponse, view: &View| {
        format!("the lease ends at {}\n", view.time(&renewed.deadline))
    };
    session.show(call, text).await
}

async fn settle<const N: usize>(
    session: &mut Session,
    args: &ReceiptArgs,
    action: &str,
    fields: [Field; N],
    done: &str,
) -> anyhow::Result<CommandOutcome> {
    let text = |_: &IgnoredAny, _: &View| format!("{done}\n");
    session.show(call(args, action, fields), text).await
}

fn call<const N: usize>(args: &ReceiptArgs, action: &str, fields: [Field; N]) -> Call {
    Call::new(Method::POST, &["v1", "receipts", &args.receipt, action]).json(&object(fields))
}

fn duration(name: &'static str, wait: Option<Wait>) -> Field {
    (name, wait.map(|Wait(value)| value))
}

fn text(name: &'static str, text: Option<String>) -> Field {
    (name, text.map(Value::from))
}
