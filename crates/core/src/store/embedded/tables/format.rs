//! What is fixed when the file is made: the version of the layout and the number of shards.

use redb::{Database, ReadableDatabase as _, TableDefinition, TableError};

use crate::store::StoreError;

/// The layout of tables and rows. A file with another one is refused.
pub(in crate::store::embedded) const VERSION: u64 = 1;

const FORMAT: TableDefinition<'static, &str, u64> = TableDefinition::new("format");

/// Checks the version, and returns the number of shards; a new file gets `shards`.
pub(in crate::store::embedded) fn fixed(database: &Database, shards: u16) -> Result<u16, StoreError> {
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
    if version != VERSION {
        return Err(StoreError::Unfit(format!(
            "it has layout {version}; this version reads layout {VERSION} only; set another RINGBACK_PREFIX, or use the version that wrote it"
        )));
    }
    let stored = get("shards")?.and_then(|n| u16::try_from(n).ok());
    stored.ok_or(StoreError::Unreadable("the number of shards"))
}

fn install(database: &Database, shards: u16) -> Result<u16, StoreError> {
    let txn = database.begin_write().map_err(redb::Error::from)?;
    {
        let mut format = txn.open_table(FORMAT)?;
        format.insert("version", VERSION)?;
        format.insert("shards", u64::from(shards))?;
        // All tables are there from the start, so that a reader finds them.
        super::Tables::open(&txn)?;
    }
    txn.commit().map_err(redb::Error::from)?;
    Ok(shards)
}
