//! Many jobs at once: bulk operations, and purges of dead jobs. The installation keeps each bulk operation; each shard
//! counts the jobs that it has changed.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use redis::Value;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    Bulk, BulkAction, BulkId, BulkState, BulkStep, BulkTarget, DeadCursor, ENDED_BULK_RETENTION, Filter,
    MAX_BULKS, MAX_ENDED_BULKS, Shard, StoreError, StoredBulk, TakenBulk, WorkerId,
};
use ringback_core::job::{Job, JobKey};
use ringback_core::limits::MAX_LOCK_TTL;

use super::arrivals::pack_due;
use crate::keys::Place;
use crate::record::{FixedFields, OptionalFields, six};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How long a shard keeps the count of a bulk operation after its last change.
const KEEP_COUNT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a call looks at jobs that change all the time.
const MAX_LOOKS: usize = 32;
/// Stored until the number of changed jobs is final.
const NOT_KNOWN: u64 = (1 << 48) - 1;
/// The bytes before the target and the rate.
const HEAD: usize = 27;
/// The states in the order of their codes, which begin with 1.
const STATES: [BulkState; 3] = [BulkState::Running, BulkState::Done, BulkState::Stopped];

const UNREADABLE: StoreError = StoreError::Unreadable("a bulk operation");

impl RedisStore {
    pub async fn start_bulk(
        &self,
        id: BulkId,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<Option<StoredBulk>, StoreError> {
        let work = postcard::to_stdvec(&(target, rate)).expect("plain data always serialises");
        let args = (&id.0, work, MAX_BULKS, millis_up(ENDED_BULK_RETENTION), MAX_ENDED_BULKS);
        unpack(id, self.call(&script::BEGIN_BULK, Place::Installation).confirmed().arg(args).run().await?)
    }

    pub async fn bulks(&self, id: Option<BulkId>) -> Result<Vec<StoredBulk>, StoreError> {
        let id = id.as_ref().map_or(&[][..], |id| &id.0);
        let found: Vec<(Bytes, Bytes)> = self.call(&script::BULKS, Place::Installation).arg(id).run().await?;
        let mut all = Vec::with_capacity(found.len());
        for (id, raw) in found {
            match id_of(&id).and_then(|id| unpack(id, raw)) {
                Ok(found) => all.extend(found),
                Err(error) => tracing::error!(%error, "a bulk operation cannot be read and is skipped"),
            }
        }
        Ok(all)
    }

    pub async fn take_bulk(&self, holder: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        let args = (&holder.0, millis_up(ttl), millis_up(ttl.max(MAX_LOCK_TTL)));
        let answer = self.call(&script::TAKE_BULK, Place::Installation).arg(args).run();
        let (wait, id, raw): (i64, Bytes, Bytes) = answer.await?;
        if id.is_empty() {
            let wait = u64::try_from(wait).ok().map(Duration::from_millis);
            return Ok(wait.map_or(TakenBulk::Nothing, TakenBulk::Later));
        }
        let found = unpack(id_of(&id)?, raw)?;
        found.map(|(bulk, _)| TakenBulk::Bulk(bulk)).ok_or(UNREADABLE)
    }

    pub async fn keep_bulk(&self, id: BulkId, holder: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        self.call(&script::KEEP_BULK, Place::Installation).arg((&id.0, &holder.0, millis_up(ttl))).run().await
    }

    pub async fn end_bulk(
        &self,
        id: BulkId,
        holder: Option<WorkerId>,
        state: BulkState,
        total: Option<u64>,
    ) -> Result<Option<StoredBulk>, StoreError> {
        let holder = holder.as_ref().map_or(&[][..], |holder| &holder.0);
        let total = total.map_or(String::new(), |total| total.to_string());
        let code = STATES.iter().position(|known| *known == state).map_or(0, |index| index + 1);
        unpack(
            id,
            self.call(&script::END_BULK, Place::Installation).arg((&id.0, holder, code, total)).run().await?,
        )
    }

    pub async fn changed_by(&self, shard: Shard, id: BulkId) -> Result<u64, StoreError> {
        self.progress(shard, id, "look").await
    }

    /// Stops a bulk operation in a shard. Returns how many jobs it has changed there.
    pub async fn close_bulk(&self, shard: Shard, id: BulkId) -> Result<u64, StoreError> {
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

    /// Changes those of the jobs that fit a filter when they are changed. Jobs that change between the look at them and
    /// the change are looked at again.
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

    /// Changes jobs that are still as they were found. Returns how many, -1 if the operation is closed in the shard, and
    /// the places of the jobs that have changed, from 1.
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

/// A job as it was when a bulk operation looked at it.
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

    /// This version, if it fits a filter.
    fn of(self, filter: &Filter) -> Option<Self> {
        Some(self).filter(|version| filter.matches(&version.job, &version.origin))
    }
}

fn locators(keys: &[JobKey]) -> Vec<[u8; 12]> {
    keys.iter().map(|key| key.locator().0).collect()
}

/// Packs places of dead jobs as the scripts take them: time and locator of each.
fn pack_places(places: &[DeadCursor]) -> Vec<Vec<u8>> {
    places.iter().map(|place| [&six(place.at)[..], &place.tie].concat()).collect()
}

fn id_of(raw: &[u8]) -> Result<BulkId, StoreError> {
    raw.try_into().map(BulkId).map_err(|_| UNREADABLE)
}

/// Reads a bulk operation as `lua/prelude/bulks.lua` packs it; `None` for nothing.
fn unpack(id: BulkId, mut raw: Bytes) -> Result<Option<StoredBulk>, StoreError> {
    if raw.is_empty() {
        return Ok(None);
    }
    if raw.len() < HEAD {
        return Err(UNREADABLE);
    }
    let state = *STATES.get(usize::from(raw.get_u8()).wrapping_sub(1)).ok_or(UNREADABLE)?;
    let (started, ended, changed) = (raw.get_uint(6), raw.get_uint(6), raw.get_uint(6));
    raw.advance(8);
    let (target, rate) = postcard::from_bytes(&raw).map_err(|_| UNREADABLE)?;
    let total = Some(changed).filter(|changed| *changed != NOT_KNOWN);
    let bulk = Bulk {
        id,
        target,
        rate,
        started: Timestamp::from_millis(started),
        ended: Some(ended).filter(|ended| *ended > 0).map(Timestamp::from_millis),
        state,
        changed: total.unwrap_or(0),
    };
    Ok(Some((bulk, total)))
}
