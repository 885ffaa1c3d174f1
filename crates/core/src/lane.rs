//! Lanes, the queues inside a shard: one per topic and origin for push jobs, one per topic for pull jobs. A lane has a
//! name, and in Redis a short id. Also what a lease keeps of its job and batch, so that a settle in Redis reads less.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::job::{ContentHash, Tenant, Topic};
use crate::token::Token;

/// What [`Lane::tenant`] returns for a topic without a tenant.
pub const NO_TENANT: &str = "~";

/// A lane, with borrowed parts. Jobs of one lane wait in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane<'a> {
    pub topic: &'a str,
    /// The origin of their URLs; empty for pull jobs, which have none.
    pub origin: &'a str,
}

impl<'a> Lane<'a> {
    /// The lane of a topic's push jobs with this origin; that of its pull jobs if the origin is empty.
    pub fn new(topic: &'a Topic, origin: &'a str) -> Self {
        Self { topic: topic.as_str(), origin }
    }

    /// The lane of a topic's pull jobs.
    pub fn pull(topic: &'a Topic) -> Self {
        Self::new(topic, "")
    }

    pub fn parse(name: &'a str) -> Option<Self> {
        let (topic, origin) = name.split_once(' ')?;
        Some(Self { topic, origin })
    }

    pub fn topic_of(name: &str) -> &str {
        Lane::parse(name).map_or(name, |lane| lane.topic)
    }

    /// The name under which stores keep the lane: topic and origin with a space between them.
    pub fn name(self) -> String {
        [self.topic, " ", self.origin].concat()
    }

    /// The name of the lane's tenant in the limits of groups: `~tenant`, or [`NO_TENANT`]. No origin has such a name.
    pub fn tenant(self) -> &'a str {
        match self.topic.split_once('/') {
            Some((tenant, _)) if tenant.starts_with(Tenant::MARK) => tenant,
            Some(_) | None => NO_TENANT,
        }
    }

    /// Whether the jobs of the lane are pull jobs.
    pub const fn is_pull(self) -> bool {
        self.origin.is_empty()
    }
}

/// The id of a lane in records and keys of the store on Redis. No two lanes of a shard share one. The first bit is set
/// for a pull lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub [u8; 8]);

/// The parts of a job's record that a lease keeps, so that a settle on Redis does not read the record again. Empty in
/// leases of the embedded store.
#[derive(Clone, Debug, Default)]
pub struct SettleHint {
    /// The job's lane.
    pub lane: LaneId,
    /// The hash of the job's content.
    pub content: ContentHash,
    /// Whether the payload lies in a key of its own.
    pub is_external: bool,
    /// Whether the job has tags.
    pub has_tags: bool,
    /// The token of the submit, if it could take a job's place.
    pub token: Option<Token>,
    /// The jobs that were reserved with it.
    pub batch: Arc<GrantedBatch>,
}

/// The jobs that one reserve granted with the same deadline.
#[derive(Debug, Default)]
pub struct GrantedBatch {
    pub size: usize,
    /// How many of them are not settled yet, as far as this process knows.
    pub unsettled: AtomicUsize,
}
