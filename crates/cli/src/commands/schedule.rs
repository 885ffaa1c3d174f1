//! `ringback schedule`: shows, lists and deletes schedules, pauses and resumes them, makes them fire now, and shows
//! their next times. Setting them is in `set`.

mod set;

use clap::{Args, Subcommand, value_parser};
use http::{HeaderValue, Method};
use ringback_core::schedule::ScheduleId;
use ringback_wire::MAX_UPCOMING;
use serde::Deserialize;

use self::set::SetArgs;
use super::pages::{self, List};
use super::session::Session;
use super::submit::IDEMPOTENCY_KEY;
use crate::args::{Page, values};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback schedule set daily-report --cron '0 8 * * MON-FRI' --time-zone Europe/Berlin \\
      --topic reports --url https://shop.example/report --body '{\"kind\":\"daily\"}'
  ringback schedule set poll-refunds --every 15m --overlap skip --topic refunds
  ringback schedule next daily-report
  ringback schedule list
  ringback schedule run daily-report
  ringback schedule pause daily-report

`ringback help schedule COMMAND` shows examples of each command.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback schedule get daily-report
  ringback schedule get daily-report --output json | jq -r .last.id";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback schedule list
  ringback schedule list --all --output json | jq -r 'select(.paused) | .id'";

const NEXT_EXAMPLES: &str = "\
Examples:
  ringback schedule next daily-report
  ringback schedule next daily-report --count 20 --utc";

const RUN_EXAMPLES: &str = "\
Examples:
  ringback schedule run daily-report
  ringback schedule run daily-report --output json | jq -r .last.id

It fires also while it is paused or the last job has not ended. Its times stay.";

const PAUSE_EXAMPLES: &str = "\
Examples:
  ringback schedule pause daily-report

What it would have fired meanwhile does not count as missed.";

const RESUME_EXAMPLES: &str = "\
Examples:
  ringback schedule resume daily-report";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback schedule delete daily-report

Jobs that it has submitted stay.";

/// The commands on schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Create or replace a schedule: when it fires, and which job it submits
    Set(Box<SetArgs>),
    /// Show a schedule
    #[command(after_help = GET_EXAMPLES)]
    Get(ScheduleArgs),
    /// List schedules
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show when a schedule fires next
    #[command(after_help = NEXT_EXAMPLES)]
    Next(NextArgs),
    /// Submit the job of a schedule now
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Let a schedule not fire until it is resumed
    #[command(after_help = PAUSE_EXAMPLES)]
    Pause(ScheduleArgs),
    /// Let a paused schedule fire again
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ScheduleArgs),
    /// Delete a schedule
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(ScheduleArgs),
}

/// A schedule by id.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// Id of the schedule: 1 to 96 letters, digits, dots, - and _
    #[arg(value_name = "ID", value_parser = id)]
    pub(crate) id: String,
}

/// A schedule to run.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) of: ScheduleArgs,
    /// Key that makes it safe to repeat this run: with the same key nothing is submitted again
    #[arg(long, value_name = "KEY", value_parser = values::idempotency_key)]
    pub(crate) idempotency_key: Option<HeaderValue>,
}

/// How many schedules to list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) page: Page,
}

/// A schedule, and how many of its times to show.
#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    pub(crate) of: ScheduleArgs,
    /// How many times, 1 to 100
    #[arg(long, value_name = "N", default_value = "5", value_parser = value_parser!(u64).range(1..=MAX_UPCOMING as u64))]
    pub(crate) count: u64,
}

fn id(text: &str) -> Result<String, String> {
    let id: ScheduleId = text.parse().map_err(|allowed| format!("an id is {allowed}"))?;
    Ok(id.to_string())
}

/// The feature that a server without schedules does not have.
const FEATURE: &str = "schedules";

fn call(method: Method, id: &str, below: &[&str]) -> Call {
    Call::new(method, &[&["v1", "schedules", id], below].concat())
}

pub(crate) async fn run(session: &mut Session, command: ScheduleCommand) -> anyhow::Result<CommandOutcome> {
    let (method, args, below) = match command {
        ScheduleCommand::Set(args) => return set::run(session, *args).await,
        ScheduleCommand::List(args) => return list(session, &args).await,
        ScheduleCommand::Next(args) => return next(session, &args).await,
        ScheduleCommand::Get(args) => (Method::GET, args, None),
        ScheduleCommand::Run(args) => {
            let mut call = call(Method::POST, &args.of.id, &["run"]);
            call.headers.extend(args.idempotency_key.map(|key| (IDEMPOTENCY_KEY, key)));
            return session.show(call, details).await;
        }
        ScheduleCommand::Pause(args) => (Method::POST, args, Some("pause")),
        ScheduleCommand::Resume(args) => (Method::POST, args, Some("resume")),
        ScheduleCommand::Delete(args) => (Method::DELETE, args, None),
    };
    session.show(call(method, &args.id, below.as_slice()), details).await
}

async fn list(session: &mut Session, args: &ListArgs) -> anyhow::Result<CommandOutcome> {
    let list = List {
        path: &["v1", "schedules"],
        query: Vec::new(),
        limit: args.page.limit(),
        of: "schedules",
        feature: FEATURE,
    };
    let columns = ["ID", "TOPIC", "WHEN", "NEXT", "", "LAST", ">FIRED", ">MISSED"];
    pages::print(session, list, Table::new(columns, session.out.colour), row).await
}

/// The next times of a schedule.
#[derive(Deserialize)]
struct Upcoming {
    items: Vec<Firing>,
}

async fn next(session: &mut Session, args: &NextArgs) -> anyhow::Result<CommandOutcome> {
    let mut call = call(Method::GET, &args.of.id, &["next"]);
    call.query.push(("count", args.count.to_string()));
    let body = session.client.ask(call, SHORT).await?.body;
    let rows = |upcoming: &Upcoming, view: &View| {
        let row = |firing: &Firing| {
            [Cell::from(view.time(&firing.at)), Cell::from(view.relative(&firing.at)), Cell::from(&firing.id)]
        };
        upcoming.items.iter().map(row).collect()
    };
    session.print_rows(&body, ["AT", "", "JOB"], rows, "it has no next time")
}

/// A firing, as it is shown.
#[derive(Deserialize)]
struct Firing {
    at: String,
    id: String,
}

/// A schedule, as far as it is shown as text.
#[derive(Deserialize)]
struct Shown {
    id: String,
    cron: Option<String>,
    every: Option<String>,
    anchor: Option<String>,
    time_zone: Option<String>,
    job: ShownJob,
    missed: String,
    catchup: String,
    overlap: String,
    jitter: Option<String>,
    from: Option<String>,
    until: Option<String>,
    paused: bool,
    created_at: String,
    next_at: Option<String>,
    last: Option<Firing>,
    fired: u64,
    missed_firings: u64,
    overlapped_firings: u64,
}

#[derive(Deserialize)]
struct ShownJob {
    topic: String,
    url: Option<String>,
}

impl Shown {
    fn when(&self) -> String {
        match (&self.cron, &self.every) {
            (Some(cron), _) => {
                format!("{cron} {}", self.time_zone.as_deref().unwrap_or_default()).trim().to_owned()
            }
            (None, Some(every)) => format!("every {every}"),
            (None, None) => String::new(),
        }
    }

    fn next(&self, view: &View) -> [String; 2] {
        match &self.next_at {
            Some(next) => [view.time(next), view.relative(next)],
            None if self.paused => ["paused".to_owned(), String::new()],
            None => ["never".to_owned(), String::new()],
        }
    }
}

fn row(one: &Shown, view: &View) -> [Cell; 8] {
    let [next, relative] = one.next(view);
    let last = one.last.as_ref().map_or_else(|| "-".to_owned(), |last| view.relative(&last.at));
    [
        Cell::from(&one.id),
        Cell::from(&one.job.topic),
        Cell::from(one.when()),
        Cell::from(next),
        Cell::from(relative),
        Cell::from(last),
        Cell::from(one.fired),
        Cell::from(one.missed_firings),
    ]
}

/// The details of a schedule, one per line.
fn details(one: &Shown, view: &View) -> String {
    let time = |time: &String| view.both(time);
    let url = one.job.url.clone().unwrap_or_else(|| "that of the topic's policy, or none".to_owned());
    let [next, relative] = one.next(view);
    let next = if relative.is_empty() { next } else { format!("{next} ({relative})") };
    let last = one.last.as_ref().map(|last| format!("{} as {}", view.both(&last.at), last.id));
    let rows = [
        ("schedule", Some(one.id.clone())),
        ("fires", Some(one.when())),
        ("anchor", one.anchor.as_ref().map(time)),
        ("topic", Some(one.job.topic.clone())),
        ("url", Some(url)),
        ("next", Some(next)),
        ("last", last),
        ("fired", Some(one.fired.to_string())),
        ("missed", Some(format!("{} (then: {}, within {})", one.missed_firings, one.missed, one.catchup))),
        ("overlapped", Some(format!("{} (then: {})", one.overlapped_firings, one.overlap))),
        ("jitter", one.jitter.clone()),
        ("from", one.from.as_ref().map(time)),
        ("until", one.until.as_ref().map(time)),
        ("created", Some(view.both(&one.created_at))),
    ];
    let rows: Vec<_> =
        rows.into_iter().filter_map(|(name, value)| Some([Cell::from(name), Cell::from(value?)])).collect();
    Table::new([""; 2], view.colour).page(&rows)
}
