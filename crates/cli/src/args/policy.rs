//! The arguments of `ringback policy`.

use clap::{Args, Subcommand};

use super::topics::TopicArgs;
use super::values::{self, Pair, Retry, Wait};

/// The examples of all its commands.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback policy set pay.notify --expect-body success --retry '15s 3m 10m' --max -1
  ringback policy get pay.notify
  ringback policy delete pay.notify --force";

const SET_EXAMPLES: &str = "\
Examples:
  ringback policy set pay.notify --expect-body success --retry '15s 3m 10m' --max -1
  ringback policy set thumbnails --ttr 5m --retry none
  ringback policy set remind --url http://127.0.0.1:8080/hook --header x-tenant:a7 --timeout 5s
  ringback policy set pay.notify --on-dead https://shop.example/dead

The new policy replaces the whole old one: defaults that are not given are unset.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback policy get pay.notify
  ringback policy get pay.notify --output json | jq .policy.retry

The exit code is 1 when the topic has no policy.";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback policy delete pay.notify
  ringback policy delete pay.notify --force && echo the topic is gone

Without --force the command is refused while the topic has jobs. With --force waiting jobs are cancelled, dead jobs \
are purged, and jobs in delivery are cancelled unless the delivery succeeds; while there are such jobs the exit code is \
1: run the command again later.";

/// The commands on a policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Set the policy of a topic, in place of the old one
    #[command(after_help = SET_EXAMPLES)]
    Set(Box<SetArgs>),
    /// Show the policy of a topic
    #[command(after_help = GET_EXAMPLES)]
    Get(TopicArgs),
    /// Delete the policy of a topic without jobs; --force removes its jobs first
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A policy and its topic.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Delays after each failure, such as "15s 3m 10m", or a preset: default, standard-webhooks, none
    #[arg(long, value_name = "DELAYS")]
    pub(crate) retry: Option<Retry>,
    /// Failures after which a job is dead, -1 for never; the last delay repeats
    #[arg(long, value_name = "N", requires = "retry", allow_hyphen_values = true)]
    pub(crate) max: Option<i64>,
    /// Random share of a delay that may be added to it, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "retry")]
    pub(crate) jitter: Option<f64>,
    /// Time limit of one attempt, 100ms to 10m
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    /// Lease of a pull job, 100ms to 12h
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    /// URL of jobs that are submitted without one after this
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Header for jobs that have none of this name; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    /// Response body that means success; white space around it is ignored
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) expect_body: Option<String>,
    /// Attempts to record: failed, all or off
    #[arg(long, value_name = "WHICH", value_parser = ["failed", "all", "off"])]
    pub(crate) attempts: Option<String>,
    /// URL (http or https) for dead-letter notices of jobs that have none themselves
    #[arg(long, value_name = "URL")]
    pub(crate) on_dead: Option<String>,
}

/// The topic to delete.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Remove the jobs of the topic first
    #[arg(long)]
    pub(crate) force: bool,
}
