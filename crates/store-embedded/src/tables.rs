//! The tables of the database file, each wrapped by the one type that reads and writes it. `list`
//! defines them all. Nothing outside this folder names a table or packs a row.

pub(crate) mod attempts;
pub(crate) mod callers;
pub(crate) mod counts;
pub(crate) mod due;
pub(crate) mod format;
pub(crate) mod lateness;
pub(crate) mod list;
pub(crate) mod outbox;
pub(crate) mod policies;
pub(crate) mod ready;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod redrives;
pub(crate) mod rows;
pub(crate) mod shards;
pub(crate) mod times;

use self::attempts::Attempts;
use self::callers::Callers;
use self::counts::Counts;
use self::due::Due;
use self::lateness::Minutes;
use self::list::{DEAD, LEASES, TOMBSTONES};
use self::outbox::Outbox;
use self::policies::Policies;
use self::ready::Ready;
use self::record::{Record, Stage};
use self::records::Records;
use self::redrives::Redrives;
use self::rows::Access;
use self::shards::Shards;
use self::times::Times;
use super::error::Result;

/// All tables, open in one transaction.
pub(crate) struct Tables<A: Access> {
    pub(crate) records: Records<A>,
    pub(crate) due: Due<A>,
    pub(crate) ready: Ready<A>,
    /// Reserved jobs by the time at which their lease is checked.
    pub(crate) leases: Times<A>,
    /// Dead jobs by the time they died.
    pub(crate) dead: Times<A>,
    /// Tombstones by the time the job ended.
    pub(crate) tombstones: Times<A>,
    pub(crate) shards: Shards<A>,
    pub(crate) callers: Callers<A>,
    pub(crate) minutes: Minutes<A>,
    pub(crate) counts: Counts<A>,
    pub(crate) redrives: Redrives<A>,
    pub(crate) policies: Policies<A>,
    pub(crate) attempts: Attempts<A>,
    pub(crate) outbox: Outbox<A>,
}

impl<A: Access> Tables<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            records: Records::open(access)?,
            due: Due::open(access)?,
            ready: Ready::open(access)?,
            leases: Times(access.open(LEASES)?),
            dead: Times(access.open(DEAD)?),
            tombstones: Times(access.open(TOMBSTONES)?),
            shards: Shards::open(access)?,
            callers: Callers::open(access)?,
            minutes: Minutes::open(access)?,
            counts: Counts::open(access)?,
            redrives: Redrives::open(access)?,
            policies: Policies::open(access)?,
            attempts: Attempts::open(access)?,
            outbox: Outbox::open(access)?,
        })
    }

    /// Whether the index of a job's state has its entry.
    pub(crate) fn is_indexed(&self, record: &Record) -> Result<bool> {
        let Record { number, shard, .. } = *record;
        match &record.stage {
            Stage::Delayed => self.due.has(shard, &record.topic, record.due, number),
            Stage::Ready { position } => Ok(self.ready.at(shard, &record.lane(), *position)? == Some(number)),
            Stage::Reserved { deadline, put_off, .. } => self.leases.has(shard, deadline + put_off, number),
            Stage::Dead { since, .. } => self.dead.has(shard, *since, number),
            Stage::Done { at } | Stage::Cancelled { at, .. } => self.tombstones.has(shard, *at, number),
        }
    }

    /// How many entries the indexes of jobs have, with locators and bodies.
    pub(crate) fn index_entries(&self) -> Result<u64> {
        let times = self.leases.len()? + self.dead.len()? + self.tombstones.len()?;
        Ok(self.records.index_entries()? + self.due.len()? + self.ready.len()? + times)
    }
}
