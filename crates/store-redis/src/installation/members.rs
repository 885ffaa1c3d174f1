//! The heartbeats of carriers, and the list of live ones.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::limits::MAX_LOCK_TTL;
use ringback_core::store_types::{LiveCarriers, StoreError};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        let answer = self
            .call(&script::MEMBERS, KeySpace::Installation)
            .arg((carrier, millis_up(ttl), millis_up(ttl.max(MAX_LOCK_TTL))))
            .run();
        let (next_change, next_bulk, mut carriers): (i64, i64, Vec<String>) = answer.await?;
        // The script lists carriers by expiry, an order that changes with every heartbeat.
        carriers.sort_unstable();
        let wait = |ms| u64::try_from(ms).ok().map(Duration::from_millis);
        Ok(LiveCarriers { carriers, next_change: wait(next_change), next_bulk: wait(next_bulk) })
    }
}
