//! The commands on one job: `ringback get`, `reschedule`, `run`, `revive` and `cancel`.

use clap::Args;
use http::Method;
use ringback_core::wire::{CancelAnswer, InFlight, JobAnswer};
use serde_json::json;

use super::session::{Session, View};
use crate::args::JobArgs;
use crate::args::values::{self, Wait};
use crate::client::Call;
use crate::failure::Verdict;
use crate::output::{job_details, relative};

pub(crate) const GET_EXAMPLES: &str = "\
Examples:
  ringback get pay.notify/order-1
  ringback get pay.notify order-1 --output json | jq -r .state";

pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  ringback run pay.notify/order-1

A job that is ready or in delivery stays unchanged, which is not an error.";

pub(crate) const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback revive pay.notify/order-1
  ringback list --state dead --all --output json | jq -r '.topic + \"/\" + .id' |
      xargs -n 1 ringback revive

Its failures start at 0 again; the count of its attempts goes on.";

pub(crate) const CANCEL_EXAMPLES: &str = "\
Examples:
  ringback cancel pay.notify/order-1
  ringback cancel pay.notify order-1

An attempt in flight goes on: if it succeeds the job is done after all, and the answer says so.";

const RESCHEDULE_EXAMPLES: &str = "\
Examples:
  ringback reschedule pay.notify/order-1 --delay 10m
  ringback reschedule pay.notify order-1 --at 2026-11-20T09:30:00Z

A job that waits for a retry can be rescheduled too, and keeps its failures. With a delay of 0 or a time in the past \
it is due now.";

/// A job and its new due time.
#[derive(Debug, Args)]
#[command(after_help = RESCHEDULE_EXAMPLES)]
pub(crate) struct RescheduleArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Delay from now: 10m, "1h 30m", 250ms, or a number of seconds
    #[arg(
        long,
        value_name = "DURATION",
        required_unless_present = "at",
        conflicts_with = "at",
        allow_hyphen_values = true
    )]
    pub(crate) delay: Option<Wait>,
    /// Due time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) at: Option<String>,
}

pub(crate) async fn get(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let call = Call::job(Method::GET, &args.key()?, &[]);
    session.show(call, |job: &JobAnswer, view| job_details(job, view.now, view.colour)).await
}

pub(crate) async fn reschedule(session: &mut Session, args: &RescheduleArgs) -> anyhow::Result<Verdict> {
    let due = match (&args.delay, &args.at) {
        (Some(delay), _) => json!({ "delay": delay.0 }),
        (None, at) => json!({ "at": at }),
    };
    print(session, Call::job(Method::PATCH, &args.job.key()?, &[]).json(&due)).await
}

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    print(session, Call::job(Method::POST, &args.key()?, &["run"])).await
}

pub(crate) async fn revive(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    print(session, Call::job(Method::POST, &args.key()?, &["revive"])).await
}

/// Makes the call and prints the changed job.
async fn print(session: &mut Session, call: Call) -> anyhow::Result<Verdict> {
    let text = |job: &JobAnswer, view: View| {
        let JobAnswer { topic, id, state, due_at, .. } = job;
        format!("{topic}/{id} is {state}, due {due_at} ({})\n", relative(due_at, view.now))
    };
    session.show(call, text).await
}

pub(crate) async fn cancel(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    let call = Call::job(Method::DELETE, &key, &[]);
    session.show(call, |answer: &CancelAnswer, _| format!("{key} {}\n", sentence(answer))).await
}

fn sentence(answer: &CancelAnswer) -> &'static str {
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
