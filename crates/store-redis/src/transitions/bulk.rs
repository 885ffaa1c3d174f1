//! Changes of many jobs of a shard in one call: the steps of bulk operations, and purges of dead jobs. The shard counts
//! the jobs that an operation has changed in it.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use ringback_core::clock::millis_up;
use ringback_core::job::{Job, JobKey};
use ringback_core::store_types::{
    BulkAction, BulkId, BulkStep, DeadCursor, ENDED_BULK_RETENTION, Filter, Shard, StoreError,
};

use super::submit::pack_due;
use crate::record::{FixedFields, OptionalFields, six};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How long a shard keeps the count of a bulk operation after its last change.
const KEEP_COUNT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often one step reads jobs again because they have changed since.
const MAX_LOOKS: usize = 32;
impl RedisStore {
    pub(crate) async fn changed_by(&self, shard: Shard, id: BulkId) -> Result<u64, StoreError> {
        self.progress(shard, id, "look").await
    }

    /// Closes a bulk operation in a shard, where it changes no more jobs then. Returns how many it has changed there.
    pub(crate) async fn close_bulk(&self, shard: Shard, id: BulkId) -> Result<u64, StoreError> {
        self.progress(shard, id, "close").await
    }

    async fn progress(&self, shard: Shard, id: BulkId, what: &str) -> Result<u64, StoreError> {
        self.call(&script::BULK_PROGRESS, shard)
            .arg((&id.0, what, millis_up(ENDED_BULK_RETENTION)))
            .run()
            .await
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: BulkId,
        places: &[DeadCursor],
    ) -> Result<BulkStep, StoreError> {
        let args = (&id.0, millis_up(KEEP_COUNT), pack_places(places));
        let revived: i64 = self.call(&script::REVIVE_MANY, shard).arg(args).run().await?;
        Ok(u64::try_from(revived).map_or(BulkStep::Over, BulkStep::Jobs))
    }

    /// Changes those of the jobs that fit a filter at that time; returns how many, or `Over` if the operation is closed
    /// in the shard. A job that has changed since it was read is read again, at most `MAX_LOOKS` times; then it is left
    /// as it is, with a warning.
    pub async fn change_many(
        &self,
        shard: Shard,
        id: BulkId,
        filter: &Filter,
        action: BulkAction,
        keys: &[JobKey],
    ) -> Result<BulkStep, StoreError> {
        let (mut locators, mut changed) = (locators(keys), 0);
        for _ in 0..MAX_LOOKS {
            let found: Vec<Value> =
                self.call(&script::VERSIONS, shard).arg(locators.iter().collect::<Vec<_>>()).run().await?;
            let found = found.into_iter().map(Version::parse).collect::<Result<Vec<_>, _>>()?;
            let found: Vec<_> = found.into_iter().filter_map(|version| version.of(filter)).collect();
            if found.is_empty() {
                return Ok(BulkStep::Jobs(changed));
            }
            let (count, others) = self.apply(shard, id, action, &found).await?;
            let Ok(count) = u64::try_from(count) else { return Ok(BulkStep::Over) };
            changed += count;
            locators = others.iter().filter_map(|n| Some(found.get(n.checked_sub(1)?)?.locator)).collect();
            if locators.is_empty() {
                return Ok(BulkStep::Jobs(changed));
            }
        }
        tracing::warn!(shard = shard.0, bulk = %id, jobs = locators.len(), "jobs change all the time and are passed over");
        Ok(BulkStep::Jobs(changed))
    }

    /// Changes jobs that are still as they were read. Returns how many (-1 if the operation is closed in the shard), and
    /// the positions in `found`, from 1, of the jobs that have changed since and were left as they are.
    async fn apply(
        &self,
        shard: Shard,
        id: BulkId,
        action: BulkAction,
        found: &[Version],
    ) -> Result<(i64, Vec<usize>), StoreError> {
        let script = match action {
            BulkAction::Cancel => &script::BULK_CANCEL,
            BulkAction::Run => &script::BULK_RUN,
            BulkAction::Revive => &script::BULK_REVIVE,
            BulkAction::Reschedule(_) => &script::BULK_RESCHEDULE,
            BulkAction::Purge => &script::BULK_PURGE,
        };
        let mut change = self.call(script, shard).confirmed().arg(&id.0).arg(millis_up(KEEP_COUNT));
        change = match action {
            BulkAction::Cancel => change.arg(self.keep()),
            BulkAction::Reschedule(due) => change.arg(pack_due(due)),
            BulkAction::Run | BulkAction::Revive | BulkAction::Purge => change,
        };
        for Version { locator, code, state, head, .. } in found {
            change = change.arg(locator).arg(*code).arg(&state[..]).arg(&head[..]);
        }
        change.run().await
    }

    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        self.call(&script::PURGE_MANY, shard).confirmed().arg(pack_places(places)).run().await
    }
}

/// A job as it was when a bulk operation read it.
struct Version {
    locator: [u8; 12],
    code: i64,
    state: Bytes,
    head: Bytes,
    job: Job,
    origin: String,
}

impl Version {
    fn parse(answer: Value) -> Result<Self, StoreError> {
        let (locator, code, state, lane, head): (_, _, Bytes, String, Bytes) =
            reply::read(answer, "a job of a bulk operation")?;
        let tail = OptionalFields::parse(&lane, head.clone())?;
        let job =
            FixedFields::parse(reply::state(code)?, state.clone(), &head)?.into_job(tail.key, tail.tags);
        Ok(Self { locator, code, state, head, job, origin: tail.origin })
    }

    /// Returns this version, or `None` if it does not fit a filter.
    fn of(self, filter: &Filter) -> Option<Self> {
        Some(self).filter(|version| filter.matches(&version.job, &version.origin))
    }
}

fn locators(keys: &[JobKey]) -> Vec<[u8; 12]> {
    keys.iter().map(|key| key.locator().0).collect()
}

/// Packs the places of dead jobs for the scripts: time of death (6 bytes) and locator of each.
fn pack_places(places: &[DeadCursor]) -> Vec<Vec<u8>> {
    places.iter().map(|place| [&six(place.at)[..], &place.tie].concat()).collect()
}
