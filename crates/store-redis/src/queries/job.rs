//! One job: reads it with or without everything that is stored of it, what it waits for, and the log of its attempts.

use bytes::Bytes;
use redis::Value;
use ringback_core::job::{Job, JobKey};
use ringback_core::store_types::attempt_log::shown;
use ringback_core::store_types::{
    Attempt, FoundJob, JobPauses, JobWait, LimitTarget, MAX_BEFORE, OrderWait, Shard, StoreError,
};

use super::page;
use crate::record::{FixedFields, OptionalFields, number, parse_tombstone};
use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script;

const UNREADABLE: StoreError = StoreError::Unreadable("what a job waits for");

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

    pub async fn waits(&self, shard: Shard, key: &JobKey) -> Result<JobWait, StoreError> {
        let call = self.call(&script::WAITS, shard).arg((&key.locator().0, MAX_BEFORE));
        let mut parts = call.run::<Vec<Value>>().await?.into_iter();
        let mut number = || parts.next().map_or(Err(UNREADABLE), |part| take::int(&part));
        let pauses = JobPauses { topic: number()? == 1, destination: number()? == 1 };
        let before = u32::try_from(number()?).ok();
        let behind = u32::try_from(number()?).ok();
        let head: String =
            parts.next().map_or(Err(UNREADABLE), |part| reply::read(part, script::WAITS.name()))?;
        let is_held = parts.next().map_or(Err(UNREADABLE), |part| take::int(&part))? == 1;
        let order = behind
            .map(|before| Ok(OrderWait { before, head: head.parse().map_err(|_| UNREADABLE)?, is_held }));
        let target = |name: Value| {
            let name: String = reply::read(name, script::WAITS.name())?;
            LimitTarget::from_name(&name).ok_or(UNREADABLE)
        };
        Ok(JobWait {
            pauses,
            before,
            order: order.transpose()?,
            limits: parts.map(target).collect::<Result<_, _>>()?,
        })
    }

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (now, created, log): (u64, Bytes, Bytes) =
            self.call(&script::ATTEMPTS, shard).arg(&key.locator().0).run().await?;
        let created = (!created.is_empty()).then(|| number(&created));
        let log = Some(log).filter(|log| !log.is_empty());
        Ok(shown(log, created, now, self.options.attempt_retention().time))
    }
}
