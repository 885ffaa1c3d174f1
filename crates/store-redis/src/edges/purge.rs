//! Purging many dead jobs, and how scripts take the places of dead jobs.

use redis::Cmd;

use crate::store::redis::record::six;
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::script;
use crate::store::{DeadPlace, Shard, StoreError};

impl RedisStore {
    pub(crate) async fn purge_many(&self, shard: Shard, places: &[DeadPlace]) -> Result<u64, StoreError> {
        self.run(&script::PURGE_MANY, shard, |cmd| push_places(cmd, places)).await
    }
}

/// Adds places of dead jobs: time and locator of each.
pub(crate) fn push_places(cmd: &mut Cmd, places: &[DeadPlace]) {
    for place in places {
        cmd.arg([&six(place.at)[..], &place.tie].concat());
    }
}
