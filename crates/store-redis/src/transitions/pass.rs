//! A carrier's passes over a shard: promote, recover and evict.

use std::time::Duration;

use redis::{ToRedisArgs, Value};
use ringback_core::clock::millis_up;
use ringback_core::limits::{MAX_LEASE, MAX_LOST};
use ringback_core::store_types::{Epoch, Pass, PassLimits, Recovered, Shard, StoreError};

use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script::{self, Script};

impl RedisStore {
    pub async fn promote(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        let more = u8::from(limits.may_leave);
        self.pass(&script::PROMOTE, shard, epoch, limits, more).await.map(|(pass, _)| pass)
    }

    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
    ) -> Result<Recovered, StoreError> {
        let more = (self.keep(), MAX_LOST, millis_up(MAX_LEASE));
        let (pass, expired) = self.pass(&script::RECOVER, shard, epoch, limits, more).await?;
        let expired = match expired {
            Some(expired) => self.expired(shard, expired).await?,
            None => Vec::new(),
        };
        Ok(Recovered { pass, expired })
    }

    pub async fn evict(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        self.pass(&script::EVICT, shard, epoch, limits, None::<u8>).await.map(|(pass, _)| pass)
    }

    /// Makes one bounded pass over a shard with a script; `Fenced` if another carrier has the shard, `Left` if a waiter is in time. `more` are arguments of one script. Also returns the
    /// part of the answer behind the waits, `None` if there is none.
    async fn pass(
        &self,
        script: &Script,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
        more: impl ToRedisArgs + Send + Sync,
    ) -> Result<(Pass, Option<Value>), StoreError> {
        let args =
            (&epoch.0, limits.jobs, millis_up(limits.max_sleep), millis_up(self.options.keep_dead), more);
        let mut parts: Vec<Value> = self.call(script, shard).arg(args).run().await?;
        match parts.as_slice() {
            [] => return Ok((Pass::Fenced, None)),
            [wait] => {
                let wait = u64::try_from(take::int(wait)?).unwrap_or_default();
                return Ok((Pass::Left(Duration::from_micros(wait)), None));
            }
            _ => {}
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
