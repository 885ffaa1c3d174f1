//! The arguments of `ringback dead`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::list::Page;
use super::topics::TopicArgs;
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

A purged job is no longer known and its id can be used again; only its recorded attempts remain.";

const REVIVE_EXAMPLES: &str = "\
Examples:
  ringback dead revive pay.notify --reason exhausted --rate 200
  ringback dead revive pay.notify --died-after 2026-11-20T09:00:00Z --no-wait

A carrier does the work. Ctrl-C stops watching, not the redrive: use `ringback dead stop` for that.";

/// The commands on the dead jobs of a topic.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead jobs, in the order in which they died
    #[command(after_help = LIST_EXAMPLES)]
    List(DeadListArgs),
    /// Remove one dead job, or all that match a filter
    #[command(after_help = PURGE_EXAMPLES)]
    Purge(DeadPurgeArgs),
    /// Redrive dead jobs: make all that match a filter due again, at a given rate
    #[command(after_help = REVIVE_EXAMPLES)]
    Revive(DeadReviveArgs),
    /// List the redrives of a topic
    Revivals(TopicArgs),
    /// Show the progress of a redrive until it ends
    Watch(RedriveArgs),
    /// Stop a redrive; jobs that it has made due stay so
    Stop(RedriveArgs),
}

/// A filter of dead jobs.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadFilter {
    /// Only jobs that are dead for this reason: exhausted, gone, lost, or one that a consumer gave
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Only jobs that died at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) died_after: Option<String>,
    /// Only jobs that died before this time (RFC 3339)
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

    /// The query of the request.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        self.fields().collect()
    }

    /// The fields of the request body.
    pub(crate) fn json(&self) -> Map<String, Value> {
        self.fields().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
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

/// The dead jobs to redrive, and the rate.
#[derive(Debug, Args)]
pub(crate) struct DeadReviveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    #[command(flatten)]
    pub(crate) filter: DeadFilter,
    /// Jobs per second, 1 to 100000
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Start the redrive and return at once
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// A redrive, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Id of the redrive
    #[arg(value_name = "REDRIVE")]
    pub(crate) revival: String,
}
