//! Schedules of a shard: reading, changing and removing them, finding those whose time has come, and making them fire.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use redis::{Cmd, Value};
use ringback_core::clock::Timestamp;
use ringback_core::job::{Locator, NewJob, Topic};
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::{
    DueSchedule, DueSchedules, MAX_SCHEDULE_BYTES, ScheduleChange, ScheduleChanged, ScheduleRow, Shard,
    StoreError,
};

use super::submit::{Arrival, limit_in, pack_due};
use crate::record::{self, six};
use crate::redis_store::RedisStore;
use crate::reply::take;
use crate::script;

/// The number of bytes before the topic, as `prelude/recurring.lua` lays them out. Then come the topic's length, the
/// topic and the packed schedule.
const HEAD: usize = 26;
const NO_LOCATOR: [u8; 12] = [0; 12];

const UNREADABLE: StoreError = StoreError::Unreadable("a schedule");

impl RedisStore {
    /// Returns schedules of a shard; `None` for one that is missing or has another topic, or, logged, cannot be read.
    pub(crate) async fn schedules_of(
        &self,
        shard: Shard,
        keys: &[(ScheduleKey, Topic)],
    ) -> Result<Vec<Option<ScheduleRow>>, StoreError> {
        let names: Vec<_> = keys.iter().map(|(key, _)| key.to_string()).collect();
        let stored: Vec<Bytes> = self.call(&script::SCHEDULES, shard).arg(names).run().await?;
        let rows = keys.iter().zip(stored).map(|((key, topic), stored)| match unpack(key.clone(), stored) {
            // A schedule of another topic is not the one that the index names by this key.
            Ok(row) => row.filter(|row| row.topic == *topic),
            Err(error) => {
                tracing::error!(shard = shard.0, schedule = %key, %error, "a schedule is left out");
                None
            }
        });
        Ok(rows.collect())
    }

    /// Returns the first schedules of a shard whose time has come, up to `limit` and about [`MAX_SCHEDULE_BYTES`]. One
    /// that is missing or cannot be read is logged and left out, and its time is removed.
    pub async fn due_schedules(&self, shard: Shard, limit: usize) -> Result<DueSchedules, StoreError> {
        let answer: Vec<Value> =
            self.call(&script::DUE_SCHEDULES, shard).arg((limit, MAX_SCHEDULE_BYTES)).run().await?;
        let mut parts = answer.into_iter();
        let mut number = || parts.next().map_or(Err(UNREADABLE), |part| take::int(&part));
        let (now, next) = (number()?, number()?);
        let (mut due, mut unreadable, mut parts) = (Vec::new(), Vec::new(), parts);
        while let (Some(name), Some(stored), Some(overlapped)) = (parts.next(), parts.next(), parts.next()) {
            let (name, stored) = (take::bytes(name)?, take::bytes(stored)?);
            let key = std::str::from_utf8(&name).ok().and_then(ScheduleKey::from_stored);
            match key.ok_or(UNREADABLE).and_then(|key| unpack(key, stored)) {
                Ok(Some(row)) => due.push(DueSchedule { row, is_overlapped: take::int(&overlapped)? == 1 }),
                Ok(None) | Err(_) => unreadable.push(name),
            }
        }
        if !unreadable.is_empty() {
            self.forget_times(shard, &unreadable).await?;
        }
        let now = Timestamp::from_millis(u64::try_from(now).map_err(|_| UNREADABLE)?);
        Ok(DueSchedules { due, now, next: u64::try_from(next).ok().map(Duration::from_micros) })
    }

    /// Logs schedules that are missing or cannot be read, and removes their times from the index.
    async fn forget_times(&self, shard: Shard, names: &[Bytes]) -> Result<(), StoreError> {
        let shown: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        tracing::error!(shard = shard.0, schedules = ?shown, "schedules that are not there, or cannot be read, do not fire");
        let names: Vec<_> = names.iter().map(|name| &**name).collect();
        self.call(&script::FORGET_SCHEDULE_TIMES, shard).arg(names).run::<u64>().await.map(drop)
    }

    /// Stores schedules without submitting jobs. One of which another version is stored is `Outdated` and left as it is.
    pub async fn change_schedules(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        let mut change = self.call(&script::CHANGE_SCHEDULES, shard).confirmed();
        for ScheduleChange { expected, row, .. } in changes {
            change = change.arg(row.key.to_string()).arg(pack_version(*expected)).arg(pack(row));
        }
        let answers: Vec<u8> = change.run().await?;
        if answers.len() != changes.len() {
            return Err(UNREADABLE);
        }
        let changed = |answer| if answer == 1 { ScheduleChanged::Changed } else { ScheduleChanged::Outdated };
        Ok(answers.into_iter().map(changed).collect())
    }

    pub(crate) async fn remove_row(&self, shard: Shard, row: &ScheduleRow) -> Result<bool, StoreError> {
        let args = (row.key.to_string(), pack_version(Some(row.version)), "");
        let answers: Vec<u8> =
            self.call(&script::CHANGE_SCHEDULES, shard).confirmed().arg(args).run().await?;
        Ok(answers == [1])
    }

    /// Stores schedules and submits their jobs, at least one of each. A schedule of which another version is stored is
    /// `Outdated`, one beyond a limit on topics or lanes is `Full`; neither is changed. Fails as `add_jobs` does.
    pub async fn fire(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        // All jobs of a schedule are in one lane, so the first one gives it.
        let jobs: Vec<&NewJob> = changes.iter().map(|change| &change.jobs[0]).collect();
        let push = |cmd: &mut Cmd, arrivals: &[Arrival<'_>]| {
            for Arrival { number, lane, .. } in arrivals {
                let ScheduleChange { expected, row, jobs } = &changes[*number];
                cmd.arg(row.key.to_string()).arg(pack_version(*expected)).arg(pack(row));
                cmd.arg(&lane.0).arg(jobs.len());
                for job in jobs {
                    let packed = record::pack_firing(job, *lane);
                    cmd.arg(&job.key.locator().0).arg(pack_due(job.due));
                    cmd.arg(&packed.rest).arg(&packed.external);
                }
            }
        };
        self.add_jobs(shard, &jobs, |_| &script::FIRE, push, fired).await
    }
}

fn fired(answer: Value, _: &NewJob) -> Result<ScheduleChanged, StoreError> {
    let parts = take::list(answer)?;
    if let Some(limit) = limit_in(&parts)? {
        return Ok(ScheduleChanged::Full(limit));
    }
    match parts.as_slice() {
        [Value::Int(1)] => Ok(ScheduleChanged::Changed),
        [Value::Int(0)] => Ok(ScheduleChanged::Outdated),
        _ => Err(UNREADABLE),
    }
}

/// Packs a version for the scripts; empty for none.
fn pack_version(version: Option<u64>) -> Vec<u8> {
    version.map_or_else(Vec::new, |version| version.to_be_bytes().to_vec())
}

fn pack(row: &ScheduleRow) -> Vec<u8> {
    let mut packed = Vec::with_capacity(HEAD + row.packed.len());
    packed.put_u64(row.version);
    packed.extend_from_slice(&six(row.next.map_or(0, Timestamp::as_millis)));
    packed.extend_from_slice(&row.former.map_or(NO_LOCATOR, |locator| locator.0));
    let topic = row.topic.as_str();
    packed.push(u8::try_from(topic.len()).expect("a topic has a limit below 256 bytes"));
    packed.extend_from_slice(topic.as_bytes());
    packed.extend_from_slice(&row.packed);
    packed
}

/// Unpacks a stored schedule; `None` if `stored` is empty. Fails with `Unreadable` if it is too short or has no topic.
fn unpack(key: ScheduleKey, mut stored: Bytes) -> Result<Option<ScheduleRow>, StoreError> {
    if stored.is_empty() {
        return Ok(None);
    }
    if stored.len() <= HEAD || stored.len() <= HEAD + usize::from(stored[HEAD]) {
        return Err(UNREADABLE);
    }
    let (version, next) = (stored.get_u64(), stored.get_uint(6));
    let mut locator = NO_LOCATOR;
    stored.copy_to_slice(&mut locator);
    let former = (locator != NO_LOCATOR).then_some(Locator(locator));
    let next = (next > 0).then(|| Timestamp::from_millis(next));
    let length = usize::from(stored.get_u8());
    let topic = stored.split_to(length);
    let topic = std::str::from_utf8(&topic).ok().and_then(Topic::from_stored).ok_or(UNREADABLE)?;
    Ok(Some(ScheduleRow { key, topic, version, next, former, packed: stored.into() }))
}
