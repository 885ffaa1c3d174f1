//! Access to tables. A snapshot reads them; the writer's transaction also changes them, and notes
//! each change in the journal of its group, which goes to the redo log. The wrappers of the tables
//! are generic over the two, so that each query is written once.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::RangeBounds;

use redb::{
    AccessGuard, Key, Range, ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata,
    StorageError, Table, TableStats, Value, WriteTransaction,
};

use super::list::Definition;
use crate::error::Result;
use crate::wal::frame::Frame;

/// A transaction in which tables are opened.
pub(crate) trait Access {
    type Table<K: Key + 'static, V: Value + 'static>: ReadableTable<K, V>;

    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: Definition<K, V>,
    ) -> Result<Self::Table<K, V>>;
}

impl Access for ReadTransaction {
    type Table<K: Key + 'static, V: Value + 'static> = ReadOnlyTable<K, V>;

    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: Definition<K, V>,
    ) -> Result<Self::Table<K, V>> {
        Ok(self.open_table(table.stored)?)
    }
}

/// The writer's transaction, and the journal of the group that is being written.
pub(crate) struct Writing<'t> {
    pub(crate) txn: &'t WriteTransaction,
    pub(crate) journal: &'t Journal,
}

impl<'t> Access for Writing<'t> {
    type Table<K: Key + 'static, V: Value + 'static> = Rows<'t, K, V>;

    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: Definition<K, V>,
    ) -> Result<Self::Table<K, V>> {
        let Definition { number, stored } = table;
        Ok(Rows { number, table: self.txn.open_table(stored)?, journal: self.journal })
    }
}

/// The changes of a group, in order.
#[derive(Debug)]
pub(crate) struct Journal(RefCell<Frame>);

impl Journal {
    pub(crate) fn new() -> Self {
        Self(RefCell::new(Frame::new()))
    }

    /// How many bytes it has: grows with each change.
    pub(crate) fn bytes(&self) -> usize {
        self.0.borrow().bytes()
    }

    /// Passes all changes to `take` as a frame of the redo log, and then clears them.
    pub(crate) fn drain<T>(&self, take: impl FnOnce(&mut Frame) -> T) -> T {
        let mut frame = self.0.borrow_mut();
        let taken = take(&mut frame);
        frame.clear();
        taken
    }
}

/// A table that is open for writing.
pub(crate) struct Rows<'t, K: Key + 'static, V: Value + 'static> {
    number: u8,
    table: Table<'t, K, V>,
    journal: &'t Journal,
}

impl<K: Key + 'static, V: Value + 'static> Rows<'_, K, V> {
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

    /// Returns the value that was removed, if there was one.
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

impl<K: Key + 'static, V: Value + 'static> ReadableTableMetadata for Rows<'_, K, V> {
    fn stats(&self) -> Result<TableStats, StorageError> {
        self.table.stats()
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.table.len()
    }
}

type Row<'r, K, V> = (AccessGuard<'r, K>, AccessGuard<'r, V>);

impl<K: Key + 'static, V: Value + 'static> ReadableTable<K, V> for Rows<'_, K, V> {
    fn get<'a>(&self, key: impl Borrow<K::SelfType<'a>>) -> Result<Option<AccessGuard<'_, V>>, StorageError> {
        self.table.get(key)
    }

    fn range<'a, KR>(&self, range: impl RangeBounds<KR> + 'a) -> Result<Range<'_, K, V>, StorageError>
    where
        KR: Borrow<K::SelfType<'a>> + 'a,
    {
        self.table.range(range)
    }

    fn first(&self) -> Result<Option<Row<'_, K, V>>, StorageError> {
        self.table.first()
    }

    fn last(&self) -> Result<Option<Row<'_, K, V>>, StorageError> {
        self.table.last()
    }
}
