//! What stands for the calls of `planted` in builds for use: they change nothing.

use redis::Value;
use ringback_core::contract::{Shard, StoreError, Submitted};
use ringback_core::job::NewJob;

use crate::redis_store::RedisStore;

pub(crate) async fn move_on(_: &RedisStore, _: Shard, _: Option<Value>) -> Result<(), StoreError> {
    Ok(())
}

pub(crate) async fn found_before(
    _: &RedisStore,
    _: Shard,
    jobs: &[&NewJob],
) -> Result<Vec<Option<Submitted>>, StoreError> {
    Ok(vec![None; jobs.len()])
}

pub(crate) fn taken_though_full<T>(_: &Result<T, StoreError>, _: &NewJob) -> Option<Submitted> {
    None
}

pub(crate) async fn count(_: &RedisStore, _: Shard, _: &[Value]) -> Result<(), StoreError> {
    Ok(())
}
