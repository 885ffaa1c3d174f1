//! Jobs of a shard by a time: reserved ones by deadline, dead ones by their death, ended
//! ones by their end. Times are in ms.

#[cfg(test)]
use redb::ReadTransaction;
use redb::{ReadableTable as _, TableDefinition, WriteTransaction};

#[cfg(test)]
use super::Entry;
use super::rows::{Journal, Name, Rows};
use ringback_core::contract::StoreError;

type Definition = TableDefinition<'static, (u16, u64, u64), ()>;

pub(crate) const LEASES: (Name, Definition) = (Name::Leases, TableDefinition::new("leases"));
pub(crate) const DEAD: (Name, Definition) = (Name::Dead, TableDefinition::new("dead"));
pub(crate) const ENDED: (Name, Definition) = (Name::Ended, TableDefinition::new("ended"));

pub(crate) struct Times<'t>(pub(crate) Rows<'t, (u16, u64, u64), ()>);

impl<'t> Times<'t> {
    pub(crate) fn open(
        txn: &'t WriteTransaction,
        journal: &'t Journal,
        (name, definition): (Name, Definition),
    ) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, name, definition)?))
    }

    pub(crate) fn add(&mut self, shard: u16, at: u64, number: u64) -> Result<(), StoreError> {
        self.0.insert((shard, at, number), ())?;
        Ok(())
    }

    pub(crate) fn remove(&mut self, shard: u16, at: u64, number: u64) -> Result<(), StoreError> {
        self.0.remove((shard, at, number))?;
        Ok(())
    }

    /// Whether a job stands at a time.
    pub(crate) fn has(&self, shard: u16, at: u64, number: u64) -> Result<bool, StoreError> {
        Ok(self.0.get((shard, at, number))?.is_some())
    }

    /// The earliest time.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>, StoreError> {
        let mut rows = self.0.range((shard, 0, 0)..=(shard, u64::MAX, u64::MAX))?;
        rows.next().map(|row| Ok(row?.0.value().1)).transpose()
    }

    /// The first that stand at or before a time: time and number.
    pub(crate) fn until(&self, shard: u16, time: u64, limit: usize) -> Result<Vec<(u64, u64)>, StoreError> {
        let rows = self.0.range((shard, 0, 0)..=(shard, time, u64::MAX))?.take(limit);
        rows.map(|row| row.map(|(key, _)| (key.value().1, key.value().2)))
            .collect::<Result<_, _>>()
            .map_err(StoreError::from)
    }
}

#[cfg(test)]
pub(crate) fn entries(
    txn: &ReadTransaction,
    see: &mut impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for ((_, definition), entry) in
        [(LEASES, Entry::Lease as fn(u16, u64, u64) -> Entry), (DEAD, Entry::Dead), (ENDED, Entry::Ended)]
    {
        for row in txn.open_table(definition)?.iter()? {
            let (shard, at, number) = row?.0.value();
            see(entry(shard, at, number))?;
        }
    }
    Ok(())
}
