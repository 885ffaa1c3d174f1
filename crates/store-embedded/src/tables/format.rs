//! The `format` table, which describes the database file as a whole: the version of the layout and
//! the number of shards, which are fixed when the file is made, and the last checkpoint.

use redb::{Database, ReadableDatabase as _, TableDefinition, TableError, WriteTransaction};
use ringback_core::store_types::StoreError;

use super::definitions::ReplayTables;
use crate::error::Result;

/// The version of the tables, their rows, and the redo log. A file with another version is refused.
pub(crate) const VERSION: u64 = 4;

const FORMAT: TableDefinition<'static, &str, u64> = TableDefinition::new("format");

/// The database file as it was at its last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Fixed when the file is made.
    pub(crate) shards: u16,
    pub(crate) checkpoint: Checkpoint,
}

/// How far the redo log has been brought into the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The number of the last frame that is in the tables.
    pub(crate) sequence: u64,
    /// The generation of the log that has the later frames; 0 when there are none.
    pub(crate) log: u64,
}

impl Checkpoint {
    /// Commits a transaction together with this checkpoint. With `quick_repair` redb writes what it
    /// needs to open the file fast after a crash.
    pub(crate) fn commit(self, mut txn: WriteTransaction, quick_repair: bool) -> Result<()> {
        txn.set_quick_repair(quick_repair);
        let mut format = txn.open_table(FORMAT)?;
        format.insert("sequence", self.sequence)?;
        format.insert("log", self.log)?;
        drop(format);
        Ok(txn.commit()?)
    }
}

/// Reads the format and checks the version. A new file gets `shards` and all tables. Fails with `Unfit` if the file is
/// another database, and if its layout has another version.
pub(crate) fn read_or_create(database: &Database, shards: u16) -> Result<Format> {
    let txn = database.begin_read()?;
    let format = match txn.open_table(FORMAT) {
        Ok(format) => format,
        Err(TableError::TableDoesNotExist(_)) if txn.list_tables()?.next().is_none() => {
            return create(database, shards);
        }
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(StoreError::Unfit("it is a database of something else".to_owned()).into()),
    };
    let get = |name| -> Result<Option<u64>> { Ok(format.get(name)?.map(|n| n.value())) };
    let version = get("version")?.unwrap_or(0);
    if version != VERSION {
        return Err(StoreError::other_layout(version, VERSION).into());
    }
    let stored = get("shards")?.and_then(|n| u16::try_from(n).ok());
    let shards = stored.ok_or(StoreError::Unreadable("the number of shards"))?;
    let checkpoint = Checkpoint { sequence: get("sequence")?.unwrap_or(0), log: get("log")?.unwrap_or(0) };
    Ok(Format { shards, checkpoint })
}

fn create(database: &Database, shards: u16) -> Result<Format> {
    let txn = database.begin_write()?;
    let mut format = txn.open_table(FORMAT)?;
    format.insert("version", VERSION)?;
    format.insert("shards", u64::from(shards))?;
    drop(format);
    drop(ReplayTables::open(&txn)?);
    let checkpoint = Checkpoint::default();
    checkpoint.commit(txn, false)?;
    Ok(Format { shards, checkpoint })
}
