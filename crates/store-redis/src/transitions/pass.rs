//! A carrier's passes over a shard: promote, recover and evict.

use std::time::Duration;

use redis::{ToRedisArgs, Value};
use ringback_core::clock::millis_up;
use ringback_core::limits::{MAX_LEASE, MAX_LOST};
use ringback_core::store_types::{Epoch, Pass, PassLimits, Recovered, Shard, StoreError};

use crate::redis_store::RedisStore;
use crate::reply;
use crate::script::{self, Script};
use crate::topology::Confirmation;

impl RedisStore {
    pub async fn promote(&self, shard: Shard, epoch: &Epoch, limits: PassLimits) -> Result<Pass, StoreError> {
        if limits.may_leave
            && let Some(wait) = self.left_to_waiter(shard).await?
        {
            return Ok(Pass::Left(wait));
        }
        self.pass(&script::PROMOTE, shard, epoch, limits, None::<u8>).await.map(|(pass, _)| pass)
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

    /// Returns for how long the carrier leaves the shard to the notifier that waits for due jobs; `None` if a pass is due. A
    /// carrier that has lost the shard learns it by its next pass. The time is computed, because a TIME costs Redis as much
    /// as the look: where it is wrong, the carrier makes a pass in vain, or leaves the shard to the waiter a little longer.
    async fn left_to_waiter(&self, shard: Shard) -> Result<Option<Duration>, StoreError> {
        let fields = self.read_fields(shard, Confirmation::None).await?;
        Ok(fields.leaves_to_waiter(self.clock.server_us()))
    }

    /// Makes one bounded pass over a shard with a script; `Fenced` if another carrier has the shard. `more` are arguments
    /// of one script. Also returns the part of the answer behind the waits, `None` if there is none.
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
