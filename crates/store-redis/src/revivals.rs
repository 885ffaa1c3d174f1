//! Revivals on Redis: written down beside the installation, and counted by each shard.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use redis::{Cmd, Value};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DeadCursor, DeadFilter, ENDED_REDRIVE_RETENTION, MAX_ENDED_REDRIVES, MAX_REDRIVES, Redrive, RedriveId,
    RedriveJob, RedriveState, Redriven, Shard, StoreError, StoredRedrive, TakenRedrive, WorkerId,
};

use super::RedisStore;
use super::dead::push_places;
use super::script::{self, Script, reply};

/// How long a shard keeps the count of a revival that nobody works on.
const KEEP_COUNT: Duration = Duration::from_secs(30 * 24 * 3600);
/// In the place of a number: it is not known yet.
const NOT_KNOWN: u64 = (1 << 48) - 1;
/// Bytes before what a revival is to do.
const HEAD: usize = 27;

const UNREADABLE: StoreError = StoreError::Unreadable("a revival");

impl RedisStore {
    pub async fn start_redrive(
        &self,
        id: RedriveId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let work = postcard::to_stdvec(&RedriveJob::new(filter, rate)).expect("plain data always serialises");
        let answer = self.ask_installation(&script::BEGIN_REVIVAL, |cmd| {
            cmd.arg(&id.0)
                .arg(&work)
                .arg(MAX_REDRIVES)
                .arg(millis_up(ENDED_REDRIVE_RETENTION))
                .arg(MAX_ENDED_REDRIVES);
        });
        kept(id, reply::bytes(answer.await?)?)
    }

    pub async fn redrives(&self, id: Option<RedriveId>) -> Result<Vec<StoredRedrive>, StoreError> {
        let answer = self.ask_installation(&script::REVIVALS, |cmd| {
            cmd.arg(id.as_ref().map_or(&[][..], |id| &id.0));
        });
        let flat = match answer.await? {
            Value::Map(pairs) => pairs.into_iter().flat_map(|(id, raw)| [id, raw]).collect(),
            other => reply::list(other)?,
        };
        let (mut all, mut parts) = (Vec::new(), flat.into_iter());
        while let (Some(id), Some(raw)) = (parts.next(), parts.next()) {
            match id_of(&reply::bytes(id)?).and_then(|id| kept(id, reply::bytes(raw)?)) {
                Ok(found) => all.extend(found),
                Err(error) => tracing::error!(%error, "a revival cannot be read and is passed over"),
            }
        }
        Ok(all)
    }

    pub async fn take_redrive(&self, holder: WorkerId, ttl: Duration) -> Result<TakenRedrive, StoreError> {
        let answer = self.ask_installation(&script::TAKE_REVIVAL, |cmd| {
            cmd.arg(&holder.0).arg(millis_up(ttl));
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        match (parts.next(), parts.next()) {
            (Some(id), Some(raw)) => {
                let found = kept(id_of(&reply::bytes(id)?)?, reply::bytes(raw)?)?;
                found.map(|(revival, _)| TakenRedrive::Redrive(revival)).ok_or(UNREADABLE)
            }
            (Some(wait), None) => Ok(u64::try_from(reply::int(&wait)?)
                .map_or(TakenRedrive::Nothing, |wait| TakenRedrive::Later(Duration::from_millis(wait)))),
            (None, _) => Err(UNREADABLE),
        }
    }

    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        holder: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let answer = self.ask_installation(&script::KEEP_REVIVAL, |cmd| {
            cmd.arg(&id.0).arg(&holder.0).arg(millis_up(ttl));
        });
        Ok(reply::int(&answer.await?)? == 1)
    }

    pub async fn end_redrive(
        &self,
        id: RedriveId,
        holder: Option<WorkerId>,
        state: RedriveState,
        total: Option<u64>,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let answer = self.ask_installation(&script::END_REVIVAL, |cmd| {
            cmd.arg(&id.0).arg(holder.as_ref().map_or(&[][..], |holder| &holder.0)).arg(code(state));
            cmd.arg(total.map_or(String::new(), |total| total.to_string()));
        });
        kept(id, reply::bytes(answer.await?)?)
    }

    pub async fn redriven(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "look").await
    }

    /// How many it has revived; the shard revives no more of them.
    pub async fn close_redrive(&self, shard: Shard, id: RedriveId) -> Result<u64, StoreError> {
        self.progress(shard, id, "close").await
    }

    async fn progress(&self, shard: Shard, id: RedriveId, what: &str) -> Result<u64, StoreError> {
        let answer = self.run(&script::REVIVED, shard, |cmd| {
            cmd.arg(&id.0).arg(what).arg(millis_up(ENDED_REDRIVE_RETENTION));
        });
        reply::number(&answer.await?)
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        places: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        let answer = self.run(&script::REVIVE_MANY, shard, |cmd| {
            cmd.arg(&id.0).arg(millis_up(KEEP_COUNT));
            push_places(cmd, places);
        });
        Ok(u64::try_from(reply::int(&answer.await?)?).map_or(Redriven::Over, Redriven::Jobs))
    }

    /// Runs a script that knows no shard.
    async fn ask_installation(&self, script: &Script, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
        if self.profile().is_none() {
            return Err(StoreError::Unprepared);
        }
        self.run_at(script, &self.keys.installation(), args).await
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

/// `None` for nothing.
fn kept(id: RedriveId, mut raw: Bytes) -> Result<Option<StoredRedrive>, StoreError> {
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
