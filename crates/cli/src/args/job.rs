//! The arguments of the commands on one job: its topic and id, and the new due time of `ringback reschedule`.

use clap::Args;
use ringback_core::job::JobKey;

use super::values::{self, Wait};

pub(crate) const GET_EXAMPLES: &str = "\
Examples:
  ringback get pay.notify/order-1
  ringback get pay.notify order-1 --output json | jq -r .state";

pub(crate) const ATTEMPTS_EXAMPLES: &str = "\
Examples:
  ringback attempts pay.notify/order-1
  ringback attempts pay.notify order-1 --output json | jq -r '.items[-1].answer'

By default Ringback records failed attempts, and the successful one of a job that needed several. The table shows the \
start of each response; --output json shows all that is recorded.";

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
  ringback cancel pay.notify order-1 && echo it will not be delivered";

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

/// One job, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Topic and id of the job, as TOPIC/ID or as two arguments
    #[arg(required = true, num_args = 1..=2, value_name = "TOPIC/ID")]
    name: Vec<String>,
}

impl JobArgs {
    /// The topic and the id.
    ///
    /// # Errors
    /// A usage error when they are not valid.
    pub(crate) fn key(&self) -> Result<JobKey, clap::Error> {
        values::job_key(&self.name)
    }
}
