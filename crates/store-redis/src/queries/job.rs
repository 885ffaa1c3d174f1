//! One job.

use redis::Value;
use ringback_core::contract::{Shard, StoreError};
use ringback_core::job::{Job, JobKey};

use crate::redis_store::RedisStore;
use crate::{reply, script};

impl RedisStore {
    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let answer = self.run(&script::GET, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let parts: Vec<Value> = answer.await?;
        if parts.is_empty() { Ok(None) } else { reply::job(parts, key, script::GET.name()).map(Some) }
    }
}
