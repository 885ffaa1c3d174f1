//! One job: reads it with or without everything that is stored of it, its pauses, and the log of its attempts.

use bytes::Bytes;
use redis::Value;
use ringback_core::job::{Job, JobKey};
use ringback_core::store_types::attempt_log::shown;
use ringback_core::store_types::{Attempt, FoundJob, JobPauses, Shard, StoreError};

use super::page;
use crate::record::{FixedFields, OptionalFields, number, parse_tombstone};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How often a job is read whose payload is missing.
const MAX_TRIES: usize = 8;

enum Found {
    /// The job; `None` if it is unknown.
    Known(Option<FoundJob>),
    /// The record exists, but the key of its payload is gone or belongs to another submit.
    WithoutPayload,
}

impl RedisStore {
    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let parts: Vec<Value> = self.call(&script::GET, shard).arg(&key.locator().0).run().await?;
        if parts.is_empty() { Ok(None) } else { reply::job(parts, key, script::GET.name()).map(Some) }
    }

    pub async fn get_stored(&self, shard: Shard, key: &JobKey) -> Result<Option<FoundJob>, StoreError> {
        for _ in 0..MAX_TRIES {
            // If the payload is missing, the job has ended meanwhile, or another submit has taken its place.
            if let Found::Known(found) = self.find_stored(shard, key).await? {
                return Ok(found);
            }
        }
        Err(StoreError::Unreadable("a job whose payload is missing"))
    }

    async fn find_stored(&self, shard: Shard, key: &JobKey) -> Result<Found, StoreError> {
        let locator = key.locator();
        let parts: Vec<Value> = self.call(&script::GET_STORED, shard).arg(&locator.0).run().await?;
        let name = script::GET_STORED.name();
        if parts.is_empty() {
            return Ok(Found::Known(None));
        }
        if parts.len() == 1 {
            let (tombstone,) = reply::read(Value::Array(parts), name)?;
            let job = parse_tombstone(tombstone, key.clone())?;
            return Ok(Found::Known(Some(FoundJob::Ended(job))));
        }
        let (code, job_state, lane, record): (i64, Bytes, String, Bytes) =
            reply::read(Value::Array(parts), name)?;
        let head = FixedFields::parse(reply::state(code)?, job_state, &record)?;
        let tail = OptionalFields::parse(&lane, record)?;
        let stored = self.kept(shard, page::Found { locator, head, tail }).await?;
        Ok(stored.map_or(Found::WithoutPayload, |job| Found::Known(Some(FoundJob::Stored(Box::new(job))))))
    }

    pub async fn paused_by(&self, shard: Shard, key: &JobKey) -> Result<JobPauses, StoreError> {
        let (topic, destination): (u8, u8) =
            self.call(&script::PAUSED_BY, shard).arg(&key.locator().0).run().await?;
        Ok(JobPauses { topic: topic == 1, destination: destination == 1 })
    }

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (now, created, log): (u64, Bytes, Bytes) =
            self.call(&script::ATTEMPTS, shard).arg(&key.locator().0).run().await?;
        let created = (!created.is_empty()).then(|| number(&created));
        let log = Some(log).filter(|log| !log.is_empty());
        Ok(shown(log, created, now, self.options.attempt_retention().time))
    }
}
