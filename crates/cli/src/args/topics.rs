//! The arguments of `ringback topics`, `topic`, `pause` and `resume`.

use clap::Args;

use super::list::Page;
use super::values;

const TOPICS_EXAMPLES: &str = "\
Examples:
  ringback topics
  ringback topics --all --output json | jq -r 'select(.states.dead > 0) | .topic'";

pub(crate) const TOPIC_EXAMPLES: &str = "\
Examples:
  ringback topic pay.notify
  ringback topic pay.notify --output json | jq .late_ms";

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  ringback pause pay.notify

Jobs of a paused topic can be submitted and cancelled, and become due. Deliveries in flight go on.";

pub(crate) const RESUME_EXAMPLES: &str = "\
Examples:
  ringback resume pay.notify
  ringback topics --all --output json | jq -r 'select(.paused) | .topic' | xargs -n 1 ringback resume";

/// The number of topics.
#[derive(Debug, Args)]
#[command(after_help = TOPICS_EXAMPLES)]
pub(crate) struct TopicsArgs {
    #[command(flatten)]
    pub(crate) page: Page,
}

/// One topic.
#[derive(Debug, Args)]
pub(crate) struct TopicArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC", value_parser = values::topic)]
    pub(crate) topic: String,
}
