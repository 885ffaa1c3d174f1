//! Bulk operations from the command line: the flags by which `ringback cancel`, `run`, `revive` and `reschedule` change
//! the jobs of a filter, `ringback purge`, and `ringback bulk`, which lists, shows, watches and stops operations.

use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand};
use http::Method;
use ringback_wire::{BulkResponse, BulksResponse, DryRunResponse};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::session::{Session, parse};
use crate::args::{Filter, MaybeJobsArgs, values};
use crate::client::{Call, Reply, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{View, bulk_details, bulk_row, dry_run, note};
use crate::progress::Progress;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback bulk list
  ringback bulk get 0123456789abcdef
  ringback bulk watch 0123456789abcdef
  ringback bulk stop 0123456789abcdef

They are started by cancel, run, revive, reschedule and purge with a filter, such as
  ringback cancel --tag customer:42 --dry-run";

pub(crate) const PURGE_EXAMPLES: &str = "\
Examples:
  ringback purge --topic pay.notify --reason gone --dry-run
  ringback purge --host old.example --failed-before 7d

Nothing is kept of a purged job. Only dead jobs are purged.";

/// The pause between two reads of an operation.
const POLL: Duration = Duration::from_millis(500);
/// The number of failed reads in a row before giving up.
const MAX_FAILED_POLLS: u32 = 20;

/// How to change the jobs of a filter.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Many jobs")]
pub(crate) struct BulkFlags {
    /// All jobs, without a filter
    #[arg(long)]
    all: bool,
    /// Show how many jobs it would be, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Jobs per second, 1 to 100000; by default 100 for run and revive, and 100000 for the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    /// Start it and return at once
    #[arg(long, conflicts_with = "dry_run")]
    no_wait: bool,
}

impl BulkFlags {
    fn is_given(&self) -> bool {
        self.all || self.dry_run || self.rate.is_some() || self.no_wait
    }
}

/// Jobs that are named, or those of a filter.
#[derive(Debug, Args)]
pub(crate) struct NamedOrFiltered {
    #[command(flatten)]
    pub(crate) jobs: MaybeJobsArgs,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) bulk: BulkFlags,
}

impl NamedOrFiltered {
    /// Whether the command is about the jobs of a filter, and not about named ones.
    ///
    /// # Errors
    /// A usage error if both are given, or neither.
    pub(crate) fn is_filtered(&self) -> Result<bool, clap::Error> {
        is_filtered(!self.jobs.is_empty(), &self.filter, &self.bulk)
    }
}

/// Whether a command is about the jobs of a filter, by a filter or a flag of bulk operations, and not about named ones.
///
/// # Errors
/// A usage error if both are given, or neither.
pub(crate) fn is_filtered(is_named: bool, filter: &Filter, bulk: &BulkFlags) -> Result<bool, clap::Error> {
    let is_filtered = !filter.is_empty() || bulk.is_given();
    match (is_named, is_filtered) {
        (true, true) => Err(values::wrong(
            "jobs are named, and there are flags of a filter too; give one or the other".to_owned(),
        )),
        (false, false) => Err(values::wrong(
            "no job is named, and there is no filter; write TOPIC/ID, or a filter such as --tag customer:42"
                .to_owned(),
        )),
        (is_named, _) => Ok(!is_named),
    }
}

/// The dead jobs to purge.
#[derive(Debug, Args)]
#[command(after_help = PURGE_EXAMPLES)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    bulk: BulkFlags,
}

/// The commands about bulk operations.
#[derive(Debug, Subcommand)]
pub(crate) enum BulkCommand {
    /// List the bulk operations that run, or ended within a day
    #[command(after_help = EXAMPLES)]
    List,
    /// Show a bulk operation
    #[command(after_help = EXAMPLES)]
    Get(BulkArgs),
    /// Show the progress of a bulk operation until it has ended
    #[command(after_help = EXAMPLES)]
    Watch(BulkArgs),
    /// Stop a bulk operation; jobs that were changed before stay so
    #[command(after_help = EXAMPLES)]
    Stop(BulkArgs),
}

/// A bulk operation.
#[derive(Debug, Args)]
pub(crate) struct BulkArgs {
    /// Id of the bulk operation
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) async fn run(session: &mut Session, command: BulkCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        BulkCommand::List => list(session).await,
        BulkCommand::Get(BulkArgs { id }) => session.show(of(Method::GET, &id), bulk_details).await,
        BulkCommand::Watch(BulkArgs { id }) => watch(session, &id, None).await.map(|_| CommandOutcome::Done),
        BulkCommand::Stop(BulkArgs { id }) => session.show(of(Method::DELETE, &id), bulk_details).await,
    }
}

pub(crate) async fn purge(session: &mut Session, args: &PurgeArgs) -> anyhow::Result<CommandOutcome> {
    is_filtered(false, &args.filter, &args.bulk)?;
    start(session, "purge", &args.filter, &args.bulk, Map::new()).await
}

/// Starts a bulk operation and shows its progress until it ends; with `--no-wait` only prints it, and with `--dry-run`
/// prints the number of jobs instead. `fields` are those of the action, such as a due time.
pub(crate) async fn start(
    session: &mut Session,
    action: &str,
    filter: &Filter,
    flags: &BulkFlags,
    fields: Map<String, Value>,
) -> anyhow::Result<CommandOutcome> {
    let call = call(action, filter, flags, fields);
    if flags.dry_run {
        return session.show(call, |answer: &DryRunResponse, view| dry_run(action, answer, view)).await;
    }
    let answer = session.client.ask(call, SHORT).await?.body;
    if flags.no_wait {
        return session.print(&answer, bulk_details);
    }
    wait(session, &answer).await.map(|_| CommandOutcome::Done)
}

/// Starts a bulk operation, shows its progress until it ends, prints it, and returns how it ended.
pub(crate) async fn start_and_wait(
    session: &mut Session,
    action: &str,
    filter: &Filter,
    flags: &BulkFlags,
    fields: Map<String, Value>,
) -> anyhow::Result<BulkResponse> {
    let answer = session.client.ask(call(action, filter, flags, fields), SHORT).await?.body;
    wait(session, &answer).await
}

/// The call that starts a bulk operation.
fn call(action: &str, filter: &Filter, flags: &BulkFlags, fields: Map<String, Value>) -> Call {
    let mut body = fields;
    if !filter.is_empty() {
        body.insert("filter".to_owned(), filter.json());
    }
    if flags.all {
        body.insert("all".to_owned(), true.into());
    }
    if let Some(rate) = flags.rate {
        body.insert("rate".to_owned(), rate.into());
    }
    if flags.dry_run {
        body.insert("dry_run".to_owned(), json!(true));
    }
    Call::new(Method::POST, &["v1", "jobs", action]).json(&body.into())
}

/// Says how to stop the operation that the answer `started` names, shows its progress until it ends, prints it, and
/// returns how it ended.
pub(super) async fn wait(session: &mut Session, started: &Bytes) -> anyhow::Result<BulkResponse> {
    let BulkResponse { id, .. } = parse(started)?;
    note(&format!("bulk operation {id}; to stop it: ringback bulk stop {id}"));
    watch(session, &id, Some(0)).await
}

fn of(method: Method, id: &str) -> Call {
    Call::new(method, &["v1", "bulk", id])
}

async fn watch(session: &mut Session, id: &str, before: Option<u64>) -> anyhow::Result<BulkResponse> {
    let progress = Progress::new("changed", None);
    let body = follow(session, &of(Method::GET, id), &progress, before).await;
    progress.clear();
    let body = body?;
    session.print(&body, bulk_details)?;
    Ok(parse(&body)?)
}

/// Reads an operation every 500 ms until it has ended, shows its progress, and returns the last answer. Fails with the
/// 21st transient error in a row, or any other. `before` is the number of jobs that it had changed before, if known.
async fn follow(
    session: &mut Session,
    call: &Call,
    progress: &Progress,
    mut before: Option<u64>,
) -> anyhow::Result<Bytes> {
    let mut failed = 0;
    loop {
        match session.client.ask(call.clone(), SHORT).await {
            Ok(Reply { body, .. }) => {
                let BulkResponse { changed, state, .. } = parse(&body)?;
                progress.advance(0, more(changed, before));
                (before, failed) = (Some(changed), 0);
                if state != "running" {
                    return Ok(body);
                }
            }
            Err(error) if error.is_transient() && failed < MAX_FAILED_POLLS => {
                failed += 1;
                progress.waiting(&error, POLL * MAX_FAILED_POLLS);
            }
            Err(error) => return Err(error.into()),
        }
        sleep(POLL).await;
    }
}

/// The number of jobs changed since the last read, which had `before`; 0 at the first read, so that the rate is right.
fn more(changed: u64, before: Option<u64>) -> u64 {
    changed.saturating_sub(before.unwrap_or(changed))
}

async fn list(session: &mut Session) -> anyhow::Result<CommandOutcome> {
    let body = session.client.ask(Call::new(Method::GET, &["v1", "bulk"]), SHORT).await?.body;
    let columns = ["ID", "ACTION", "STATE", ">CHANGED", ">RATE", "STARTED", "", "FILTER"];
    let rows =
        |answer: &BulksResponse, view: &View| answer.items.iter().map(|item| bulk_row(item, view)).collect();
    session.print_rows(&body, columns, rows, "no bulk operations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_changed_before_the_first_look_do_not_count() {
        assert_eq!([more(500, None), more(520, Some(500)), more(30, Some(0))], [0, 20, 30]);
    }
}
