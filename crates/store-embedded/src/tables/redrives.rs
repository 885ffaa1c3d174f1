//! Redrives, which make many dead jobs ready again: the filter and the rate of each, how many jobs
//! it has redriven, and which worker holds it.

use redb::ReadableTable as _;
use ringback_core::contract::RedriveJob;
use serde::{Deserialize, Serialize};

use super::rows::{Access, Writing};
use crate::error::Result;

/// A redrive; times are in ms. Packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RedriveRow {
    pub(crate) work: RedriveJob,
    pub(crate) started: u64,
    pub(crate) end: Option<RedriveEnd>,
    /// How many jobs were made ready.
    pub(crate) jobs: u64,
    /// The worker that holds it.
    pub(crate) worker: [u8; 8],
    /// When the worker's hold ends.
    pub(crate) until: u64,
}

/// How a redrive ended, and when in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RedriveEnd {
    Done(u64),
    Stopped(u64),
}

impl RedriveEnd {
    pub(crate) const fn at(self) -> u64 {
        match self {
            Self::Done(at) | Self::Stopped(at) => at,
        }
    }
}

pub(crate) struct Redrives<A: Access>(pub(crate) A::Table<u64, &'static [u8]>);

impl<A: Access> Redrives<A> {
    pub(crate) fn get(&self, id: [u8; 8]) -> Result<Option<RedriveRow>> {
        let row = self.0.get(u64::from_be_bytes(id))?;
        Ok(row.and_then(|raw| postcard::from_bytes(raw.value()).ok()))
    }

    /// A redrive that has not ended.
    pub(crate) fn running(&self, id: [u8; 8]) -> Result<Option<RedriveRow>> {
        Ok(self.get(id)?.filter(|redrive| redrive.end.is_none()))
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> Result<Vec<([u8; 8], RedriveRow)>> {
        let mut all = Vec::new();
        for row in self.0.iter()? {
            let (id, raw) = row?;
            let redrive = postcard::from_bytes(raw.value()).ok();
            all.extend(redrive.map(|redrive| (id.value().to_be_bytes(), redrive)));
        }
        Ok(all)
    }
}

impl Redrives<Writing<'_>> {
    pub(crate) fn put(&mut self, id: [u8; 8], redrive: &RedriveRow) -> Result<()> {
        let raw = postcard::to_stdvec(redrive).expect("plain data always serialises");
        self.0.insert(u64::from_be_bytes(id), raw.as_slice())
    }

    pub(crate) fn remove(&mut self, id: [u8; 8]) -> Result<()> {
        self.0.remove(u64::from_be_bytes(id))?;
        Ok(())
    }
}
