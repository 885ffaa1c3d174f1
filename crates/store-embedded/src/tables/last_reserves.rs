//! The last reserve of each caller. A reserve that is repeated with the same sequence number within a
//! minute returns the same jobs, so that a lost answer costs no lease.

use serde::{Deserialize, Serialize};

use super::rows::{Access, Rows, Writing, pack};
use super::times::LAST;
use crate::error::Result;

/// How long a reserve is remembered, in ms.
const KEEP: u64 = 60_000;
/// How many rows are checked for age each time one is added.
const CHECKED: usize = 64;

/// The jobs that a caller got by its last reserve.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// In ms.
    pub(crate) at: u64,
    pub(crate) sequence: u64,
    /// The random bits of the receipts.
    pub(crate) bits: [u8; 8],
    pub(crate) numbers: Vec<u64>,
}

pub(crate) struct LastReserves<A: Access>(pub(crate) Rows<A, (u16, &'static str), &'static [u8]>);

impl<A: Access> LastReserves<A> {
    /// Returns what a caller got by its last reserve; `None` if that had another sequence number or is older than a
    /// minute.
    pub(crate) fn recall(
        &self,
        shard: u16,
        caller: &str,
        sequence: u64,
        now: u64,
    ) -> Result<Option<Granted>> {
        let granted = self.0.read((shard, caller), unpack)?.flatten();
        Ok(granted.filter(|granted| granted.sequence == sequence && now < granted.at + KEEP))
    }
}

impl LastReserves<Writing<'_>> {
    pub(crate) fn remember(&mut self, shard: u16, caller: &str, granted: &Granted) -> Result<()> {
        let old = self.0.list((shard, "")..=(shard, LAST), CHECKED, |(_, caller), raw| {
            let is_old = unpack(raw).is_none_or(|before| granted.at >= before.at + KEEP);
            is_old.then(|| caller.to_owned())
        })?;
        for caller in old.iter().flatten() {
            self.0.remove((shard, caller.as_str()))?;
        }
        self.0.insert((shard, caller), pack(granted).as_slice())
    }
}

fn unpack(raw: &[u8]) -> Option<Granted> {
    postcard::from_bytes(raw).ok()
}
