//! The one way to write to a table: each row that is put or taken away is also noted in the
//! journal of the group, as the log will keep it; and rows of the log are written again here.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::Deref;

use redb::{AccessGuard, Key, StorageError, Table, TableDefinition, Value, WriteTransaction};
use ringback_core::contract::StoreError;

use crate::log;

/// Every table, by the number it has in the log: numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Name {
    Ids = 1,
    Jobs = 2,
    Bodies = 3,
    Due = 4,
    Turns = 5,
    Topics = 6,
    Ready = 7,
    Lanes = 8,
    LaneTurns = 9,
    Leases = 10,
    Dead = 11,
    Ended = 12,
    Shards = 13,
    Callers = 14,
    Minutes = 15,
    Counts = 16,
    Known = 17,
    Revivals = 18,
    Policies = 19,
    Attempts = 20,
    AttemptsByTime = 21,
    AttemptsBytes = 22,
    Outbox = 23,
}

impl Name {
    const ALL: [Self; 23] = [
        Self::Ids,
        Self::Jobs,
        Self::Bodies,
        Self::Due,
        Self::Turns,
        Self::Topics,
        Self::Ready,
        Self::Lanes,
        Self::LaneTurns,
        Self::Leases,
        Self::Dead,
        Self::Ended,
        Self::Shards,
        Self::Callers,
        Self::Minutes,
        Self::Counts,
        Self::Known,
        Self::Revivals,
        Self::Policies,
        Self::Attempts,
        Self::AttemptsByTime,
        Self::AttemptsBytes,
        Self::Outbox,
    ];

    /// The table with a number.
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// What the present group has written, in order.
#[derive(Debug)]
pub(crate) struct Journal(RefCell<log::Frame>);

impl Journal {
    pub(crate) fn new() -> Self {
        Self(RefCell::new(log::Frame::new()))
    }

    /// How many bytes it has: grows with each write.
    pub(crate) fn bytes(&self) -> usize {
        self.0.borrow().bytes()
    }

    /// Hands over what was written, and then forgets it.
    pub(crate) fn drain<T>(&self, take: impl FnOnce(&mut log::Frame) -> T) -> T {
        let mut frame = self.0.borrow_mut();
        let taken = take(&mut frame);
        frame.clear();
        taken
    }
}

/// A table that is written to.
pub(crate) struct Rows<'t, K: Key + 'static, V: Value + 'static> {
    name: Name,
    table: Table<'t, K, V>,
    journal: &'t Journal,
}

impl<'t, K: Key + 'static, V: Value + 'static> Rows<'t, K, V> {
    pub(crate) fn open(
        txn: &'t WriteTransaction,
        journal: &'t Journal,
        name: Name,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<Self, StoreError> {
        Ok(Self { name, table: txn.open_table(definition)?, journal })
    }

    pub(crate) fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<(), StorageError> {
        let (raw_key, raw_value) = (K::as_bytes(key.borrow()), V::as_bytes(value.borrow()));
        self.journal.0.borrow_mut().put(self.name as u8, raw_key.as_ref(), raw_value.as_ref());
        self.table.insert(key.borrow(), value.borrow())?;
        Ok(())
    }

    /// What was there, if anything was.
    pub(crate) fn remove<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'_, V>>, StorageError> {
        let before = self.table.remove(key.borrow())?;
        if before.is_some() {
            self.journal.0.borrow_mut().remove(self.name as u8, K::as_bytes(key.borrow()).as_ref());
        }
        Ok(before)
    }

    /// Writes a row of the log, without noting it again.
    pub(crate) fn redo(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let key = K::from_bytes(key);
        match value {
            Some(value) => drop(self.table.insert(key, V::from_bytes(value))?),
            None => drop(self.table.remove(key)?),
        }
        Ok(())
    }
}

/// Reads go to the table itself; it is never lent out to be written to.
impl<'t, K: Key + 'static, V: Value + 'static> Deref for Rows<'t, K, V> {
    type Target = Table<'t, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_found_by_its_number() {
        for name in Name::ALL {
            assert_eq!(Name::of(name as u8), Some(name));
        }
        assert_eq!((Name::of(0), Name::of(24)), (None, None));
    }
}
