//! The answers about topics.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::job::Topic;
use crate::policy::Policy;
use crate::store::TopicCounts;

/// What is known of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicAnswer {
    /// Its name.
    pub topic: String,
    /// Nothing of it is handed over until it is resumed.
    pub paused: bool,
    /// Its jobs.
    pub states: TopicStates,
    /// When the first of the delayed and ready jobs is due, or was. Missing where none is ready or due
    /// within ten minutes: what is due later is not looked for. Of the ready jobs the first eight of each
    /// origin are looked at, in each shard for the first 4,096 pairs of topic and origin of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_due_at: Option<String>,
    /// For how long the ready job that waits longest has been due, of the same jobs; 0 where none is
    /// ready.
    pub late_ms: u64,
    /// Its policy, each field as it was written; null where it has none.
    #[schema(value_type = Option<Object>)]
    pub policy: Option<Value>,
}

/// A topic's jobs per state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicStates {
    /// Waiting for their due time.
    pub delayed: u64,
    /// Due, waiting to be handed over.
    pub ready: u64,
    /// Being handed over.
    pub reserved: u64,
    /// Done since the topic became known. On Redis a topic without jobs that is not paused is forgotten
    /// once about 10,000 others of its shard were used after it; the embedded store forgets none.
    pub done: u64,
    /// Given up and kept.
    pub dead: u64,
    /// Cancelled since the topic became known.
    pub cancelled: u64,
}

/// A page of topics, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicsAnswer {
    /// The topics.
    pub items: Vec<TopicAnswer>,
    /// Where the next page begins; null after the last one. Opaque.
    pub next: Option<String>,
}

impl TopicAnswer {
    /// What is told of a topic.
    pub fn new(topic: &Topic, counts: &TopicCounts, policy: Option<&Policy>) -> Self {
        let &TopicCounts { paused, delayed, ready, reserved, dead, done, cancelled, oldest_due, late } =
            counts;
        Self {
            topic: topic.to_string(),
            paused,
            states: TopicStates { delayed, ready, reserved, done, dead, cancelled },
            oldest_due_at: oldest_due.map(|at| at.to_string()),
            late_ms: u64::try_from(late.as_millis()).unwrap_or(u64::MAX),
            policy: policy.and_then(|policy| serde_json::from_str(policy.written()).ok()),
        }
    }
}
