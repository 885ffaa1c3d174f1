//! One job, and the log of its attempts.

use bytes::Bytes;
use redis::Value;
use ringback_core::contract::attempt_log::shown;
use ringback_core::contract::{Attempt, Shard, StoreError};
use ringback_core::job::{Job, JobKey};

use crate::record::number;
use crate::redis_store::RedisStore;
use crate::{reply, script};

impl RedisStore {
    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let parts: Vec<Value> = self.ask(&script::GET, shard, &key.locator().0).await?;
        if parts.is_empty() { Ok(None) } else { reply::job(parts, key, script::GET.name()).map(Some) }
    }

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (now, created, log): (u64, Bytes, Bytes) =
            self.ask(&script::ATTEMPTS, shard, &key.locator().0).await?;
        let created = (!created.is_empty()).then(|| number(&created));
        let log = Some(log).filter(|log| !log.is_empty());
        Ok(shown(log, created, now, self.options.attempt_retention().time))
    }
}
