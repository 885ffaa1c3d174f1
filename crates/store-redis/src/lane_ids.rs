//! The ids of lanes in records and keys: 64 bits of a hash over the installation's key and the lane's name.
//!
//! The key is random and never leaves the store and its processes, so a caller cannot search for two names with the same
//! id. Should two lanes have one by chance, a submit finds the name of the other lane in its row, and takes the next id.

use std::fmt;

use rand::TryRng as _;
use rand::rngs::SysRng;
use ringback_core::hex::{self, Hex};
use ringback_core::lane::{Lane, LaneId};
use ringback_core::store_types::StoreError;
use sha2::{Digest as _, Sha256};

/// The bit in the first byte of an id that marks a pull lane, so that scripts need not read the name.
const PULL: u8 = 128;

/// The random key of an installation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneKey([u8; 32]);

impl LaneKey {
    pub(crate) fn generate() -> Result<Self, StoreError> {
        let mut key = [0; 32];
        let why = |_| StoreError::Unfit("the operating system gives no random numbers".to_owned());
        SysRng.try_fill_bytes(&mut key).map_err(why)?;
        Ok(Self(key))
    }

    /// Reads a key that [`Self::to_hex`] has written; `None` for another text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        hex::read(text).map(Self)
    }

    /// Returns the key as 64 hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        Hex(&self.0).to_string()
    }

    /// Returns the id of a lane. `taken` is how many earlier ids of it belong to other lanes.
    pub(crate) fn id(&self, lane: Lane<'_>, taken: u8) -> LaneId {
        let hash = Sha256::new().chain_update(self.0).chain_update([taken]);
        let digest = hash.chain_update(lane.topic).chain_update(" ").chain_update(lane.origin).finalize();
        let mut id: [u8; 8] = *digest.first_chunk().expect("a digest has 32 bytes");
        id[0] = if lane.is_pull() { id[0] | PULL } else { id[0] & !PULL };
        LaneId(id)
    }
}

/// Prints the name of the type only, so that no log shows the key.
impl fmt::Debug for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaneKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane<'_> = Lane { topic: "t", origin: "https://a" };
    const PULL_LANE: Lane<'_> = Lane { topic: "t", origin: "" };

    const KEY: LaneKey = LaneKey([7; 32]);

    #[test]
    fn ids_differ_by_key_and_by_how_many_were_taken() {
        let ids = [KEY.id(LANE, 0), KEY.id(LANE, 1), LaneKey([8; 32]).id(LANE, 0)];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id));
        }
        assert_eq!(KEY.id(LANE, 0), ids[0]);
    }

    #[test]
    fn the_first_bit_is_that_of_a_pull_lane() {
        for taken in 0..8 {
            assert!(KEY.id(LANE, taken).0[0] < PULL && KEY.id(PULL_LANE, taken).0[0] >= PULL);
        }
    }

    #[test]
    fn a_key_is_read_as_it_is_written_and_is_not_shown() {
        let key = LaneKey::generate().unwrap();
        assert_eq!(LaneKey::parse(&key.to_hex()), Some(key));
        assert_ne!(LaneKey::generate().unwrap(), key);
        assert_eq!(format!("{key:?}"), "LaneKey");
        assert!(LaneKey::parse("").is_none() && LaneKey::parse("00").is_none());
    }
}
