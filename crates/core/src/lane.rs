//! Lanes: the queues inside a shard. Push jobs have one lane per topic and origin, pull jobs one per
//! topic. A lane has a name, for people and fair scheduling, and a short id, for records and keys.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use sha2::{Digest as _, Sha256};

use crate::job::{ContentHash, Topic};

/// The id of a lane in records and keys: 64 bits of SHA-256 over its name. Among a hundred thousand
/// lanes, two share an id with a probability of 5 in 10¹⁰. The first bit is set for a pull lane, so
/// that scripts need not read the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub [u8; 8]);

impl LaneId {
    /// The bit of the first byte that is set for a pull lane.
    pub const PULL: u8 = 128;

    /// The id of the lane with this [name](lane_name).
    pub fn of(name: &str) -> Self {
        let digest = Sha256::digest(name);
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        let is_pull = name.ends_with(' ');
        id[0] = if is_pull { id[0] | Self::PULL } else { id[0] & !Self::PULL };
        Self(id)
    }

    /// Reads 16 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let number = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 16)?;
        Some(Self(number.to_be_bytes()))
    }
}

/// The name of a lane: topic and origin with a space between them. The origin of a pull lane is empty.
pub fn lane_name(topic: &Topic, origin: &str) -> String {
    format!("{topic} {origin}")
}

/// The lane of a topic's pull jobs, as wake-ups name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PullLane(pub LaneId);

impl PullLane {
    /// The pull lane of a topic.
    pub fn of(topic: &Topic) -> Self {
        Self(LaneId::of(&lane_name(topic, "")))
    }
}

/// What a lease remembers of its job's record, so that a settle on Redis does not read the record
/// again. The embedded store leaves it empty.
#[derive(Clone, Debug, Default)]
pub struct SettleHint {
    /// The job's lane.
    pub lane: LaneId,
    /// The hash of the job's content.
    pub content: ContentHash,
    /// Whether the payload lies in a key of its own.
    pub is_external: bool,
    /// How many jobs of the same reserve are not settled yet.
    pub unsettled: Arc<AtomicUsize>,
}
