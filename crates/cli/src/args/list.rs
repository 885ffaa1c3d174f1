//! The arguments of `ringback list`, and the filter and the size that other lists share.

use clap::Args;
use ringback_core::state::State;

use super::values;

const LIST_EXAMPLES: &str = "\
Examples:
  ringback list
  ringback list --topic pay.notify --state dead --all
  ringback list --all --output json | jq -r 'select(.failures > 3) | .id'";

/// The filter and the size of a list.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) page: Page,
}

/// The size of a list.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Page {
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// List all items, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Page {
    /// The maximum number of items.
    pub(crate) fn limit(self) -> u64 {
        if self.all { u64::MAX } else { self.limit }
    }
}

/// The states of jobs that are listed and exported.
const PENDING_AND_DEAD: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// A filter of jobs.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only jobs of this topic
    #[arg(long, value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Only jobs in this state
    #[arg(long, value_parser = PENDING_AND_DEAD.map(State::name))]
    pub(crate) state: Option<String>,
}

impl Filter {
    /// The query of the request.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let topic = self.topic.clone().map(|topic| ("topic", topic));
        let state = self.state.clone().map(|state| ("state", state));
        topic.into_iter().chain(state).collect()
    }
}
