//! The log of a job's attempts.

use bytes::Bytes;

use crate::job::JobKey;
use crate::store::attempts::shown;
use crate::store::redis::record::number;
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::script;
use crate::store::{Attempt, Shard, StoreError};

impl RedisStore {
    pub(crate) async fn attempts(
        &self,
        shard: Shard,
        key: &JobKey,
    ) -> Result<Option<Vec<Attempt>>, StoreError> {
        let answer = self.run(&script::ATTEMPTS, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let (now, created, log): (u64, Bytes, Bytes) = answer.await?;
        let created = (!created.is_empty()).then(|| number(&created));
        let log = Some(log).filter(|log| !log.is_empty());
        Ok(shown(log, created, now, self.options.logs().time))
    }
}
