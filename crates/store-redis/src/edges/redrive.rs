//! Redrives: calls that revive many dead jobs. The installation keeps each redrive; each shard counts the jobs
//! that it has revived.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DeadCursor, DeadFilter, ENDED_REDRIVE_RETENTION, MAX_ENDED_REDRIVES, MAX_REDRIVES, Redrive, RedriveId,
    RedriveJob, RedriveState, Redriven, Shard, StoreError, StoredRedrive, TakenRedrive, WorkerId,
};

use super::purge::push_places;
use crate::redis_store::RedisStore;
use crate::script;

/// How long a shard keeps the count of a redrive that nobody works on.
const KEEP_COUNT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Stands for a number that is not known yet.
const NOT_KNOWN: u64 = (1 << 48) - 1;
/// The bytes before the filter and the rate.
const HEAD: usize = 27;

const UNREADABLE: StoreError = StoreError::Unreadable("a redrive");

impl RedisStore {
    pub async fn start_redrive(
        &self,
        id: RedriveId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let work = postcard::to_stdvec(&RedriveJob::new(filter, rate)).expect("plain data always serialises");
        let answer = self.run_installation(&script::BEGIN_REDRIVE, |cmd| {
            cmd.arg(&id.0)
                .arg(&work)
                .arg(MAX_REDRIVES)
                .arg(millis_up(ENDED_REDRIVE_RETENTION))
                .arg(MAX_ENDED_REDRIVES);
        });
        unpack(id, answer.await?)
    }

    pub async fn redrives(&self, id: Option<RedriveId>) -> Result<Vec<StoredRedrive>, StoreError> {
        let answer = self.run_installation(&script::REDRIVES, |cmd| {
            cmd.arg(id.as_ref().map_or(&[][..], |id| &id.0));
        });
        let found: Vec<(Bytes, Bytes)> = answer.await?;
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
        let answer = self.run_installation(&script::TAKE_REDRIVE, |cmd| {
            cmd.arg(&holder.0).arg(millis_up(ttl));
        });
        let (wait, id, raw): (i64, Bytes, Bytes) = answer.await?;
        if id.is_empty() {
            let wait = u64::try_from(wait).ok().map(Duration::from_millis);
            return Ok(wait.map_or(TakenRedrive::Nothing, TakenRedrive::Later));
        }
        let found = unpack(id_of(&id)?, raw)?;
        found.map(|(revival, _)| TakenRedrive::Redrive(revival)).ok_or(UNREADABLE)
    }

    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        holder: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let is_kept = self.run_installation(&script::KEEP_REDRIVE, |cmd| {
            cmd.arg(&id.0).arg(&holder.0).arg(millis_up(ttl));
        });
        is_kept.await
    }

    pub async fn end_redrive(
        &self,
        id: RedriveId,
        holder: Option<WorkerId>,
        state: RedriveState,
        total: Option<u64>,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let answer = self.run_installation(&script::END_REDRIVE, |cmd| {
            cmd.arg(&id.0).arg(holder.as_ref().map_or(&[][..], |holder| &holder.0)).arg(code(state));
            cmd.arg(total.map_or(String::new(), |total| total.to_string()));
        });
        unpack(id, answer.await?)
    }

    pub async fn redriven(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "look").await
    }

    /// How many jobs it has revived. The shard revives no more of them.
    pub async fn close_redrive(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "close").await
    }

    async fn progress(&self, shard: Shard, id: RedriveId, what: &str) -> Result<u64, StoreError> {
        let revived = self.run(&script::REDRIVE_PROGRESS, shard, |cmd| {
            cmd.arg(&id.0).arg(what).arg(millis_up(ENDED_REDRIVE_RETENTION));
        });
        revived.await
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        places: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        let revived = self.run(&script::REDRIVE_JOBS, shard, |cmd| {
            cmd.arg(&id.0).arg(millis_up(KEEP_COUNT));
            push_places(cmd, places);
        });
        let revived: i64 = revived.await?;
        Ok(u64::try_from(revived).map_or(Redriven::Over, Redriven::Jobs))
    }
}

const fn code(state: RedriveState) -> u8 {
    match state {
        RedriveState::Running => 1,
        RedriveState::Done => 2,
        RedriveState::Stopped => 3,
    }
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
    let state = match raw.get_u8() {
        1 => RedriveState::Running,
        2 => RedriveState::Done,
        3 => RedriveState::Stopped,
        _ => return Err(UNREADABLE),
    };
    let (started, ended, revived) = (raw.get_uint(6), raw.get_uint(6), raw.get_uint(6));
    raw.advance(8);
    let work: RedriveJob = postcard::from_bytes(&raw).map_err(|_| UNREADABLE)?;
    let total = Some(revived).filter(|revived| *revived != NOT_KNOWN);
    let revival = Redrive {
        id,
        rate: work.rate,
        filter: work.filter()?,
        started: Timestamp::from_millis(started),
        ended: Some(ended).filter(|ended| *ended > 0).map(Timestamp::from_millis),
        state,
        revived: total.unwrap_or(0),
    };
    Ok(Some((revival, total)))
}
