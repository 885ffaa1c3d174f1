//! The log of a job's attempts.

use bytes::Bytes;
use ringback_core::contract::attempt_log::shown;
use ringback_core::contract::{Attempt, Shard, StoreError};
use ringback_core::job::JobKey;

use crate::record::number;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let answer = self.run(&script::ATTEMPTS, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let (now, created, log): (u64, Bytes, Bytes) = answer.await?;
        let created = (!created.is_empty()).then(|| number(&created));
        let log = Some(log).filter(|log| !log.is_empty());
        Ok(shown(log, created, now, self.options.attempt_retention().time))
    }
}
