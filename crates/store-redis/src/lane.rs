//! Lane ids, lane names, and what settling has to know of a job's record.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use ringback_core::job::{ContentHash, Topic};
use sha2::{Digest as _, Sha256};

/// The bit in the first byte of a lane's id that marks a pull lane.
const PULL: u8 = 128;

/// The id of a lane in records and keys: 64 bits of SHA-256 over its name. Two of a hundred thousand lanes
/// share an id with a chance of 5 in 10¹⁰. The first bit says whether it is a pull lane, so that scripts need
/// not read its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) [u8; 8]);

impl LaneId {
    /// The id of the lane with this name.
    pub(crate) fn of(words: &str) -> Self {
        let digest = Sha256::digest(words);
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        let is_pull = words.ends_with(' ');
        id[0] = if is_pull { id[0] | PULL } else { id[0] & !PULL };
        Self(id)
    }

    /// Parses 16 hexadecimal digits.
    pub(crate) fn parse(hex: &str) -> Option<Self> {
        let number = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 16)?;
        Some(Self(number.to_be_bytes()))
    }
}

/// The name of a lane: topic, space, origin. A pull lane has no origin.
pub(crate) fn lane_name(topic: &Topic, origin: &str) -> String {
    format!("{topic} {origin}")
}

/// The parts of a job's record that settling needs, kept with the lease so that the record is not read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettleHint {
    pub(crate) lane: LaneId,
    pub(crate) content: ContentHash,
    pub(crate) is_external: bool,
    /// How many jobs of the lease's batch are not settled yet.
    pub(crate) unsettled: Arc<AtomicUsize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_of_pull_lanes_is_that_of_the_prelude() {
        assert!(include_str!("lua/prelude/lanes.lua").contains(&format!("byte(lane) >= {PULL}")));
        assert!(LaneId::of("mail ").0[0] >= PULL);
        assert!(LaneId::of("mail https://a").0[0] < PULL);
    }
}
