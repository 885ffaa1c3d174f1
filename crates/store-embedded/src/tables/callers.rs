//! What each caller was last given: asked again with the same sequence within a minute, it
//! gets the same.

use redb::{ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::StoreError;
use serde::{Deserialize, Serialize};

use super::due::LAST;
use super::rows::{Journal, Name, Rows};

const CALLERS: TableDefinition<'static, (u16, &str), &[u8]> = TableDefinition::new("callers");

/// How long an answer is remembered, in ms.
const KEEP: u64 = 60_000;
/// How many of those remembered are looked at for old ones, each time one is added.
const SWEPT: usize = 64;

/// A caller's last answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Given {
    /// In ms.
    pub(crate) at: u64,
    pub(crate) sequence: u64,
    pub(crate) bits: [u8; 8],
    pub(crate) numbers: Vec<u64>,
}

pub(crate) struct Callers<'t>(pub(crate) Rows<'t, (u16, &'static str), &'static [u8]>);

impl<'t> Callers<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Callers, CALLERS)?))
    }

    /// What a caller was given under a sequence, while that is remembered.
    pub(crate) fn recall(
        &self,
        shard: u16,
        caller: &str,
        sequence: u64,
        now: u64,
    ) -> Result<Option<Given>, StoreError> {
        let given = self.0.get((shard, caller))?.and_then(|raw| unpack(raw.value()));
        Ok(given.filter(|given| given.sequence == sequence && now < given.at + KEEP))
    }

    pub(crate) fn remember(&mut self, shard: u16, caller: &str, given: &Given) -> Result<(), StoreError> {
        for old in self.old(shard, given.at)? {
            self.0.remove((shard, old.as_str()))?;
        }
        let raw = postcard::to_stdvec(given).expect("plain data always serialises");
        self.0.insert((shard, caller), raw.as_slice())?;
        Ok(())
    }

    fn old(&self, shard: u16, now: u64) -> Result<Vec<String>, StoreError> {
        let mut old = Vec::new();
        for row in self.0.range((shard, "")..=(shard, LAST))?.take(SWEPT) {
            let (key, raw) = row?;
            if unpack(raw.value()).is_none_or(|given| now >= given.at + KEEP) {
                old.push(key.value().1.to_owned());
            }
        }
        Ok(old)
    }
}

fn unpack(raw: &[u8]) -> Option<Given> {
    postcard::from_bytes(raw).ok()
}
