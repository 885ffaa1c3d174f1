//! Access to tables. A snapshot reads them; the writer's transaction also changes them, and records each change in the
//! journal of its group, which goes to the redo log. The wrappers of the tables are generic over the two, so that each
//! query is written once.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::{Deref, RangeBounds};

use redb::{
    AccessGuard, Key, ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata as _, Table,
    Value, WriteTransaction,
};
use serde::Serialize;

use super::definitions::Definition;
use crate::error::Result;
use crate::redo_log::frame::Frame;

/// A transaction in which tables are opened.
pub(crate) trait Access: Sized {
    type Table<K: Key + 'static, V: Value + 'static>: ReadableTable<K, V>;
    /// Where changes are recorded; nothing for a snapshot.
    type Journal;

    fn open<K: Key + 'static, V: Value + 'static>(&self, table: Definition<K, V>)
    -> Result<Rows<Self, K, V>>;
}

impl Access for ReadTransaction {
    type Table<K: Key + 'static, V: Value + 'static> = ReadOnlyTable<K, V>;
    type Journal = ();

    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: Definition<K, V>,
    ) -> Result<Rows<Self, K, V>> {
        Ok(Rows { number: table.number, table: self.open_table(table.stored)?, journal: () })
    }
}

/// The writer's transaction, and the journal of the group that is being written.
pub(crate) struct Writing<'t> {
    pub(crate) txn: &'t WriteTransaction,
    pub(crate) journal: &'t Journal,
}

impl<'t> Access for Writing<'t> {
    type Table<K: Key + 'static, V: Value + 'static> = Table<'t, K, V>;
    type Journal = &'t Journal;

    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: Definition<K, V>,
    ) -> Result<Rows<Self, K, V>> {
        let opened = self.txn.open_table(table.stored)?;
        Ok(Rows { number: table.number, table: opened, journal: self.journal })
    }
}

/// The changes of a group, in order.
#[derive(Debug)]
pub(crate) struct Journal(RefCell<Frame>);

impl Journal {
    pub(crate) fn new() -> Self {
        Self(RefCell::new(Frame::new()))
    }

    /// Returns how many bytes the changes have.
    pub(crate) fn bytes(&self) -> usize {
        self.0.borrow().bytes()
    }

    /// Passes all changes to `take` as a frame of the redo log, clears them, and returns its result.
    pub(crate) fn drain<T>(&self, take: impl FnOnce(&mut Frame) -> T) -> T {
        let mut frame = self.0.borrow_mut();
        let taken = take(&mut frame);
        frame.clear();
        taken
    }
}

/// An open table.
pub(crate) struct Rows<A: Access, K: Key + 'static, V: Value + 'static> {
    /// The number of the table in the redo log.
    number: u8,
    table: A::Table<K, V>,
    journal: A::Journal,
}

impl<A: Access, K: Key + 'static, V: Value + 'static> Rows<A, K, V> {
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.table.len()?)
    }

    pub(crate) fn has<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> Result<bool> {
        Ok(self.table.get(key)?.is_some())
    }

    pub(crate) fn read<'k, T>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
        read: impl FnOnce(V::SelfType<'_>) -> T,
    ) -> Result<Option<T>> {
        Ok(self.table.get(key)?.map(|value| read(value.value())))
    }

    /// Calls `read` with the first rows of a range, at most `limit`, and returns its results in order.
    pub(crate) fn list<'k, R: Borrow<K::SelfType<'k>> + 'k, T>(
        &self,
        range: impl RangeBounds<R> + 'k,
        limit: usize,
        mut read: impl FnMut(K::SelfType<'_>, V::SelfType<'_>) -> T,
    ) -> Result<Vec<T>> {
        let rows = self.table.range(range)?.take(limit).map(|row| {
            let (key, value) = row?;
            Ok(read(key.value(), value.value()))
        });
        rows.collect()
    }

    /// Calls `visit` with every row, in the order of the keys, until it fails.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(K::SelfType<'_>, V::SelfType<'_>) -> Result<()>,
    ) -> Result<()> {
        for row in self.table.iter()? {
            let (key, value) = row?;
            visit(key.value(), value.value())?;
        }
        Ok(())
    }
}

/// The methods of redb that read.
impl<A: Access, K: Key + 'static, V: Value + 'static> Deref for Rows<A, K, V> {
    type Target = A::Table<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<K: Key + 'static, V: Value + 'static> Rows<Writing<'_>, K, V> {
    pub(crate) fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<()> {
        let (raw_key, raw_value) = (K::as_bytes(key.borrow()), V::as_bytes(value.borrow()));
        self.journal.0.borrow_mut().put(self.number, raw_key.as_ref(), raw_value.as_ref());
        self.table.insert(key.borrow(), value.borrow())?;
        Ok(())
    }

    /// Removes a row, and returns its value; `None` if there was none.
    pub(crate) fn remove<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'_, V>>> {
        let before = self.table.remove(key.borrow())?;
        if before.is_some() {
            self.journal.0.borrow_mut().remove(self.number, K::as_bytes(key.borrow()).as_ref());
        }
        Ok(before)
    }
}

pub(crate) fn pack(row: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(row).expect("plain data always serialises")
}
