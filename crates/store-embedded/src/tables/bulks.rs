//! Bulk operations, by id: what each changes and how fast, how many jobs it has changed, and which worker has claimed
//! it until when.

use ringback_core::store_types::{Bulk, BulkId};
use serde::{Deserialize, Serialize};

use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

/// A bulk operation, with the number of jobs that it has changed. Packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BulkRow {
    pub(crate) bulk: Bulk,
    pub(crate) worker: [u8; 8],
    /// When the worker's claim expires, in ms.
    pub(crate) until: u64,
}

pub(crate) struct Bulks<A: Access>(pub(crate) Rows<A, u64, &'static [u8]>);

impl<A: Access> Bulks<A> {
    pub(crate) fn get(&self, id: BulkId) -> Result<Option<BulkRow>> {
        Ok(self.0.read(key(id), |raw| postcard::from_bytes(raw).ok())?.flatten())
    }

    /// Returns a bulk operation; `None` if it has ended, is unknown or cannot be read.
    pub(crate) fn running(&self, id: BulkId) -> Result<Option<BulkRow>> {
        Ok(self.get(id)?.filter(|row| row.bulk.ended.is_none()))
    }

    /// Returns all bulk operations that can be read.
    pub(crate) fn all(&self) -> Result<Vec<BulkRow>> {
        let mut all = Vec::new();
        self.0.each(|_, raw| {
            all.extend(postcard::from_bytes::<BulkRow>(raw).ok());
            Ok(())
        })?;
        Ok(all)
    }
}

impl Bulks<Writing<'_>> {
    pub(crate) fn put(&mut self, row: &BulkRow) -> Result<()> {
        self.0.insert(key(row.bulk.id), pack(row).as_slice())
    }

    pub(crate) fn remove(&mut self, id: BulkId) -> Result<()> {
        self.0.remove(key(id)).map(drop)
    }
}

const fn key(BulkId(id): BulkId) -> u64 {
    u64::from_be_bytes(id)
}
