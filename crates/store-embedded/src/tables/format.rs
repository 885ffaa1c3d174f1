//! What is told of the file as a whole: the version of the layout and the number of shards,
//! which are fixed when it is made; and, since the last checkpoint, up to where the log is in
//! the tables and which log that is.

use redb::{Database, ReadableDatabase as _, TableDefinition, TableError, WriteTransaction};
use ringback_core::contract::StoreError;

use super::Journal;

/// The layout of tables and rows, and of the log. A file with a later one is refused.
pub(crate) const VERSION: u64 = 3;
/// The same tables, from before there were jobs for pull; and from before there was a log.
/// They are taken over.
const EARLIER: [u64; 2] = [2, 1];

const FORMAT: TableDefinition<'static, &str, u64> = TableDefinition::new("format");

/// The file as it was at its last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) shards: u16,
    pub(crate) mark: Mark,
    /// False for a file from before jobs were counted by lane.
    pub(crate) is_counted: bool,
}

/// Where a checkpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The number of the last frame of the log that is in the tables.
    pub(crate) sequence: u64,
    /// The generation of the log that has what came after; 0 when nothing did.
    pub(crate) log: u64,
}

impl Mark {
    /// Writes it down; it counts once the transaction is committed.
    pub(crate) fn set(self, txn: &WriteTransaction) -> Result<(), StoreError> {
        let mut format = txn.open_table(FORMAT)?;
        format.insert("version", VERSION)?;
        format.insert("sequence", self.sequence)?;
        format.insert("log", self.log)?;
        Ok(())
    }
}

/// Checks the version; a new file gets `shards`.
pub(crate) fn format(database: &Database, shards: u16) -> Result<Format, StoreError> {
    let txn = database.begin_read().map_err(redb::Error::from)?;
    let format = match txn.open_table(FORMAT) {
        Ok(format) => format,
        Err(TableError::TableDoesNotExist(_)) if txn.list_tables()?.next().is_none() => {
            return install(database, shards);
        }
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(StoreError::Unfit("it is a database of something else".to_owned())),
    };
    let get = |name| Ok::<_, StoreError>(format.get(name)?.map(|n| n.value()));
    let version = get("version")?.unwrap_or(0);
    if version != VERSION && !EARLIER.contains(&version) {
        return Err(StoreError::Unfit(format!(
            "it has layout {version}; this version reads layouts 1 to {VERSION}; set another RINGBACK_PREFIX, or use the version that wrote it"
        )));
    }
    let stored = get("shards")?.and_then(|n| u16::try_from(n).ok());
    let shards = stored.ok_or(StoreError::Unreadable("the number of shards"))?;
    let mark = Mark { sequence: get("sequence")?.unwrap_or(0), log: get("log")?.unwrap_or(0) };
    Ok(Format { shards, mark, is_counted: get("counted")? == Some(1) })
}

fn install(database: &Database, shards: u16) -> Result<Format, StoreError> {
    let (txn, journal) = (database.begin_write().map_err(redb::Error::from)?, Journal::new());
    txn.open_table(FORMAT)?.insert("shards", u64::from(shards))?;
    counted(&txn)?;
    Mark::default().set(&txn)?;
    // All tables are there from the start, so that a reader finds them.
    super::Tables::open(&txn, &journal)?;
    txn.commit().map_err(redb::Error::from)?;
    Ok(Format { shards, mark: Mark::default(), is_counted: true })
}

/// Notes that all jobs are counted by lane.
pub(crate) fn counted(txn: &WriteTransaction) -> Result<(), StoreError> {
    txn.open_table(FORMAT)?.insert("counted", 1)?;
    Ok(())
}
