//! The tables of the database file, each wrapped by the one type that reads and writes it. `definitions` defines them
//! all. Nothing outside this folder names a table or packs a row.

mod archive;
mod attempts;
mod audit_log;
mod bulks;
mod counts;
mod definitions;
mod destinations;
mod failing;
mod feeds;
pub(crate) mod format;
mod last_reserves;
mod lateness;
mod limits;
mod order;
mod outbox;
mod policies;
mod ready;
mod record;
mod records;
mod rows;
mod schedules;
mod shards;
mod tags;
mod times;

use self::archive::Archive;
pub(crate) use self::archive::{ArchiveRow, StoredEnd};
use self::attempts::Attempts;
pub(crate) use self::attempts::cost;
use self::audit_log::AuditLog;
pub(crate) use self::bulks::BulkRow;
use self::bulks::Bulks;
use self::counts::Counts;
pub(crate) use self::counts::{ByName, EndedCounts, LaneCounts, Pause, Sums, TopicRow, is_sum, tenant_of};
#[cfg(test)]
pub(crate) use self::definitions::dump;
use self::definitions::{
    ARCHIVE, BULKS, DEAD, DESTINATIONS, FAILING, FEEDS, LAST_RESERVES, LATENESS, LEASES, LIMITS, OUTBOX,
    POLICIES, TAGS, TOMBSTONES,
};
pub(crate) use self::definitions::{OutboxKey, ReplayTables};
use self::destinations::Destinations;
pub(crate) use self::destinations::PauseRow;
use self::failing::Failing;
pub(crate) use self::feeds::FeedRow;
use self::feeds::Feeds;
pub(crate) use self::format::{Checkpoint, Format};
pub(crate) use self::last_reserves::Granted;
use self::last_reserves::LastReserves;
use self::lateness::Minutes;
use self::limits::StoredLimits;
use self::order::Order;
pub(crate) use self::order::{KeyRow, OrderRow, key_name};
use self::outbox::Outbox;
pub(crate) use self::outbox::{Notice, OutboxRow};
use self::policies::Policies;
use self::ready::Ready;
pub(crate) use self::ready::{PAUSED, PULL, QueueEnd, is_of_destination, is_of_limit, turn_of_limited};
pub(crate) use self::record::{Arrival, Body, Generation, Last, Place, Record, Stage};
pub(crate) use self::records::{Records, StoredJob};
use self::rows::Access;
pub(crate) use self::rows::{Journal, Writing};
pub(crate) use self::schedules::Schedules;
pub(crate) use self::shards::{ShardRow, Shards};
use self::tags::TaggedJobs;
pub(crate) use self::tags::TenantTag;
pub(crate) use self::times::DueJobs;
use self::times::{Due, Times};
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
    /// Jobs that have not ended by their tags.
    pub(crate) tagged: TaggedJobs<A>,
    pub(crate) shards: Shards<A>,
    pub(crate) last_reserves: LastReserves<A>,
    pub(crate) minutes: Minutes<A>,
    pub(crate) counts: Counts<A>,
    pub(crate) bulks: Bulks<A>,
    pub(crate) policies: Policies<A>,
    pub(crate) attempts: Attempts<A>,
    pub(crate) outbox: Outbox<A>,
    pub(crate) schedules: Schedules<A>,
    pub(crate) archive: Archive<A>,
    pub(crate) feeds: Feeds<A>,
    pub(crate) audit_log: AuditLog<A>,
    pub(crate) failing: Failing<A>,
    pub(crate) destinations: Destinations<A>,
    pub(crate) limits: StoredLimits<A>,
    pub(crate) order: Order<A>,
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
            tagged: TaggedJobs(access.open(TAGS)?),
            shards: Shards::open(access)?,
            last_reserves: LastReserves(access.open(LAST_RESERVES)?),
            minutes: Minutes(access.open(LATENESS)?),
            counts: Counts::open(access)?,
            bulks: Bulks(access.open(BULKS)?),
            policies: Policies(access.open(POLICIES)?),
            attempts: Attempts::open(access)?,
            outbox: Outbox(access.open(OUTBOX)?),
            schedules: Schedules::open(access)?,
            archive: Archive(access.open(ARCHIVE)?),
            feeds: Feeds(access.open(FEEDS)?),
            audit_log: AuditLog::open(access)?,
            failing: Failing(access.open(FAILING)?),
            destinations: Destinations(access.open(DESTINATIONS)?),
            limits: StoredLimits(access.open(LIMITS)?),
            order: Order::open(access)?,
        })
    }

    /// Whether the index of a job's state has an entry for the job.
    pub(crate) fn is_indexed(&self, record: &Record) -> Result<bool> {
        let Record { number, shard, .. } = *record;
        match &record.stage {
            Stage::Delayed => self.due.has(shard, &record.topic, record.due, number),
            Stage::Ready { position } => {
                Ok(self.ready.at(shard, &record.lane().name(), *position)? == Some(number))
            }
            Stage::Waiting(place) => {
                let key = self.order_key(record)?;
                key.map_or(Ok(false), |key| Ok(self.order.at(shard, &key, *place)? == Some(number)))
            }
            Stage::Reserved { deadline, postponed, .. } => {
                self.leases.has(shard, deadline + postponed, number)
            }
            Stage::Dead { since, .. } => self.dead.has(shard, *since, number),
            Stage::Done { at } | Stage::Cancelled { at, .. } => self.tombstones.has(shard, *at, number),
        }
    }

    /// Returns the name of the key that a job shares with others, if their topic is ordered; `None` if it shares none, has
    /// ended, or has no body.
    pub(crate) fn order_key(&self, record: &Record) -> Result<Option<String>> {
        if record.arrival == Arrival::Fired {
            return Ok(None);
        }
        Ok(self.records.id(record.number)?.and_then(|id| key_name(&record.topic, &id)))
    }

    /// Returns how many entries the indexes of jobs have together, locators and bodies included, without those of keys.
    pub(crate) fn index_entries(&self) -> Result<u64> {
        let times = self.leases.len()? + self.dead.len()? + self.tombstones.len()?;
        let states = self.due.len()? + self.ready.len()? + times;
        Ok(self.records.index_entries()? + states + self.tagged.len()?)
    }
}
