//! Purging many dead jobs, and how scripts take the places of dead jobs.

use redis::Cmd;
use ringback_core::contract::{DeadCursor, Shard, StoreError};

use crate::record::six;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        self.run(&script::PURGE_MANY, shard, |cmd| push_places(cmd, places)).await
    }
}

/// Adds places of dead jobs: time and locator of each.
pub(crate) fn push_places(cmd: &mut Cmd, places: &[DeadCursor]) {
    for place in places {
        cmd.arg([&six(place.at)[..], &place.tie].concat());
    }
}
