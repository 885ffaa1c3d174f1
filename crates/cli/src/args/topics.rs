//! Which topics are looked at, paused or resumed.

use clap::Args;

use super::values;

const TOPICS_EXAMPLES: &str = "\
Examples:
  ringback topics
  ringback topics --all --output json | jq -r 'select(.states.dead > 0) | .topic'";

pub(super) const TOPIC_EXAMPLES: &str = "\
Examples:
  ringback topic pay.notify
  ringback topic pay.notify --output json | jq .late_ms";

pub(super) const PAUSE_EXAMPLES: &str = "\
Examples:
  ringback pause pay.notify

Its jobs are submitted, cancelled and become due as before. What is being handed over goes on.";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  ringback resume pay.notify
  ringback topics --all --output json | jq -r 'select(.paused) | .topic' | xargs -n 1 ringback resume";

/// How many topics.
#[derive(Debug, Args)]
#[command(after_help = TOPICS_EXAMPLES)]
pub(crate) struct TopicsArgs {
    /// At most so many topics
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// All topics, however many
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// A topic, by its name.
#[derive(Debug, Args)]
pub(crate) struct TopicArgs {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = values::topic)]
    pub(crate) topic: String,
}
