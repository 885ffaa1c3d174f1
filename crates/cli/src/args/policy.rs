//! `ringback policy`: what its commands are told.

use clap::{Args, Subcommand};

use super::TopicArgs;
use super::values::{self, Pair, Retry, Wait};

/// Of all its commands.
pub(super) const EXAMPLES: &str = "\
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

The whole policy is replaced: what is not given is not in it any more.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback policy get pay.notify
  ringback policy get pay.notify --output json | jq .policy.retry

A topic without a policy is answered with exit code 1.";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback policy delete pay.notify
  ringback policy delete pay.notify --force && echo the topic is gone

Without --force the answer is no while the topic has jobs. With it those that wait are cancelled, \
dead ones purged, and a cancel is noted for those that are being handed over; while there are such \
the answer is no too: run it again.";

/// What to do with a policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Give a topic a policy, in place of the one that it has
    #[command(after_help = SET_EXAMPLES)]
    Set(Box<SetArgs>),
    /// Show the policy of a topic
    #[command(after_help = GET_EXAMPLES)]
    Get(TopicArgs),
    /// Forget the policy of a topic that has no jobs, or remove those first
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A policy.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// The waits after each failure, such as "15s 3m 10m", or default, standard-webhooks or none
    #[arg(long, value_name = "WAITS")]
    pub(crate) retry: Option<Retry>,
    /// After how many failures a job is dead, -1 for never; beyond the waits the last one repeats
    #[arg(long, value_name = "N", requires = "retry", allow_hyphen_values = true)]
    pub(crate) max: Option<i64>,
    /// How much of a wait may be added at random, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "retry")]
    pub(crate) jitter: Option<f64>,
    /// The deadline of one attempt
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    /// How long a consumer has a job for pull
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    /// Where jobs go that are submitted from now on without a URL
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// A header to add where a job has none of the name; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    /// What a receiver's answer must be, but for white space around it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) expect_body: Option<String>,
    /// Which attempts are logged: failed, all or off
    #[arg(long, value_name = "WHICH", value_parser = ["failed", "all", "off"])]
    pub(crate) attempts: Option<String>,
    /// Where the deaths of jobs are told that do not say so themselves: an http or https URL
    #[arg(long, value_name = "URL")]
    pub(crate) on_dead: Option<String>,
}

/// A topic to be deleted.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Remove its jobs first
    #[arg(long)]
    pub(crate) force: bool,
}
