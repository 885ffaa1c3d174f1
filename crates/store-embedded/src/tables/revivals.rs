//! Revivals: what each is to do, how far it is, and who works on it.

use redb::{ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::{RedriveJob, StoreError};
use serde::{Deserialize, Serialize};

use super::rows::{Journal, Name, Rows};

const REVIVALS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("revivals");

/// A revival; times are in ms. Packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevivalRow {
    pub(crate) work: RedriveJob,
    pub(crate) started: u64,
    pub(crate) end: Option<End>,
    pub(crate) revived: u64,
    pub(crate) holder: [u8; 8],
    /// Until when it is the holder's.
    pub(crate) until: u64,
}

/// How it ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Done(u64),
    Stopped(u64),
}

impl End {
    pub(crate) const fn at(self) -> u64 {
        match self {
            Self::Done(at) | Self::Stopped(at) => at,
        }
    }
}

pub(crate) struct Revivals<'t>(pub(crate) Rows<'t, u64, &'static [u8]>);

impl<'t> Revivals<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Revivals, REVIVALS)?))
    }

    pub(crate) fn get(&self, id: [u8; 8]) -> Result<Option<RevivalRow>, StoreError> {
        let row = self.0.get(u64::from_be_bytes(id))?;
        Ok(row.and_then(|raw| postcard::from_bytes(raw.value()).ok()))
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> Result<Vec<([u8; 8], RevivalRow)>, StoreError> {
        let mut all = Vec::new();
        for row in self.0.iter()? {
            let (id, raw) = row?;
            let row = postcard::from_bytes(raw.value()).ok();
            all.extend(row.map(|row| (id.value().to_be_bytes(), row)));
        }
        Ok(all)
    }

    pub(crate) fn put(&mut self, id: [u8; 8], row: &RevivalRow) -> Result<(), StoreError> {
        let raw = postcard::to_stdvec(row).expect("plain data always serialises");
        self.0.insert(u64::from_be_bytes(id), raw.as_slice())?;
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: [u8; 8]) -> Result<(), StoreError> {
        self.0.remove(u64::from_be_bytes(id))?;
        Ok(())
    }
}
