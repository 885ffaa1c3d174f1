//! The reserve edge: what is asked for, and how leases are made of the records that come
//! back. Large payloads are read after the script, since it would take too long with them.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use redis::Value;
use tokio::time::Instant;

use super::RedisStore;
use super::layout::{Head, Tail};
use super::script::{self, reply};
use crate::clock::millis_up;
use crate::job::{DEFAULT_TIMEOUT, Delivery, Locator};
use crate::store::lease::Receipt;
use crate::store::{LONGEST_STRETCH, Lease, Reserve, Reserved, Shard, StoreClock, StoreError, payload};

/// One reserve stops taking jobs once they are so many bytes, large payloads with them.
const RESERVE_BYTES: usize = 1024 * 1024;

impl RedisStore {
    pub(in crate::store) async fn reserve(
        &self,
        shard: Shard,
        ask: &Reserve<'_>,
    ) -> Result<Reserved, StoreError> {
        let asked = Instant::now();
        let answer = self.run(&script::RESERVE, shard, |cmd| {
            cmd.arg(ask.caller).arg(ask.sequence).arg(ask.limit).arg(ask.lane_room).arg(&ask.bits);
            cmd.arg(millis_up(ask.margin)).arg(millis_up(DEFAULT_TIMEOUT)).arg(millis_up(LONGEST_STRETCH));
            cmd.arg(RESERVE_BYTES);
            for (lane, room) in &ask.rooms {
                cmd.arg(lane).arg(room);
            }
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let (Some(now), Some(more), Some(passed)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(StoreError::Unreadable("a reserve's answer"));
        };
        let clock = StoreClock { shown_us: reply::number(&now)?, asked };
        let mut jobs = Vec::with_capacity(parts.len() / 3);
        while let (Some(locator), Some(head), Some(record)) = (parts.next(), parts.next(), parts.next()) {
            jobs.push((reply::bytes(locator)?, reply::bytes(head)?, reply::bytes(record)?));
        }
        // All at once, so that many large payloads wait no longer than one.
        let read = jobs.into_iter().map(async |(locator, head, record)| {
            let lease = self.lease(shard, &locator, head, record, clock).await;
            // The rest is not lost with one: its lease runs out and it is recovered.
            lease.unwrap_or_else(|error| {
                tracing::error!(shard = shard.0, %error, "a reserved job cannot be read");
                None
            })
        });
        let leases = join_all(read).await.into_iter().flatten().collect();
        let passed = reply::list(passed)?.into_iter().map(reply::text).collect::<Result<_, _>>()?;
        Ok(Reserved { leases, more: reply::int(&more)? == 1, passed })
    }

    /// A lease from its head and record. `None` when its large payload has gone meanwhile: then the
    /// job has ended, by a late success.
    async fn lease(
        &self,
        shard: Shard,
        locator: &Bytes,
        head: Bytes,
        record: Bytes,
        clock: StoreClock,
    ) -> Result<Option<Lease>, StoreError> {
        let locator = Locator(locator.as_ref().try_into().map_err(|_| StoreError::Unreadable("a locator"))?);
        let head = Head::parse(head)?;
        let tail = Tail::parse(record)?;
        let key = tail.key.clone();
        let Some(delivery) = self.delivery(shard, locator, &head, tail).await? else { return Ok(None) };
        let left = head.deadline.as_millis().saturating_mul(1000).saturating_sub(clock.shown_us);
        Ok(Some(Lease {
            shard,
            locator,
            receipt: Receipt { number: head.lease, bits: head.bits },
            deadline: clock.asked + Duration::from_micros(left),
            clock,
            key,
            delivery,
            due: head.due,
            created: head.created,
            attempt: head.attempts,
            failures: head.failures,
        }))
    }

    /// What a job brought along. `None` when its large payload has gone meanwhile, and the job
    /// with it.
    pub(super) async fn delivery(
        &self,
        shard: Shard,
        locator: Locator,
        head: &Head,
        tail: Tail,
    ) -> Result<Option<Delivery>, StoreError> {
        let packed = if head.is_external() {
            let key = self.keys.external(shard, locator);
            match self.topology.call(redis::cmd("GET").arg(key)).await? {
                Value::Nil => return Ok(None),
                value => reply::bytes(value)?,
            }
        } else {
            tail.payload
        };
        let delivery = payload::unpack(&packed, tail.origin, head.timeout);
        delivery.map(Some).ok_or(StoreError::Unreadable("a job's payload"))
    }
}
