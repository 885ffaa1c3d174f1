//! Claims and releases of a shard by carriers.

use redis::Value;
use ringback_core::store_types::{Epoch, Shard, StoreError};

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn take_shard(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        self.call(&script::TAKE_SHARD, shard).arg(carrier).run().await.map(Epoch)
    }

    pub async fn release_shard(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        self.call(&script::RELEASE_SHARD, shard).arg(&epoch.0).run::<Value>().await.map(drop)
    }
}
