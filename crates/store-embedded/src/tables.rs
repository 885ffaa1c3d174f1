//! The layout of the embedded store's file: which tables there are, each wrapped by the one
//! type that reads and writes it. Nothing outside this module names a table or packs a row.

mod attempts;
mod callers;
mod counts;
mod dead;
mod due;
mod format;
mod lateness;
mod look;
mod outbox;
mod policies;
mod ready;
mod records;
mod revivals;
mod rows;
mod shards;
mod times;
mod told;

use redb::{ReadTransaction, WriteTransaction};
use ringback_core::contract::StoreError;

use self::attempts::Attempts;
pub(crate) use self::attempts::{audit as audit_attempts, cost};
pub(crate) use self::callers::{Callers, Given};
use self::counts::Counts;
pub(crate) use self::counts::{Ended, Hold, Jobs, Known, Sums, topic_in};
pub(crate) use self::dead::read_dead;
pub(crate) use self::due::{Due, First};
pub(crate) use self::format::{Format, Mark, counted, format};
pub(crate) use self::lateness::Minutes;
pub(crate) use self::look::Look;
pub(crate) use self::outbox::{Entry as OutboxEntry, OutboxKey, OutboxRow, OutboxTable};
pub(crate) use self::policies::Policies;
pub(crate) use self::ready::{PARKED, PULL, Queue, Ready};
pub(crate) use self::records::{Body, Last, Record, Records, Stage, read_on};
pub(crate) use self::revivals::{End as RevivalEnd, RevivalRow, Revivals};
pub(crate) use self::rows::Journal;
use self::rows::Name;
pub(crate) use self::shards::{ShardRow, Shards};
pub(crate) use self::times::Times;
pub(crate) use self::told::Told;
use super::log;

/// All tables, open in one write transaction.
pub(crate) struct Tables<'t> {
    pub(crate) records: Records<'t>,
    pub(crate) due: Due<'t>,
    pub(crate) ready: Ready<'t>,
    /// Reserved jobs by deadline.
    pub(crate) leases: Times<'t>,
    /// Dead jobs by time of death.
    pub(crate) dead: Times<'t>,
    /// Tombstones by the time the job ended.
    pub(crate) ended: Times<'t>,
    pub(crate) shards: Shards<'t>,
    pub(crate) callers: Callers<'t>,
    pub(crate) minutes: Minutes<'t>,
    pub(crate) counts: Counts<'t>,
    pub(crate) revivals: Revivals<'t>,
    pub(crate) policies: Policies<'t>,
    /// Logs of attempts.
    pub(crate) attempts: Attempts<'t>,
    /// Deaths that are still to be told.
    pub(crate) outbox: OutboxTable<'t>,
}

impl<'t> Tables<'t> {
    /// What is written is noted in the journal too.
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            records: Records::open(txn, journal)?,
            due: Due::open(txn, journal)?,
            ready: Ready::open(txn, journal)?,
            leases: Times::open(txn, journal, times::LEASES)?,
            dead: Times::open(txn, journal, times::DEAD)?,
            ended: Times::open(txn, journal, times::ENDED)?,
            shards: Shards::open(txn, journal)?,
            callers: Callers::open(txn, journal)?,
            minutes: Minutes::open(txn, journal)?,
            counts: Counts::open(txn, journal)?,
            revivals: Revivals::open(txn, journal)?,
            policies: Policies::open(txn, journal)?,
            attempts: Attempts::open(txn, journal)?,
            outbox: OutboxTable::open(txn, journal)?,
        })
    }

    /// Counts all jobs anew, as in a file from before they were counted.
    pub(crate) fn recount(&mut self) -> Result<(), StoreError> {
        self.counts.recount(&self.records)
    }

    /// Writes a row of the log.
    pub(crate) fn redo(&mut self, row: log::Row<'_>) -> Result<(), StoreError> {
        let log::Row { table, key, value } = row;
        match Name::of(table).ok_or(StoreError::Unreadable("a row of the log"))? {
            Name::Ids => self.records.ids.redo(key, value),
            Name::Jobs => self.records.jobs.redo(key, value),
            Name::Bodies => self.records.bodies.redo(key, value),
            Name::Due => self.due.due.redo(key, value),
            Name::Turns => self.due.turns.redo(key, value),
            Name::Topics => self.due.topics.redo(key, value),
            Name::Ready => self.ready.ready.redo(key, value),
            Name::Lanes => self.ready.lanes.redo(key, value),
            Name::LaneTurns => self.ready.turns.redo(key, value),
            Name::Leases => self.leases.0.redo(key, value),
            Name::Dead => self.dead.0.redo(key, value),
            Name::Ended => self.ended.0.redo(key, value),
            Name::Shards => self.shards.0.redo(key, value),
            Name::Callers => self.callers.0.redo(key, value),
            Name::Minutes => self.minutes.0.redo(key, value),
            Name::Counts => self.counts.counts.redo(key, value),
            Name::Known => self.counts.known.redo(key, value),
            Name::Revivals => self.revivals.0.redo(key, value),
            Name::Policies => self.policies.0.redo(key, value),
            Name::Attempts => self.attempts.logs.redo(key, value),
            Name::AttemptsByTime => self.attempts.order.redo(key, value),
            Name::AttemptsBytes => self.attempts.sizes.redo(key, value),
            Name::Outbox => self.outbox.0.redo(key, value),
        }
    }
}

/// How many jobs each lane has, and what is known of each topic.
pub(crate) fn counts(txn: &ReadTransaction) -> Result<counts::All, StoreError> {
    counts::all(txn)
}

/// Every shard's row.
pub(crate) fn rows(txn: &ReadTransaction) -> Result<Vec<(u16, ShardRow)>, StoreError> {
    shards::all(txn)
}

/// What an index says of a job: its shard, its number, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Id([u8; 12], u64),
    Due(u16, String, u64, u64),
    Ready(u16, String, i64, u64),
    Lease(u16, u64, u64),
    Dead(u16, u64, u64),
    Ended(u16, u64, u64),
    Body(u64),
    /// A topic has its turn at a time.
    Topic(u16, String, u64),
    /// A lane has its turn.
    Lane(u16, String, u64),
}

/// Looks at every entry of what waits, and at every turn, without keeping them: those of a topic or
/// lane one after the other.
pub(crate) fn each_waiting(
    txn: &ReadTransaction,
    mut look: impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    due::entries(txn, &mut look)?;
    ready::entries(txn, &mut look)
}

/// Looks at every entry of every index.
#[cfg(test)]
pub(crate) fn each_entry(
    txn: &ReadTransaction,
    mut look: impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    records::entries(txn, &mut look)?;
    times::entries(txn, &mut look)?;
    each_waiting(txn, look)
}

/// Looks at every record of a snapshot, without keeping them.
pub(crate) fn each_record(
    txn: &ReadTransaction,
    look: impl FnMut(u64, Option<Record>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    records::each(txn, look)
}
