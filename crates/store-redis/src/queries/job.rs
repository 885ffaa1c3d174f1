//! One job.

use redis::Value;

use crate::job::{Job, JobKey};
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::{reply, script};
use crate::store::{Shard, StoreError};

impl RedisStore {
    pub(crate) async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let answer = self.run(&script::GET, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let parts: Vec<Value> = answer.await?;
        if parts.is_empty() { Ok(None) } else { reply::job(parts, key, script::GET.name()).map(Some) }
    }
}
