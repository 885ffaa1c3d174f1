//! The `format` table, which describes the database file as a whole: the version of the layout and
//! the number of shards, which are fixed when the file is made, and the last checkpoint.

use redb::{Database, ReadableDatabase as _, TableDefinition, TableError, WriteTransaction};
use ringback_core::contract::StoreError;

use super::list::ReplayTables;
use crate::error::Result;

/// The version of the tables, their rows, and the redo log. A file with a later one is refused.
pub(crate) const VERSION: u64 = 12;
/// Earlier versions have the same tables, but no index of tags (11), no failing destinations (10), no paused destinations
/// and no audit log (9), no feeds (8), no archive (7), no schedules (6), no counts of tenants (5), no topics of tenants
/// (4), no submits that replace jobs (3), no pull jobs (2) or no log (1). They are taken over.
const EARLIER: [u64; 11] = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];

const FORMAT: TableDefinition<'static, &str, u64> = TableDefinition::new("format");

/// The database file as it was at its last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) fixed: Fixed,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) derived: Derived,
}

/// What a file has of what follows from its jobs, and is made anew for a file from before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Derived {
    /// It is from before jobs were counted by lane.
    Nothing,
    /// It is from before the topics and lanes of tenants were counted.
    Lanes,
    /// It is from before jobs were indexed by their tags.
    Counts,
    All,
}

impl Derived {
    const fn stored(number: Option<u64>) -> Self {
        match number {
            None | Some(0) => Self::Nothing,
            Some(1) => Self::Lanes,
            Some(2) => Self::Counts,
            Some(_) => Self::All,
        }
    }
}

/// What is fixed when the file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) shards: u16,
    /// False for a file from before destinations were guarded.
    pub(crate) is_guarded: bool,
}

/// How far the tables have what is in the redo log.
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
        format.insert("version", VERSION)?;
        format.insert("sequence", self.sequence)?;
        format.insert("log", self.log)?;
        drop(format);
        Ok(txn.commit()?)
    }
}

/// Reads the format and checks the version. A new file gets `shards` and all tables.
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
    if version != VERSION && !EARLIER.contains(&version) {
        return Err(StoreError::Unfit(format!(
            "it has layout {version}; this version reads layouts 1 to {VERSION}; set another RINGBACK_PREFIX, or use the version that wrote it"
        ))
        .into());
    }
    let stored = get("shards")?.and_then(|n| u16::try_from(n).ok());
    let shards = stored.ok_or(StoreError::Unreadable("the number of shards"))?;
    let checkpoint = Checkpoint { sequence: get("sequence")?.unwrap_or(0), log: get("log")?.unwrap_or(0) };
    let fixed = Fixed { shards, is_guarded: get("guarded")? == Some(1) };
    Ok(Format { fixed, checkpoint, derived: Derived::stored(get("counted")?) })
}

fn create(database: &Database, shards: u16) -> Result<Format> {
    let txn = database.begin_write()?;
    let mut format = txn.open_table(FORMAT)?;
    format.insert("shards", u64::from(shards))?;
    format.insert("guarded", 1)?;
    drop(format);
    set_derived(&txn)?;
    drop(ReplayTables::open(&txn)?);
    Checkpoint::default().commit(txn, false)?;
    let fixed = Fixed { shards, is_guarded: true };
    Ok(Format { fixed, checkpoint: Checkpoint::default(), derived: Derived::All })
}

/// Notes that everything is counted and indexed.
pub(crate) fn set_derived(txn: &WriteTransaction) -> Result<()> {
    txn.open_table(FORMAT)?.insert("counted", 3)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn a_new_file_is_guarded_and_one_from_before_the_guard_is_not() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let fixed = || read_or_create(&database, 2).unwrap().fixed;
        for _ in 0..2 {
            assert_eq!(fixed(), Fixed { shards: 2, is_guarded: true });
        }
        let txn = database.begin_write().unwrap();
        txn.open_table(FORMAT).unwrap().remove("guarded").unwrap();
        txn.commit().unwrap();
        assert_eq!(fixed(), Fixed { shards: 2, is_guarded: false });
    }
}
