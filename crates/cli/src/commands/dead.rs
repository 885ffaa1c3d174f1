//! `ringback dead`: lists and purges the dead jobs of a topic. Reviving them is in `revive`.

mod revive;

use clap::{Args, Subcommand};
use http::Method;
use ringback_wire::{DeadJobDetails, JobResponse, PurgeResponse};
use serde_json::json;

use self::revive::DeadReviveArgs;
use super::get_full::include;
use super::pages::{self, List, next_cursor};
use super::session::{Session, parse};
use crate::args::{DeadFilter, Format, Page, TopicArgs, values};
use crate::client::{Call, LONG};
use crate::failure::CommandOutcome;
use crate::output::{REQUEST_COLUMNS, Table, View, dead_row, note, request_cells};
use crate::progress::Progress;

const LIST_EXAMPLES: &str = "\
Examples:
  ringback dead list pay.notify
  ringback dead list pay.notify --reason exhausted --died-after 2026-11-20T00:00:00Z --all
  ringback dead list pay.notify --all --output json | jq -r .reason | sort | uniq -c";

const PURGE_EXAMPLES: &str = "\
Examples:
  ringback dead purge pay.notify order-1
  ringback dead purge pay.notify --reason gone --died-before 2026-11-01T00:00:00Z
  ringback dead purge pay.notify --all

A purged job is no longer known and its id can be used again; only its logged attempts remain.";

const PURGE_USAGE: &str = "\
ringback dead purge [OPTIONS] <TOPIC> <ID>
       ringback dead purge [OPTIONS] <TOPIC> <--all|--reason <WORD>|--died-after <TIME>|--died-before <TIME>>";

/// The commands on the dead jobs of a topic.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead jobs, in the order in which they died
    #[command(after_help = LIST_EXAMPLES)]
    List(DeadListArgs),
    /// Remove one dead job, or all that match a filter
    #[command(after_help = PURGE_EXAMPLES, override_usage = PURGE_USAGE)]
    Purge(DeadPurgeArgs),
    /// Make the dead jobs that match a filter due again, at a given rate
    #[command(after_help = revive::EXAMPLES)]
    Revive(DeadReviveArgs),
}

/// The filter and the size of a list.
#[derive(Debug, Args)]
pub(crate) struct DeadListArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Show the URL and the body's type and size too; with --output json the whole request
    #[arg(long)]
    pub(crate) full: bool,
}

/// The dead jobs to purge.
#[derive(Debug, Args)]
pub(crate) struct DeadPurgeArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Id of the one job to purge
    #[arg(value_parser = values::id, required_unless_present_any = ["reason", "died_after", "died_before", "all"],
        conflicts_with_all = ["reason", "died_after", "died_before", "all"])]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// Purge all dead jobs of the topic
    #[arg(long)]
    pub(crate) all: bool,
}

pub(crate) async fn run(session: &mut Session, command: DeadCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        DeadCommand::List(args) => list(session, &args).await,
        DeadCommand::Purge(args) => match &args.id {
            Some(id) => purge_one(session, &args.of.topic, id).await,
            None => purge(session, &args).await,
        },
        DeadCommand::Revive(args) => revive::start(session, &args).await,
    }
}

async fn list(session: &mut Session, args: &DeadListArgs) -> anyhow::Result<CommandOutcome> {
    let path = ["v1", "topics", args.of.topic.as_str(), "dead"];
    let (query, limit) = (args.filter.query(), args.page.limit());
    let mut list = List { path: &path, query, limit, of: "dead jobs", feature: "lists of dead jobs" };
    let mut columns = vec!["ID", "DIED", "", ">ATTEMPTS", "REASON", "LAST FAILURE", "TAGS"];
    if args.full {
        list.query.push(include());
        columns.extend(REQUEST_COLUMNS);
    }
    let row = |dead: &DeadJobDetails, view: &View| {
        let mut row = dead_row(dead, view).to_vec();
        if args.full {
            row.extend(request_cells(dead.request.as_deref()));
        }
        row
    };
    let table = Table::new(columns, session.out.colour);
    pages::print(session, list, table, row).await
}

async fn purge_one(session: &mut Session, topic: &str, id: &str) -> anyhow::Result<CommandOutcome> {
    let call = Call::topic(Method::DELETE, topic, &["dead", id]);
    session.show(call, |JobResponse { topic, id, .. }, _: &View| format!("{topic}/{id} is purged\n")).await
}

/// Purges the jobs that match the filter, one call after the other until none is left, and prints how many were. After
/// an error also says how many were purged before.
async fn purge(session: &mut Session, args: &DeadPurgeArgs) -> anyhow::Result<CommandOutcome> {
    let (progress, mut purged, mut cursor) = (Progress::new("purged", None), 0, None);
    loop {
        let mut call = Call::topic(Method::DELETE, &args.of.topic, &["dead"]);
        call.query = args.filter.query();
        call.query.extend(cursor.iter().map(|cursor: &String| ("cursor", cursor.clone())));
        let answer = match session.client.ask(call, LONG).await {
            Ok(answer) => parse::<PurgeResponse>(&answer.body)?,
            Err(error) => {
                progress.clear();
                if purged > 0 {
                    note(&format!("{purged} jobs were purged before"));
                }
                return Err(error.into());
            }
        };
        purged += answer.purged;
        progress.advance(0, answer.purged);
        match answer.next {
            None => break,
            next => cursor = Some(next_cursor(cursor.as_ref(), next)?),
        }
    }
    progress.clear();
    match session.out.format {
        Format::Json => session.out.line(json!({"purged": purged, "next": null}).to_string())?,
        Format::Table => session.out.line(format!("{purged} dead jobs of {} are purged", args.of.topic))?,
    }
    Ok(CommandOutcome::Done)
}
