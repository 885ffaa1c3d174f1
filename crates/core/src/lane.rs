//! Lanes: the queues inside a shard. Push jobs have one lane per topic and origin, pull jobs one per
//! topic. A lane has a name, for people and fair scheduling, and a short id, for records and keys.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use sha2::{Digest as _, Sha256};

use crate::job::{ContentHash, Topic};
use crate::token::Token;

/// A lane, with borrowed parts. Jobs of one lane wait in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane<'a> {
    /// The topic of its jobs.
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

    /// Reads a [name](Self::name).
    pub fn parse(name: &'a str) -> Option<Self> {
        let (topic, origin) = name.split_once(' ')?;
        Some(Self { topic, origin })
    }

    /// The topic in a [name](Self::name).
    pub fn topic_of(name: &str) -> &str {
        Lane::parse(name).map_or(name, |lane| lane.topic)
    }

    /// The name under which stores keep the lane: topic and origin with a space between them.
    pub fn name(self) -> String {
        [self.topic, " ", self.origin].concat()
    }

    /// Whether its jobs are pull jobs.
    pub const fn is_pull(self) -> bool {
        self.origin.is_empty()
    }

    /// The short form of its name.
    pub fn id(self) -> LaneId {
        let digest = Sha256::new().chain_update(self.topic).chain_update(" ").chain_update(self.origin);
        let mut id = [0; 8];
        id.copy_from_slice(&digest.finalize()[..8]);
        id[0] = if self.is_pull() { id[0] | LaneId::PULL } else { id[0] & !LaneId::PULL };
        LaneId(id)
    }
}

/// The id of a lane in records and keys: 64 bits of SHA-256 over its name. Among a hundred thousand
/// lanes, two share an id with a probability of 5 in 10¹⁰. The first bit is set for a pull lane, so
/// that scripts need not read the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub [u8; 8]);

impl LaneId {
    /// The bit of the first byte that is set for a pull lane.
    const PULL: u8 = 128;

    /// Reads 16 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let number = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 16)?;
        Some(Self(number.to_be_bytes()))
    }
}

/// The parts of a job's record that a lease keeps, so that a settle on Redis does not read the record
/// again. The embedded store leaves it empty.
#[derive(Clone, Debug, Default)]
pub struct SettleHint {
    /// The job's lane.
    pub lane: LaneId,
    /// The hash of the job's content.
    pub content: ContentHash,
    /// Whether the payload lies in a key of its own.
    pub is_external: bool,
    /// The token of the submit, if it could take a job's place.
    pub token: Option<Token>,
    /// The jobs that were reserved with it.
    pub batch: Arc<GrantedBatch>,
}

/// The jobs that one reserve granted with the same deadline.
#[derive(Debug, Default)]
pub struct GrantedBatch {
    /// How many there are.
    pub size: usize,
    /// How many of them are not settled yet, as far as this process knows.
    pub unsettled: AtomicUsize,
}
