//! The commands on named jobs: `ringback get`, `reschedule`, `run`, `revive` and `cancel`. With a filter, all but `get`
//! start a bulk operation, which is in `bulk`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use http::Method;
use ringback_wire::{CancelResponse, InFlight, JobResponse};
use serde_json::Map;

use super::bulk::{self, BulkFlags, NamedOrFiltered};
use super::each_job;
use super::get_full::{self, InspectArgs};
use super::revive_follow::Followed;
use super::session::Session;
use crate::args::values::{self, Wait};
use crate::args::{Filter, JobsArgs, MaybeJobArgs};
use crate::client::Call;
use crate::failure::CommandOutcome;
use crate::output::{View, job_details};

pub(crate) const GET_EXAMPLES: &str = "\
Examples:
  ringback get pay.notify/order-1
  ringback get pay.notify order-1 --output json | jq -r .state
  ringback get pay.notify/order-1 pay.notify/order-2
  ringback get pay.notify/order-1 --full
  ringback get pay.notify/order-1 --curl > callback.sh

Secret header values are masked. --curl leaves out webhook-timestamp and traceparent, which differ in each attempt.";

pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  ringback run pay.notify/order-1
  ringback run pay.notify/order-1 pay.notify/order-2
  ringback run --host merchant.example --due-before 1h --rate 50

A job that is ready or in delivery stays unchanged, which is not an error.";

pub(crate) const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback revive pay.notify/order-1
  ringback revive --host merchant.example --status 503 --failed-after 2h --rate 50
  ringback revive --host merchant.example --follow 10m   # and say then how many are done, and how many dead again

Its failures count from 0 again, and its attempts go on counting.";

pub(crate) const CANCEL_EXAMPLES: &str = "\
Examples:
  ringback cancel pay.notify/order-1
  ringback cancel pay.notify order-1
  ringback cancel pay.notify/order-1 pay.notify/order-2
  ringback cancel --tag customer:42 --dry-run
  ringback cancel --tag customer:42
  jq -r '\"pay.notify/\" + .order' orders.ndjson | ringback cancel -

A delivery that has begun goes on, and the output says so: if it succeeds, the job is done and not cancelled.";

const RESCHEDULE_EXAMPLES: &str = "\
Examples:
  ringback reschedule pay.notify/order-1 --delay 10m
  ringback reschedule pay.notify order-1 --at 2026-11-20T09:30:00Z
  ringback reschedule pay.notify order-1 --at 2026-11-23T09:00 --time-zone Europe/Berlin
  ringback reschedule --host merchant.example --due-before 1h --delay 2h

A job that waits for a retry can be rescheduled too, and keeps its failures. With a delay of 0 or a time in the past \
it is due now.";

/// Jobs, and how much of them to show.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
}

/// Dead jobs, and whether to follow them.
#[derive(Debug, Args)]
pub(crate) struct ReviveArgs {
    #[command(flatten)]
    pub(crate) which: NamedOrFiltered,
    /// Follow the jobs of a filter for this long, or until all have ended, and say how many ended and how
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with_all = ["dry_run", "no_wait", "names"], help_heading = "Many jobs")]
    pub(crate) follow: Option<Duration>,
}

/// A job and its new due time.
#[derive(Debug, Args)]
#[command(after_help = RESCHEDULE_EXAMPLES, group(ArgGroup::new("due").args(["delay", "at"]).required(true)))]
pub(crate) struct RescheduleArgs {
    #[command(flatten)]
    pub(crate) job: MaybeJobArgs,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) bulk: BulkFlags,
    /// Delay from now: 10m, "1h 30m", 250ms, or a number of seconds
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<Wait>,
    /// Due time (RFC 3339), or a local time such as 2026-11-20T09:30 together with --time-zone
    #[arg(long, value_name = "TIME", value_parser = values::due_time)]
    pub(crate) at: Option<String>,
    /// Time zone of the due time, such as Europe/Berlin
    #[arg(long, value_name = "NAME", requires = "at")]
    pub(crate) time_zone: Option<String>,
}

pub(crate) async fn get(session: &mut Session, args: &GetArgs) -> anyhow::Result<CommandOutcome> {
    let GetArgs { jobs, inspect: InspectArgs { full, curl } } = args;
    if *curl {
        return get_full::curl(session, jobs).await;
    }
    if *full {
        return each_job::run(session, jobs, get_full::call, |_, job, view| get_full::details(job, view))
            .await;
    }
    let call = |key: &_| Call::job(Method::GET, key, &[]);
    each_job::run(session, jobs, call, |_, job: &JobResponse, view| job_details(job, view)).await
}

pub(crate) async fn reschedule(
    session: &mut Session,
    args: &RescheduleArgs,
) -> anyhow::Result<CommandOutcome> {
    values::check_zone(args.at.as_deref(), args.time_zone.as_deref())?;
    let mut due = Map::new();
    due.extend(args.delay.as_ref().map(|delay| ("delay".to_owned(), delay.0.clone())));
    due.extend(args.at.as_ref().map(|at| ("at".to_owned(), at.as_str().into())));
    due.extend(args.time_zone.as_ref().map(|zone| ("time_zone".to_owned(), zone.as_str().into())));
    if bulk::is_filtered(!args.job.is_empty(), &args.filter, &args.bulk)? {
        return bulk::start(session, "reschedule", &args.filter, &args.bulk, due).await;
    }
    session.show(Call::job(Method::PATCH, &args.job.key()?, &[]).json(&due.into()), moved).await
}

pub(crate) async fn run(session: &mut Session, args: &NamedOrFiltered) -> anyhow::Result<CommandOutcome> {
    if args.is_filtered()? {
        return bulk::start(session, "run", &args.filter, &args.bulk, Map::new()).await;
    }
    let call = |key: &_| Call::job(Method::POST, key, &["run"]);
    each_job::run(session, &args.jobs.named(), call, |_, job: &JobResponse, view| moved(job, view)).await
}

pub(crate) async fn revive(session: &mut Session, args: &ReviveArgs) -> anyhow::Result<CommandOutcome> {
    let ReviveArgs { which: args, follow } = args;
    if let (true, Some(most)) = (args.is_filtered()?, follow) {
        let jobs = Followed::list(session, &args.filter).await?;
        let operation = bulk::start_and_wait(session, "revive", &args.filter, &args.bulk, Map::new()).await?;
        return jobs.follow(session, operation.changed, *most).await;
    }
    if args.is_filtered()? {
        return bulk::start(session, "revive", &args.filter, &args.bulk, Map::new()).await;
    }
    let call = |key: &_| Call::job(Method::POST, key, &["revive"]);
    each_job::run(session, &args.jobs.named(), call, |_, job: &JobResponse, view| moved(job, view)).await
}

/// A line with the state and the due time that a job has now.
fn moved(job: &JobResponse, view: &View) -> String {
    let JobResponse { topic, id, state, due_at, .. } = job;
    format!("{topic}/{id} is {state}, due {}\n", view.both(due_at))
}

pub(crate) async fn cancel(session: &mut Session, args: &NamedOrFiltered) -> anyhow::Result<CommandOutcome> {
    if args.is_filtered()? {
        return bulk::start(session, "cancel", &args.filter, &args.bulk, Map::new()).await;
    }
    let call = |key: &_| Call::job(Method::DELETE, key, &[]);
    each_job::run(session, &args.jobs.named(), call, |key, answer: &CancelResponse, _| {
        format!("{key} {}\n", sentence(answer))
    })
    .await
}

fn sentence(answer: &CancelResponse) -> &'static str {
    let cancelled = answer.state == "cancelled";
    match (cancelled, &answer.in_flight) {
        (true, None) => "is cancelled",
        (true, Some(_)) => "is cancelled; a delivery began before and may still be in flight",
        (false, Some(InFlight::Unknown(_))) => {
            "may be in delivery: it will be cancelled unless the delivery succeeds"
        }
        (false, _) => "is in delivery: it will be cancelled unless the delivery succeeds",
    }
}
