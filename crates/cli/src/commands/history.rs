//! `ringback history`: lists and shows the ended jobs that the archive has kept, and erases them; replays are in
//! `replay`.

mod replay;

use clap::{Args, Subcommand};
use http::Method;
use ringback_wire::{EndedJobDetails, ErasureResponse, HistoryResponse};
use serde_json::{Map, Value, json};

use self::replay::ReplayArgs;
use super::pages::{self, List};
use super::session::{Session, parse};
use crate::args::values;
use crate::args::{Format, JobArgs, Page};
use crate::client::{Call, LONG};
use crate::failure::CommandOutcome;
use crate::output::{Cell, REQUEST_COLUMNS, Table, View, end_details, end_row, note, request_cells};
use crate::progress::Progress;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback history list --topic pay.notify --state dead --finished-after 2026-11-20T00:00:00Z
  ringback history get pay.notify/order-1
  ringback history replay --topic pay.notify --state dead --rate 50
  ringback history erase --tag customer:42

The history is what the archive keeps of jobs that have ended: set RINGBACK_ARCHIVE for the API too.
`ringback help history COMMAND` shows examples of each command.";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback history list --tag customer:42 --all
  ringback history list --host merchant.example --state dead
  ringback history list --full --all --output json | jq -r .request.url | sort | uniq -c";

const GET_EXAMPLES: &str = "\
Examples:
  ringback history get pay.notify/order-1
  ringback history get pay.notify order-1 --output json | jq '.items[0].log'";

const ERASE_EXAMPLES: &str = "\
Examples:
  ringback history erase --tag customer:42
  ringback history erase --tag customer:42 --topic pay.notify
  ringback history erase pay.notify/order-1

Bodies and logged attempts are erased too, and ended jobs that wait for the archive when they come. What the servers still
have of jobs is not touched: cancel or purge them, and see RINGBACK_KEEP_DONE and RINGBACK_KEEP_ATTEMPTS.";

/// The commands on the history.
#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// List ended jobs, the newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(HistoryListArgs),
    /// Show each end of a job, with its attempts
    #[command(after_help = GET_EXAMPLES)]
    Get(JobArgs),
    /// Submit jobs again that a filter matches, at a given rate
    #[command(after_help = replay::EXAMPLES)]
    Replay(ReplayArgs),
    /// Erase the ended jobs with a tag, or of one job
    #[command(after_help = ERASE_EXAMPLES)]
    Erase(EraseArgs),
}

/// A filter of ended jobs.
#[derive(Clone, Debug, Args)]
pub(crate) struct HistoryFilter {
    /// Only jobs of this topic
    #[arg(long, value_parser = values::topic)]
    topic: Option<String>,
    /// Only jobs with this id
    #[arg(long, value_parser = values::id)]
    id: Option<String>,
    /// Only jobs with this tag
    #[arg(long, value_parser = values::tag)]
    tag: Option<String>,
    /// Only ended jobs in this state
    #[arg(long, value_parser = ["done", "dead", "cancelled", "purged"])]
    state: Option<String>,
    /// Only jobs that were dead for this reason: exhausted, gone, lost, expired, or one that a consumer gave
    #[arg(long, value_name = "WORD")]
    reason: Option<String>,
    /// Only jobs with a URL of this host, without a port
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only ended jobs at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    finished_after: Option<String>,
    /// Only ended jobs before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    finished_before: Option<String>,
}

impl HistoryFilter {
    fn fields(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let Self { topic, id, tag, state, reason, host, finished_after, finished_before } = self.clone();
        let fields = [
            ("topic", topic),
            ("id", id),
            ("tag", tag),
            ("state", state),
            ("reason", reason),
            ("host", host),
            ("finished_after", finished_after),
            ("finished_before", finished_before),
        ];
        fields.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        self.fields().collect()
    }

    /// The filter in a request body.
    fn json(&self) -> Map<String, Value> {
        self.fields().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// The filter and the size of a list.
#[derive(Debug, Args)]
pub(crate) struct HistoryListArgs {
    #[command(flatten)]
    filter: HistoryFilter,
    #[command(flatten)]
    page: Page,
    /// Show the URL and the body's type and size too; with --output json the whole request and the attempts
    #[arg(long)]
    full: bool,
}

/// What to erase.
#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    /// The job, as TOPIC/ID or TOPIC ID
    #[arg(num_args = 1..=2, value_name = "TOPIC/ID", required_unless_present = "tag", conflicts_with_all = ["tag", "topic"])]
    name: Vec<String>,
    /// Erase jobs with this tag
    #[arg(long, value_parser = values::tag)]
    tag: Option<String>,
    /// Erase jobs with the tag in this topic alone
    #[arg(long, requires = "tag", value_parser = values::topic)]
    topic: Option<String>,
}

const ROUTE: [&str; 2] = ["v1", "history"];
/// The feature that is missing in a server that does not know the path.
const FEATURE: &str = "the history";

pub(crate) async fn run(session: &mut Session, command: HistoryCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        HistoryCommand::List(args) => list(session, &args).await,
        HistoryCommand::Get(args) => get(session, &args).await,
        HistoryCommand::Replay(args) => replay::run(session, &args).await,
        HistoryCommand::Erase(args) => erase(session, args).await,
    }
}

async fn list(session: &mut Session, args: &HistoryListArgs) -> anyhow::Result<CommandOutcome> {
    let mut query = args.filter.query();
    let mut columns =
        vec!["TOPIC", "ID", "STATE", "FINISHED", "", ">ATTEMPTS", "REASON", "LAST FAILURE", "TAGS"];
    if args.full {
        query.push(("include", "request,attempts".to_owned()));
        columns.extend(REQUEST_COLUMNS);
    }
    let list = List { path: &ROUTE, query, limit: args.page.limit(), of: "ended jobs", feature: FEATURE };
    let row = |end: &EndedJobDetails, view: &View| {
        let mut row = end_row(end, view).to_vec();
        if args.full {
            row.extend(request_cells(end.request.as_deref()));
        }
        row
    };
    let table = Table::new(columns, session.out.colour);
    pages::print(session, list, table, row).await
}

async fn get(session: &mut Session, args: &JobArgs) -> anyhow::Result<CommandOutcome> {
    let key = args.key()?;
    let (topic, id) = (key.topic.to_string(), key.id.to_string());
    let path = [&ROUTE[..], &[topic.as_str(), id.as_str()]].concat();
    let mut call = Call::new(Method::GET, &path);
    call.query.push(("include", "request,attempts".to_owned()));
    let body = session.client.ask(call, LONG).await.map_err(|error| error.for_route(FEATURE))?.body;
    if session.out.format == Format::Json {
        session.json(&body)?;
        return Ok(CommandOutcome::Done);
    }
    let HistoryResponse { items, next } = parse(&body)?;
    if items.is_empty() {
        note(&format!("the archive has no end of {key}"));
        return Ok(CommandOutcome::No);
    }
    let view = session.out.view();
    let texts: Vec<_> = items.iter().map(|end| end_details(end, &view)).collect();
    session.out.bytes(texts.join("\n").as_bytes())?;
    if next.is_some() {
        session.out.note("there are earlier ended jobs; `ringback history list` shows them all")?;
    }
    Ok(CommandOutcome::Done)
}

/// Erases ended jobs, one call after the other until none is left, and prints how many were erased. After an error also
/// says how many were erased before.
async fn erase(session: &mut Session, args: EraseArgs) -> anyhow::Result<CommandOutcome> {
    let mut query = Vec::new();
    if let Some(tag) = args.tag {
        query.push(("tag", tag));
        query.extend(args.topic.map(|topic| ("topic", topic)));
    } else {
        let key = values::job_key(&args.name)?;
        query.extend([("topic", key.topic.to_string()), ("id", key.id.to_string())]);
    }
    let (progress, mut erased) = (Progress::new("erased", None), 0);
    loop {
        let call = Call { query: query.clone(), ..Call::new(Method::DELETE, &ROUTE) };
        let answer = match session.client.ask(call, LONG).await {
            Ok(answer) => parse::<ErasureResponse>(&answer.body)?,
            Err(error) => {
                progress.clear();
                if erased > 0 {
                    note(&format!("{erased} ended jobs were erased before"));
                }
                return Err(error.for_route(FEATURE).into());
            }
        };
        erased += answer.erased;
        progress.advance(0, answer.erased);
        if answer.complete {
            break;
        }
    }
    progress.clear();
    match session.out.format {
        Format::Json => session.out.line(json!({"erased": erased, "complete": true}).to_string())?,
        Format::Table => {
            session.out.bytes(
                Table::new([">ERASED"], session.out.colour).page(&[[Cell::from(erased)]]).as_bytes(),
            )?;
        }
    }
    Ok(CommandOutcome::Done)
}
