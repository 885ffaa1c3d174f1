//! What `ringback dead` is told.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::values;

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

A job that was purged is unknown, and its id is free; only its log of attempts is left.";

const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback dead revive pay.notify --reason exhausted --rate 200
  ringback dead revive pay.notify --died-after 2026-11-20T09:00:00Z --no-wait

A carrier does the work. Ctrl-C stops watching, not the revival: see `ringback dead stop`.";

/// What is done with the dead jobs of a topic.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List them, in order of death
    #[command(after_help = LIST_EXAMPLES)]
    List(DeadListArgs),
    /// Remove one of them, or all that a filter finds
    #[command(after_help = PURGE_EXAMPLES)]
    Purge(DeadPurgeArgs),
    /// Hand those that a filter finds over again, so many a second
    #[command(after_help = REVIVE_EXAMPLES)]
    Revive(DeadReviveArgs),
    /// Show the revivals of a topic
    Revivals {
        /// The topic
        #[arg(value_parser = values::topic)]
        topic: String,
    },
    /// Watch a revival until it has ended
    Watch(RevivalArgs),
    /// Stop a revival; what it has revived stays so
    Stop(RevivalArgs),
}

/// Which dead jobs.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadFilter {
    /// Only those that are dead for this reason: exhausted, gone, lost, or a consumer's own
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Only those that died at this time or later, by RFC 3339
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) died_after: Option<String>,
    /// Only those that died before this time, by RFC 3339
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) died_before: Option<String>,
}

impl DeadFilter {
    fn fields(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let fields = [
            ("reason", self.reason.clone()),
            ("died_after", self.died_after.clone()),
            ("died_before", self.died_before.clone()),
        ];
        fields.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    /// As the query of a request.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        self.fields().collect()
    }

    /// As the fields of a request.
    pub(crate) fn json(&self) -> Map<String, Value> {
        self.fields().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// What to list.
#[derive(Debug, Args)]
pub(crate) struct DeadListArgs {
    /// The topic
    #[arg(value_parser = values::topic)]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// At most so many jobs
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// All jobs, however many
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// What to purge.
#[derive(Debug, Args)]
pub(crate) struct DeadPurgeArgs {
    /// The topic
    #[arg(value_parser = values::topic)]
    pub(crate) topic: String,
    /// One job of it
    #[arg(value_parser = values::id, required_unless_present_any = ["reason", "died_after", "died_before", "all"],
        conflicts_with_all = ["reason", "died_after", "died_before", "all"])]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// All dead jobs of the topic
    #[arg(long)]
    pub(crate) all: bool,
}

/// What to revive, and how fast.
#[derive(Debug, Args)]
pub(crate) struct DeadReviveArgs {
    /// The topic
    #[arg(value_parser = values::topic)]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// So many a second, 1 to 100000
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Do not wait until it has ended
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// A revival.
#[derive(Debug, Args)]
pub(crate) struct RevivalArgs {
    /// The topic
    #[arg(value_parser = values::topic)]
    pub(crate) topic: String,
    /// The revival's id
    #[arg(value_name = "REVIVAL")]
    pub(crate) revival: String,
}
