//! The carrier's calls: membership, claims of shards, and its passes over them.

use std::time::Duration;

use redis::Value;
use ringback_core::clock::millis_up;
use ringback_core::contract::{Epoch, LiveCarriers, Pass, PassLimits, Recovered, Shard, StoreError};
use ringback_core::limits::{MAX_LEASE, MAX_LOCK_TTL, MAX_LOST};

use crate::keys::Place;
use crate::redis_store::RedisStore;
use crate::reply;
use crate::script::{self, Script};

impl RedisStore {
    pub async fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        let answer = self
            .call(&script::MEMBERS, Place::Installation)
            .arg((carrier, millis_up(ttl), millis_up(ttl.max(MAX_LOCK_TTL))))
            .run();
        let (next_change, next_bulk, mut carriers): (i64, i64, Vec<String>) = answer.await?;
        // The script lists carriers by expiry, an order that changes with every heartbeat.
        carriers.sort_unstable();
        let wait = |ms| u64::try_from(ms).ok().map(Duration::from_millis);
        Ok(LiveCarriers { carriers, next_change: wait(next_change), next_bulk: wait(next_bulk) })
    }

    pub async fn claim(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        self.call(&script::CLAIM, shard).arg(carrier).run().await.map(Epoch)
    }

    pub async fn release_shard(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        self.call(&script::RELEASE_SHARD, shard).arg(&epoch.0).run::<Value>().await.map(drop)
    }

    pub async fn promote(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        self.pass(&script::PROMOTE, shard, epoch, limits, None).await.map(|(pass, _)| pass)
    }

    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
    ) -> Result<Recovered, StoreError> {
        let more = Some((self.keep(), MAX_LOST, millis_up(MAX_LEASE)));
        let (pass, expired) = self.pass(&script::RECOVER, shard, epoch, limits, more).await?;
        let expired = match expired {
            Some(expired) => self.expired(shard, expired).await?,
            None => Vec::new(),
        };
        Ok(Recovered { pass, expired })
    }

    pub async fn evict(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        self.pass(&script::EVICT, shard, epoch, limits, None).await.map(|(pass, _)| pass)
    }

    /// Makes one bounded pass over a shard. Also returns the part of the answer after the waits.
    async fn pass(
        &self,
        script: &Script,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
        more: Option<((u64, u64), u32, u64)>,
    ) -> Result<(Pass, Option<Value>), StoreError> {
        let args = (&epoch.0, limits.jobs, millis_up(limits.floor), millis_up(self.options.keep_dead), more);
        let mut parts: Vec<Value> = self.call(script, shard).arg(args).run().await?;
        if parts.is_empty() {
            return Ok((Pass::Fenced, None));
        }
        let beside = if parts.len() > 7 { parts.pop() } else { None };
        let (moved, other, due, lease, dead, notice, firing): (_, _, i64, i64, i64, i64, i64) =
            reply::read(Value::Array(parts), script.name())?;
        let wait = |us| u64::try_from(us).ok().map(Duration::from_micros);
        let pass = Pass::Held {
            moved,
            other,
            next_due: wait(due),
            next_lease: wait(lease),
            next_dead: wait(dead),
            next_notice: wait(notice),
            next_firing: wait(firing),
        };
        Ok((pass, beside))
    }
}
