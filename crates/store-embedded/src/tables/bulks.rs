//! Bulk operations: what each changes and how fast, how many jobs it has changed, and which worker holds it.

use ringback_core::contract::BulkWork;
use serde::{Deserialize, Serialize};

use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

/// A bulk operation; times are in ms. Packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BulkRow {
    pub(crate) work: BulkWork,
    pub(crate) started: u64,
    pub(crate) end: Option<BulkEnd>,
    /// How many jobs were changed.
    pub(crate) jobs: u64,
    /// The worker that holds it.
    pub(crate) worker: [u8; 8],
    /// When the worker's hold ends.
    pub(crate) until: u64,
}

/// How a bulk operation ended, and when in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BulkEnd {
    Done(u64),
    Stopped(u64),
}

impl BulkEnd {
    pub(crate) const fn at(self) -> u64 {
        match self {
            Self::Done(at) | Self::Stopped(at) => at,
        }
    }
}

pub(crate) struct Bulks<A: Access>(pub(crate) Rows<A, u64, &'static [u8]>);

impl<A: Access> Bulks<A> {
    pub(crate) fn get(&self, id: [u8; 8]) -> Result<Option<BulkRow>> {
        Ok(self.0.read(u64::from_be_bytes(id), |raw| postcard::from_bytes(raw).ok())?.flatten())
    }

    /// A bulk operation that has not ended.
    pub(crate) fn running(&self, id: [u8; 8]) -> Result<Option<BulkRow>> {
        Ok(self.get(id)?.filter(|bulk| bulk.end.is_none()))
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> Result<Vec<([u8; 8], BulkRow)>> {
        let mut all = Vec::new();
        self.0.each(|id, raw| {
            all.extend(postcard::from_bytes(raw).ok().map(|bulk| (id.to_be_bytes(), bulk)));
            Ok(())
        })?;
        Ok(all)
    }
}

impl Bulks<Writing<'_>> {
    pub(crate) fn put(&mut self, id: [u8; 8], bulk: &BulkRow) -> Result<()> {
        self.0.insert(u64::from_be_bytes(id), pack(bulk).as_slice())
    }

    pub(crate) fn remove(&mut self, id: [u8; 8]) -> Result<()> {
        self.0.remove(u64::from_be_bytes(id)).map(drop)
    }
}
