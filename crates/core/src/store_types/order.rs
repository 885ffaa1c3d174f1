//! Ordered topics: their jobs of one key are delivered one at a time, in the order of their due times. A due job waits
//! behind the head of its key: the earliest one, or one that was attempted and has not ended.

use crate::clock::Timestamp;
use crate::job::JobId;
use crate::topic_policy::OrderOnDead;

/// The most keys of a shard with jobs that wait behind another one.
pub const MAX_WAITING_KEYS: u64 = 100_000;

/// How a shard orders a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicOrder {
    pub on_dead: OrderOnDead,
    /// Since when the order holds also for the jobs that were attempted before; `None` while these are looked for.
    pub since: Option<Timestamp>,
}

/// What a due job of an ordered topic waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderWait {
    /// How many jobs of its key go before it, counted up to [`MAX_BEFORE`](super::MAX_BEFORE).
    pub before: u32,
    /// The job at the head of its key.
    pub head: JobId,
    /// The head is dead, and holds the key.
    pub is_held: bool,
}
