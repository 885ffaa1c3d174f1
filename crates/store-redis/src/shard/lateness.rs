//! Adds to the histogram of lateness of a shard.

use ringback_core::store_types::{Lateness, Shard, StoreError};

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn add_lateness(&self, shard: Shard, lateness: &Lateness) -> Result<(), StoreError> {
        let buckets: Vec<_> = lateness.counts().collect();
        let call = self.call(&script::ADD_LATENESS, shard).arg((lateness.max_us(), buckets));
        call.run::<u8>().await.map(drop)
    }
}
