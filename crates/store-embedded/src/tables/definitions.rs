//! The definitions of all tables but `format`: the number of each in the redo log, its name in the database file, and
//! the types of its keys and values, which are all stored and never change. Also writes raw rows of the redo log to
//! them.

use std::collections::BTreeMap;

use redb::{Key, Table, TableDefinition, Value, WriteTransaction};
use ringback_core::store_types::StoreError;

use crate::error::Result;

pub(crate) struct Definition<K: Key + 'static, V: Value + 'static> {
    /// The number of the table in the redo log.
    pub(crate) number: u8,
    /// The name and the types of the table in the database file.
    pub(crate) stored: TableDefinition<'static, K, V>,
}

type Bytes = &'static [u8];
type Str = &'static str;
/// Shard, time in ms, and number of a job.
pub(crate) type ByTime = (u16, u64, u64);
/// Shard, the time in ms at which the notice is published next, and number and attempts of the job.
pub(crate) type OutboxKey = (u16, u64, u64, u32);

macro_rules! tables {
    ($($(#[$doc:meta])* $number:literal $name:ident $stored:literal: $key:ty => $value:ty;)*) => {
        $(
            $(#[$doc])*
            pub(crate) const $name: Definition<$key, $value> =
                Definition { number: $number, stored: TableDefinition::new($stored) };
        )*

        impl<'t> ReplayTables<'t> {
            /// Opens all tables and creates those that are missing.
            pub(crate) fn open(txn: &'t WriteTransaction) -> Result<Self> {
                let tables: [(u8, Box<dyn Replay + 't>); _] =
                    [$(($number, Box::new(txn.open_table($name.stored)?))),*];
                Ok(Self(tables.into()))
            }
        }

        /// Returns all rows of all tables as text.
        #[cfg(test)]
        pub(crate) fn dump(txn: &redb::ReadTransaction) -> Result<Vec<String>> {
            let mut rows = Vec::new();
            $(dump_table(txn, &$name, &mut rows)?;)*
            Ok(rows)
        }
    };
}

tables! {
    /// The number of a job, by locator.
    1 IDS "ids": [u8; 12] => u64;
    /// Records, by number.
    2 JOBS "jobs": u64 => Bytes;
    /// Id and payload of each job that has not ended, by number.
    3 BODIES "bodies": u64 => Bytes;
    /// Delayed jobs, by shard, topic, due time and number.
    4 DUE "due": (u16, Str, u64, u64) => ();
    /// The schedule: topics by shard and the time at which they are promoted next.
    5 SCHEDULE "turns": (u16, u64, Str) => ();
    /// Every topic that ever had a job or was paused, with its time in the schedule.
    6 TOPICS "topics": (u16, Str) => u64;
    /// Ready jobs, by shard, lane and position.
    7 READY "ready": (u16, Str, i64) => u64;
    /// The lanes that are not empty, by shard and turn.
    8 LANES "lanes": (u16, u64, Str) => ();
    /// The turn of each of these lanes.
    9 LANE_TURNS "lane_turns": (u16, Str) => u64;
    /// Reserved jobs, by the time at which their lease is checked.
    10 LEASES "leases": ByTime => ();
    /// Dead jobs, by the time they died.
    11 DEAD "dead": ByTime => ();
    /// Tombstones, by the time the job ended.
    12 TOMBSTONES "ended": ByTime => ();
    /// One row per shard.
    13 SHARDS "shards": u16 => Bytes;
    /// The last reserve of each caller.
    14 LAST_RESERVES "last_reserves": (u16, Str) => Bytes;
    /// Histograms of lateness, by shard and minute.
    15 LATENESS "lateness": (u16, u64) => Bytes;
    /// Counts of jobs by state, by shard and lane.
    16 LANE_COUNTS "counts": (u16, Str) => Bytes;
    /// Counts of each topic, by shard and topic.
    17 TOPIC_COUNTS "known": (u16, Str) => Bytes;
    /// Bulk operations, by id.
    18 BULKS "bulks": u64 => Bytes;
    /// Policies, by topic.
    19 POLICIES "policies": Str => Str;
    /// Logs of attempts and when each was last added to, by locator.
    20 ATTEMPTS "attempts": [u8; 12] => (u64, Bytes);
    /// Logs of attempts, by shard and the time each was last added to.
    21 ATTEMPTS_BY_TIME "attempts_by_time": (u16, u64, [u8; 12]) => ();
    /// How many bytes the logs of attempts of each shard take.
    22 ATTEMPTS_BYTES "attempts_bytes": u16 => u64;
    /// Dead-letter notices that are still to be published.
    23 OUTBOX "outbox": OutboxKey => Bytes;
    /// Schedules, which are jobs that recur, by the text of their key.
    24 SCHEDULES "schedules": Str => Bytes;
    /// The schedules that fire again, by shard and time.
    25 SCHEDULE_TIMES "schedule_times": (u16, u64, Str) => ();
    /// Ended jobs that are to be archived, by shard and number.
    26 ARCHIVE "archive": (u16, u64) => Bytes;
    /// Feeds, which load rows of a database as jobs, by name.
    27 FEEDS "feeds": Str => Bytes;
    /// Paused destinations, by shard and name.
    28 DESTINATIONS "destinations": (u16, Str) => Bytes;
    /// Entries of the audit log: owner and text, by id.
    29 AUDIT_LOG "audit_log": Str => (Str, Str);
    /// The same entries, by owner and id.
    30 AUDIT_LOG_OWNERS "audit_log_owners": (Str, Str) => ();
    /// How much the entries of each owner weigh.
    31 AUDIT_LOG_WEIGHTS "audit_log_weights": Str => u64;
    /// How destinations fail, by tenant and origin.
    32 FAILING "failing": Str => Str;
    /// Jobs that have not ended, by each of their tags, with the tenant before it, and number.
    33 TAGS "tags": (Str, u64) => ();
    /// Limits of destinations and topics, by name.
    34 LIMITS "limits": Str => Bytes;
    /// Ordered topics, the heads of their keys, and the jobs that wait, by shard, name, and place: due time and number
    /// of arrival.
    35 ORDER "order": (u16, Str, u64, u64) => u64;
}

/// All tables, open to replay the redo log: their rows are written as raw bytes, and not written to the log again.
pub(crate) struct ReplayTables<'t>(BTreeMap<u8, Box<dyn Replay + 't>>);

impl ReplayTables<'_> {
    /// Writes one row of the table with this number, or removes it if `value` is `None`. Fails if there is no such
    /// table.
    pub(crate) fn replay(&mut self, table: u8, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let table = self.0.get_mut(&table).ok_or(StoreError::Unreadable("a row of the log"))?;
        table.replay(key, value)
    }
}

trait Replay {
    fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()>;
}

impl<K: Key + 'static, V: Value + 'static> Replay for Table<'_, K, V> {
    fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let key = K::from_bytes(key);
        match value {
            Some(value) => drop(self.insert(key, V::from_bytes(value))?),
            None => drop(self.remove(key)?),
        }
        Ok(())
    }
}

#[cfg(test)]
fn dump_table<K: Key + 'static, V: Value + 'static>(
    txn: &redb::ReadTransaction,
    table: &Definition<K, V>,
    rows: &mut Vec<String>,
) -> Result<()> {
    use redb::{ReadableTable as _, TableHandle as _};

    for row in txn.open_table(table.stored)?.iter()? {
        let (key, value) = row?;
        rows.push(format!("{} {:?}: {:?}", table.stored.name(), key.value(), value.value()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use redb::Database;
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn every_table_has_a_number_of_its_own() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let numbers: Vec<_> = ReplayTables::open(&txn).unwrap().0.into_keys().collect();
        assert_eq!(numbers, (1..=35).collect::<Vec<_>>());
    }
}
