//! Many dead jobs at once: redrives, which revive them, and purges. The installation keeps each redrive; each
//! shard counts the jobs that it has revived.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DeadCursor, DeadFilter, ENDED_REDRIVE_RETENTION, MAX_ENDED_REDRIVES, MAX_REDRIVES, Redrive, RedriveId,
    RedriveJob, RedriveState, Redriven, Shard, StoreError, StoredRedrive, TakenRedrive, WorkerId,
};
use ringback_core::limits::MAX_LOCK_TTL;

use crate::record::six;
use crate::redis_store::RedisStore;
use crate::script;

/// How long a shard keeps the count of a redrive after its last change.
const KEEP_COUNT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Stored until the number of revived jobs is final.
const NOT_KNOWN: u64 = (1 << 48) - 1;
/// The bytes before the filter and the rate.
const HEAD: usize = 27;
/// The states in the order of their codes, which begin with 1.
const STATES: [RedriveState; 3] = [RedriveState::Running, RedriveState::Done, RedriveState::Stopped];

const UNREADABLE: StoreError = StoreError::Unreadable("a redrive");

impl RedisStore {
    pub async fn start_redrive(
        &self,
        id: RedriveId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let work = postcard::to_stdvec(&RedriveJob::new(filter, rate)).expect("plain data always serialises");
        let args = (&id.0, work, MAX_REDRIVES, millis_up(ENDED_REDRIVE_RETENTION), MAX_ENDED_REDRIVES);
        unpack(id, self.ask_installation_confirmed(&script::BEGIN_REDRIVE, args).await?)
    }

    pub async fn redrives(&self, id: Option<RedriveId>) -> Result<Vec<StoredRedrive>, StoreError> {
        let id = id.as_ref().map_or(&[][..], |id| &id.0);
        let found: Vec<(Bytes, Bytes)> = self.ask_installation(&script::REDRIVES, id).await?;
        let mut all = Vec::with_capacity(found.len());
        for (id, raw) in found {
            match id_of(&id).and_then(|id| unpack(id, raw)) {
                Ok(found) => all.extend(found),
                Err(error) => tracing::error!(%error, "a redrive cannot be read and is skipped"),
            }
        }
        Ok(all)
    }

    pub async fn take_redrive(&self, holder: WorkerId, ttl: Duration) -> Result<TakenRedrive, StoreError> {
        let args = (&holder.0, millis_up(ttl), millis_up(ttl.max(MAX_LOCK_TTL)));
        let answer = self.ask_installation(&script::TAKE_REDRIVE, args);
        let (wait, id, raw): (i64, Bytes, Bytes) = answer.await?;
        if id.is_empty() {
            let wait = u64::try_from(wait).ok().map(Duration::from_millis);
            return Ok(wait.map_or(TakenRedrive::Nothing, TakenRedrive::Later));
        }
        let found = unpack(id_of(&id)?, raw)?;
        found.map(|(redrive, _)| TakenRedrive::Redrive(redrive)).ok_or(UNREADABLE)
    }

    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        holder: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        self.ask_installation(&script::KEEP_REDRIVE, (&id.0, &holder.0, millis_up(ttl))).await
    }

    pub async fn end_redrive(
        &self,
        id: RedriveId,
        holder: Option<WorkerId>,
        state: RedriveState,
        total: Option<u64>,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let holder = holder.as_ref().map_or(&[][..], |holder| &holder.0);
        let total = total.map_or(String::new(), |total| total.to_string());
        let code = STATES.iter().position(|known| *known == state).map_or(0, |index| index + 1);
        unpack(id, self.ask_installation(&script::END_REDRIVE, (&id.0, holder, code, total)).await?)
    }

    pub async fn redriven(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "look").await
    }

    /// Stops a redrive in a shard. Returns how many jobs it has revived there.
    pub async fn close_redrive(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "close").await
    }

    async fn progress(&self, shard: Shard, id: RedriveId, what: &str) -> Result<u64, StoreError> {
        self.ask(&script::REDRIVE_PROGRESS, shard, (&id.0, what, millis_up(ENDED_REDRIVE_RETENTION))).await
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        places: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        let args = (&id.0, millis_up(KEEP_COUNT), pack_places(places));
        let revived: i64 = self.ask(&script::REDRIVE_JOBS, shard, args).await?;
        Ok(u64::try_from(revived).map_or(Redriven::Over, Redriven::Jobs))
    }

    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        self.ask_confirmed(&script::PURGE_MANY, shard, pack_places(places)).await
    }
}

/// Packs places of dead jobs as the scripts take them: time and locator of each.
fn pack_places(places: &[DeadCursor]) -> Vec<Vec<u8>> {
    places.iter().map(|place| [&six(place.at)[..], &place.tie].concat()).collect()
}

fn id_of(raw: &[u8]) -> Result<RedriveId, StoreError> {
    raw.try_into().map(RedriveId).map_err(|_| UNREADABLE)
}

/// Reads a redrive as `lua/prelude/redrives.lua` packs it; `None` for nothing.
fn unpack(id: RedriveId, mut raw: Bytes) -> Result<Option<StoredRedrive>, StoreError> {
    if raw.is_empty() {
        return Ok(None);
    }
    if raw.len() < HEAD {
        return Err(UNREADABLE);
    }
    let state = *STATES.get(usize::from(raw.get_u8()).wrapping_sub(1)).ok_or(UNREADABLE)?;
    let (started, ended, revived) = (raw.get_uint(6), raw.get_uint(6), raw.get_uint(6));
    raw.advance(8);
    let work: RedriveJob = postcard::from_bytes(&raw).map_err(|_| UNREADABLE)?;
    let total = Some(revived).filter(|revived| *revived != NOT_KNOWN);
    let redrive = Redrive {
        id,
        rate: work.rate,
        filter: work.filter()?,
        started: Timestamp::from_millis(started),
        ended: Some(ended).filter(|ended| *ended > 0).map(Timestamp::from_millis),
        state,
        revived: total.unwrap_or(0),
    };
    Ok(Some((redrive, total)))
}
